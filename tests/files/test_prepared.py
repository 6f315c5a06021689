import errno
import json
import logging
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setsup.files.prepare as prepare
import setsup.files.prepared as prepared
from setsup.errors import DataError
from setsup.files.atomic import written
from setsup.files.digest import content_digest
from setsup.files.prepare import prepare_array
from setsup.files.prepared import PreparedArray, npy_header

CHECKOUT = Path(__file__).resolve().parents[2]
SPAWN = multiprocessing.get_context("spawn")
ROWS, BLOCK = 103, 20
BLOCKS = 6


def content(start: int, stop: int) -> np.ndarray:
    """Rows whose every byte is different from its neighbours'."""
    return (np.arange(start * 1200, stop * 1200, dtype=np.int64) * 7919 % 251).astype(np.uint8).reshape(-1, 20, 20, 3)


def array_of(folder: Path) -> PreparedArray:
    source = folder / "pictures.h5"
    if not source.exists():
        source.write_bytes(b"a slow container" * 100)
    return PreparedArray(source, "images", (ROWS, 20, 20, 3), "uint8")


class Filler:
    """Counts the blocks that it filled; may stop in a given way before a block."""

    def __init__(self, at: int | None = None, stop: Callable[[], None] | None = None) -> None:
        self.at, self.stop, self.filled = at, stop, list[int]()

    def __call__(self, start: int, stop: int, out: np.ndarray) -> None:
        if self.stop is not None and start // BLOCK == self.at:
            self.stop()
        out[:] = content(start, stop)
        self.filled.append(start // BLOCK)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "cache")


DONE = ["pictures.h5", "pictures.images.npy", "pictures.images.npy.json"]


@pytest.fixture
def array(tmp_path: Path) -> PreparedArray:
    return array_of(tmp_path)


def test_an_array_is_converted_once(array: PreparedArray, tmp_path: Path) -> None:
    assert array.open() is None
    filler, compared, advanced = Filler(), list[int](), list[int]()

    def check(start: int, stop: int, written: np.ndarray) -> None:
        np.testing.assert_array_equal(written, content(start, stop))
        compared.append(start // BLOCK)

    path = prepare_array(array, BLOCK, filler, check, lambda n=1, /: advanced.append(n))
    assert filler.filled == compared == list(range(BLOCKS))
    assert sum(advanced) == ROWS
    assert names(tmp_path) == DONE
    # numpy itself reads the file
    np.testing.assert_array_equal(np.load(path), content(0, ROWS))
    mapped = array.open()
    assert mapped is not None
    assert type(mapped) is np.ndarray
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped, content(0, ROWS))
    again = Filler()
    assert prepare_array(array, BLOCK, again) == path
    assert not again.filled


@given(
    shape=st.lists(st.integers(0, 2**40), min_size=1, max_size=6).map(tuple),
    dtype=st.sampled_from(["uint8", "float32", "int64", ">u2"]),
)
def test_numpy_reads_the_header(shape: tuple[int, ...], dtype: str) -> None:
    import io

    header = io.BytesIO(npy_header(shape, dtype))
    assert np.lib.format.read_magic(header) == (1, 0)
    assert np.lib.format.read_array_header_1_0(header) == (shape, False, np.dtype(dtype))
    assert header.tell() == 4096


def test_runs_on_copies_of_a_source_write_the_same_bytes(tmp_path: Path) -> None:
    """Also where the sources were written at different times, as those that `prepare` renders are."""
    written_files = []
    for number, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        array = array_of(tmp_path / name)
        os.utime(array.source, ns=(0, 10**18 + 123_456_789 * number))
        prepare_array(array, BLOCK, Filler())
        written_files.append({one: (tmp_path / name / one).read_bytes() for one in DONE})
        again = Filler()
        prepare_array(array, BLOCK, again)
        assert not again.filled
    assert written_files[0] == written_files[1]


@pytest.mark.parametrize("kind", ["an earlier version", "a disk that rounds times"])
def test_the_time_of_the_source_may_be_in_the_description(
    kind: str, array: PreparedArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the content of the source is not read, either."""
    time = array.source.stat().st_mtime_ns
    if kind == "an earlier version":
        path = prepare_array(array, BLOCK, Filler())
        described = path.with_name(path.name + ".json")
        found = json.loads(described.read_text())
        found["source"]["mtime_ns"] = time
        described.write_text(json.dumps(found))
    else:
        keep = os.utime
        monkeypatch.setattr(os, "utime", lambda path, ns: keep(path, ns=tuple(one // 10**9 * 10**9 for one in ns)))
        os.utime(array.source, ns=(time, time))
        keep(array.source, ns=(time | 1, time | 1))
        prepare_array(array, BLOCK, Filler())
    monkeypatch.setattr(prepared, "_content", lambda files: pytest.fail("the content was read"))
    assert array.open() is not None


def test_an_array_of_another_source_is_not_used(array: PreparedArray, caplog: pytest.LogCaptureFixture) -> None:
    path = prepare_array(array, BLOCK, Filler())
    array.source.write_bytes(b"A slow container" * 100)
    assert array.find() is None
    assert array.outdated() == path
    filler = Filler()
    with caplog.at_level(logging.WARNING, "setsup"):
        prepare_array(array, BLOCK, filler)
    assert filler.filled == list(range(BLOCKS))
    assert str(path) in caplog.text
    assert "converting it again" in caplog.text
    assert array.find() == path
    assert array.outdated() is None


def test_a_copied_source_keeps_its_array(array: PreparedArray) -> None:
    path = prepare_array(array, BLOCK, Filler())
    os.utime(array.source, ns=(1, 1))
    assert array.find() == path
    assert array.outdated() is None


def test_files_that_took_each_others_names_are_another_source(tmp_path: Path) -> None:
    files = (tmp_path / "a.mat", tmp_path / "b.mat")
    for turn, file in enumerate(files):
        file.write_bytes(bytes([turn]) * 100)
        os.utime(file, ns=(turn, turn))
    array = PreparedArray(tmp_path / "pictures", "images", (ROWS, 20, 20, 3), "uint8", files)
    path = prepare_array(array, BLOCK, Filler())
    assert array.find() == path
    files[0].rename(tmp_path / "c.mat")
    files[1].rename(files[0])
    (tmp_path / "c.mat").rename(files[1])
    assert array.find() is None
    assert array.outdated() == path


def test_a_copied_source_is_read_once_a_process(array: PreparedArray, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have several arrays and gigabytes."""
    prepare_array(array, BLOCK, Filler())
    os.utime(array.source, ns=(2, 2))
    read: list[Path] = []

    def counted(path: Path) -> str:
        read.append(path)
        return content_digest(path)

    monkeypatch.setattr(prepared, "content_digest", counted)
    assert array.find() == array.find() == array.places()[0]
    assert len(read) == 1
    array.source.write_bytes(b"A slow container" * 100)
    assert array.find() is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 10_000,
        '{"source": 1}',
        '{"source": {"size": 1, "mtime_ns": 1, "sha256": 1}}',
        "\xff\xfe",
    ],
)
def test_a_damaged_description_counts_for_nothing(array: PreparedArray, text: str) -> None:
    path = prepare_array(array, BLOCK, Filler())
    path.with_name(path.name + ".json").write_text(text, encoding="latin-1")
    assert array.find() is None
    assert array.outdated() == path
    assert prepare_array(array, BLOCK, Filler()) == path
    assert array.find() == path


