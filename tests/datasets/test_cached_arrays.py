import os
import shutil
import zipfile

import numpy as np
import pytest

from setsup.datasets.cached_arrays import cached_array, file_states, release_state
from setsup.errors import DataError
from setsup.files.archives.members import open_members

ENTRY = np.dtype([("time", np.float32), ("pose", np.float32, (4, 4))])


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A function that makes an array, and counts how often it did."""
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    calls = []

    def make():
        calls.append(len(calls))
        return np.arange(3 * ENTRY.itemsize // 4, dtype=np.float32).view(ENTRY)

    make.calls = calls
    return make


def test_it_is_made_once(made):
    first, again = (cached_array("poses", ["a", 1], ENTRY, 3, made) for _ in range(2))
    assert made.calls == [0]
    assert np.array_equal(first, again)
    assert not first.flags.writeable
    assert not again.flags.writeable
    cached_array("poses", ["a", 2], ENTRY, 3, made)
    assert made.calls == [0, 1], "made of something else"


HEADERS = [b"{'descr': '<f4', 'fortran_order'", b"{'descr': '<f4', (\n", b"{b'a': 1, 'b': 2}\n"]
"""Cut off, open at its end (a TokenError), with keys that cannot be sorted (a TypeError)."""


@pytest.mark.parametrize(
    "content", [b"", b"no array", *(b"\x93NUMPY\x01\x00" + bytes([len(head), 0]) + head for head in HEADERS)]
)
def test_a_damaged_file_is_made_again(made, tmp_path, content):
    expected = cached_array("poses", [], ENTRY, 3, made).copy()  # the file that it is mapped from is spoiled next
    next((tmp_path / "cache").rglob("poses.npy")).write_bytes(content)
    assert np.array_equal(cached_array("poses", [], ENTRY, 3, made), expected)
    assert made.calls == [0, 1]


def test_an_array_of_another_shape_is_made_again(made, tmp_path):
    expected = cached_array("poses", [], ENTRY, 3, made).copy()  # the file that it is mapped from is spoiled next
    np.save(next((tmp_path / "cache").rglob("poses.npy")), np.zeros(3))
    assert np.array_equal(cached_array("poses", [], ENTRY, 3, made), expected)


@pytest.mark.parametrize("how", ["no folder", "full disk"])
def test_a_cache_that_cannot_be_written(made, tmp_path, monkeypatch, caplog, how):
    def full(*_):
        raise DataError("cannot write it: the disk is full")

    if how == "no folder":
        (tmp_path / "cache").write_bytes(b"a file")
    else:
        monkeypatch.setattr("setsup.datasets.cached_arrays.written", full)
    expected = made().copy()
    assert np.array_equal(cached_array("poses", [], ENTRY, 3, made), expected)
    assert made.calls == [0, 1], "made once"
    assert "each process builds it again" in caplog.text


def test_what_cannot_be_made_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path))

    def make():
        raise DataError("no")

    with pytest.raises(DataError, match="no"):
        cached_array("poses", [], ENTRY, 3, make)
    assert not list(tmp_path.rglob("*.npy"))


def test_file_states(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1")
    (tmp_path / "b.txt").write_bytes(b"12")
    members = open_members(tmp_path)
    before = file_states(members, [0, 1])
    assert [size for _, size, _ in before] == [1, 2]
    os.utime(tmp_path / "a.txt", ns=(1, 1))
    after = file_states(members, [0, 1])
    assert after[0] != before[0]
    assert after[1] == before[1]
    (tmp_path / "b.txt").unlink()
    with pytest.raises(DataError, match=r"b\.txt cannot be read"):
        file_states(members, [1])


def test_release_states(tmp_path):
    release = tmp_path / "release"
    (release / "a" / "b").mkdir(parents=True)
    file = release / "a" / "b" / "1.txt"
    file.write_bytes(b"1")

    def state():
        return release_state(members := open_members(release), np.arange(len(members)))

    states = [state()]
    assert state() == states[0]
    for change in (
        lambda: (release / "a" / "b" / "2.txt").write_bytes(b"2"),
        lambda: (release / "a" / "b" / "2.txt").write_bytes(b"23"),
        lambda: (release / "a" / "b" / "2.txt").unlink(),
        lambda: os.utime(release / "a" / "b", ns=(1, 1)),
        lambda: os.utime(release / "a", ns=(1, 1)),
        lambda: os.utime(release, ns=(1, 1)),
    ):
        change()
        states.append(state())
    assert len(set(states)) == len(states)
    # what lies outside of the release tells nothing
    (tmp_path / "other").write_bytes(b"")
    assert state() == states[-1]
    # as is documented
    before = (release / "a" / "b").stat().st_mtime_ns
    file.write_bytes(b"9")
    assert (release / "a" / "b").stat().st_mtime_ns == before
    assert state() == states[-1]
    members = open_members(release)
    shutil.rmtree(release)
    with pytest.raises(DataError, match="cannot be read"):
        release_state(members, np.arange(1))


def test_the_state_of_an_archive(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("top/1.txt", "1")
    members = open_members(path).under("top")
    before = release_state(members, np.arange(1))
    os.utime(path, ns=(1, 1))
    assert release_state(open_members(path).under("top"), np.arange(1)) != before
    assert release_state(open_members(path), np.arange(1)) != release_state(members, np.arange(1))
