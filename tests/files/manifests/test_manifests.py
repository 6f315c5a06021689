import re
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError
from setsup.files import Addresses, Manifest, load_manifest, manifest_folder, manifest_names, read_manifest

CHECKOUT = Path(__file__).resolve().parents[3]
GOOD = """\
name: toy
title: Toy
description: A toy.
homepage: https://example.org/toy
samples: 12
bytes: 30
licence: {name: MIT, url: "https://example.org/licence", note: Free., sign: null}
citation: "@misc{toy}"
factors:
  - {name: hue, kind: cyclic, levels: 10, unit: turn, period: 1, description: colour}
  - {name: shape, kind: nominal, levels: [cube, ball]}
  - {name: split, kind: nominal, levels: [train, test], role: split}
splits:
  train: {rows: [0, 8], what: for training}
  test: {rows: [8, 12]}
modalities:
  image: {shape: [null, 64, 3], dtype: uint8, color: srgb}
shares: other-toy
folders: [Toys/raw]
addresses: {checked: 2026-11-23, known: Both mirrors answer., sources: {example.org: its page}}
files:
  - path: a/x.gz
    or: [a/x]
    urls: ["https://example.org/x.gz", "http://example.com/x.gz"]
    bytes: 10
    sha256: "0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785"
    unpacked_md5: "099a2078d58cec4daad0702c55d06868"
    unpacked_bytes: 40
  - {path: y, bytes: 20}
  - {path: z, bytes: 0, optional: true, on_request: true, urls: ["https://example.org/z"]}
adapter: setsup.datasets.toy
extra: video
"""


def read(folder: Path, text: str | bytes, name: str = "toy") -> Manifest:
    file = folder / f"{name}.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_manifest(file)


def outcome(folder: Path, text: str | bytes) -> Manifest | str:
    """The manifest, or the sentence of an error of ours; any other error goes through."""
    try:
        return read(folder, text)
    except SetsupError as error:
        return str(error)


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def test_all_keys_are_read(tmp_path: Path) -> None:
    toy = read(tmp_path, GOOD)
    assert (toy.name, toy.title, toy.samples, toy.size, toy.adapter, toy.extra) == (
        *("toy", "Toy", 12, 30),
        *("setsup.datasets.toy", "video"),
    )
    assert toy.shares == "other-toy"
    assert toy.folders == ("Toys/raw",)
    assert toy.addresses == Addresses("2026-11-23", "Both mirrors answer.", (("example.org", "its page"),))
    assert [file.on_request for file in toy.files] == [False, False, True]
    assert toy.licence.note == "Free."
    assert toy.licence.sign is None
    assert [factor.name for factor in toy.factors] == ["hue", "shape", "split"]
    assert [factor.count for factor in toy.factors] == [10, 2, 2]
    assert toy.factors[0].period == 1.0
    assert toy.factors[2].role == "split"
    assert [split.rows for split in toy.splits] == [(0, 8), (8, 12)]
    assert toy.modalities[0].shape == (None, 64, 3)
    assert toy.wanted == (("a/x.gz", "a/x"), ("y",))
    assert toy.files[0].repacked
    assert not toy.files[1].repacked
    assert toy.files[0].unpacked_size == 40
    assert toy.files[1].urls == ()


