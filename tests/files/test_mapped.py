"""Files that are cut off in place while they are mapped: one sentence before the read that would kill the process."""

import errno
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from setsup import DomainSampler, load
from setsup.datasets.copying import gather
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import written
from setsup.files.mapped import check_mapped, new_array
from setsup.files.prepare import prepare_array
from setsup.files.prepared import PreparedArray
from setsup.shards import write_shards

ROWS = 3000  # of 8 bytes, so that there are several pages


def mapped_npy(folder: Path) -> np.ndarray:
    np.save(folder / "numbers.npy", np.arange(ROWS))
    return np.load(folder / "numbers.npy", mmap_mode="r")


def mapped_amid(folder: Path) -> np.ndarray:
    (folder / "numbers.npy").write_bytes(bytes(5000) + np.arange(ROWS).tobytes())
    return np.asarray(np.memmap(folder / "numbers.npy", np.int64, "r", 5000, (ROWS,)))


def mapped_view(folder: Path) -> np.ndarray:
    return np.asarray(mapped_npy(folder)).reshape(-1, 2)[:, 0]


@pytest.mark.parametrize("mapped", [mapped_npy, mapped_amid, mapped_view])
def test_an_array_whose_file_is_cut_off(mapped, tmp_path):
    array = mapped(tmp_path)
    path, size = tmp_path / "numbers.npy", (tmp_path / "numbers.npy").stat().st_size
    whole = array.copy()
    np.testing.assert_array_equal(gather(array, np.arange(len(array))), whole)
    for left in (size - 1, 4096, 0):
        os.truncate(path, left)
        with pytest.raises(DataError, match=rf"numbers\.npy was truncated .* it has {left:,} bytes, not {size:,}"):
            gather(array, np.array([0]))
    os.truncate(path, size + 10)  # longer does no harm
    check_mapped(array)


def test_arrays_in_memory_pass():
    for array in (np.arange(4), np.arange(4)[1:], np.frombuffer(bytes(8), np.uint8), np.empty(0)):
        check_mapped(array)


def test_a_memory_map_that_was_pickled_is_in_memory(tmp_path):
    array = pickle.loads(pickle.dumps(mapped_npy(tmp_path)))
    os.truncate(tmp_path / "numbers.npy", 0)
    assert gather(array, np.array([7])).tolist() == [7]


@pytest.mark.parametrize("derived", [lambda table: table, lambda table: table.without(["shape"])])
def test_a_factor_table(derived, tmp_path):
    factors = [Factor("id", Kind.NOMINAL, tuple(range(ROWS))), Factor("shape", Kind.NOMINAL, ("a", "b"))]
    FactorTable(factors, {"id": np.arange(ROWS), "shape": np.arange(ROWS) % 2}).save(tmp_path / "table.arrow")
    table = derived(FactorTable.open(tmp_path / "table.arrow"))
    assert table.codes("id", [5, ROWS - 1]).tolist() == [5, ROWS - 1]
    os.truncate(tmp_path / "table.arrow", 100)
    for read in (
        lambda: table.codes("id", [ROWS - 1]),
        lambda: table.codes("id"),
        lambda: table.column("id"),
        lambda: table.all_codes([0]),
        lambda: table.select([3]).values("id"),
        lambda: table.rows("id == 17"),
        lambda: table.group_by(["id"]),
    ):
        with pytest.raises(DataError, match=r"table\.arrow was truncated while it was read: it has 100 bytes"):
            read()


def test_a_prepared_array(tmp_path):
    source = tmp_path / "images.h5"
    source.write_bytes(b"what it was made of")
    prepared = PreparedArray(source, "images", (ROWS, 8), "uint8")
    prepare_array(prepared, ROWS, lambda start, stop, out: out.fill(3))
    array = prepared.open()
    assert gather(array, np.array([ROWS - 1])).tolist() == [[3] * 8]
    os.truncate(prepared.find(), 4096)
    with pytest.raises(DataError, match=r"images\.images\.npy was truncated"):
        gather(array, np.array([ROWS - 1]))


def test_groups_of_a_large_table(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path))
    monkeypatch.setattr("setsup.factors.grouping.CACHED_FROM", ROWS)
    table = FactorTable.from_values({"hue": np.arange(ROWS) % 7, "id": np.arange(ROWS)})
    sampler = DomainSampler(table, "hue", sets=2, size=3)
    groups = table.group_by(["hue"])
    assert groups.members(2).tolist() == list(range(2, ROWS, 7))
    for path in tmp_path.rglob("*.npy"):
        os.truncate(path, 64)
    for read in (lambda: groups.members(2), groups.keys, lambda: sampler[0]):
        with pytest.raises(DataError, match="was truncated while it was read"):
            read()


def test_places_of_shards(tmp_path, monkeypatch):
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    shards = write_shards(load("shapes3d-procedural").select(range(6)), tmp_path / "set")
    assert shards.fetch([3])["image"].shape == (1, 64, 64, 3)
    for path in (tmp_path / "cache").rglob("column.npy"):
        os.truncate(path, 64)
    with pytest.raises(DataError, match="was truncated while it was read"):
        shards.fetch([3])


@pytest.mark.parametrize("refused", [None, errno.EOPNOTSUPP, AttributeError])
def test_a_new_array_has_its_space_before_it_is_written(refused, tmp_path, monkeypatch):
    if refused is AttributeError:  # as on macOS
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    elif refused is not None:  # as on some disks

        def refuse(*_):
            raise OSError(refused, os.strerror(refused))

        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    path = tmp_path / "new.npy"
    array = new_array(path, np.float32, (600, 1000))
    assert path.stat().st_blocks * 512 >= 600 * 1000 * 4
    array[5, 7] = 3
    array.flush()
    found = np.load(path)
    assert found.shape == (600, 1000)
    assert found.sum() == found[5, 7] == 3
    assert new_array(tmp_path / "none.npy", np.float32, (0, 3)).shape == (0, 3)


def test_a_new_array_that_does_not_fit_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(DataError, match=r"cannot write .*new\.npy: the disk is full"):
        with written(tmp_path / "new.npy") as part:
            new_array(part, np.float32, (600, 1000))
    assert not list(tmp_path.iterdir())