@pytest.mark.parametrize("key", ["version", "shape", "dtype"])
def test_a_description_of_another_array_counts_for_nothing(array: PreparedArray, key: str) -> None:
    path = prepare_array(array, BLOCK, Filler())
    description = path.with_name(path.name + ".json")
    description.write_text(json.dumps({**json.loads(description.read_text()), key: 0}))
    assert array.find() is None


def test_an_array_that_is_cut_off_or_has_another_header_is_not_used(array: PreparedArray) -> None:
    path = prepare_array(array, BLOCK, Filler())
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole + b"x", whole[:4000], b"", whole.replace(b"|u1", b"|i1", 1)):
        path.write_bytes(damaged)
        assert array.find() is None
    path.write_bytes(whole)
    assert array.find() == path


def test_a_missing_source_is_named(array: PreparedArray) -> None:
    prepare_array(array, BLOCK, Filler())
    array.source.unlink()
    with pytest.raises(DataError, match=r"pictures\.h5"):
        array.find()
    with pytest.raises(DataError, match=r"pictures\.h5"):
        prepare_array(array, BLOCK, Filler())


# -- killed and started again ------------------------------------------------------------------------------------------


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run_until_killed(folder: Path, at: int, where: str) -> None:
    """Run in a child process: kill it before it fills block `at`, or where the name of a function says."""
    if where in ("settle", "need_space"):
        setattr(prepare, where, lambda *_: kill())
    if where == "after settling":
        settle = prepare.settle

        def settled(*paths: Path) -> None:
            settle(*paths)
            kill()

        prepare.settle = settled  # type: ignore[assignment]
    check = (lambda *_: kill()) if where == "check" else None
    prepare_array(array_of(folder), BLOCK, Filler(at, kill if where == "fill" else None), check)


