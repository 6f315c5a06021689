import base64
import gzip
import hashlib
import importlib
import logging
import multiprocessing
import os
import shutil
import signal
import threading
from collections import namedtuple
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from setsup.errors import DataError
from setsup.files import Addresses, Licence, Manifest, ManifestFile, check_files, fetch, load_manifest
from setsup.files.manifests.manifest import ManifestListed
from setsup.files.manifests.parsing import read_manifest

SPAWN = multiprocessing.get_context("spawn")
SHARED = Path(__file__).resolve().parents[3].parent / "shared" / "data"
Noise = Callable[[int], bytes]


def published(body: bytes, *urls: str, path: str = "x.bin", **more: Any) -> ManifestFile:
    return ManifestFile(path, urls=urls, size=len(body), sha256=hashlib.sha256(body).hexdigest(), **more)


def toy(*files: ManifestFile, **more: Any) -> Manifest:
    return Manifest("toy", "Toy", "A toy.", Licence("MIT", sign=more.pop("sign", None)), files=files, **more)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_fetch_and_fetch_again(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(300_000)
    manifest = toy(published(body, mirror.add("x.bin", body), path="deep/x.bin"))
    root = tmp_path / "root"
    assert fetch(manifest, root) == root
    assert (root / "deep" / "x.bin").read_bytes() == body
    assert names(root) == ["x.bin"]
    before = (root / "deep" / "x.bin").stat().st_mtime_ns
    fetch(manifest, root)
    assert len(mirror.asked) == 1
    assert (root / "deep" / "x.bin").stat().st_mtime_ns == before


def test_places(tmp_path: Path, cache: Path, mirror: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = toy(published(b"abc", mirror.add("x.bin", b"abc")))
    assert fetch(manifest) == cache / "toy"
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "shared"))
    assert fetch(manifest) == cache / "toy"  # there it is already
    shutil.rmtree(cache)
    assert fetch(manifest) == tmp_path / "shared" / "toy"
    assert fetch(manifest, tmp_path / "shared") == tmp_path / "shared" / "toy"
    assert fetch(manifest, str(tmp_path / "new")) == tmp_path / "new"


