"""Shards as a dataset, of sets that are made by hand as the documentation says."""

import json
import os
import pickle
import shutil
import struct
import tarfile
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import setsup
from setsup.datasets import Dataset
from setsup.errors import DataError, RowError, SetsupError
from setsup.shards.dataset import ShardedDataset
from setsup.shards.opening import open_shards
from tests.fuzzing import mutations
from tests.shards.handmade import npy, picture, places, small_set, write_set, write_tar

ONE = {"name": "n", "kind": "ordinal", "levels": [0, 1, 2, 3]}


def one_modality(folder: Path, contents: list[bytes], extension: str, **about: Any) -> Path:
    """Write a set of one modality."""
    stored = {"shape": [2, 3], "dtype": "float32", "unit": "", "color": ""} | about
    name = extension.split(".")[0] if "." in extension else "image"
    rows = range(len(contents))
    return write_set(
        folder,
        [{extension: content} if content else {"json": b"{}"} for content in contents],
        {name: {"extension": extension, **stored}},
        {"n": [row % 4 for row in rows]},
        [ONE],
    )


@pytest.fixture(params=["npy", "png", "png in many threads", "webp"])
def made(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[ShardedDataset, np.ndarray, np.ndarray]:
    form, _, many = request.param.partition(" ")
    monkeypatch.setattr("setsup.datasets.images.threads", 4 if many else 1)
    folder, images, depths = small_set(tmp_path / "set", form)
    return open_shards(folder), images, depths


def test_any_rows_in_any_order(made: tuple[ShardedDataset, np.ndarray, np.ndarray]) -> None:
    dataset, images, depths = made
    assert isinstance(dataset, Dataset)
    assert len(dataset) == 7
    assert dataset.name == "handmade"
    assert dataset.catalogue.about == {"licence": "CC0-1.0"}
    for indices in (np.arange(7), [[6, 0, 6], [1, 1, 3]], 4, [], np.zeros((2, 0), int)):
        found = dataset.fetch(indices)
        assert list(found) == ["image", "depth"]
        index = np.asarray(indices, np.int64)
        for name, expected in (("image", images), ("depth", depths)):
            assert found[name].dtype == expected.dtype
            assert found[name].shape == (*index.shape, *expected.shape[1:])
            assert (found[name] == expected[index]).all()
    assert list(dataset.fetch([0], ["depth"])) == ["depth"]
    assert dataset.fetch([0], []) == {}


def test_factors_keys_and_source_rows(made: tuple[ShardedDataset, np.ndarray, np.ndarray]) -> None:
    dataset, images, _ = made
    assert dataset.factors.values("shape").tolist() == list("abababa")
    assert dataset.factors.values("turn").tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert dataset.keys([6, 0]) == ["000006", "000000"]
    assert dataset.source_rows([[6], [0]]).tolist() == [[106], [100]]
    few = dataset.where("shape == 'b'")
    assert few.keys([1]) == ["000003"]
    assert few.source_rows(2) == 105
    assert (few.fetch([2, 0])["image"] == images[[5, 1]]).all()
    assert (dataset.select([4, 4, 2]).fetch([0, 1, 2])["image"] == images[[4, 4, 2]]).all()
    both = setsup.concat(dataset, few)
    assert (both.fetch([0, 7, 6, 9])["image"] == images[[0, 1, 6, 5]]).all()


def test_what_is_copied_and_what_is_decoded(tmp_path: Path) -> None:
    said = {form: open_shards(small_set(tmp_path / form, form)[0]).cpu_bound for form in ("npy", "png", "webp")}
    assert said == {"npy": False, "png": True, "webp": True}
    assert open_shards(tmp_path / "npy", size=(3, 3)).cpu_bound


def test_wrong_requests(made: tuple[ShardedDataset, np.ndarray, np.ndarray]) -> None:
    dataset = made[0]
    with pytest.raises(RowError, match="row 7 is out of range"):
        dataset.fetch([7])
    with pytest.raises(DataError, match="no modality 'deph'; did you mean 'depth'"):
        dataset.fetch([0], ["deph"])
    with pytest.raises(RowError):
        dataset.keys([-1])


@pytest.mark.parametrize("indices", [[[3, 0], [6, 6]], 2, []])
def test_written_into_arrays(made: tuple[ShardedDataset, np.ndarray, np.ndarray], indices: Any) -> None:
    dataset, images, depths = made
    index = np.asarray(indices, np.int64)
    image, depth = np.zeros((*index.shape, 6, 5, 3), np.uint8), np.zeros((*index.shape, 6, 5), np.float32)
    dataset.fetch_into(indices, {"image": image, "depth": depth})
    assert (image == images[index]).all()
    assert (depth == depths[index]).all()
    # memory that is not in one piece, or of another type
    wide, double = np.zeros((*index.shape, 6, 10, 3), np.uint8), np.zeros((*index.shape, 6, 5))
    dataset.fetch_into(indices, {"image": wide[..., ::2, :], "depth": double})
    assert (wide[..., ::2, :] == images[index]).all()
    assert (double == depths[index]).all()


def test_resized_images(tmp_path: Path) -> None:
    for form in ("png", "npy"):
        folder, images, depths = small_set(tmp_path / form, form)
        dataset = open_shards(folder, size=(4, 4))
        assert dataset.modalities["image"].shape == (4, 4, 3)
        assert dataset.modalities["depth"].shape == (6, 5)
        found = dataset.fetch([2, 5])
        assert (found["depth"] == depths[[2, 5]]).all()
        for image, row in zip(found["image"], (2, 5), strict=True):
            expected = ImageOps.fit(Image.fromarray(images[row]), (4, 4), Image.Resampling.BICUBIC)
            assert (image == np.asarray(expected)).all()
        assert (pickle.loads(pickle.dumps(dataset)).fetch([2, 5])["image"] == found["image"]).all()
    with pytest.raises(DataError, match="size must be"):
        open_shards(folder, size=(4,))


def test_jpeg_by_the_same_decoder_as_everywhere(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 16, 3), np.uint8)
    contents = [picture(image, "JPEG", quality=95, subsampling=0) for image in images]
    dataset = open_shards(
        one_modality(tmp_path / "set", contents, "jpg", shape=[None, None, 3], dtype="uint8", color="srgb")
    )
    import io

    for row, found in enumerate(dataset.fetch(range(4))["image"]):
        assert (found == np.asarray(Image.open(io.BytesIO(contents[row])))).all()


