"""Copies of shards on the disk: what is kept can be had, the bound holds, and no disk is too bad."""

import errno
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.shards.stores import cache as module
from setsup.shards.stores.cache import ShardCache

KEY = "ab" * 32

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="/proc tells about open files on Linux only")


def key(number):
    return f"{number:064x}"


def content(number, size):
    return np.random.default_rng(number).integers(0, 256, size, np.uint8).tobytes()


def allocated(folder):
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir())


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3000)), max_size=8),
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3000)), max_size=8),
)
def test_what_is_kept_can_be_had_and_nothing_else(tmp_path_factory, size, kept, asked):
    folder = tmp_path_factory.mktemp("cache")
    shard = content(size, size)
    cache = ShardCache(folder, 1 << 30)
    copy = cache.open(KEY, size)
    there = np.zeros(size, bool)
    for start, length in kept:
        start = min(start, size)
        stop = min(start + length, size)
        cache.keep(copy, start, shard[start:stop])
        # blocks of 512 bytes that came as a whole; the last one ends with the shard
        for block in range(-(-size // 512)):
            low, high = block * 512, min(block * 512 + 512, size)
            there[low:high] |= start <= low and high <= stop and stop > start
    for start, length in asked:
        start = min(start, size)
        stop = min(start + length, size)
        found = ShardCache(folder, 1 << 30).open(KEY, size).read(start, stop)
        if there[start // 512 * 512 : -(-stop // 512) * 512].all():
            assert found == shard[start:stop]
        else:
            assert found is None


def test_a_copy_takes_the_room_of_what_is_there(tmp_path):
    size = 256 << 20
    cache = ShardCache(tmp_path, 1 << 30)
    copy = cache.open(KEY, size)
    cache.keep(copy, 100 << 20, bytes(1 << 20))
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size > size
    assert allocated(tmp_path) < 2 << 20
    assert copy.read(100 << 20, 101 << 20) == bytes(1 << 20)


def test_the_bound_holds_and_what_was_not_used_for_longest_goes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_TOUCHED", 0.0)
    bound, size = 8 << 20, 1 << 20
    cache = ShardCache(tmp_path, bound)
    most = 0
    for number in range(40):
        cache.keep(cache.open(key(number), size), 0, content(number, size))
        most = max(most, allocated(tmp_path))
        cache.open(key(0), size)  # in use all the time
        for path in tmp_path.iterdir():
            if path.name != key(0):
                age = 100 - int(path.name, 16)
                os.utime(path, (time.time() - age,) * 2)
    assert 4 << 20 < most <= bound
    assert ShardCache(tmp_path, bound).open(key(0), size).read(0, size) == content(0, size)
    left = sorted(int(path.name, 16) for path in tmp_path.iterdir())
    assert left == [0, *range(40 - len(left) + 1, 40)]


def test_a_shard_larger_than_the_bound_is_kept_in_part(tmp_path):
    cache = ShardCache(tmp_path, 4 << 20)
    for start in range(0, 64 << 20, 1 << 19):
        cache.keep(cache.open(KEY, 64 << 20), start, bytes(1 << 19))
        assert allocated(tmp_path) <= 4 << 20


def test_what_is_larger_than_the_bound_is_not_kept_and_displaces_nothing(tmp_path):
    cache = ShardCache(tmp_path, 4 << 20)
    cache.keep(cache.open(key(1), 4096), 0, content(1, 4096))
    cache.keep(cache.open(key(2), 64 << 20), 0, bytes(8 << 20))
    assert allocated(tmp_path) <= 1 << 20
    assert cache.open(key(1), 4096).read(0, 4096) == content(1, 4096)


@linux
def test_the_disk_has_the_room_of_removed_copies_back_at_once(tmp_path):
    """A file takes room as long as it is open, though it has no name any more."""
    bound, size = 4 << 20, 1 << 20
    one, two = ShardCache(tmp_path, bound), ShardCache(tmp_path, bound)
    for number in range(40):
        cache = (one, two)[number % 2]
        copy = cache.open(key(number), size)
        for start in range(0, size, 1 << 16):
            cache.keep(copy, start, bytes(1 << 16))
        del copy
        assert opened(tmp_path) <= bound + size  # the other has not looked since


def opened(folder):
    """What the files of a folder take that this process has open."""
    numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    return sum(os.fstat(number).st_blocks * 512 for number in numbers if _path(number).startswith(str(folder)))


def _path(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except FileNotFoundError:  # that which listed them
        return ""


def test_other_files_in_the_folder_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_bytes(bytes(4 << 20))
    cache = ShardCache(tmp_path, 1 << 20)
    for number in range(8):
        cache.keep(cache.open(key(number), 1 << 19), 0, bytes(1 << 19))
    assert (tmp_path / "notes.txt").exists()


def test_who_has_a_copy_open_that_another_removes_reads_on_and_then_begins_a_new_one(tmp_path):
    one, two = ShardCache(tmp_path, 1 << 30), ShardCache(tmp_path, 1 << 30)
    copy = one.open(KEY, 2048)
    one.keep(copy, 0, content(1, 2048))
    two.drop(KEY)
    assert copy.read(0, 2048) == content(1, 2048)
    fresh = one.open(KEY, 2048)
    assert fresh.read(0, 2048) is None
    one.keep(fresh, 0, content(2, 2048))
    assert two.open(KEY, 2048).read(0, 2048) == content(2, 2048)


def test_what_is_no_copy_of_the_shard_is_made_again(tmp_path):
    cache = ShardCache(tmp_path, 1 << 30)
    for wrong in (b"x", bytes(2052 + 1), bytes(2052 - 1)):
        (tmp_path / KEY).write_bytes(wrong)
        copy = ShardCache(tmp_path, 1 << 30).open(KEY, 2048)
        assert copy.read(0, 512) is None
        cache.keep(cache.open(KEY, 2048), 0, content(3, 2048))
        assert cache.open(KEY, 2048).read(0, 2048) == content(3, 2048)
        cache.drop(KEY)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "cache" / KEY).symlink_to(tmp_path / "mine")
    cache = ShardCache(tmp_path / "cache", 1 << 30)
    assert cache.open(KEY, 2048) is None
    cache.drop(KEY)
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_a_full_disk_is_said_once_and_what_is_there_stays_readable(tmp_path, monkeypatch, caplog):
    cache = ShardCache(tmp_path, 1 << 30)
    cache.keep(cache.open(key(1), 2048), 0, content(1, 2048))
    true = os.pwrite

    def full(file, data, start):
        if start >= 1024:
            raise OSError(errno.ENOSPC, "No space left on device")
        return true(file, data[:100], start)

    monkeypatch.setattr(os, "pwrite", full)
    with caplog.at_level(logging.WARNING):
        for number in (2, 3, 4):
            copy = cache.open(key(number), 2048)
            if copy is not None:
                cache.keep(copy, 0, content(number, 2048))
                assert copy.read(0, 512) is None
    assert [("No space left" in one, "SETSUP_CACHE" in one) for one in caplog.messages] == [(True, True)]
    assert cache.open(key(1), 2048).read(0, 2048) == content(1, 2048)


def test_a_folder_that_cannot_be_made_is_said_once(tmp_path, caplog):
    (tmp_path / "file").write_bytes(b"")
    cache = ShardCache(tmp_path / "file" / "shards", 1 << 30)
    assert [cache.open(key(number), 2048) for number in range(3)] == [None] * 3
    assert len(caplog.messages) == 1


def test_a_read_only_disk_that_somebody_else_fills_is_read(tmp_path, monkeypatch, caplog):
    cache = ShardCache(tmp_path, 1 << 30)
    cache.keep(cache.open(KEY, 2048), 0, content(1, 2048))
    true = os.open

    def read_only(path, flags, mode=0o777):
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system")
        return true(path, flags, mode)

    monkeypatch.setattr(os, "open", read_only)
    cache = ShardCache(tmp_path, 1 << 30)
    copy = cache.open(KEY, 2048)
    assert copy.read(0, 2048) == content(1, 2048)
    cache.keep(copy, 0, content(2, 2048))
    assert copy.read(0, 2048) == content(1, 2048)
    assert cache.open(key(5), 2048) is None
    assert len(caplog.messages) == 1


def _fill(folder, number):
    cache = ShardCache(folder, 2 << 20)
    for turn in range(300):
        one = (turn * 7 + number) % 12
        copy = cache.open(key(one), 1 << 18)
        start = turn * 8192 % (1 << 18)
        found = copy.read(start, start + 8192)
        assert found in (None, content(one, 1 << 18)[start : start + 8192])
        cache.keep(copy, start, content(one, 1 << 18)[start : start + 8192])


@pytest.mark.long("worker processes")
def test_several_processes_share_and_bound_it_together(tmp_path):
    context = multiprocessing.get_context("fork")
    crew = [context.Process(target=_fill, args=(tmp_path, number)) for number in range(4)]
    for one in crew:
        one.start()
    most = 0
    while any(one.is_alive() for one in crew):
        most = max(most, _held(tmp_path))
    for one in crew:
        one.join()
    assert [one.exitcode for one in crew] == [0] * 4
    assert 0 < most <= 2 << 20
    for number in range(12):
        copy = ShardCache(tmp_path, 2 << 20).open(key(number), 1 << 18)
        for start in range(0, 1 << 18, 512):
            assert copy.read(start, start + 512) in (None, content(number, 1 << 18)[start : start + 512])


def _held(folder):
    total = 0
    for path in folder.iterdir():
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def test_nothing_is_said_when_an_interpreter_ends(tmp_path):
    script = """
import os
import sys
from pathlib import Path
from setsup.shards.stores import cache

kept = cache.ShardCache(Path(sys.argv[1]), 1 << 20)
copy = kept.open("ab" * 32, 10_000)
kept.keep(copy, 0, bytes(512))
os.held = copy  # which goes when the module of copies is gone
"""
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


def test_few_descriptors_however_many_shards(tmp_path):
    cache = ShardCache(tmp_path, 1 << 30)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for number in range(400):
        cache.keep(cache.open(key(number), 512), 0, content(number, 512))
    assert all(cache.open(key(number), 512).read(0, 512) == content(number, 512) for number in range(400))
    if before:
        assert len(os.listdir("/proc/self/fd")) - before <= 130


def test_it_travels_without_what_it_holds_open(tmp_path):
    cache = ShardCache(tmp_path, 1 << 20)
    cache.keep(cache.open(KEY, 2048), 0, content(1, 2048))
    there = pickle.loads(pickle.dumps(cache))
    assert (there.folder, there.bound) == (tmp_path, 1 << 20)
    assert there.open(KEY, 2048).read(0, 2048) == content(1, 2048)
