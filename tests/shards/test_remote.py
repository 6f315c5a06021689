"""Shards in a store, read at random: the right bytes in few requests, kept on the disk, and honest about changes."""

import json
import logging
import multiprocessing
import os
import pickle
import resource
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.files import cache_folder
from setsup.shards.layout import CRC32C, HEADER, Catalogue, Shard
from setsup.shards.stores.opening import open_store
from setsup.shards.stores.ranges import AT_ONCE
from setsup.shards.stores.reader import RemoteReader

SIZES = (700_000, 51_200, 5_000_123, 0)
PLENTY = 1 << 30


def content(number, size):
    return np.random.default_rng(number).integers(0, 256, size, np.uint8).tobytes()


SHARDS = [content(number, size) for number, size in enumerate(SIZES)]


def catalogue(check=CRC32C, sizes=SIZES, mark="a"):
    shards = tuple(Shard(f"data-{k:05}.tar", 1, size, f"{k:063x}{mark}") for k, size in enumerate(sizes))
    index = Shard("index.parquet", len(shards), 9, "0" * 64)
    return Catalogue("numbers", (), {}, shards, index, check, "", "0.0")


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def served(web):
    for number, one in enumerate(SHARDS):
        web.files[f"set/data-{number:05}.tar"] = one
    return web


def reader_of(web, cache=PLENTY, **how):
    return RemoteReader(open_store(f"{web.url}/set"), catalogue(**how), cache)


def some_ranges(seed, count, longest=3000):
    rng = np.random.default_rng(seed)
    shard = rng.integers(0, len(SIZES), count)
    size = np.minimum(rng.integers(0, longest, count), np.array(SIZES)[shard])
    start = (rng.random(count) * (np.array(SIZES)[shard] - size + 1)).astype(np.int64)
    return shard, start, size


def expected(shard, start, size):
    return [SHARDS[one][low : low + length] for one, low, length in zip(shard, start, size, strict=True)]


def right(reader, seed, count=100, **how):
    asked = some_ranges(seed, count, **how)
    return [bytes(one) for one in reader.read(*asked)] == expected(*asked)


def requests(web):
    found = len(web.seen)
    web.seen.clear()
    return found


@pytest.mark.long("stores")
@pytest.mark.parametrize("cache", [0, PLENTY, 1 << 20])
@pytest.mark.parametrize("kind", ["web", "s3", "memory", "folder"])
def test_any_ranges_come_from_any_store(kind, cache, request, tmp_path):
    if kind == "web":
        served = request.getfixturevalue("served")
        store = open_store(f"{served.url}/set")
    elif kind == "s3":
        bucket = request.getfixturevalue("bucket")
        store = open_store(bucket.url, bucket.options)
    else:
        store = open_store(request.getfixturevalue("memory") if kind == "memory" else tmp_path / "set")
    if kind != "web":
        for number, one in enumerate(SHARDS):
            (tmp_path / "made").write_bytes(one)
            store.put(f"data-{number:05}.tar", tmp_path / "made")
    reader = RemoteReader(store, catalogue(), cache)
    assert all(right(reader, seed) for seed in range(3))
    assert right(reader, 0)
    assert reader.read(np.array([], int), np.array([], int), np.array([], int)) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5000), st.integers(0, 2500)), max_size=12), st.booleans())
def test_ranges_of_any_kind_with_and_without_what_is_kept(memory, asked, cached):
    store = open_store(memory)
    sizes = (4096, 5000, 1)
    for number, size in enumerate(sizes):
        store.put_bytes(f"data-{number:05}.tar", SHARDS[number][:size])
    reader = RemoteReader(store, catalogue(sizes=sizes), PLENTY if cached else 0)
    shard = np.array([one for one, _, _ in asked], np.int64)
    start = np.array([min(low, sizes[one]) for one, low, _ in asked], np.int64)
    size = np.array([min(length, sizes[one] - min(low, sizes[one])) for one, low, length in asked], np.int64)
    data = [SHARDS[number][:length] for number, length in enumerate(sizes)]
    found = reader.read(shard, start, size)
    wanted = [data[one][low : low + length] for one, low, length in zip(shard, start, size, strict=True)]
    assert [bytes(one) for one in found] == wanted
    assert all(one.readonly for one in found)