def test_grey_and_transparent_images(tmp_path: Path) -> None:
    for channels, color in ((1, "grey"), (4, "srgb")):
        images = np.random.default_rng(0).integers(0, 256, (4, 7, 6, channels), np.uint8)
        folder = tmp_path / str(channels)
        one_modality(
            folder, [picture(image) for image in images], "png", shape=[7, 6, channels], dtype="uint8", color=color
        )
        assert (open_shards(folder).fetch(range(4))["image"] == images).all()


@pytest.mark.parametrize("order", ["big-endian", "fortran", "other header"])
def test_arrays_as_others_write_them(tmp_path: Path, order: str) -> None:
    arrays = np.random.default_rng(0).random((4, 2, 3), np.float32)
    if order == "big-endian":
        contents = [npy(array.astype(">f4")) for array in arrays]
    elif order == "fortran":
        contents = [npy(np.asfortranarray(array)) for array in arrays]
    else:
        head = b"{'descr':'<f4','fortran_order':False,'shape':(2,3)}"
        contents = [b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + array.tobytes() for array in arrays]
    contents[1] = npy(arrays[1])  # a usual one between them
    dataset = open_shards(one_modality(tmp_path / "set", contents, "depth.npy"))
    for _ in range(2):
        found = dataset.fetch([[0, 1], [3, 2]])["depth"]
        assert found.dtype == np.float32
        assert (found == arrays[[[0, 1], [3, 2]]]).all()


def test_arrays_of_several_shapes(tmp_path: Path) -> None:
    arrays = [np.arange(2.0 * length).reshape(length, 2) for length in (3, 0, 3, 1)]
    dataset = open_shards(
        one_modality(tmp_path / "set", [npy(one) for one in arrays], "boxes.npy", shape=[None, 2], dtype="float64")
    )
    assert (dataset.fetch([0, 2])["boxes"] == np.stack([arrays[0], arrays[2]])).all()
    assert dataset.fetch([1])["boxes"].shape == (1, 0, 2)
    assert dataset.fetch([])["boxes"].shape == (0, 0, 2)
    with pytest.raises(DataError, match=r"row 3 \(key 000003\) .*has shape \(1, 2\), but row 0 has shape \(3, 2\)"):
        dataset.fetch([0, 3])


