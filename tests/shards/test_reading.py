"""Bytes of tars on a disk: the very ones, with few maps and no descriptors, in any process."""

import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from setsup.errors import DataError
from setsup.shards import reading
from setsup.shards.layout import CRC32C, HEADER, Catalogue, Shard
from setsup.shards.reading import LocalReader, checksums
from tests.shards.handmade import crc32c, places, write_tar

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")


def catalogue(sizes: dict[str, int], check: str = CRC32C) -> Catalogue:
    shards = tuple(Shard(name, 0, size, "0" * 64) for name, size in sizes.items())
    return Catalogue("it", (), {}, shards, Shard("index.parquet", 0, 0, "0" * 64), check, "", "1.0")


@pytest.fixture
def contents(tmp_path: Path) -> list[bytes]:
    dice = np.random.default_rng(3)
    found = [dice.bytes(int(size)) for size in (1024, 1, 5000, 1536, 4096, 10_240)]
    for number, content in enumerate(found):
        (tmp_path / f"{number}.tar").write_bytes(content)
    return found


@pytest.fixture
def reader(tmp_path: Path, contents: list[bytes]) -> LocalReader:
    return LocalReader(tmp_path, catalogue({f"{number}.tar": len(content) for number, content in enumerate(contents)}))


def take(reader: LocalReader, wanted: list[tuple[int, int, int]]) -> list[memoryview]:
    shards, starts, sizes = np.array(wanted, np.int64).reshape(-1, 3).T
    return reader.read(shards.astype(np.uint32), starts, sizes)


def mapped(folder: Path) -> int:
    return sum(str(folder) in line for line in Path("/proc/self/maps").read_text().splitlines())


def opened(folder: Path) -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(os.path.exists(one) and str(folder) in os.readlink(one) for one in links)


@pytest.mark.long("large or genuine files")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_stretches_are_the_bytes_of_the_files(reader: LocalReader, contents: list[bytes], data: st.DataObject) -> None:
    shards = data.draw(st.lists(st.integers(0, len(contents) - 1), max_size=20))
    wanted = []
    for shard in shards:
        start = data.draw(st.integers(0, len(contents[shard])))
        wanted.append((shard, start, data.draw(st.integers(0, len(contents[shard]) - start))))
    found = take(reader, wanted)
    assert [bytes(one) for one in found] == [contents[shard][start : start + size] for shard, start, size in wanted]
    assert all(one.readonly and one.format == "B" for one in found)


@LINUX
def test_few_descriptors_stay_open(tmp_path: Path, contents: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "OPEN", 2)
    own = LocalReader(tmp_path, catalogue({f"{number}.tar": len(content) for number, content in enumerate(contents)}))
    take(own, [(shard, 0, 1) for shard in range(len(contents))])
    assert (mapped(tmp_path), opened(tmp_path)) == (len(contents), 2)
    del own
    assert (mapped(tmp_path), opened(tmp_path)) == (0, 0)