def test_what_was_read_is_not_asked_for_again(served):
    reader = reader_of(served)
    assert right(reader, 1)
    assert requests(served) > 0
    assert right(reader, 1)
    assert right(reader_of(served), 1)
    assert requests(served) == 0
    without = reader_of(served, 0)
    assert right(without, 1)
    first = requests(served)
    assert right(without, 1)
    assert requests(served) == first > 0


def test_ranges_that_lie_together_are_one_request(served):
    reader = reader_of(served, 0)
    starts = np.arange(40) * 13_824
    reader.read(np.zeros(40, int), starts, np.full(40, 13_000))
    assert requests(served) == 1
    starts = np.arange(12) * 400_000
    reader.read(np.full(12, 2), starts, np.full(12, 13_000))
    assert requests(served) == 12


def test_requests_are_made_at_once(served):
    served.delay = 0.1
    sizes = tuple([2048] * 100)
    for number in range(100):
        served.files[f"set/data-{number:05}.tar"] = SHARDS[0][:2048]
    reader = reader_of(served, 0, sizes=sizes)
    found = reader.read(np.arange(100), np.full(100, 512), np.full(100, 100))
    assert {bytes(one) for one in found} == {SHARDS[0][512:612]}
    assert len(served.seen) == 100
    assert 8 < served.most <= AT_ONCE


def test_the_copies_lie_in_the_cache_folder_and_stay_within_the_bound(served):
    bound = 2 << 20
    reader = reader_of(served, bound)
    for seed in range(20):
        assert right(reader, seed, 50)
        folder = cache_folder() / "shards"
        assert sum(path.stat().st_blocks * 512 for path in folder.iterdir()) <= bound


def test_a_batch_of_more_shards_than_files_can_be_open(memory, monkeypatch):
    sizes = (1000,) * 400
    store = open_store(memory)
    for number, size in enumerate(sizes):
        store.put_bytes(f"data-{number:05}.tar", content(number, size))
    reader = RemoteReader(store, catalogue(sizes=sizes), PLENTY)
    shards = np.random.default_rng(3).permutation(400).repeat(2)
    starts = np.arange(800) % 900
    wanted = [content(shard, 1000)[start : start + 100] for shard, start in zip(shards, starts, strict=True)]
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 160, limits[1]))
    try:
        assert reader.read(shards, starts, np.full(800, 100)) == wanted
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    monkeypatch.setattr(store, "ranges", None)
    assert reader.read(shards, starts, np.full(800, 100)) == wanted  # all of it was kept


def test_a_copy_that_went_bad_is_dropped_and_read_again(served):
    reader = reader_of(served)
    asked = (np.array([2]), np.array([4096]), np.array([1000]))
    reader.read(*asked)
    (path,) = (cache_folder() / "shards").iterdir()
    with path.open("r+b") as file:
        file.seek(4500)
        file.write(b"rotten")
    assert bytes(reader.read(*asked)[0]) != SHARDS[2][4096:5096]
    reader.drop(2)
    reader.drop(1)  # of which there is none
    assert bytes(reader.read(*asked)[0]) == SHARDS[2][4096:5096]
    assert bytes(reader_of(served).read(*asked)[0]) == SHARDS[2][4096:5096]


@pytest.mark.parametrize("bad", [b"", b"short", bytes(6_000_000)])
def test_a_copy_of_another_length_is_made_again(served, bad):
    reader = reader_of(served)
    assert right(reader, 1)
    for path in (cache_folder() / "shards").iterdir():
        path.write_bytes(bad)
    assert right(reader_of(served), 1)


def test_shards_of_other_content_have_other_copies(served):
    asked = (np.array([0]), np.array([0]), np.array([1000]))
    assert bytes(reader_of(served).read(*asked)[0]) == SHARDS[0][:1000]
    served.files["set/data-00000.tar"] = SHARDS[2][: SIZES[0]]
    assert bytes(reader_of(served).read(*asked)[0]) == SHARDS[0][:1000]  # by the catalogue nothing has changed
    assert bytes(reader_of(served, mark="b").read(*asked)[0]) == SHARDS[2][:1000]