@pytest.mark.parametrize("array", [np.zeros((2, 3)), np.zeros((3, 2), np.float32), np.zeros((2, 3, 1), np.float32)])
def test_arrays_that_the_catalogue_does_not_tell_of(tmp_path: Path, array: np.ndarray) -> None:
    dataset = open_shards(one_modality(tmp_path / "set", [npy(array)] * 2, "depth.npy"))
    with pytest.raises(
        DataError,
        match=r"the 'depth' of row 1 \(key 000001\) in .*data-00000.tar is .*, but the catalogue specifies float32",
    ):
        dataset.fetch([1])


def test_images_of_another_size(tmp_path: Path) -> None:
    contents = [picture(np.zeros((size, 5, 3), np.uint8)) for size in (6, 6, 7, 6)]
    folder = one_modality(tmp_path / "set", contents, "png", shape=[6, 5, 3], dtype="uint8", color="srgb")
    with pytest.raises(DataError, match=r"the 'image' of row 2 in .*data-00000.tar is 7 × 5 pixels"):
        open_shards(folder).fetch([0, 2])
    assert open_shards(folder, size=(3, 3)).fetch([0, 2])["image"].shape == (2, 3, 3, 3)


def test_a_sample_without_a_modality(tmp_path: Path) -> None:
    folder, images, _ = small_set(tmp_path / "all")
    samples = [
        {"npy": npy(image)} | ({"depth.npy": npy(np.zeros((6, 5), np.float32))} if row != 4 else {})
        for row, image in enumerate(images)
    ]
    about = json.loads((folder / "shards.json").read_text())
    columns = {"n": [row % 4 for row in range(7)]}
    keys = [f"train/{row:03d}" for row in range(7)]
    dataset = open_shards(write_set(tmp_path / "set", samples, about["members"], columns, [ONE], keys=keys))
    assert (dataset.fetch([4], ["image"])["image"] == images[[4]]).all()
    assert dataset.fetch([3, 5])["depth"].shape == (2, 6, 5)
    with pytest.raises(
        DataError, match=r"row 4 \(key train/004\) in .*data-00001.tar has no 'depth', only 'image'; fetch other"
    ):
        dataset.fetch([[0], [4]])


# -- what has changed --------------------------------------------------------------------------------------------------


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def test_a_member_that_has_changed_is_named(tmp_path: Path) -> None:
    folder, images, _ = small_set(tmp_path / "set")
    dataset = open_shards(folder)
    offset, size, _ = places(folder / "data-00001.tar")["000004.npy"]
    flip(folder / "data-00001.tar", offset + size - 1)
    assert (dataset.fetch([3, 5])["image"] == images[[3, 5]]).all()
    for _ in range(2):
        with pytest.raises(
            DataError,
            match=r"the 'image' of row 4 \(key 000004\) in .*set/data-00001\.tar has changed since it was indexed; "
            "fetch the tar again, or remove it and run the same `setsup shard` again",
        ):
            dataset.fetch([[3, 4], [5, 4]])
    assert (dataset.fetch([3, 5])["image"] == images[[3, 5]]).all()
    assert dataset.verify() == ["data-00001.tar"]


def test_tars_of_others_are_checked_by_their_headers(tmp_path: Path) -> None:
    folder, images, depths = small_set(tmp_path / "set", "png", check="header")
    dataset = open_shards(folder)
    found = dataset.fetch([[6, 2], [3, 3]])
    assert (found["image"] == images[[[6, 2], [3, 3]]]).all()
    assert (found["depth"] == depths[[[6, 2], [3, 3]]]).all()
    members = {}
    with tarfile.open(folder / "data-00000.tar") as tar:
        for member in tar:
            members[member.name] = tar.extractfile(member).read()  # type: ignore[union-attr]
    names = list(members)
    names[0], names[3] = names[3], names[0]  # samples 0 and 1 change places, or keep the place with other sizes
    shutil.copy(folder / "data-00000.tar", tmp_path / "kept")
    write_tar(folder / "data-00000.tar", [(name, members[name]) for name in names])
    if (folder / "data-00000.tar").stat().st_size == (tmp_path / "kept").stat().st_size:
        with pytest.raises(DataError, match=r"the 'image' of row 0 \(key 000000\) .*data-00000\.tar has changed"):
            open_shards(folder).fetch([0])
    else:
        with pytest.raises(DataError, match=r"data-00000\.tar has changed since it was indexed: it has"):
            open_shards(folder).fetch([0])


