"""Shards that are written: what lies there, to the same bytes wherever and by however many, and what cannot be."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from google_crc32c import value as crc32c
from PIL import Image

import setsup
from setsup.datasets import Modality
from setsup.errors import DataError, FactorError, SamplerError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.shards.writing import writer
from setsup.shards.writing.writer import write_shards
from tests.sharded import Varied, contents
from tests.shards.sets import FEW, NAMES, in_store


def decoded(name, content):
    if name.endswith(".npy"):
        return np.load(io.BytesIO(content))
    with Image.open(io.BytesIO(content)) as image:
        pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def samples(folder):
    """MemberIndex by key, out of all tars, as the standard library reads them."""
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
    varied, shards = Varied(), setsup.open_shards(whole)
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


def test_a_selection_tells_the_rows_of_the_dataset_it_was_made_of(tmp_path):
    varied = Varied()
    chosen = varied.select([40, 3, 22, 3]).select([3, 0, 2])
    shards = write_shards(chosen, tmp_path / "set", order="shuffle", seed=5, modalities=NAMES)
    source = shards.source_rows([0, 1, 2])
    assert sorted(source.tolist()) == [3, 22, 40]
    np.testing.assert_array_equal(shards.fetch([0, 1, 2])["depth"], varied.fetch(source, ["depth"])["depth"])
    joined = setsup.concat(Varied(3), Varied(3))
    assert write_shards(joined, tmp_path / "both", modalities=NAMES).source_rows(range(6)).tolist() == list(range(6))


def test_shards_of_shards(tmp_path, whole):
    first = setsup.open_shards(whole)
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
        write_shards(large.select(np.arange(130) % 50), tmp_path / "set", on_start=_stop)
    assert (tmp_path / "set").exists()


def _stop(plan, rows):
    raise StopIteration(plan.cuts[1])


# -- the same bytes ------------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
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
        *("README.md", "backup.parquet", "croissant.json"), *(f"data-{number:05}.tar" for number in range(5)),
        *("index.parquet", "shards.json"),
    ]  # fmt: skip


def test_a_relative_path_and_an_address_of_a_folder(tmp_path, whole, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_shards(Varied(), "near", **FEW)
    write_shards(Varied(), f"file://{tmp_path}/far", **FEW)
    assert contents(tmp_path / "near") == contents(tmp_path / "far") == contents(whole)


def test_a_store_gets_the_same_bytes(memory, whole):
    write_shards(Varied(), memory, **FEW)
    assert in_store(memory) == contents(whole)


@pytest.mark.long("worker processes")
def test_a_bucket_gets_the_same_bytes_from_two_processes(bucket, whole):
    shards = write_shards(Varied(), bucket.url, processes=2, storage_options=bucket.options, **FEW)
    assert in_store(bucket.url, bucket.options) == contents(whole)
    rows = shards.source_rows([4, 41])
    np.testing.assert_array_equal(shards.fetch([4, 41], ["image"])["image"], Varied().fetch(rows, ["image"])["image"])


@pytest.mark.long("stores")
def test_a_job_in_a_bucket_resumes(bucket, monkeypatch, whole):
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
    with pytest.raises(DataError, match="was started with another order"):
        write_shards(Varied(), bucket.url, storage_options=bucket.options)
    puts, said = [], []
    with monkeypatch.context() as patch:
        patch.setattr(RemoteStore, "put", lambda self, name, path: (puts.append(name), put(self, name, path)))
        more = {"storage_options": bucket.options, "on_start": lambda plan, rows: said.append(plan.cuts.index(rows))}
        write_shards(Varied(), bucket.url, **more, **FEW)
    assert (puts, said) == (["data-00003.tar", "data-00004.tar", "backup.parquet", "index.parquet"], [3])
    assert in_store(bucket.url, bucket.options) == contents(whole)


@pytest.mark.long("stores")
def test_a_bucket_with_other_files_is_refused(bucket):
    import fsspec

    system = fsspec.filesystem("s3", **bucket.options)
    system.pipe_file(f"{bucket.url}/photo.jpg", b"mine")
    with pytest.raises(DataError, match=r"contains other files \(photo\.jpg\)"):
        write_shards(Varied(5), bucket.url, storage_options=bucket.options)
    assert in_store(bucket.url, bucket.options) == {"photo.jpg": b"mine"}


# -- what cannot be ------------------------------------------------------------------------------------------------


class Odd(Varied):
    """A dataset of five rows with given modalities and factors."""

    def __init__(self, modality="image", factor="digit", level="a", name="odd", shape=(6, 5, 3), levels=None):
        super().__init__(5, NAMES)
        self.name = name
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
        (Varied(5), {"modalities": "image"}, DataError, "must be a list of strings or None, not 'image'"),
        (Varied(5), {"modalities": ["imge"]}, DataError, "no modality 'imge'; did you mean 'image'"),
        (Varied(5), {"modalities": []}, DataError, "no modality to write is selected"),
        (Varied(5), {"format": "gif"}, DataError, "format of write_shards must be one of png, .*not 'gif'"),
        (Varied(5), {"order": "by:yaw"}, FactorError, "continuous"),
        (Varied(5), {"order": "shuffle", "seed": -1}, SamplerError, "seed"),
        (Varied(5), {"per_shard": 0}, DataError, "per_shard must be"),
        (Varied(5), {"processes": 0}, SetsupError, "processes must be"),
        (Odd(modality="../up"), {}, DataError, "because it names files in a tar"),
        (
            Odd(factor="__key__"),
            {},
            FactorError,
            "name '__key__' is reserved for a column of the index of shards; rename the factor",
        ),
        (Odd(factor="image.offset"), {}, FactorError, "'image.offset' is reserved for a column"),
        (Odd(level="\ud800"), {}, FactorError, "is not valid Unicode text"),
        (Odd(factor="\ud800"), {}, FactorError, "is not valid Unicode text"),
        (Odd(levels=(1, 2**70)), {}, FactorError, "Arrow has no type for the levels"),
        (Odd(levels=(1.5, 2**60 + 1)), {}, FactorError, "Arrow has no type for the levels"),
        (Odd(name="\udc80"), {}, DataError, "the name .* or the unit of a factor contains"),
        (Odd(name=""), {}, DataError, "the catalogue of '': name must be a non-empty string, not ''"),
        (Odd(shape=(1,) * 9), {}, DataError, "the catalogue of 'odd': .*at most 8"),
        (Varied(5), {"order": ["category"]}, DataError, "order of write_shards must be a string, not"),
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