@LINUX
def test_few_tars_are_mapped_at_once(tmp_path: Path, contents: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAPS", 2)
    own = LocalReader(tmp_path, catalogue({f"{number}.tar": len(content) for number, content in enumerate(contents)}))
    for turn in range(3):
        for shard, content in enumerate(contents):
            assert bytes(take(own, [(shard, 0, len(content))])[0]) == content, turn
            assert mapped(tmp_path) <= 2
    held = take(own, [(0, 0, 1024)])[0]
    take(own, [(1, 0, 1), (2, 0, 1), (3, 0, 1)])
    assert mapped(tmp_path) == 3
    assert bytes(held) == contents[0]  # which stays while somebody reads in it
    del held, own
    assert mapped(tmp_path) == 0


def test_a_tar_of_another_size(reader: LocalReader, tmp_path: Path) -> None:
    with (tmp_path / "2.tar").open("ab") as file:
        file.write(b"x")
    take(reader, [(0, 0, 10)])
    said = r"2\.tar has changed since it was indexed: it has 5,001 bytes, not 5,000; "
    with pytest.raises(DataError, match=f"{said}fetch the tar again, or remove it and run the same `setsup shard` "):
        take(reader, [(0, 0, 10), (2, 0, 10)])
    external = LocalReader(tmp_path, catalogue({"2.tar": 5000}, HEADER))
    with pytest.raises(DataError, match=f"{said}index it again with `setsup index`, or fetch it again"):
        take(external, [(0, 0, 10)])
    (tmp_path / "3.tar").write_bytes(b"")
    with pytest.raises(DataError, match=r"3\.tar has changed .* it has 0 bytes, not 1,536"):
        take(reader, [(3, 0, 10)])


@pytest.mark.parametrize("descriptors", [0, 64])
def test_a_tar_that_is_cut_off_while_it_is_mapped(
    tmp_path: Path, contents: list[bytes], monkeypatch: pytest.MonkeyPatch, descriptors: int
) -> None:
    monkeypatch.setattr(reading, "OPEN", descriptors)
    own = LocalReader(tmp_path, catalogue({f"{number}.tar": len(content) for number, content in enumerate(contents)}))
    take(own, [(number, 0, 1) for number in range(len(contents))])
    os.truncate(tmp_path / "5.tar", 4096)  # all that is asked for now still is there
    with pytest.raises(DataError, match=r"5\.tar has changed since it was indexed: it has 4,096 bytes, not 10,240"):
        take(own, [(0, 0, 1), (5, 0, 1)])
    assert bytes(take(own, [(0, 1, 7)])[0]) == contents[0][1:8]  # the others are read as before
    (tmp_path / "5.tar").write_bytes(contents[5])  # and this one again, once it is whole
    assert bytes(take(own, [(5, 9000, 1000)])[0]) == contents[5][9000:10_000]


def test_a_tar_that_is_removed_or_replaced_is_told_by_its_path(
    reader: LocalReader, tmp_path: Path, contents: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "OPEN", 0)
    take(reader, [(0, 0, 1), (1, 0, 1)])
    (tmp_path / "new").write_bytes(bytes(1024))
    (tmp_path / "new").replace(tmp_path / "0.tar")
    assert bytes(take(reader, [(0, 0, 1024)])[0]) == bytes(1024)
    (tmp_path / "1.tar").unlink()
    with pytest.raises(DataError, match=r"1\.tar, a shard .* is missing"):
        take(reader, [(1, 0, 1)])


def test_a_missing_tar_and_what_is_none(reader: LocalReader, tmp_path: Path) -> None:
    (tmp_path / "0.tar").unlink()
    (tmp_path / "1.tar").unlink()
    (tmp_path / "1.tar").mkdir()
    (tmp_path / "2.tar").unlink()
    os.mkfifo(tmp_path / "2.tar")
    with pytest.raises(
        DataError, match=r"0\.tar, a shard .* is missing; fetch it again, or run the same `setsup shard`"
    ):
        take(reader, [(0, 0, 1)])
    external = LocalReader(tmp_path, catalogue({"0.tar": 1024}, HEADER))
    with pytest.raises(
        DataError, match=r"0\.tar, a shard .* is missing; .*, or index the others again with `setsup index`"
    ):
        take(external, [(0, 0, 1)])
    for number in (1, 2):
        with pytest.raises(DataError, match=rf"{number}\.tar is not a file, but the catalogue lists a shard"):
            take(reader, [(number, 0, 1)])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_tar_that_may_not_be_read(reader: LocalReader, tmp_path: Path) -> None:
    (tmp_path / "0.tar").chmod(0)
    with pytest.raises(DataError, match=r"0\.tar cannot be read: Permission denied"):
        take(reader, [(0, 0, 1)])


@LINUX
def test_a_process_that_may_map_no_more(tmp_path: Path) -> None:
    import resource

    with (tmp_path / "0.tar").open("wb") as file:
        file.truncate(1 << 40)
    own = LocalReader(tmp_path, catalogue({"0.tar": 1 << 40}))
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 39, before[1]))
    try:
        with pytest.raises(DataError, match=r"0\.tar cannot be mapped into memory .*vm\.max_map_count"):
            take(own, [(0, 0, 1)])
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_a_tar_that_is_replaced_is_mapped_again_when_it_is_dropped(reader: LocalReader, tmp_path: Path) -> None:
    before = bytes(take(reader, [(0, 0, 1024)])[0])
    (tmp_path / "new").write_bytes(bytes(1024))
    (tmp_path / "new").replace(tmp_path / "0.tar")
    assert bytes(take(reader, [(0, 0, 1024)])[0]) == before
    reader.drop(0)
    assert bytes(take(reader, [(0, 0, 1024)])[0]) == bytes(1024)


def test_pickled_by_its_folder(reader: LocalReader, contents: list[bytes]) -> None:
    take(reader, [(4, 0, 4096)])
    sent = pickle.dumps(reader)
    assert len(sent) < 2000
    assert bytes(take(pickle.loads(sent), [(4, 0, 4096)])[0]) == contents[4]


def test_threads(reader: LocalReader, contents: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAPS", 2)
    own = LocalReader(reader.folder, reader.catalogue)

    def work(seed: int) -> bool:
        dice = np.random.default_rng(seed)
        shards = dice.integers(0, len(contents), 500).tolist()
        return all(bytes(take(own, [(shard, 0, len(contents[shard]))])[0]) == contents[shard] for shard in shards)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def _in_child(reader: LocalReader, expected: bytes) -> None:
    os._exit(0 if bytes(take(reader, [(0, 0, 1024)])[0]) == expected else 1)


@pytest.mark.long("worker processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_other_processes(reader: LocalReader, contents: list[bytes], way: str) -> None:
    take(reader, [(0, 0, 1)])
    child = get_context(way).Process(target=_in_child, args=(reader, contents[0]))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_checksums_of_contents_and_of_headers(tmp_path: Path) -> None:
    write_tar(tmp_path / "it.tar", [("a.png", b"123456789"), ("b.cls", b""), ("c.txt", bytes(600))], mtime=1234567)
    whole = memoryview((tmp_path / "it.tar").read_bytes())
    found = places(tmp_path / "it.tar")
    contents = [whole[offset : offset + size] for offset, size, _ in found.values()]
    assert checksums(contents, CRC32C) == [crc32c(bytes(content)) for content in contents]
    assert checksums(contents[:1], CRC32C) == [0xE3069283]  # the check value of the polynomial
    headers = [whole[offset - 512 : offset + size] for offset, size, _ in found.values()]
    assert checksums(headers, HEADER) == [check for _, _, check in found.values()]