@pytest.mark.parametrize("cut", [512, 1024, 3000])
def test_a_tar_that_is_cut_off(tmp_path: Path, cut: int) -> None:
    folder, images, _ = small_set(tmp_path / "set")
    with (folder / "data-00001.tar").open("r+b") as file:
        file.truncate((folder / "data-00001.tar").stat().st_size - cut)
    dataset = open_shards(folder)
    assert (dataset.fetch([0, 6])["image"] == images[[0, 6]]).all()
    with pytest.raises(DataError, match=r"data-00001\.tar has changed since it was indexed: it has .* bytes, not"):
        dataset.fetch([0, 4])
    assert dataset.verify() == ["data-00001.tar"]
    (folder / "data-00001.tar").unlink()
    with pytest.raises(DataError, match=r"data-00001\.tar, a shard .* is missing"):
        dataset.fetch([4])
    assert dataset.verify() == ["data-00001.tar"]


def test_a_whole_set_is_verified(made: tuple[ShardedDataset, np.ndarray, np.ndarray]) -> None:
    assert made[0].verify() == []


def test_a_copy_that_is_wrong_is_read_once_more(tmp_path: Path) -> None:
    folder, images, _ = small_set(tmp_path / "set")
    dataset = open_shards(folder)

    class Stale:
        """A reader whose copy of the second tar is wrong until it is dropped."""

        def __init__(self, reader: Any) -> None:
            self.reader, self.dropped = reader, list[int]()

        def read(self, shards: Any, starts: Any, sizes: Any) -> list[memoryview]:
            found = self.reader.read(shards, starts, sizes)
            wrong = [shard == 1 and not self.dropped for shard in shards.tolist()]
            return [memoryview(bytes(len(one))) if bad else one for one, bad in zip(found, wrong, strict=True)]

        def drop(self, shard: int) -> None:
            self.dropped.append(shard)

    stale = dataset._reader = Stale(dataset._reader)
    assert (dataset.fetch([0, 3, 4, 6])["image"] == images[[0, 3, 4, 6]]).all()
    assert set(stale.dropped) == {1}


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("form", ["npy", "png", "webp"])
@pytest.mark.parametrize("check", ["crc32c", "header"])
def test_damaged_tars_give_the_right_pixels_or_a_sentence(tmp_path: Path, form: str, check: str) -> None:
    folder, images, depths = small_set(tmp_path / "set", form, rows=3, check=check)
    tar = folder / "data-00000.tar"
    healthy, refused = tar.read_bytes(), 0
    sentences = set()
    for content in mutations(healthy, 150, seed=1):
        tar.unlink()
        tar.write_bytes(content[: len(healthy)].ljust(len(healthy), b"\0") if len(content) % 2 else content)
        dataset = open_shards(folder)
        for row in range(3):
            try:
                found = dataset.fetch([row])
            except SetsupError as error:
                refused += 1
                sentences.add(str(error))
            else:
                # of headers alone nobody can tell whether the content is the same
                if check == "crc32c":
                    assert (found["image"] == images[row]).all()
                    assert (found["depth"] == depths[row]).all()
                assert found["image"].shape == (1, 6, 5, 3)
    assert refused > 100
    assert not any("\n" in sentence for sentence in sentences)


# -- loaders and processes ---------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", [0, "thread", 2])
def test_loaders(made: tuple[ShardedDataset, np.ndarray, np.ndarray], workers: int | str) -> None:
    dataset, images, depths = made
    sets = setsup.SetSampler(dataset.factors, inactive=["shape"], size=2, sets=3)
    for step, batch in zip(range(5), setsup.loader(dataset, sets, to="numpy", workers=workers), strict=False):
        assert (batch["indices"] == sets[step].indices).all()
        assert (batch["image"] == images[batch["indices"]]).all()
        assert (batch["depth"] == depths[batch["indices"]]).all()


def test_loaders_use_their_memory_again(tmp_path: Path) -> None:
    dataset = open_shards(small_set(tmp_path / "set")[0])
    sets = setsup.SetSampler(dataset.factors, inactive=["shape"], size=2)
    seen = set()
    for _, batch in zip(range(12), setsup.loader(dataset, sets, to="numpy", workers=0), strict=False):
        seen.add(batch["image"].ctypes.data)
    assert len(seen) < 4