@pytest.mark.long("kills and interruptions")
@pytest.mark.parametrize(
    ("at", "where"),
    [
        *((at, "fill") for at in range(BLOCKS)),
        *((0, where) for where in ("need_space", "check", "settle", "after settling")),
    ],
)
def test_killed_at_any_moment_it_goes_on(array: PreparedArray, tmp_path: Path, at: int, where: str) -> None:
    child = SPAWN.Process(target=run_until_killed, args=(tmp_path, at, where))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    filler, advanced = Filler(), list[int]()
    path = prepare_array(array, BLOCK, filler, None, lambda n=1, /: advanced.append(n))
    # the block before the killed one may have been on its way to the disk
    done = {"fill": at - 1, "need_space": 0}.get(where, BLOCKS)
    assert filler.filled in (list(range(max(done, 0), BLOCKS)), list(range(max(done, 0) + 1, BLOCKS)))
    assert sum(advanced) == (0 if where == "after settling" else ROWS)
    assert names(tmp_path) == DONE
    assert path.read_bytes() == npy_header(array.shape, "uint8") + content(0, ROWS).tobytes()


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def begun(array: PreparedArray) -> PreparedArray:
    """A conversion that was stopped when three blocks were written."""
    with pytest.raises(KeyboardInterrupt):
        prepare_array(array, BLOCK, Filler(3, interrupt))
    return array


def test_what_a_kill_right_at_the_end_leaves_goes_away(array: PreparedArray, tmp_path: Path) -> None:
    prepare_array(array, BLOCK, Filler())
    before = sorted(path.name for path in tmp_path.iterdir())
    target = array.find()
    assert target is not None
    for left in (f"{target.name}.lock", f"{target.name}.journal"):
        (tmp_path / left).write_bytes(b"")
        filler = Filler()
        assert prepare_array(array, BLOCK, filler) == target
        assert filler.filled == []
        assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_half_a_description_goes_away(begun: PreparedArray, tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), written(prepared.beside(begun.place())) as part:
        raise KeyboardInterrupt
    part.write_bytes(b"half")
    prepare_array(begun, BLOCK, Filler())
    assert names(tmp_path) == DONE


def test_an_interrupted_conversion_stays_and_goes_on(begun: PreparedArray, tmp_path: Path) -> None:
    assert "pictures.images.npy.part" in names(tmp_path)
    assert begun.find() is None
    filler = Filler()
    prepare_array(begun, BLOCK, filler)
    assert filler.filled == [3, 4, 5]
    assert names(tmp_path) == DONE


@settings(max_examples=25)
@given(
    cut=st.integers(0, 400),
    tail=st.sampled_from([b"", b"x", b"\n", b'{"block": 4}\n', b'{"block": 99, "crc32": 0}\n', b"\xff\n"]),
)
def test_a_journal_that_was_cut_off_is_read_as_far_as_it_goes(
    tmp_path_factory: pytest.TempPathFactory, cut: int, tail: bytes
) -> None:
    array = array_of(tmp_path_factory.mktemp("cut"))
    with pytest.raises(KeyboardInterrupt):
        prepare_array(array, BLOCK, Filler(3, interrupt))
    journal = array.place().with_name("pictures.images.npy.journal")
    journal.write_bytes(journal.read_bytes()[:cut] + tail)
    path = prepare_array(array, BLOCK, Filler())
    assert path.read_bytes()[4096:] == content(0, ROWS).tobytes()
    assert names(array.source.parent) == DONE


def test_a_block_that_is_not_what_the_journal_says_is_made_again(begun: PreparedArray) -> None:
    with begun.place().with_name("pictures.images.npy.part").open("r+b") as part:
        part.seek(4096 + BLOCK * 1200 + 5)
        part.write(b"damage")
    filler = Filler()
    path = prepare_array(begun, BLOCK, filler)
    assert filler.filled == [1, 3, 4, 5]
    np.testing.assert_array_equal(np.load(path), content(0, ROWS))


def test_what_was_begun_with_another_source_is_not_used(begun: PreparedArray, tmp_path: Path) -> None:
    begun.source.write_bytes(b"another container")
    filler = Filler()
    prepare_array(begun, BLOCK, filler)
    assert filler.filled == list(range(BLOCKS))
    assert names(tmp_path) == DONE