SHA = "0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (SHA, SHA[:-1], r"files\[0\]\.sha256 must be 64 lower-case hexadecimal digits"),
        (SHA, SHA.replace("f", "g"), r"files\[0\]\.sha256 must be 64 lower-case hexadecimal digits"),
        (SHA, SHA.upper(), r"files\[0\]\.sha256 must be 64 lower-case hexadecimal digits"),
        (f'"{SHA}"', "12345", r"files\[0\]\.sha256 must be 64 lower-case hexadecimal digits in quotes, not 12345"),
        ('"099a', '"99a', r"files\[0\]\.unpacked_md5 must be 32 lower-case hexadecimal digits"),
        ("title: Toy\n", "", "title is missing"),
        ("2026-11-23", "'2026-11-23'", "addresses.checked must be a date such as 2026-11-23, not '2026-11-23'"),
        ("2026-11-23", "2026-11-23 10:00:00", "addresses.checked must be a date"),
        (", known: Both mirrors answer.", "", "addresses.known is missing"),
        (
            "{checked: 2026-11-23, known: Both mirrors answer., sources: {example.org: its page}}",
            "unknown",
            "addresses must be a mapping",
        ),
        ("{example.org: its page}", "its page", r"addresses\.sources must be a mapping of names to strings"),
        ("{example.org: its page}", "{example.org: 3}", r"addresses\.sources must be a mapping of names to strings"),
        ("[Toys/raw]", "[../raw]", r"folders\[0\] must be a path inside the dataset folder"),
        ("optional: true, on", "on", r"files\[2\]\.on_request requires `optional` and `urls`"),
        (
            "rows: [0, 8], what",
            "rounding: table, what",
            "splits.train.parts is missing, but stratify, seed, rounding",
        ),
        ("title: Toy", "title: [Toy]", r"title must be a non-empty string, not \['Toy'\]"),
        ("samples: 12", "samples: many", "samples must be an integer of at least 0, not 'many'"),
        ("samples: 12", "samples: -1", "samples must be an integer"),
        ("samples: 12", "samples: true", "samples must be an integer"),
        ("samples: 12", "sample: 12", "unknown key 'sample'; did you mean 'samples'"),
        ("note: Free.", "notes: Free.", "unknown key 'licence.notes'; did you mean 'note'"),
        ("name: toy\n", "name: boy\n", "name must be 'toy', the name of the file without its extension, not 'boy'"),
        ("bytes: 30", "bytes: 31", "bytes must be 30, the total of the files, not 31"),
        ("kind: cyclic", "kind: round", r"factors\[0\]\.kind must be one of nominal, ordinal, cyclic, continuous"),
        ("[cube, ball]", "[cube, cube]", r"factors\[1\]\.levels must be the number of levels or a list of distinct"),
        ("[0, 8]", "[8, 0]", r"splits\.train\.rows must be a list \[first row, row after the last\]"),
        ("dtype: uint8", "dtype: object", r"modalities\.image\.dtype must be a numpy dtype"),
        ("path: a/x.gz", "path: ../x.gz", r"files\[0\]\.path must be a path inside the dataset folder"),
        ("path: a/x.gz", "path: a/../../x.gz", r"files\[0\]\.path must be a path inside"),
        ("path: a/x.gz", "path: /etc/passwd", r"files\[0\]\.path must be a path inside"),
        ("path: a/x.gz", "path: 'C:\\x'", r"files\[0\]\.path must be a path inside"),
        ("path: a/x.gz", "path: ~/x", r"files\[0\]\.path must be a path inside"),
        ("path: a/x.gz", "path: .", r"files\[0\]\.path must be a path inside"),
        ("path: a/x.gz", "path: a//x", r"files\[0\]\.path must be a path inside"),
        ("path: a/x.gz", 'path: "a\\0b"', r"files\[0\]\.path must be a path inside"),
        ("or: [a/x]", "or: [../x]", r"files\[0\]\.or\[0\] must be a path inside"),
        ("shares: other-toy", "shares: toy", r"shares must be the name of another dataset"),
        ("shares: other-toy", "shares: ../mnist", r"shares must be lower-case words joined by hyphens"),
        ("or: [a/x]", "or: a/x", r"files\[0\]\.or must be a list"),
        ('"https://example.org/x.gz"', '"file:///etc/passwd"', r"files\[0\]\.urls\[0\] must be a URL"),
        ('"https://example.org/x.gz"', '"ftp://example.org/x"', r"files\[0\]\.urls\[0\] must be a URL"),
        ("adapter: setsup.datasets.toy", "adapter: os;x", "adapter must be a Python module"),
        ("title: Toy", "title: Toy\ntitle: Boy", "duplicate key"),
        ("title: Toy", "title: !!python/object/apply:os.getcwd []", "could not be parsed as YAML"),
        ("title: Toy", "title: !!bool maybe", "could not be parsed as YAML"),
        ("title: Toy", "title: 2001-99-99", "could not be parsed as YAML"),
        ("title: Toy", "title: [", "could not be parsed as YAML"),
        ("samples: 12", "samples: &a [*a, *a]", "recursive"),
        ("name: toy\n", "name: toy\n1: 2\n", "must be a mapping of names to values"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        read(tmp_path, changed(old, new))
    assert str(caught.value).startswith(str(tmp_path / "toy.yaml"))
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"- a",
        b"\xff\xfe\x00",
        b"\x00" * 100,
        b"[" * 200_000,
        b"- " * 20_000,
        b"x" * 300_000,
        b"name: *nothing",
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nname: &d [*c, *c, *c]",
        b"? [a]\n: b",
        b"--- a\n--- b",
    ],
)
def test_hostile_files(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(DataError, match=r"toy\.yaml") as caught:
        read(tmp_path, text)
    assert len(str(caught.value)) < 1000


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "toy.yaml", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_manifest(path)


PIECES = [
    "[",
    "]",
    "{",
    "}",
    ": ",
    "- ",
    "*a",
    "&a ",
    "!!int ",
    "!!bool ",
    "!!timestamp ",
    "|",
    "null",
    "-1",
    "..",
    "\t",
]


@pytest.mark.long("fuzzing")
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(GOOD)),
            st.integers(0, 12),
            st.one_of(st.sampled_from([piece.encode() for piece in PIECES]), st.binary(max_size=4)),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_mutations_end_in_a_manifest_or_in_an_error_of_ours(
    tmp_path: Path, edits: list[tuple[int, int, bytes]]
) -> None:
    text = GOOD.encode()
    for place, cut, piece in edits:
        text = text[:place] + piece + text[place + cut :]
    toy = outcome(tmp_path, text)
    if isinstance(toy, str):
        assert "toy.yaml" in toy
    else:
        assert all(".." not in name.split("/") and not name.startswith("/") for names in toy.wanted for name in names)


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@pytest.mark.long("fuzzing")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_in_any_place(tmp_path: Path, data: st.DataObject) -> None:
    plain = yaml.safe_load(GOOD)
    inside = data.draw(st.sampled_from([plain, plain["licence"], plain["factors"][0], plain["files"][0]]))
    inside[data.draw(st.sampled_from(sorted(inside)))] = data.draw(VALUES)
    text = yaml.safe_dump(plain, allow_unicode=True)
    toy = outcome(tmp_path, text)
    assert isinstance(toy, Manifest) or "toy.yaml" in toy


