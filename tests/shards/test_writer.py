import errno
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from google_crc32c import value as crc32c
from PIL import Image

import setsup
from setsup.datasets import Modality
from setsup.errors import DataError, FactorError, SamplerError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.writing import parts, writer
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied, contents

FEW = {"order": "by:category", "per_shard": 12}
NAMES = ["image", "depth"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Fifty rows of all modalities in one go."""
    folder = tmp_path_factory.mktemp("whole") / "set"
    write_shards(Varied(), folder, **FEW)
    return folder


def decoded(name, content):
    if name.endswith(".npy"):
        return np.load(io.BytesIO(content))
    with Image.open(io.BytesIO(content)) as image:
        pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def samples(folder):
    """Members by key, out of all tars, as the standard library reads them."""
    found = {}
    for path in sorted(folder.glob("data-*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                key, _, extension = member.name.partition(".")
                found.setdefault(key, {})[extension] = tar.extractfile(member).read()
    return found


# -- what is written -----------------------------------------------------------------------------------------------


def test_the_standard_library_reads_every_sample(whole):
    varied = Varied()
    found = samples(whole)
    source = pq.read_table(whole / "index.parquet").column("__source_row__").to_pylist()
    assert list(found) == [f"{row:06}" for row in range(50)]
    assert sorted(source) == list(range(50))
    names = {
        "png": "image", "mask.png": "mask", "cutout.png": "cutout", "pair.npy": "pair", "depth.npy": "depth",
        "points.npy": "points", "weight.npy": "weight",
    }  # fmt: skip
    for row, sample in zip(source, found.values(), strict=True):
        assert list(sample) == [*names, "json"]
        for extension, name in names.items():
            array = decoded(extension, sample[extension])
            np.testing.assert_array_equal(array, varied.row(row, name))
            assert array.dtype == varied.modalities[name].dtype
        values = json.loads(sample["json"])
        expected = varied.factors.row(row)
        assert list(values) == list(expected)
        for name, one in expected.items():
            assert (values[name] if name != "yaw" or one is None else np.float32(values[name])) == one


def test_tars_tell_nothing_of_the_machine(whole):
    for path in whole.glob("*.tar"):
        with tarfile.open(path) as tar:
            about = {(one.mode, one.uid, one.gid, one.mtime, one.uname, one.gname, one.type) for one in tar}
        assert about == {(0o444, 0, 0, 0, "", "", tarfile.REGTYPE)}


def test_the_index_tells_where_members_lie(whole):
    index = pq.read_table(whole / "index.parquet")
    tars = {number: path.read_bytes() for number, path in enumerate(sorted(whole.glob("data-*.tar")))}
    found = samples(whole)
    assert index.column("__key__").to_pylist() == list(found)
    extensions = {"image": "png", "cutout": "cutout.png", "points": "points.npy", "weight": "weight.npy"}
    for row in index.to_pylist():
        for name, extension in extensions.items():
            start, size, check = (row[f"{name}.{field}"] for field in ("offset", "size", "check"))
            content = tars[row["__shard__"]][start : start + size]
            assert content == found[row["__key__"]][extension]
            assert check == crc32c(content)


def test_the_catalogue_has_sizes_and_digests(whole):
    about = json.loads((whole / "shards.json").read_text())
    assert (about["name"], about["check"], about["about"]) == ("varied", "crc32c", {"order": "by:category"})
    for name, rows, size, digest in [*about["shards"], about["index"]]:
        content = (whole / name).read_bytes()
        assert (size, digest) == (len(content), hashlib.sha256(content).hexdigest())
        if name.endswith(".tar"):
            with tarfile.open(whole / name) as tar:
                assert len(tar.getnames()) == rows * 8
    assert about["index"][1] == 50


def test_a_group_is_in_one_shard_where_it_fits(whole):
    index = pq.read_table(whole / "index.parquet", columns=["category", "__shard__", "__source_row__"]).to_pylist()
    codes = Varied().factors.codes("category", [row["__source_row__"] for row in index])
    ranks = np.where(codes < 0, 3, codes)
    assert (np.diff(ranks) >= 0).all()
    rows = np.array([row["__source_row__"] for row in index])
    for rank in range(4):
        assert (np.diff(rows[ranks == rank]) > 0).all()
        if (ranks == rank).sum() <= 12:
            assert len({one["__shard__"] for one, here in zip(index, ranks, strict=True) if here == rank}) == 1


def test_the_set_opens_as_the_same_data(whole):
    varied, shards = Varied(), setsup.shards.dataset.open_shards(whole)
    rows = shards.source_rows(range(50))
    assert shards.modalities == varied.modalities
    assert shards.factors.fingerprint == varied.factors.select(rows).fingerprint
    some = [49, 0, 17]
    for name in ("image", "mask", "pair", "depth", "weight"):
        np.testing.assert_array_equal(shards.fetch(some, [name])[name], varied.fetch(rows[some], [name])[name])
    for name in ("cutout", "points"):
        np.testing.assert_array_equal(shards.fetch(17, [name])[name], varied.fetch(rows[17], [name])[name])
    assert shards.verify() == []


@pytest.mark.parametrize("format", ["png", "webp", "npy"])
def test_formats_that_lose_nothing(tmp_path, format):
    varied = Varied(9)
    shards = write_shards(varied, tmp_path / "set", format=format, modalities=["image", "mask"])
    for name, array in shards.fetch(range(9)).items():
        np.testing.assert_array_equal(array, varied.fetch(range(9), [name])[name])


def test_a_selection_tells_the_rows_of_the_data_set_it_was_made_of(tmp_path):
    varied = Varied()
    chosen = varied.select([40, 3, 22, 3]).select([3, 0, 2])
    shards = write_shards(chosen, tmp_path / "set", order="shuffle", seed=5, modalities=NAMES)
    source = shards.source_rows([0, 1, 2])
    assert sorted(source.tolist()) == [3, 22, 40]
    np.testing.assert_array_equal(shards.fetch([0, 1, 2])["depth"], varied.fetch(source, ["depth"])["depth"])
    joined = setsup.concat(Varied(3), Varied(3))
    assert write_shards(joined, tmp_path / "both", modalities=NAMES).source_rows(range(6)).tolist() == list(range(6))


def test_shards_of_shards(tmp_path, whole):
    first = setsup.shards.dataset.open_shards(whole)
    again = write_shards(first.where("hue == 0.25"), tmp_path / "again", modalities=NAMES)
    rows = first.factors.rows("hue == 0.25")
    np.testing.assert_array_equal(again.source_rows(range(len(again))), rows)
    depth = again.fetch(range(len(again)), ["depth"])["depth"]
    np.testing.assert_array_equal(depth, first.fetch(rows, ["depth"])["depth"])


def test_shuffles_differ_by_seed_and_keep_keeps(tmp_path):
    orders = {}
    for name, order, seed in [("a", "shuffle", 1), ("b", "shuffle", 2), ("c", "keep", 3), ("d", "keep", 0)]:
        shards = write_shards(Varied(), tmp_path / name, order=order, seed=seed, modalities=["weight"])
        orders[name] = shards.source_rows(range(50)).tolist()
        assert sorted(orders[name]) == list(range(50))
    assert orders["c"] == orders["d"] == list(range(50)) != orders["a"] != orders["b"]
    assert contents(tmp_path / "c") == contents(tmp_path / "d")  # a seed that nothing is drawn by is no other plan


def test_default_shards_are_of_256_mib(tmp_path):
    class Large(Varied):
        def fetch(self, indices, modalities=None):
            rows, names = setsup.datasets.fetch_request(self, indices, modalities)
            return {name: np.zeros((*rows.shape, 4, 1 << 20), np.uint8) for name in names}

    large = Large(50)
    large.modalities = {"block": Modality((None, 1 << 20), "uint8")}
    with pytest.raises(StopIteration, match="64"):
        write_shards(large.select(np.arange(130) % 50), tmp_path / "set", begun=_stop)
    assert (tmp_path / "set").exists()


def _stop(plan, rows):
    raise StopIteration(plan.cuts[1])


# -- the same bytes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [2, 3])
def test_any_number_of_processes_gives_the_same_bytes(tmp_path, whole, processes):
    write_shards(Varied(), tmp_path / "elsewhere" / "deep", processes=processes, **FEW)
    assert contents(tmp_path / "elsewhere" / "deep") == contents(whole)
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["deep"]


@pytest.mark.parametrize(("group", "together"), [(1, 9), (15, 9), (1 << 17, 2)])
def test_the_index_is_the_same_however_many_shards_it_is_made_of_at_once(tmp_path, monkeypatch, whole, group, together):
    monkeypatch.setattr(writer, "GROUP", group)
    monkeypatch.setattr(writer, "_TOGETHER", together)
    write_shards(Varied(), tmp_path / "set", **FEW)
    assert contents(tmp_path / "set") == contents(whole)


def test_nothing_tells_the_place(tmp_path, whole):
    marks = (str(whole).encode(), os.uname().nodename.encode(), str(Path.home()).encode())
    for name, content in contents(whole).items():
        assert not any(mark in content for mark in marks if len(mark) > 5), name
    assert sorted(contents(whole)) == [
        "README.md", *(f"data-{number:05}.tar" for number in range(5)), "index.parquet", "shards.json",
    ]  # fmt: skip


def test_a_relative_path_and_an_address_of_a_folder(tmp_path, whole, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shards(Varied(), "near", **FEW)
    write_shards(Varied(), f"file://{tmp_path}/far", **FEW)
    assert contents(tmp_path / "near") == contents(tmp_path / "far") == contents(whole)


def in_store(url, options=None):
    """All files under an address, hidden ones too, as fsspec has them."""
    import fsspec

    system, root = fsspec.core.url_to_fs(url, **(options or {}))
    system.invalidate_cache()
    root = root.rstrip("/")
    return {path.removeprefix(f"{root}/"): system.cat(path) for path in system.find(root)}


def test_a_store_gets_the_same_bytes(memory, whole):
    write_shards(Varied(), memory, **FEW)
    assert in_store(memory) == contents(whole)


def test_a_bucket_gets_the_same_bytes_from_two_processes(bucket, whole):
    shards = write_shards(Varied(), bucket.url, processes=2, storage_options=bucket.options, **FEW)
    assert in_store(bucket.url, bucket.options) == contents(whole)
    rows = shards.source_rows([4, 41])
    np.testing.assert_array_equal(shards.fetch([4, 41], ["image"])["image"], Varied().fetch(rows, ["image"])["image"])


def test_a_job_in_a_bucket_goes_on(bucket, monkeypatch, whole):
    from setsup.shards.stores.remote import RemoteStore

    put = RemoteStore.put

    def failing(self, name, path):
        if name == "data-00003.tar":
            raise DataError("the store fails")
        put(self, name, path)

    with monkeypatch.context() as patch:
        patch.setattr(RemoteStore, "put", failing)
        with pytest.raises(DataError, match="the store fails"):
            write_shards(Varied(), bucket.url, storage_options=bucket.options, **FEW)
    assert sorted(in_store(bucket.url, bucket.options)) == [
        *(f".setsup/parts/{number:05}.parquet" for number in range(3)), ".setsup/plan.json",
        *(f"data-{number:05}.tar" for number in range(3)),
    ]  # fmt: skip
    with pytest.raises(DataError, match="was begun with another order"):
        write_shards(Varied(), bucket.url, storage_options=bucket.options)
    puts, said = [], []
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStore, "put", lambda self, name, path: (puts.append(name), put(self, name, path)))
        more = {"storage_options": bucket.options, "begun": lambda plan, rows: said.append(plan.cuts.index(rows))}
        write_shards(Varied(), bucket.url, **more, **FEW)
    assert (puts, said) == (["data-00003.tar", "data-00004.tar", "index.parquet"], [3])
    assert in_store(bucket.url, bucket.options) == contents(whole)


def test_a_bucket_with_other_files_is_refused(bucket):
    import fsspec

    system = fsspec.filesystem("s3", **bucket.options)
    system.pipe_file(f"{bucket.url}/photo.jpg", b"mine")
    with pytest.raises(DataError, match=r"holds other files \(photo\.jpg\)"):
        write_shards(Varied(5), bucket.url, storage_options=bucket.options)
    assert in_store(bucket.url, bucket.options) == {"photo.jpg": b"mine"}


# -- stopped and started again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_the_middle_leaves_what_is_finished(tmp_path, processes):
    folder = tmp_path / "set"
    settings = {"per_shard": 10, "modalities": NAMES}
    with pytest.raises(RuntimeError, match="row 33 is broken"):
        write_shards(Varied(broken=33), folder, processes=processes, **settings)
    left = contents(folder)
    assert ".setsup/plan.json" in left
    assert "data-00003.tar" not in left
    if processes == 1:
        assert {f"data-{number:05}.tar" for number in range(3)} <= set(left)
        assert not any("tmp" in name or "tar-" in name for name in left)
    finished = [name for name in left if name.endswith(".tar") and f".setsup/parts/{name[5:10]}.parquet" in left]
    before = {name: (folder / name).stat().st_mtime_ns for name in finished}
    said = []
    write_shards(Varied(), folder, processes=processes, begun=lambda plan, rows: said.append(rows), **settings)
    assert said == [10 * len(finished)]
    assert {name: (folder / name).stat().st_mtime_ns for name in finished} == before
    write_shards(Varied(), tmp_path / "fresh", **settings)
    assert contents(folder) == contents(tmp_path / "fresh")


def _interrupted(tmp_path, monkeypatch, folder, error):
    """Stop the writing of the last shards by an error in whatever the store does."""
    from setsup.shards.stores.local import LocalStore

    put = LocalStore.put

    def failing(self, name, path):
        if name == "data-00003.tar":
            raise error
        put(self, name, path)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put", failing)
        write_shards(Varied(), folder, **FEW)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), DataError("the store fails")])
def test_ctrl_c_and_a_failing_store_leave_no_half_shard(tmp_path, monkeypatch, whole, error):
    folder = tmp_path / "set"
    with pytest.raises(type(error)):
        _interrupted(tmp_path, monkeypatch, folder, error)
    left = contents(folder)
    assert {name: content for name, content in left.items() if not name.startswith(".setsup/")} == {
        name: content for name, content in contents(whole).items() if name in {f"data-{n:05}.tar" for n in range(3)}
    }
    assert sorted(name for name in left if name.startswith(".setsup/")) == [
        *(f".setsup/parts/{number:05}.parquet" for number in range(3)), ".setsup/plan.json",
    ]  # fmt: skip
    assert not (tmp_path / "set.lock").exists()
    write_shards(Varied(), folder, **FEW)
    assert contents(folder) == contents(whole)


def test_a_full_disk_is_told_in_a_sentence(tmp_path, monkeypatch):
    class Full(parts.Tar):
        def end(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parts, "Tar", Full)
        with pytest.raises(DataError, match=r"cannot write .*data-00000\.tar: the disk is full; free some space"):
            write_shards(Varied(5), tmp_path / "set")
    assert sorted(contents(tmp_path / "set")) == [".setsup/plan.json"]


def test_too_little_room_is_noticed_before(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=500))
    # 24 bytes of a pair, 120 of a depth, 2 of a weight; what the pictures take nobody knows
    with pytest.raises(DataError, match=r"writing shards of varied needs 730 bytes in .*, but only 500 bytes are free"):
        write_shards(Varied(5), tmp_path / "set")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("gone", [["data-00001.tar"], ["data-00000.tar", ".setsup/parts/00002.parquet"], ["cut"]])
def test_shards_that_are_gone_or_cut_off_are_written_again(tmp_path, monkeypatch, whole, gone):
    folder = tmp_path / "set"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, monkeypatch, folder, KeyboardInterrupt())
    for name in gone:
        if name == "cut":
            os.truncate(folder / "data-00001.tar", 3000)
        else:
            (folder / name).unlink()
    write_shards(Varied(), folder, **FEW)
    assert contents(folder) == contents(whole)


def test_a_damaged_part_is_named(tmp_path, monkeypatch):
    folder = tmp_path / "set"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, monkeypatch, folder, KeyboardInterrupt())
    (folder / ".setsup/parts/00001.parquet").write_bytes(b"PAR1 nothing")
    with pytest.raises(DataError, match=r"parts/00001\.parquet is damaged .*remove it and start again"):
        write_shards(Varied(), folder, **FEW)


@pytest.mark.parametrize("stop", ["README.md", "shards.json", "index.parquet", "clear"])
def test_a_stop_at_the_very_end_is_mended(tmp_path, monkeypatch, whole, stop):
    from setsup.shards.stores.local import LocalStore

    put_bytes, put = LocalStore.put_bytes, LocalStore.put

    def failing(self, name, content, *, fresh=False):
        if name == stop:
            (self.folder / f".{Path(name).stem}-01234567-0123456789ab.tmp{Path(name).suffix}").write_bytes(content[:9])
            raise KeyboardInterrupt
        return put_bytes(self, name, content, fresh=fresh)

    def failing_put(self, name, path):
        if name == stop:
            raise KeyboardInterrupt
        put(self, name, path)

    def not_cleared(self):
        raise KeyboardInterrupt

    folder = tmp_path / "set"
    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "put_bytes", failing)
        patch.setattr(LocalStore, "put", failing_put)
        if stop == "clear":
            patch.setattr(writer._Work, "_clear", not_cleared)
        with pytest.raises(KeyboardInterrupt):
            write_shards(Varied(), folder, **FEW)
    assert (folder / "shards.json").exists() == (stop == "clear")
    assert (folder / ".setsup").exists()
    said = []
    write_shards(Varied(), folder, begun=lambda plan, rows: said.append((plan.rows, rows)), **FEW)
    assert said == [(50, 50)]
    assert contents(folder) == contents(whole)
    assert not (folder / ".setsup").exists()


def test_a_kill_is_mended(tmp_path, whole):
    folder = tmp_path / "set"
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from setsup.shards.stores.local import LocalStore
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied
from tests.shards.test_writer import FEW
put = LocalStore.put
def killing(self, name, path):
    if name == "data-00002.tar":
        os.kill(os.getpid(), signal.SIGKILL)
    put(self, name, path)
LocalStore.put = killing
write_shards(Varied(), {str(folder)!r}, **FEW)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    assert any(name.startswith(".setsup/data-00002.tar-") for name in contents(folder))
    left = []
    write_shards(Varied(), folder, begun=lambda plan, rows: left.extend(contents(folder / ".setsup")), **FEW)
    assert sorted(left) == ["parts/00000.parquet", "parts/00001.parquet", "plan.json"]
    assert contents(folder) == contents(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


# -- two jobs ------------------------------------------------------------------------------------------------------


def test_a_finished_set_is_opened(tmp_path, whole):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(write_shards(Varied(), folder, **FEW)) == 50
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


@pytest.mark.parametrize("processes", [1, 2])
def test_tars_of_a_finished_set_that_are_lost_are_written_again(tmp_path, whole, processes):
    """Those alone; content is not looked at, and what verify() names comes back once it is removed."""
    folder, said = tmp_path / "set", []
    shutil.copytree(whole, folder)
    (folder / "data-00001.tar").unlink()
    os.truncate(folder / "data-00003.tar", 700)
    content = (folder / "data-00000.tar").read_bytes()
    (folder / "data-00000.tar").unlink()
    (folder / "data-00000.tar").write_bytes(content[:1000] + bytes([content[1000] ^ 1]) + content[1001:])
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    sizes = {shard[0]: shard[1] for shard in json.loads((whole / "shards.json").read_text())["shards"]}
    more = {"processes": processes, "begun": lambda plan, rows: said.append(plan.rows - rows), **FEW}
    shards = write_shards(Varied(), folder, **more)
    assert said == [sizes["data-00001.tar"] + sizes["data-00003.tar"]]
    after = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"data-00001.tar", "data-00003.tar"}
    assert shards.verify() == ["data-00000.tar"]
    (folder / "data-00000.tar").unlink()
    assert write_shards(Varied(), folder, **more).verify() == []
    assert contents(tmp_path) == {f"set/{name}": content for name, content in contents(whole).items()}
    assert [path.name for path in folder.iterdir() if path.is_dir()] == []


def test_a_lost_tar_of_a_bucket_is_written_again(bucket, whole):
    import fsspec

    said = []
    more = {"storage_options": bucket.options, "begun": lambda plan, rows: said.append(plan.rows - rows), **FEW}
    write_shards(Varied(), bucket.url, **more)
    system = fsspec.filesystem("s3", **bucket.options)
    system.rm_file(f"{bucket.url}/data-00004.tar")
    system.pipe_file(f"{bucket.url}/data-00002.tar", b"cut")
    write_shards(Varied(), bucket.url, **more)
    shards = json.loads((whole / "shards.json").read_text())["shards"]
    assert said == [50, shards[2][1] + shards[4][1]]
    assert in_store(bucket.url, bucket.options) == contents(whole)


def test_a_lost_tar_is_not_replaced_by_other_rows(tmp_path, whole):
    """Of which only those are noticed before that are looked at."""

    class Other(Varied):
        def row(self, row, name):
            return super().row(row + 1000 * (row not in (0, 24, 49) and row % 7 == 3), name)

    folder = tmp_path / "set"
    looked = {"modalities": ["depth"]}
    write_shards(Varied(), folder, per_shard=12, **looked)
    (folder / "data-00000.tar").unlink()
    before = contents(folder)
    with pytest.raises(
        DataError, match=r"data-00000\.tar was lost, and the data set gives other rows now.* write it anew"
    ):
        write_shards(Other(), folder, per_shard=12, **looked)
    assert contents(folder) == before
    assert not (folder / ".setsup").exists()


@pytest.mark.parametrize(("cut", "said"), [(None, "is missing"), (9, "has 9 bytes, not ")])
def test_a_finished_set_without_its_index_is_refused(tmp_path, whole, cut, said):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    if cut is None:
        (folder / "index.parquet").unlink()
    else:
        os.truncate(folder / "index.parquet", cut)
    before = contents(folder)
    with pytest.raises(
        DataError, match=rf"index\.parquet {said}.*; fetch it again, or remove all of the set and write"
    ):
        write_shards(Varied(), folder, **FEW)
    assert contents(folder) == before


def test_a_catalogue_of_other_tars_is_refused(tmp_path, whole):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    text = (folder / "shards.json").read_text()
    (folder / "shards.json").write_text(text.replace("data-00002.tar", "data-00007.tar"))
    with pytest.raises(DataError, match=r"shards\.json is damaged: it tells of other tars; fetch it again"):
        write_shards(Varied(), folder, **FEW)


def test_a_cluster_that_cannot_be_used_leaves_nothing_behind(tmp_path, memory):
    from setsup.jobs import Ray

    pytest.importorskip("ray")
    for place in (tmp_path / "set", memory):
        with pytest.raises(DataError, match=r"nothing answers at 127\.0\.0\.1:1 "):
            write_shards(Varied(), place, on=Ray("127.0.0.1:1"), **FEW)
    assert list(tmp_path.iterdir()) == []
    assert in_store(memory) == {}
    write_shards(Varied(5), tmp_path / "set")  # by any other plan


@pytest.mark.parametrize(
    ("dataset", "change"),
    [
        (Varied(51), {}),
        (Varied(), {"order": "keep"}),
        (Varied(), {"per_shard": 20}),
        (Varied(), {"format": "npy"}),
        (Varied(), {"modalities": NAMES}),
        (Varied(names=NAMES), {}),
    ],
)
def test_other_work_is_refused(tmp_path, monkeypatch, whole, dataset, change):
    folder = tmp_path / "set"
    shutil.copytree(whole, folder)
    with pytest.raises(DataError, match=r"other shards: 50 rows of varied in 5 shards in the order 'by:category'"):
        write_shards(dataset, folder, **{**FEW, **change})
    assert contents(folder) == contents(whole)
    begun = tmp_path / "begun"
    with pytest.raises(KeyboardInterrupt):
        _interrupted(tmp_path, monkeypatch, begun, KeyboardInterrupt())
    before = contents(begun)
    with pytest.raises(DataError, match=r"was begun with .*; give it that, choose another place, or remove"):
        write_shards(dataset, begun, **{**FEW, **change})
    assert contents(begun) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun", "set"]


def test_other_rows_of_equal_factors_are_other_work(tmp_path):
    class Plain(Varied):
        def __init__(self):
            super().__init__(6, NAMES)
            self.factors = FactorTable([Factor("one", Kind.ORDINAL, (1,))], {"one": np.zeros(6, int)})

    write_shards(Plain().select([0, 1, 2, 3, 5]), tmp_path / "set")
    with pytest.raises(DataError, match="holds other shards"):
        write_shards(Plain().select([0, 4, 2, 3, 5]), tmp_path / "set")


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "thesis.tex").touch()
    with pytest.raises(DataError, match=r"holds other files \(thesis\.tex\); choose a new place"):
        write_shards(Varied(5), tmp_path / "set")
    assert list(contents(tmp_path)) == ["set/thesis.tex"]
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*/file: a file stands in the place of a folder"):
        write_shards(Varied(5), tmp_path / "file")


@pytest.mark.parametrize("name", ["data-00000.tar-old", ".notes-0123456789ab.tmp"])
def test_files_that_only_look_like_what_a_kill_leaves_stay(tmp_path, name):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / name).write_text("mine")
    (folder / "thesis.tex").touch()
    with pytest.raises(DataError, match="holds other files"):
        write_shards(Varied(5), folder)
    assert (folder / name).read_text() == "mine"
    (folder / name).unlink()
    (folder / "thesis.tex").unlink()
    write_shards(Varied(5), folder)
    (folder / name).write_text("mine")
    write_shards(Varied(5), folder)
    assert (folder / name).read_text() == "mine"


def test_two_jobs_at_once_in_a_folder(tmp_path, whole):
    """The second waits for the first, and finds all done."""
    context = multiprocessing.get_context("spawn")
    jobs = [context.Process(target=_job, args=(str(tmp_path / "set"),)) for _ in range(2)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert [job.exitcode for job in jobs] == [0, 0]
    assert contents(tmp_path / "set") == contents(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def _job(folder):
    write_shards(Varied(), folder, **FEW)


def test_two_jobs_at_once_in_a_store(memory, whole):
    """Neither waits, and both end well: whatever the one does between two steps of the other."""
    from setsup.shards.stores.remote import RemoteStore

    url = memory
    put, nested = RemoteStore.put, []

    def interleaved(self, name, path):
        put(self, name, path)
        if name == "data-00002.tar" and not nested:
            nested.append(name)
            write_shards(Varied(), url, **FEW)  # the other job does all the rest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemoteStore, "put", interleaved)
        write_shards(Varied(), url, **FEW)
    assert nested
    assert in_store(url) == contents(whole)
    with pytest.raises(DataError, match="holds other shards: 50 rows of varied in 5 shards in the order 'by:category'"):
        write_shards(Varied(), url, per_shard=12)


def test_three_threads_at_once_in_a_store(memory, whole):
    url, errors = memory, []

    def job():
        try:
            write_shards(Varied(), url, **FEW)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=job) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert in_store(url) == contents(whole)


# -- what cannot be ------------------------------------------------------------------------------------------------


class Odd(Varied):
    """A data set of five rows with given modalities and factors; without a level these are 1, infinity and 0."""

    def __init__(self, modality="image", factor="digit", level="a", name="odd", shape=(6, 5, 3), levels=None):
        super().__init__(5, NAMES)
        self.name = name
        if level is None:
            self.factors = FactorTable([Factor(factor, Kind.CONTINUOUS)], {factor: [1, np.inf, 0, 0, 0]})
        else:
            self.factors = FactorTable([Factor(factor, Kind.NOMINAL, levels or (level,))], {factor: np.zeros(5, int)})
        self.modalities = {modality: Modality(shape, "uint8", color="srgb")}

    def fetch(self, indices, modalities=None):
        rows, names = setsup.datasets.fetch_request(self, indices, modalities)
        shapes = {name: kind.shape for name, kind in self.modalities.items()}
        return {name: np.zeros((*rows.shape, *shapes[name]), np.uint8) for name in names}


@pytest.mark.parametrize(
    ("dataset", "more", "error", "message"),
    [
        (Varied().select([]), {}, DataError, "varied has no rows to write"),
        (Varied(5), {"modalities": "image"}, DataError, "must be a list of names"),
        (Varied(5), {"modalities": ["imge"]}, DataError, "no modality 'imge'; did you mean 'image'"),
        (Varied(5), {"modalities": []}, DataError, "name at least one modality"),
        (Varied(5), {"format": "gif"}, DataError, "no format 'gif'"),
        (Varied(5), {"order": "by:yaw"}, FactorError, "continuous"),
        (Varied(5), {"order": "shuffle", "seed": -1}, SamplerError, "seed"),
        (Varied(5), {"per_shard": 0}, DataError, "rows of a shard"),
        (Varied(5), {"processes": 0}, SetsupError, "processes must be"),
        (Odd(modality="../up"), {}, DataError, "cannot be a part of a file's name"),
        (Odd(factor="__key__"), {}, FactorError, "column '__key__' of its own; rename that factor"),
        (Odd(factor="image.offset"), {}, FactorError, "column 'image.offset' of its own"),
        (Odd(level="\ud800"), {}, FactorError, "is no valid text"),
        (Odd(factor="\ud800"), {}, FactorError, "is no valid text"),
        (Odd(level=None), {}, FactorError, "factor 'digit' has infinite values"),
        (Odd(levels=(1, 2**70)), {}, FactorError, "cannot stand in one column"),
        (Odd(levels=(True, 2)), {}, FactorError, "cannot stand in one column"),
        (Odd(name="\udc80"), {}, DataError, "no valid text, and stands in the name"),
        (Odd(name=""), {}, DataError, "the catalogue of '': name must be a text"),
        (Odd(shape=(1,) * 9), {}, DataError, "the catalogue of 'odd': .*at most 8"),
        (Varied(5), {"order": ["category"]}, DataError, r"not \['category'\]"),
        (Varied(5, broken=4), {}, RuntimeError, "row 4 is broken"),
    ],
)
def test_what_cannot_work_leaves_nothing_behind(tmp_path, dataset, more, error, message):
    with pytest.raises(error, match=message):
        write_shards(dataset, tmp_path / "set", **more)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../../etc", "a/b", "ключ", "json", "\n", "__proto__", "{}", '"', "KEY.json"])
def test_hostile_names_of_factors_are_but_names(tmp_path, name):
    shards = write_shards(Odd(factor=name, level=name), tmp_path / "set")
    assert shards.factors.row(3) == {name: name}
    assert json.loads(samples(tmp_path / "set")["000003"]["json"]) == {name: name}
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