def test_pickled_small_and_opened_where_it_arrives(made: tuple[ShardedDataset, np.ndarray, np.ndarray]) -> None:
    dataset, images, _ = made
    dataset.fetch(range(7))
    sent = pickle.dumps(dataset)
    assert len(sent) < 4000
    found = pickle.loads(sent)
    assert (found.fetch([5, 1])["image"] == images[[5, 1]]).all()
    assert found.keys([5]) == ["000005"]
    assert found.factors.fingerprint == dataset.factors.fingerprint
    assert repr(found) == repr(dataset)


def _in_child(dataset: ShardedDataset, images: np.ndarray) -> None:
    os._exit(0 if (dataset.fetch(range(7))["image"] == images).all() else 1)


@pytest.mark.long("worker processes")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_other_processes(made: tuple[ShardedDataset, np.ndarray, np.ndarray], way: str) -> None:
    dataset, images, _ = made
    dataset.fetch([0])
    child = get_context(way).Process(target=_in_child, args=(dataset, images))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_many_threads(made: tuple[ShardedDataset, np.ndarray, np.ndarray]) -> None:
    dataset, images, depths = made

    def work(seed: int) -> bool:
        index = np.random.default_rng(seed).integers(0, 7, (10, 4))
        found = [dataset.fetch(rows) for rows in index]
        return all(
            (one["image"] == images[rows]).all() and (one["depth"] == depths[rows]).all()
            for one, rows in zip(found, index, strict=True)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


# -- what is no set of shards ------------------------------------------------------------------------------------------


def test_an_index_that_lies_elsewhere(tmp_path: Path) -> None:
    folder, images, _ = small_set(tmp_path / "set", index=tmp_path / "index")
    dataset = open_shards(str(folder), index=tmp_path / "index")
    assert (dataset.fetch([3])["image"] == images[[3]]).all()
    assert dataset.url == str(folder)
    assert dataset.verify() == []
    with pytest.raises(
        DataError, match=r"set has no shards\.json, so its tars are not indexed; .*`setsup index .*set`"
    ):
        open_shards(folder)


def test_what_is_no_set_of_shards_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / ".setsup").mkdir(parents=True)
    (tmp_path / "begun" / ".setsup" / "plan.json").write_text("{}")
    (tmp_path / "rendered").mkdir()
    (tmp_path / "rendered" / "rendered.json").write_text("{}")
    (tmp_path / "deep" / "train").mkdir(parents=True)
    write_tar(tmp_path / "deep" / "train" / "0.tar", [("0.png", b"")])
    for name, words in {
        "absent": "absent does not exist; pass the folder",
        "empty": r"empty has no shards\.json and no tars; .*`setsup shard`",
        "begun": "begun is not finished; run the same `setsup shard` command again to resume",
        "rendered": r"rendered was written by `setsup render`; open it with setsup\.open",
        "deep": r"deep has no shards\.json, so its tars are not indexed; .*`setsup index ",
        "deep/train/0.tar": "0.tar is a file; pass the folder",
    }.items():
        with pytest.raises(DataError, match=words):
            open_shards(tmp_path / name)


def test_a_folder_in_the_place_of_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "shards.json").mkdir()
    with pytest.raises(DataError, match=r"shards\.json"):
        open_shards(tmp_path)


def test_members_that_nobody_decodes(tmp_path: Path) -> None:
    folder, *_ = small_set(tmp_path / "set")
    about = json.loads((folder / "shards.json").read_text())
    about["members"]["image"]["extension"] = "pyd"
    (folder / "shards.json").write_text(json.dumps(about))
    with pytest.raises(
        DataError, match=r"set/shards\.json: members with the extension \.pyd \('image'\) are not supported"
    ):
        open_shards(folder)


# -- in a store --------------------------------------------------------------------------------------------------------