def test_the_folder_is_the_checkouts() -> None:
    assert manifest_folder() == CHECKOUT / "manifests"


def test_an_unknown_name_is_answered_with_near_ones() -> None:
    with pytest.raises(DataError) as caught:
        load_manifest("shapes3")
    assert "did you mean 'shapes3d'" in str(caught.value)
    assert "`setsup datasets` lists them" in str(caught.value)
    for name in ("", "../pyproject", "MNIST\0"):
        with pytest.raises(DataError, match="unknown dataset"):
            load_manifest(name)


@pytest.mark.parametrize("name", sorted(file.stem for file in (CHECKOUT / "manifests").glob("*.yaml")))
def test_every_manifest_loads_and_is_whole(name: str) -> None:
    manifest = load_manifest(name)
    assert name in manifest_names()
    assert manifest.description.endswith(".")
    # read once more, without our reader
    plain = yaml.safe_load((CHECKOUT / "manifests" / f"{name}.yaml").read_text(encoding="utf-8"))
    for file in plain.get("files", []):
        digests = {key: value for key, value in file.items() if key.endswith(("md5", "sha256"))}
        for key, value in digests.items():
            assert re.fullmatch("[0-9a-f]{32}" if key.endswith("md5") else "[0-9a-f]{64}", value), (file["path"], key)
        # of a file whose bytes are known, its digest is, unless none was published
        known = manifest.addresses.known if manifest.addresses else ""
        assert digests or manifest.licence.sign or "bytes" not in file or "no digest is published" in known
        # an address may have a shorter name, as real.npz of MPI3D, or that of an alternative file
        names = [file["path"], *file.get("or", [])]
        assert all(any(name.endswith(url.rpartition("/")[2]) for name in names) for url in file.get("urls", []))
    paths = [path for file in manifest.files for path in (file.path, *file.alternatives)]
    assert len(set(paths) - manifest.shared) == len([path for path in paths if path not in manifest.shared])
    assert manifest.shared.isdisjoint(file.path for file in manifest.files)
    rows = [split.rows for split in manifest.splits if split.rows]
    assert all(stop <= (manifest.samples or 0) for _, stop in rows)