def test_equal_headers_at_two_addresses_do_not_make_one_copy(served):
    # tars that others wrote are known by their headers, not by their content
    served.files["other/data-00000.tar"] = SHARDS[2][: SIZES[0]]
    asked = (np.array([0]), np.array([0]), np.array([1000]))
    assert bytes(reader_of(served, check=HEADER).read(*asked)[0]) == SHARDS[0][:1000]
    other = RemoteReader(open_store(f"{served.url}/other"), catalogue(HEADER), PLENTY)
    assert bytes(other.read(*asked)[0]) == SHARDS[2][:1000]


@pytest.mark.long("stores")
@pytest.mark.parametrize("kind", ["web", "s3"])
@pytest.mark.parametrize("size", [100_000, 900_000])
def test_a_shard_of_another_size_has_changed(kind, size, request, tmp_path, short_waits):
    if kind == "web":
        served = request.getfixturevalue("served")
        store = open_store(f"{served.url}/set")
        served.files["set/data-00000.tar"] = content(9, size)
    else:
        bucket = request.getfixturevalue("bucket")
        store = open_store(bucket.url, bucket.options)
        (tmp_path / "made").write_bytes(content(9, size))
        store.put("data-00000.tar", tmp_path / "made")
    reader = RemoteReader(store, catalogue(), 0)
    with pytest.raises(DataError, match=r"has changed since it was indexed|not the expected 700,000") as caught:
        reader.read([0], [600_000], [1000])
    assert "data-00000.tar" in str(caught.value)
    assert "`setsup shard`" in str(caught.value)  # which wrote it, by its checksums


def test_a_shard_that_is_gone_is_named(served):
    del served.files["set/data-00001.tar"]
    with pytest.raises(DataError, match=r"/set/data-00001\.tar does not exist"):
        reader_of(served).read([0, 1], [0, 0], [10, 10])


def test_a_store_that_fails_leaves_nothing_in_the_cache(served, short_waits):
    reader = reader_of(served)
    served.failing = [500] * 99
    with pytest.raises(DataError, match="HTTP 500"):
        reader.read([0], [0], [1000])
    served.failing = [-3, -1]
    assert right(reader, 3, 5)
    served.failing = []
    assert right(reader, 3, 5)


def test_a_cache_that_cannot_be_written_is_done_without(served, tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "file"))
    reader = reader_of(served)
    with caplog.at_level(logging.WARNING):
        assert right(reader, 1)
        assert right(reader, 1)
    assert len([one for one in caplog.messages if "SETSUP_CACHE" in one]) == 1


@pytest.mark.long("worker processes")
def test_it_travels_and_is_used_by_threads_and_forks(served):
    reader = pickle.loads(pickle.dumps(reader_of(served)))
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda seed: right(reader, seed % 5, 30), range(24)))
    context = multiprocessing.get_context("fork")
    crew = [context.Process(target=_check, args=(reader, seed)) for seed in range(3, 8)]
    for one in crew:
        one.start()
    assert all(right(reader, seed, 30) for seed in range(8))
    for one in crew:
        one.join()
    assert [one.exitcode for one in crew] == [0] * 5
    assert right(reader, 99, 30)


def _check(reader, seed):
    os._exit(0 if right(reader, seed, 30) else 3)


@pytest.mark.long("worker processes")
def test_threads_that_fork_meanwhile(served):
    """A child never waits for a lock that a thread of its parent held."""
    reader = reader_of(served)
    stop = threading.Event()

    def busy():
        while not stop.is_set():
            assert right(reader, np.random.default_rng().integers(100), 10)

    crew = [threading.Thread(target=busy) for _ in range(3)]
    for one in crew:
        one.start()
    context = multiprocessing.get_context("fork")
    codes = []
    try:
        for seed in range(8):
            child = context.Process(target=_check, args=(reader, 1000 + seed))
            child.start()
            child.join(30)
            codes.append(child.exitcode)
            child.kill()
    finally:
        stop.set()
        for one in crew:
            one.join()
    assert codes == [0] * 8


def test_the_command_lists_and_clears_the_copies(served, capsys):
    from setsup_cli.commands.cache import Options, run

    assert right(reader_of(served), 1, 5)
    run(Options(json=True))
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    held = sum(path.stat().st_blocks * 512 for path in (cache_folder() / "shards").iterdir())
    assert entry["name"] == "shards"
    assert 0 < entry["bytes"] <= held < sum(SIZES)
    run(Options(clear=()))
    assert not (cache_folder() / "shards").exists()