def test_files_that_several_data_sets_are_made_of(
    tmp_path: Path, cache: Path, mirror: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They lie once, in the folder of the data set that they belong to, where none has a copy of its own."""
    file = published(b"abc", mirror.add("x.bin", b"abc"))
    own, derived = (replace(load_manifest(name), files=(file,)) for name in ("mnist", "affine-mnist"))
    assert fetch(derived) == fetch(own) == cache / "mnist"
    assert len(mirror.asked) == 1
    assert [state.path for state in check_files(derived)] == [cache / "mnist" / "x.bin"]
    (cache / "mnist").rename(cache / "affine-mnist")
    assert fetch(derived) == cache / "affine-mnist"
    assert fetch(derived, tmp_path / "new") == tmp_path / "new"
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path / "shared"))
    assert fetch(own) == tmp_path / "shared" / "mnist"
    assert len(mirror.asked) == 3


def test_a_dropped_connection_is_taken_up(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(1_000_000)
    url = mirror.add("x.bin", body, drops=[400_000, 300_000])
    fetch(toy(published(body, url)), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body
    first, second, third = mirror.ranges("x.bin")
    assert first is None
    assert 300_000 < int(second[6:-1]) <= 400_000
    assert 600_000 < int(third[6:-1]) <= 700_000
    assert names(tmp_path) == ["x.bin"]


def test_a_later_call_resumes(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(1_000_000)
    url = mirror.add("x.bin", body, drops=[500_000, 0, 0, 0])
    manifest = toy(published(body, url))
    with pytest.raises(DataError, match=r"x\.bin could not be downloaded: .*the connection dropped"):
        fetch(manifest, tmp_path)
    part = (tmp_path / "x.bin.part").stat().st_size
    assert part > 400_000
    assert (tmp_path / "x.bin.part").read_bytes() == body[:part]
    mirror.asked.clear()
    fetch(manifest, tmp_path)
    assert mirror.ranges("x.bin") == [f"bytes={part}-"]
    assert (tmp_path / "x.bin").read_bytes() == body
    assert names(tmp_path) == ["x.bin"]


def test_what_a_kill_right_at_the_end_leaves_goes_away(tmp_path: Path, mirror: Any) -> None:
    file = published(b"abc", mirror.add("x.bin", b"abc"))
    fetch(toy(file), tmp_path)
    (tmp_path / "x.bin.part.json").write_text("{}")
    fetch(toy(file), tmp_path)
    assert len(mirror.asked) == 1
    assert names(tmp_path) == ["x.bin"]


@pytest.mark.parametrize("change", ["ranges", "etag", "no etag", "shift", "longer"])
def test_a_part_that_does_not_fit_is_given_up(tmp_path: Path, mirror: Any, noise: Noise, change: str) -> None:
    body = noise(1_000_000)
    url = mirror.add("x.bin", body, drops=[500_000, 0, 0, 0])
    with pytest.raises(DataError):
        fetch(toy(published(body, url)), tmp_path)
    page = mirror.pages["/x.bin"]
    if change == "ranges":
        page.ranges = False
    elif change == "etag":
        page.etag, page.body = '"2"', body[::-1]
    elif change == "no etag":
        page.etag, page.ranges = None, True
    elif change == "shift":
        page.shift = 1
    else:
        with (tmp_path / "x.bin.part").open("ab") as part:
            part.write(noise(600_000))
    fetch(toy(published(page.body, url)), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == page.body


def test_a_damaged_part_is_noticed_by_its_digest(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(1_000_000)
    manifest = toy(published(body, mirror.add("x.bin", body, drops=[500_000, 0, 0, 0])))
    with pytest.raises(DataError):
        fetch(manifest, tmp_path)
    part = tmp_path / "x.bin.part"
    part.write_bytes(bytes(1000) + part.read_bytes()[1000:])
    fetch(manifest, tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"url": 1}', b'{"url": "u", "version": 3, "total": "x"}'])
def test_a_damaged_note_is_no_note(tmp_path: Path, mirror: Any, noise: Noise, note: bytes) -> None:
    body = noise(200_000)
    (tmp_path / "x.bin.part").write_bytes(noise(1000))
    (tmp_path / "x.bin.part.json").write_bytes(note)
    fetch(toy(published(body, mirror.add("x.bin", body))), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body
    assert mirror.ranges("x.bin") == [None]


def test_a_server_without_versions_sends_all_anew(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(1_000_000)
    url = mirror.add("x.bin", body, etag=None, drops=[500_000])
    fetch(toy(published(body, url)), tmp_path)
    assert mirror.ranges("x.bin") == [None, None]
    assert (tmp_path / "x.bin").read_bytes() == body


def test_a_server_that_does_not_announce_the_size(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(200_000)
    url = mirror.add("x.bin", body, chunked=True)
    fetch(toy(published(body, url)), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body
    endless = mirror.add("y.bin", body * 5, chunked=True)
    with pytest.raises(DataError, match="sent more than the expected 200,000 bytes"):
        fetch(toy(published(body, endless, path="y.bin")), tmp_path)


def test_the_next_mirror_is_tried_and_every_failure_told(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(100_000)
    page = b"<!DOCTYPE html><html><head><title>Quota\nexceeded</title></head></html>"
    bad = [
        "http://127.0.0.1:9/x.bin",  # the discard port: nobody listens
        mirror.url + "/none.bin",
        mirror.add("page.bin", page, kind="text/html"),
        mirror.add("hidden.bin", b"\xef\xbb\xbf\n <HTML>" + page),
        mirror.add("text.bin", b"Please log in", kind="text/html; charset=utf-8"),
        mirror.add("other.bin", noise(100_000)[::-1]),
        mirror.add("short.bin", body[:-1]),
        mirror.add("busy.bin", body, codes=[503] * 9),
    ]
    with pytest.raises(DataError) as caught:
        fetch(toy(published(body, *bad), homepage="https://example.org"), tmp_path)
    said = str(caught.value)
    for reason in (
        "http://127.0.0.1:9/x.bin cannot be reached (Connection refused)",
        "/none.bin returned HTTP 404 Not Found",
        '/page.bin returned a web page ("Quota exceeded"), not the file',
        "/hidden.bin returned a web page",
        "/text.bin returned a web page, not the file",
        f"/other.bin returned a file that has sha256 {hashlib.sha256(body[::-1]).hexdigest()}, not the",
        "/short.bin has 99,999 bytes, not the expected 100,000",
        "/busy.bin returned HTTP 503",
        f"; resume with `setsup fetch toy --root {tmp_path}`, or put x.bin into {tmp_path} yourself",
    ):
        assert reason in said
    assert said.startswith("toy: x.bin could not be downloaded: ")
    assert mirror.ranges("busy.bin") == [None] * 3
    assert mirror.ranges("none.bin") == [None]
    assert names(tmp_path) == []
    fetch(toy(published(body, *bad, mirror.add("x.bin", body))), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body


def test_telling_a_web_page_takes_no_longer_than_reading_it(tmp_path: Path, mirror: Any) -> None:
    # comments before the page: a pattern that goes back over them would take for ever
    comments = b"<!-- -->" * 4000
    page = mirror.add("page.bin", comments + b"<html>")
    noise = mirror.add("noise.bin", comments + b"none")
    with pytest.raises(DataError, match=r"/page\.bin returned a web page"):
        fetch(toy(published(b"", page)), tmp_path / "page")
    assert (
        fetch(toy(published(comments + b"none", noise)), tmp_path / "noise") / "x.bin"
    ).read_bytes() == comments + b"none"


def test_a_server_that_is_busy_for_a_moment(tmp_path: Path, mirror: Any) -> None:
    fetch(toy(published(b"abc", mirror.add("x.bin", b"abc", codes=[503, 429]))), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == b"abc"


def test_another_mirror_does_not_continue_the_part_of_the_first(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(600_000)
    first = mirror.add("a.bin", body, drops=[300_000, 0, 0, 0])
    second = mirror.add("b.bin", body)
    fetch(toy(published(body, first, second)), tmp_path)
    assert mirror.ranges("b.bin") == [None]
    assert (tmp_path / "x.bin").read_bytes() == body


@pytest.mark.parametrize("resumption", [{"resumes": False}, {"shift": 1}, {"ranges": False}, {"etag": None}])
@pytest.mark.parametrize("grows", [0, 1_000])
def test_a_mirror_that_cuts_and_never_sends_the_rest_is_left(
    tmp_path: Path, mirror: Any, noise: Noise, resumption: dict[str, Any], grows: int
) -> None:
    body = noise(600_000)
    cuts = [200_000 + grows * i for i in range(300)]
    first = mirror.add("a.bin", body, drops=cuts, **resumption)
    fetch(toy(published(body, first, mirror.add("b.bin", body))), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body
    assert len(mirror.ranges("a.bin")) <= 6
    assert mirror.ranges("b.bin") == [None]


def test_a_file_that_changes_under_one_date_is_fetched_whole_once_more(
    tmp_path: Path, mirror: Any, noise: Noise
) -> None:
    body = noise(600_000)
    old = body[::-1]
    url = mirror.add("x.bin", body, bodies=[old, body, body], drops=[300_000])
    fetch(toy(published(body, url)), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body
    first, rest, whole = mirror.ranges("x.bin")
    assert first is whole is None
    assert rest


def test_a_file_that_changes_at_every_request_is_fetched_whole_once_more_only(
    tmp_path: Path, mirror: Any, noise: Noise
) -> None:
    body = noise(600_000)
    url = mirror.add("x.bin", body, bodies=[body, body[::-1]] * 100, drops=[300_000, 600_000] * 100)
    with pytest.raises(DataError, match="returned a file that has sha256"):
        fetch(toy(published(body, url)), tmp_path)
    assert len(mirror.ranges("x.bin")) == 4
    assert names(tmp_path) == []


@pytest.mark.long("fuzzing")
def test_whatever_a_mirror_does_the_next_one_is_asked(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(500_000)
    good = mirror.add("b.bin", body)
    for seed in range(150):
        random = Random(seed)
        size = len(body)
        page: dict[str, Any] = {
            "etag": random.choice(['"1"', None]),
            "ranges": random.random() < 0.8,
            "resumes": random.random() < 0.7,
            "shift": random.choice([0, 0, 0, 1, -1, 70_000]),
            "chunked": random.random() < 0.2,
            "drops": [random.choice([0, 1, size, random.randrange(size)]) for _ in range(random.randrange(400))],
            "codes": random.choices([200, 503, 416, 404, 206], [20, 4, 2, 0.2, 0.2], k=random.randrange(400)),
            "bodies": random.choices([body, body[::-1], body[:-1]], [9, 1, 1], k=random.randrange(400)),
        }
        first = mirror.add("a.bin", random.choice([body, body[::-1], body[1:]]), **page)
        mirror.asked.clear()
        fetch(toy(published(body, first, good)), tmp_path / str(seed))
        assert (tmp_path / str(seed) / "x.bin").read_bytes() == body, seed
        assert len(mirror.ranges("a.bin")) <= 40, seed
        assert names(tmp_path / str(seed)) == ["x.bin"], seed


def test_the_mirror_of_the_part_goes_first(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(600_000)
    second = mirror.add("b.bin", body, drops=[300_000, 0, 0, 0])
    manifest = toy(published(body, mirror.url + "/none", second))
    with pytest.raises(DataError):
        fetch(manifest, tmp_path)
    size = (tmp_path / "x.bin.part").stat().st_size
    mirror.asked.clear()
    fetch(manifest, tmp_path)
    assert mirror.asked == [("/b.bin", f"bytes={size}-")]


def test_a_repacked_copy_is_right_when_its_content_is(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(1000) * 100
    original = gzip.compress(body, 9, mtime=1)
    repacked = gzip.compress(body, 1, mtime=2)
    assert len(original) != len(repacked)
    file = ManifestFile(
        "x.gz",
        alternatives=("x",),
        urls=(mirror.add("x.gz", repacked),),
        size=len(original),
        sha256=hashlib.sha256(original).hexdigest(),
        unpacked_md5=hashlib.md5(body).hexdigest(),
        unpacked_size=len(body),
    )
    fetch(toy(file), tmp_path / "a")
    assert (tmp_path / "a" / "x.gz").read_bytes() == repacked
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_bytes(body)  # unpacked, under its other name
    fetch(toy(file), tmp_path / "b")
    assert len(mirror.asked) == 1
    for bad, said in ((gzip.compress(body[::-1]), "when unpacked, not the"), (repacked[:-9], "truncated or damaged")):
        mirror.add("x.gz", bad)
        with pytest.raises(DataError, match=said):
            fetch(toy(file), tmp_path / "c")


def test_packing_in_transit_is_not_undone(tmp_path: Path, mirror: Any) -> None:
    """Some servers label a .gz as Content-Encoding: gzip, which HTTP libraries unpack unasked."""
    body = gzip.compress(b"abc" * 1000)
    url = mirror.add("x.gz", body, kind="application/gzip\r\nContent-Encoding: gzip")
    fetch(toy(published(body, url, path="x.gz")), tmp_path)
    assert (tmp_path / "x.gz").read_bytes() == body


def test_a_damaged_file_is_fetched_anew(tmp_path: Path, mirror: Any, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "x.bin").write_bytes(b"abd")
    fetch(toy(published(b"abc", mirror.add("x.bin", b"abc"))), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == b"abc"
    warned = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert any("x.bin has sha256" in text and "fetching it again" in text for text in warned)


def test_a_damaged_file_stays_until_the_new_one_is_right(tmp_path: Path, mirror: Any) -> None:
    (tmp_path / "x.bin").write_bytes(b"abd")
    with pytest.raises(DataError):
        fetch(toy(published(b"abc", mirror.url + "/none")), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == b"abd"


def test_a_damaged_file_of_the_users_own_is_not_touched(tmp_path: Path, mirror: Any) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "x.bin").write_bytes(b"abd")
    manifest = toy(published(b"abc", mirror.add("x.bin", b"abc"), alternatives=("own/x.bin",)))
    with pytest.raises(DataError, match=r"own/x.bin has sha256 .*; remove it, and fetch or copy x\.bin again"):
        fetch(manifest, tmp_path)
    assert mirror.asked == []


def test_a_file_of_another_name_may_be_another_edition(tmp_path: Path, mirror: Any) -> None:
    (tmp_path / "challenge.bin").write_bytes(b"fewer")
    manifest = toy(published(b"whole", mirror.add("x.bin", b"whole"), alternatives=("challenge.bin",)))
    assert [state.state.value for state in check_files(manifest, tmp_path)] == ["there, not checked"]
    assert fetch(manifest, tmp_path) == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["challenge.bin"]
    assert mirror.asked == []


def test_a_folder_in_place_of_the_file(tmp_path: Path, mirror: Any) -> None:
    (tmp_path / "x.bin").mkdir()
    with pytest.raises(DataError, match=r"x\.bin is not a file; remove it"):
        fetch(toy(published(b"abc", mirror.add("x.bin", b"abc"))), tmp_path)


def test_room_is_made_sure_of_before_anything_starts(
    tmp_path: Path, mirror: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10_000, 5_000, 5_000))
    files = [published(bytes(3000), mirror.add(name, bytes(3000)), path=name) for name in ("a", "b")]
    with pytest.raises(DataError, match=r"toy requires 6\.0 kB in .*root.*, but only 5\.0 kB are available; free"):
        fetch(toy(*files), tmp_path / "root")
    assert mirror.asked == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_disk_that_fills_up_meanwhile(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(300_000)
    manifest = toy(published(body, mirror.add("x.bin", body)))
    (tmp_path / "x.bin.part").symlink_to("/dev/full")
    with pytest.raises(DataError, match=r"cannot write .*x\.bin\.part: the disk is full; free some space"):
        fetch(manifest, tmp_path)
    (tmp_path / "x.bin.part").unlink()
    fetch(manifest, tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body


def test_a_root_that_cannot_be(tmp_path: Path, mirror: Any) -> None:
    (tmp_path / "file").write_bytes(b"")
    manifest = toy(published(b"abc", mirror.add("x.bin", b"abc")))
    for root in (tmp_path / "file" / "inner", tmp_path / "file"):
        with pytest.raises(DataError, match=str(root)):
            fetch(manifest, root)
    assert mirror.asked == []


def test_what_must_be_signed_is_said(tmp_path: Path, mirror: Any) -> None:
    url = mirror.add("x.bin", b"abc")
    manifest = toy(published(b"abc", url), sign="the agreement, by a professor", homepage="https://example.org")
    with pytest.raises(DataError) as caught:
        fetch(manifest, tmp_path)
    assert str(caught.value) == (
        "toy is available only after signing: the agreement, by a professor (https://example.org); "
        f"then put x.bin into {tmp_path}, and check with `setsup fetch toy --root {tmp_path} --check`"
    )
    assert mirror.asked == []
    (tmp_path / "x.bin").write_bytes(b"abc")
    assert fetch(manifest, tmp_path) == tmp_path


def test_files_without_a_mirror(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"files that cannot be downloaded automatically; .*then put x\.bin into"):
        fetch(toy(published(b"abc")), tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_what_is_there_missing_or_wrong_is_told(tmp_path: Path) -> None:
    manifest = toy(
        published(b"right", path="a.bin"),
        published(b"wrong", path="b.bin"),
        published(b"short", path="c.bin"),
        published(b"packed", path="d.zip", alternatives=("d",)),
        ManifestFile("e.bin"),
        published(b"gone", path="f.bin"),
        published(b"spare", path="g.bin", optional=True),
    )
    for name, body in [("a.bin", b"right"), ("b.bin", b"WRONG"), ("c.bin", b"shor"), ("e.bin", b"whatever")]:
        (tmp_path / name).write_bytes(body)
    (tmp_path / "d").mkdir()
    found = check_files(manifest, tmp_path)
    assert [state.state.value for state in found] == [
        *("right", "wrong", "wrong", "there, not checked", "there, not checked", "missing", "missing")
    ]
    assert [state.wanted for state in found] == [False, True, True, False, False, True, False]
    assert found[1].problem.startswith("has sha256 ")
    assert found[2].problem == "has 4 bytes, not the expected 5"
    assert [state.path.name for state in found] == ["a.bin", "b.bin", "c.bin", "d", "e.bin", "f.bin", "g.bin"]


def test_one_file_that_stands_for_all_is_compared_with_none_of_them(tmp_path: Path) -> None:
    files = [published(name.encode(), path=f"{name}.json", alternatives=("all.json",)) for name in "ab"]
    (tmp_path / "all.json").write_bytes(b"a and b")
    assert [state.state.value for state in check_files(toy(*files), tmp_path)] == ["there, not checked"] * 2
    assert fetch(toy(*files), tmp_path) == tmp_path
    (tmp_path / "b.json").write_bytes(b"x")
    assert [state.state.value for state in check_files(toy(*files), tmp_path)] == ["there, not checked", "wrong"]


def test_an_optional_file_is_fetched_where_a_mirror_has_it_and_never_asked_of_a_person(
    tmp_path: Path, mirror: Any
) -> None:
    spare = published(b"spare", mirror.add("y.bin", b"spare"), path="y.bin", optional=True)
    fetch(toy(published(b"abc", mirror.add("x.bin", b"abc")), spare), tmp_path)
    assert (tmp_path / "y.bin").read_bytes() == b"spare"
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "x.bin").write_bytes(b"abc")
    assert fetch(toy(published(b"abc"), published(b"d", path="d.bin", optional=True)), tmp_path / "z") == tmp_path / "z"


def test_a_failed_download_says_what_was_known_of_the_addresses(tmp_path: Path, mirror: Any) -> None:
    known = Addresses("2026-11-23", "The host was closed in 2023.")
    manifest = toy(published(b"abc", f"{mirror.url}/gone.bin"), addresses=known)
    with pytest.raises(
        DataError,
        match=r"its addresses, as known on 2026-11-23: The host was closed in 2023\.\); resume with .* yourself$",
    ):
        fetch(manifest, tmp_path)


def test_what_another_tool_has_downloaded_is_copied(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    bodies = {name: noise(1000 + place) for place, name in enumerate(("a.gz", "b.h5", "c.bin", "d.bin"))}
    files = [published(body, path=f"deep/{name}") for name, body in list(bodies.items())[:3]]
    files.append(published(bodies["d.bin"], mirror.add("d.bin", bodies["d.bin"]), path="d.bin"))
    # names as TensorFlow Datasets gives them: the address, the SHA-256 in base 64 for addresses, the extension
    downloads = tmp_path / "downloads" / "toy"
    downloads.mkdir(parents=True)
    for name in ("a.gz", "b.h5"):
        told = base64.urlsafe_b64encode(hashlib.sha256(bodies[name]).digest()).decode()[:-1]
        (downloads / f"exam_{name[0]}{told}.{name[2:]}").write_bytes(bodies[name])
        (downloads / f"exam_{name[0]}{told}.{name[2:]}.INFO").write_text("{}")
    (downloads / "c.bin").write_bytes(bodies["c.bin"])
    (downloads / "d.bin").write_bytes(b"another file of that name")
    root = tmp_path / "root"
    assert fetch(toy(*files), root, copies=tmp_path / "downloads") == root
    assert [(root / file.path).read_bytes() for file in files] == list(bodies.values())
    assert [path for path, _ in mirror.asked] == ["/d.bin"]
    assert len(names(downloads)) == 6
    with pytest.raises(DataError, match="is not a folder; pass the folder that contains copies"):
        fetch(toy(*files), tmp_path / "other", copies=tmp_path / "nowhere")


def test_where_no_file_is_needed_those_that_can_be_fetched_are(tmp_path: Path, mirror: Any) -> None:
    offered = published(b"abc", mirror.add("high.bin", b"abc"), path="high.bin", optional=True)
    by_hand = [published(bytes([k]), path=f"low{k}.bin", optional=True) for k in range(3)]
    assert fetch(toy(offered, *by_hand), tmp_path / "one") == tmp_path / "one"
    assert names(tmp_path / "one") == ["high.bin"]
    with pytest.raises(
        DataError, match=r"files that cannot be downloaded automatically; .*put low0\.bin, low1\.bin, low2\.bin into"
    ):
        fetch(toy(*by_hand), tmp_path / "two")
    (tmp_path / "low1.bin").write_bytes(b"\x01")
    assert fetch(toy(*by_hand), tmp_path) == tmp_path  # one will do


def test_some_files_are_fetched_when_they_are_named_only(tmp_path: Path, mirror: Any) -> None:
    files = [published(b"abc", mirror.add("high.bin", b"abc"), path="high.bin", optional=True)]
    for name in ("low_X2.bin", "low_X3.bin"):
        url = mirror.add(name, name.encode())
        files.append(published(name.encode(), url, path=name, optional=True, on_request=True))
    fetch(toy(*files), tmp_path / "all")
    assert names(tmp_path / "all") == ["high.bin"]
    fetch(toy(*files), tmp_path / "some", ["low_*"])
    assert names(tmp_path / "some") == ["low_X2.bin", "low_X3.bin"]
    fetch(toy(*files), tmp_path / "some", ["low_X3.bin", "high.bin"])
    assert names(tmp_path / "some") == ["high.bin", "low_X2.bin", "low_X3.bin"]
    assert len(mirror.asked) == 4
    with pytest.raises(DataError, match=r"unknown file 'low_x2\.bin' of toy; did you mean 'low_X2\.bin'"):
        fetch(toy(*files), tmp_path, ["low_x2.bin"])
    # what is asked for by name has to be had, though the rest opens without it
    asked = published(b"d", path="d.bin", optional=True)
    with pytest.raises(DataError, match=r"put d\.bin into .* `setsup fetch toy --root .* --check`"):
        fetch(toy(*files, asked), tmp_path, ["d.bin"])


def test_what_the_published_zips_of_div2k_would_be_fetched_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    module = importlib.import_module("setsup.files.downloads.fetch")
    monkeypatch.setattr(module, "download", lambda file, target: taken.append(file.path))
    monkeypatch.setattr(module, "need_space", lambda *_: None)
    fetch(load_manifest("div2k"), tmp_path)
    assert taken == ["DIV2K_train_HR.zip", "DIV2K_valid_HR.zip"]
    del taken[:]
    fetch(load_manifest("div2k"), tmp_path, ["*_LR_bicubic_X2.zip"])
    assert taken == ["DIV2K_train_LR_bicubic_X2.zip", "DIV2K_valid_LR_bicubic_X2.zip"]


def test_a_redirect_is_followed(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(50_000)
    target = mirror.add("moved/x.bin", body)
    fetch(toy(published(body, mirror.add("x.bin", b"", moved=target))), tmp_path)
    assert (tmp_path / "x.bin").read_bytes() == body


@pytest.mark.long("stores")
def test_a_mirror_that_stalls_is_left_and_the_next_goes_on(
    tmp_path: Path, mirror: Any, noise: Noise, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setsup.files.downloads.transfer._TIMEOUTS", (5.0, 0.3))
    body, never = noise(100_000), threading.Event()
    stalls = mirror.add("stalls/x.bin", body, go_on=never)
    try:
        fetch(toy(published(body, stalls, mirror.add("x.bin", body))), tmp_path)
    finally:
        never.set()
    assert (tmp_path / "x.bin").read_bytes() == body


def test_nothing_to_fetch(tmp_path: Path) -> None:
    fetch(toy(), tmp_path / "root")
    assert not (tmp_path / "root").exists()


def run(manifest: Manifest, root: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job has it ignored
    fetch(manifest, root)


@pytest.mark.long("worker processes")
def test_two_processes_fetch_at_once(tmp_path: Path, mirror: Any, noise: Noise) -> None:
    body = noise(400_000)
    manifest = toy(published(body, mirror.add("x.bin", body, go_on=threading.Event())))
    page = mirror.pages["/x.bin"]
    workers = [SPAWN.Process(target=run, args=(manifest, tmp_path)) for _ in range(2)]
    for worker in workers:
        worker.start()
    assert page.begun.wait(60)
    workers[0].join(1)  # time for the other to come to the lock
    page.go_on.set()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert (tmp_path / "x.bin").read_bytes() == body
    assert len(mirror.asked) == 1


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_fetch_is_resumed(tmp_path: Path, mirror: Any, noise: Noise, end: signal.Signals) -> None:
    body = noise(2_000_000)
    manifest = toy(published(body, mirror.add("x.bin", body, go_on=threading.Event())))
    page = mirror.pages["/x.bin"]
    worker = SPAWN.Process(target=run, args=(manifest, tmp_path))
    worker.start()
    assert page.begun.wait(60)
    part = tmp_path / "x.bin.part"
    while not part.exists() or part.stat().st_size < 500_000:
        worker.join(0.02)
        assert worker.is_alive()
    os.kill(worker.pid or 0, end)
    worker.join(60)
    assert worker.exitcode not in (0, None)
    page.go_on.set()
    page.go_on = None
    size = part.stat().st_size
    assert part.read_bytes() == body[:size]
    mirror.asked.clear()
    fetch(manifest, tmp_path)
    assert mirror.ranges("x.bin") == [f"bytes={size}-"]
    assert (tmp_path / "x.bin").read_bytes() == body
    assert names(tmp_path) == ["x.bin"]


@pytest.mark.skipif(not (SHARED / "mnist").is_dir(), reason="the genuine MNIST files are not beside the checkout")
def test_the_genuine_mnist_files_are_right() -> None:
    """One of them is packed anew: its content is the published one, its gzip file is not."""
    assert fetch(load_manifest("mnist"), SHARED / "mnist") == SHARED / "mnist"
    assert not (SHARED / "mnist" / "mnist.lock").exists()


def listed(mirror: Any, text: bytes) -> Manifest:
    """A release of which a text has the names of the files."""
    base = mirror.add("lists/all", text).removesuffix("lists/all")
    named = ManifestListed("data/{}.bin", (f"{base}data/{{}}.bin",), ("lists/all",))
    files = (ManifestFile("data"), published(text, f"{base}lists/all", path="lists/all", optional=True))
    return toy(*files, listed=(named,))


def test_files_that_a_list_names(tmp_path: Path, mirror: Any) -> None:
    """The list comes at once, and files are downloaded when they are named."""
    manifest = listed(mirror, b"one/1\none/2\ntwo/1\n")
    for name in ("one/1", "one/2", "two/1"):
        mirror.add(f"data/{name}.bin", name.encode())
    assert names(fetch(manifest, tmp_path / "lists")) == ["all"]
    root = tmp_path / "root"
    fetch(manifest, root, ["data/one/*"])
    assert names(root) == ["1.bin", "2.bin", "all"]
    assert (root / "data" / "one" / "2.bin").read_bytes() == b"one/2"
    fetch(manifest, root, ["data/two/1.bin", "lists/all"])
    assert (root / "data" / "two" / "1.bin").read_bytes() == b"two/1"
    asked = len(mirror.asked)
    fetch(manifest, root, ["data/*"])
    assert len(mirror.asked) == asked
    with pytest.raises(DataError, match=r"unknown file 'data/one/3\.bin' of toy; did you mean"):
        fetch(manifest, root, ["data/one/3.bin"])


@pytest.mark.parametrize("line", ["../x", "/etc/x", "a/../../b", "a\\b", "x?y=1", "~x", "a//b"])
def test_a_list_cannot_lead_elsewhere(tmp_path: Path, mirror: Any, line: str) -> None:
    with pytest.raises(DataError, match="has an invalid line"):
        fetch(listed(mirror, f"{line}\n".encode()), tmp_path / "root", ["data/*"])
    assert names(tmp_path / "root") == ["all"]


def test_the_lists_of_objectron_name_its_annotations() -> None:
    manifest = load_manifest("objectron")
    (annotations,) = manifest.listed
    file = annotations.of("bike/batch-1/20")
    assert file.path == "annotations/bike/batch-1/20.pbdata"
    assert file.urls == ("https://storage.googleapis.com/objectron/annotations/bike/batch-1/20.pbdata",)
    assert len(annotations.lists) == 18


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("lists: [nowhere]", "paths of the files in this manifest"),
        ("path: annotations/all", "path and each address in urls must contain {}"),
        ("urls: []", "path and each address in urls must contain {}"),
    ],
)
def test_lists_of_a_manifest_that_cannot_be_right(tmp_path: Path, change: str, words: str) -> None:
    parts = {"path": "path: 'data/{}'", "urls": "urls: ['https://host/{}']", "lists": "lists: [list.txt]"}
    parts[change.partition(":")[0]] = change
    (tmp_path / "toy.yaml").write_text(
        "name: toy\ntitle: Toy\ndescription: A toy.\nlicence: {name: MIT}\nfiles: [{path: list.txt}]\n"
        f"listed: [{{{', '.join(parts.values())}}}]\n"
    )
    with pytest.raises(DataError, match=words):
        read_manifest(tmp_path / "toy.yaml")