def test_data_sets_made_of_another_ones_files() -> None:
    found = {name: load_manifest(name) for name in manifest_names()}
    shares = {name: manifest.shares for name, manifest in found.items() if manifest.shares}
    assert shares == {
        **dict.fromkeys(("affine-mnist", "colored-mnist", "even-odd", "rotated-mnist"), "mnist"),
        "imagenet-100": "imagenet",
        "scenenn-frames": "scenenn",
        "clevr-objects": "clevr",
    }
    assert not set(shares) & set(shares.values())
    for name in ("affine-mnist", "colored-mnist", "even-odd", "rotated-mnist"):
        assert found[name].files == found["mnist"].files


def test_full_grids_multiply_to_their_samples() -> None:
    for name in ("shapes3d", "shapes3d-procedural"):
        product = 1
        for factor in load_manifest(name).factors:
            product *= factor.count or 0
        assert product == load_manifest(name).samples == 480_000


def test_the_procedural_card_has_the_factors_of_the_published_one() -> None:
    assert load_manifest("shapes3d-procedural").factors == load_manifest("shapes3d").factors
    assert "not that" in load_manifest("shapes3d-procedural").description


def test_the_folder_inside_an_installed_package_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "setsup.files.manifests.packages.__file__",
        str(tmp_path / "site" / "setsup" / "files" / "manifests" / "manifest.py"),
    )
    with pytest.raises(DataError, match="the installation of setsup is incomplete"):
        manifest_folder()
    for folder in (tmp_path / "site" / "manifests", tmp_path / "site" / "setsup" / "manifests"):
        folder.mkdir(parents=True)
        assert manifest_folder() == folder


def test_what_is_known_of_every_address_has_a_date() -> None:
    for name in manifest_names():
        manifest = load_manifest(name)
        if manifest.homepage or any(file.urls for file in manifest.files):
            assert manifest.addresses is not None, name
            assert date(2026, 11, 1) <= date.fromisoformat(manifest.addresses.checked) <= date.today(), name


def test_no_manifest_sends_to_a_host_that_is_gone() -> None:
    gone = (
        *("yann.lecun.com/exdb/mnist/t", "ai.stanford.edu/~jkrause", "serre-lab.clps.brown.edu"),
        *("http://horatio.cs.nyu.edu", "lilablobssc.blob.core.windows.net", "icvl.ee.ic.ac.uk"),
    )
    for name in manifest_names():
        manifest = load_manifest(name)
        pages = (manifest.homepage, manifest.licence.url, *(url for file in manifest.files for url in file.urls))
        assert not [page for page in pages if page and any(host in page for host in gone)], name


def test_files_that_are_asked_of_a_person_are_those_that_open() -> None:
    # an archive that is packed as a whole would be put there, and never be read
    for name in manifest_names():
        by_hand = [file.path for file in load_manifest(name).files if not file.urls]
        assert not [path for path in by_hand if path.endswith((".tgz", ".rar"))], name