@pytest.fixture
def far(memory: str, tmp_path: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """A set in fsspec's memory."""
    from fsspec import filesystem

    folder, images, depths = small_set(tmp_path / "near", "png")
    filesystem("memory").put(str(folder), memory, recursive=True)
    return memory, images, depths


def test_shards_in_a_store(far: tuple[str, np.ndarray, np.ndarray], own_cache: Path) -> None:
    url, images, depths = far
    dataset = open_shards(url)
    index = np.array([[6, 1], [1, 4]])
    found = dataset.fetch(index)
    assert (found["image"] == images[index]).all()
    assert (found["depth"] == depths[index]).all()
    assert dataset.keys([3]) == ["000003"]
    assert dataset.verify() == []
    again = pickle.loads(pickle.dumps(dataset))
    assert (again.fetch(index)["image"] == images[index]).all()
    assert (open_shards(url, cache=0, size=(2, 2)).fetch(0)["image"].shape) == (2, 2, 3)
    digest = dataset.catalogue.index.digest
    assert (own_cache / "prepared" / digest[:32] / "index.parquet").is_file()


def test_an_index_in_a_store_that_is_another(
    far: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec import filesystem

    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))  # where nobody has kept that index
    url = far[0]
    store = filesystem("memory")
    path = f"{url}/index.parquet"
    content = store.cat(path)
    for other in (content[:-1], content + b"x", content[:50] + bytes([content[50] ^ 1]) + content[51:]):
        store.pipe(path, other)
        with pytest.raises(
            DataError, match=r"index\.parquet is not the index that shards\.json describes; restore it with"
        ):
            open_shards(url)
    store.pipe(path, content)
    assert len(open_shards(url)) == 7


def test_an_index_that_is_gone_says_how_to_have_it_again(
    far: tuple[str, np.ndarray, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec import filesystem

    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    filesystem("memory").rm(f"{far[0]}/index.parquet")
    with pytest.raises(
        DataError,
        match=r"index\.parquet, .*, does not exist; fetch it again, or restore it .*`setsup index",
    ):
        open_shards(far[0])
    folder, *_ = small_set(tmp_path / "theirs", check="header")
    (folder / "index.parquet").unlink()
    with pytest.raises(DataError, match=r"index\.parquet.* does not exist.*`setsup index .*theirs`$"):
        open_shards(folder)
    folder, *_ = small_set(tmp_path / "tars", check="header", index=tmp_path / "about")
    (tmp_path / "about" / "index.parquet").unlink()
    with pytest.raises(
        DataError, match=r"index\.parquet.* does not exist.*`setsup index FOLDER-OF-TARS --out .*about`$"
    ):
        open_shards(folder, index=tmp_path / "about")


def test_a_store_that_fails_is_asked_for_the_catalogue_in_one_round(web: Any, short_waits: None) -> None:
    web.failing = [503] * 99
    with pytest.raises(DataError, match=r"/set/shards\.json cannot be accessed"):
        open_shards(f"{web.url}/set")
    assert len(web.seen) == 4


def test_shards_of_a_store_that_are_missing(memory: str) -> None:
    with pytest.raises(DataError, match=r"has no shards\.json; if it contains other tars, .*`setsup index memory://"):
        open_shards(memory)


# -- what setsup writes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "order"), [("png", "keep"), ("npy", "shuffle"), ("webp", "by:shape,scale")])
def test_what_setsup_writes(tmp_path: Path, form: str, order: str) -> None:
    shapes = setsup.load("shapes3d-procedural")
    setsup.write_shards(
        shapes.select(range(0, 480_000, 9777)), tmp_path / "set", format=form, order=order, per_shard=20
    )
    dataset = open_shards(tmp_path / "set")
    sources = dataset.source_rows(range(50))
    assert sorted(sources) == list(range(0, 480_000, 9777))
    assert (dataset.fetch(range(50))["image"] == shapes.fetch(sources)["image"]).all()
    for name in shapes.factors.names:
        assert (dataset.factors.values(name) == shapes.factors.values(name, sources)).all()
    assert dataset.verify() == []


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", [0, 1])
def test_a_tar_that_is_cut_off_under_a_training(tmp_path: Path, workers: int) -> None:
    shapes = setsup.load("shapes3d-procedural").select(range(0, 480_000, 12_000))
    dataset = setsup.write_shards(shapes, tmp_path / "set", format="npy", per_shard=20)
    sets = setsup.SetSampler(dataset.factors, inactive=[], size=8, sets=1)
    batches = iter(setsup.loader(dataset, sets, to="numpy", workers=workers, prefetch=1))
    next(batches)
    path = tmp_path / "set" / "data-00001.tar"
    content = path.read_bytes()
    os.truncate(path, 4096)
    # amid a fetch a worker is past the look at the size: it is killed, and the sentence names the cause all the same
    said = r"data-00001\.tar has changed since it was indexed: it has 4,096 bytes|ended by SIGBUS .* was truncated"
    with pytest.raises(DataError, match=said):
        list(islice(batches, 20))
    path.write_bytes(content)
    np.testing.assert_array_equal(dataset.fetch(range(40))["image"], shapes.fetch(range(40))["image"])