def test_what_was_begun_with_other_blocks_is_not_used(begun: PreparedArray) -> None:
    filler = Filler()
    path = prepare_array(begun, 60, filler)
    assert filler.filled == [0, 3]
    np.testing.assert_array_equal(np.load(path), content(0, ROWS))


# -- two at once, full and read-only disks -----------------------------------------------------------------------------


def prepare_and_count(folder: Path, counts: Any) -> None:
    filler = Filler()
    path = prepare_array(array_of(folder), BLOCK, filler)
    counts.put((len(filler.filled), path.read_bytes()[4096:] == content(0, ROWS).tobytes()))


@pytest.mark.long("kills and interruptions")
def test_two_processes_at_once_share_the_work(array: PreparedArray, tmp_path: Path) -> None:
    counts = SPAWN.Queue()
    workers = [SPAWN.Process(target=prepare_and_count, args=(tmp_path, counts)) for _ in range(3)]
    for worker in workers:
        worker.start()
    found = [counts.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert sorted(filled for filled, _ in found) == [0, 0, BLOCKS]
    assert all(right for _, right in found)
    assert names(tmp_path) == DONE


def test_a_read_only_folder_sends_the_array_to_the_cache(
    array: PreparedArray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path and access(path, mode))
    path = prepare_array(array, BLOCK, Filler())
    assert path.is_relative_to(tmp_path / "cache" / "prepared")
    assert names(tmp_path) == ["pictures.h5"]
    assert names(path.parent) == DONE[1:]
    assert array.find() == path
    # another file of the same name has a place of its own
    (tmp_path / "other").mkdir()
    shutil.copy(array.source, tmp_path / "other")
    assert array_of(tmp_path / "other").find() is None


READ_ONLY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from setsup.files.prepare import prepare_array
from setsup.files.prepared import PreparedArray
array = PreparedArray(Path(sys.argv[1]) / "pictures.h5", "images", (9, 4), "uint8")
print(prepare_array(array, 4, lambda start, stop, out: out.fill(start)), array.open()[:, 0].tolist())
"""


def test_a_disk_that_is_really_read_only(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs tmpfs "$1" && echo x > "$1/pictures.h5" && mount -o remount,ro "$1" || exit 77'
    inside = ["sh", "-c", f'{mount}; exec "$3" -c "$4" "$1" "$2"', "sh", str(disk), str(CHECKOUT)]
    try:
        run = ["unshare", "--mount", "--map-root-user", *inside, sys.executable, READ_ONLY]
        done = subprocess.run(run, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this system has no unshare command")
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this system does not let the tests mount a disk")
    assert done.stderr == ""
    place, _, values = done.stdout.partition(" ")
    assert Path(place).is_relative_to(tmp_path / "cache" / "prepared")
    assert values == "[0, 0, 0, 0, 4, 4, 4, 4, 8]\n"


def test_a_full_disk_is_said_before_the_work_begins(
    array: PreparedArray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 1000))
    filler = Filler()
    with pytest.raises(DataError, match=r"pictures\.h5 requires .* free some space"):
        prepare_array(array, BLOCK, filler)
    assert not filler.filled
    assert names(tmp_path) == ["pictures.h5"]


@pytest.mark.parametrize(("code", "words"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "read-only")])
def test_a_disk_that_fills_up_meanwhile_is_one_sentence(
    array: PreparedArray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def pwrite(file: int, data: memoryview, offset: int) -> int:
        if offset > 4096 + 2 * BLOCK * 1200:
            raise OSError(code, os.strerror(code))
        return real(file, data[:777], offset)  # a short write is no error

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(DataError, match=rf"pictures\.images\.npy\.part: .*{words}"):
        prepare_array(array, BLOCK, Filler())
    assert names(tmp_path) == ["pictures.h5"]


def refuse() -> None:
    raise DataError("pictures.h5 is damaged")


def test_a_damaged_source_leaves_nothing_behind(array: PreparedArray, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        prepare_array(array, BLOCK, Filler(3, refuse))
    assert names(tmp_path) == ["pictures.h5"]


def test_a_failed_comparison_leaves_nothing_behind(array: PreparedArray, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="damaged"):
        prepare_array(array, BLOCK, Filler(), lambda *_: refuse())
    assert names(tmp_path) == ["pictures.h5"]


def test_a_source_that_changes_meanwhile_is_refused(array: PreparedArray, tmp_path: Path) -> None:
    def change() -> None:
        array.source.write_bytes(b"new")

    with pytest.raises(DataError, match=r"pictures\.h5 was changed while it was being converted"):
        prepare_array(array, BLOCK, Filler(3, change))
    assert names(tmp_path) == ["pictures.h5"]
