import io
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch

import setsup
from setsup.datasets import open_arrays
from setsup.errors import DataError, FactorError, SetsupError
from setsup.factors import FactorTable
from setsup.opening import find_kind, options_of, path_options
from tests.traced import traced

N = 12
WHO = list("aaaabbbbcccc")


def pixels(*shape: int) -> Any:
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, (N, *shape), dtype=np.uint8)


def same_after_pickling(dataset: Any) -> int:
    """Bytes of the pickle of a dataset that fetches the same afterwards."""
    content = pickle.dumps(dataset)
    again = pickle.loads(content)
    for name, array in dataset.fetch(range(N)).items():
        np.testing.assert_array_equal(again.fetch(range(N))[name], array)
    return len(content)


# -- in memory ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "modality", "color"),
    [
        ((5, 4), (5, 4, 1), "grey"),
        ((5, 4, 1), (5, 4, 1), "grey"),
        ((5, 4, 3), (5, 4, 3), "srgb"),
        ((5, 4, 4),) * 2 + ("srgb",),
    ],
)
def test_images(shape: tuple[int, ...], modality: tuple[int, ...], color: str) -> None:
    given = pixels(*shape)
    found = setsup.from_arrays(given, {"who": WHO})
    assert found.modalities == {"image": setsup.datasets.Modality(modality, "uint8", color=color)}
    rows = np.array([[3, 0], [11, 3]])
    np.testing.assert_array_equal(found.fetch(rows)["image"], given[rows].reshape(2, 2, *modality))
    found.fetch([3])["image"][...] = 0
    np.testing.assert_array_equal(found.fetch([3])["image"], given[[3]].reshape(1, *modality))
    assert (found.cpu_bound, len(found), found.name) == (False, N, "arrays")


@pytest.mark.parametrize(
    "make",
    [
        lambda array: array[:, ::2],
        lambda array: np.asfortranarray(array),
        lambda array: array.astype(">f4"),
        lambda array: np.moveaxis(array, 1, -1),
        lambda array: array[::-1],
    ],
)
def test_arrays_of_any_layout(make: Any) -> None:
    given = make(np.random.default_rng(0).random((N, 4, 6)).astype(np.float32))
    found = setsup.from_arrays({"depth": given}, {"who": WHO})
    assert found.modalities["depth"].color == ""
    np.testing.assert_array_equal(found.fetch([7, 1, 7])["depth"], given[[7, 1, 7]])
    assert found.fetch([1])["depth"].dtype == np.float32
    out = {"depth": np.empty((3, *given.shape[1:]), np.float32)}
    found.fetch_into([7, 1, 7], out)
    np.testing.assert_array_equal(out["depth"], given[[7, 1, 7]])


def test_channels_first_is_never_guessed() -> None:
    given = pixels(3, 8, 6)
    with pytest.raises(
        DataError, match=r"image has dtype uint8 and shape \(12, 3, 8, 6\), which looks like \(n, channels, height, wi"
    ):
        setsup.from_arrays(given, {"who": WHO})
    for array in (given, torch.from_numpy(given)):
        found = setsup.from_arrays(array, {"who": WHO}, channels_first=True)
        assert found.modalities["image"].shape == (8, 6, 3)
        np.testing.assert_array_equal(found.fetch([5, 2])["image"], given.transpose(0, 2, 3, 1)[[5, 2]])
    masks = setsup.from_arrays({"masks": given}, {"who": WHO}, channels_first=False)
    assert (masks.modalities["masks"].shape, masks.modalities["masks"].color) == ((3, 8, 6), "")
    narrow = setsup.from_arrays(pixels(3, 8, 4), {"who": WHO}, channels_first=True)
    assert narrow.modalities["image"].shape == (8, 4, 3)


def test_factors_of_every_kind() -> None:
    given = pixels(4, 4)
    frame = pandas.DataFrame({"who": WHO}, index=range(100, 100 + N))
    table = FactorTable.from_values({"who": WHO})
    for factors in ({"who": WHO}, {"who": np.array(WHO, "S1")}, frame, table, {"who": frame["who"]}):
        assert setsup.from_arrays(given, factors).factors.fingerprint == table.fingerprint
    numbers = setsup.from_arrays(given, {"age": torch.arange(N), "size": np.arange(N, dtype=">i2")})
    assert numbers.factors.values("age").tolist() == numbers.factors.values("size").tolist() == list(range(N))
    aged = setsup.from_arrays(given, {"age": range(N)}, kinds={"age": "continuous"})
    assert aged.factors["age"].continuous


@pytest.mark.parametrize(
    ("images", "factors", "sentence"),
    [
        (pixels(4, 4), None, r"arrays has no factors; pass them, as in from_arrays\(images, \{'name': values\}\)"),
        (pixels(4, 4), {"who": "ab"}, "column 'who' must be a sequence"),
        (pixels(4, 4), {"who": ["a", "b"]}, "arrays has 12 rows, but the factors have 2 values"),
        (pixels(4, 4), {}, "factors must contain at least one name"),
        (pixels(4, 4), 3, "factors must be a FactorTable, a mapping of names to values, a pandas.DataFrame"),
        (pixels(4, 4), {"who": np.array([b"\xff"] * N)}, "a column of bytes is not valid UTF-8"),
        (
            pixels(4, 4).astype("f4"),
            {"who": WHO},
            r"images must be uint8 .* not float32 of shape \(12, 4, 4\); convert values from 0 ",
        ),
        (
            pixels(4, 4).astype("i8"),
            {"who": WHO},
            r"not int64 of shape \(12, 4, 4\); pass arrays that are not images by ",
        ),
        (pixels(4), {"who": WHO}, r"images must be uint8 .*, not uint8 of shape \(12, 4\)"),
        (
            {},
            {"who": WHO},
            "arrays: all arrays must have the same number of rows, at least one, but got no arrays",
        ),
        (pixels(4, 4)[:0], {"who": []}, "arrays: all arrays must have the same number of rows, at least one"),
        ({"a": pixels(4, 4), "b": pixels(4, 4)[:3]}, {"who": WHO}, r"a uint8 \(12, 4, 4\), b uint8 \(3, 4, 4\)"),
        ({"a": pixels(4, 0)}, {"who": WHO}, r"a has the shape \(12, 4, 0\), so it contains no values"),
        ({"a": 3}, {"who": WHO}, r"a is a single number; expected an array of shape \(n, …\), with one row per image"),
        (
            {"a": np.array([None] * N)},
            {"who": WHO},
            r"a has dtype object and shape \(12,\); expected an array of numbers",
        ),
        ({3: pixels(4, 4)}, {"who": WHO}, "images must be a mapping with strings as keys"),
        ([[1, 2], [3]], {"who": WHO}, "image must be an array"),
    ],
)
def test_what_is_no_dataset_is_one_sentence(images: Any, factors: Any, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        setsup.from_arrays(images, factors)
    assert "\n" not in str(caught.value)


# -- mapped ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(None, None, -1), slice(4, None)])
def test_mapped_arrays_are_mapped_again_elsewhere(tmp_path: Path, part: slice) -> None:
    np.save(tmp_path / "images.npy", np.repeat(pixels(32, 32, 3), 4, axis=0))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r")[part][:N]
    for given in (mapped, np.asarray(mapped)):
        assert same_after_pickling(setsup.from_arrays(given, {"who": WHO})) < 5000
    assert same_after_pickling(setsup.from_arrays(np.array(mapped), {"who": WHO})) > N * 32 * 32 * 3


def test_a_map_that_was_written_to_is_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", pixels(32, 32, 3))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="c")
    mapped[2] = 7
    assert same_after_pickling(setsup.from_arrays(mapped, {"who": WHO})) > N * 32 * 32 * 3


def test_a_file_that_went_away_is_one_sentence(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", pixels(32, 32, 3))
    found = setsup.from_arrays(np.load(tmp_path / "images.npy", mmap_mode="r"), {"who": WHO})
    content = pickle.dumps(found)
    (tmp_path / "images.npy").write_bytes(b"short")
    with pytest.raises(DataError, match=r"images\.npy was truncated after it was mapped"):
        pickle.loads(content).fetch(0)
    (tmp_path / "images.npy").unlink()
    with pytest.raises(DataError, match=r"images\.npy cannot be read: No such file"):
        pickle.loads(content).fetch(0)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[np.savez, np.savez_compressed])
def faces(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    arrays = {
        "image": pixels(8, 6, 3),
        "depth": np.random.default_rng(1).random((N, 8, 6)).astype(np.float32),
        "vectors": np.arange(N * 5, dtype=np.float64).reshape(N, 5),
        "identity": np.array(WHO),
        "age": np.arange(N) // 4,
        "when": np.arange("2020-01-01", "2020-01-13", dtype="M8[D]"),
    }
    request.param(tmp_path / "faces.npz", **arrays)
    return tmp_path / "faces.npz"


def test_an_npz(faces: Path) -> None:
    found = setsup.open(faces)
    known = np.load(faces)
    assert find_kind(str(faces)) == "arrays"
    assert {name: one.shape for name, one in found.modalities.items()} == {
        "image": (8, 6, 3),
        "depth": (8, 6),
        "vectors": (5,),
    }
    rows = [[5, 0], [11, 5]]
    for name, array in found.fetch(rows).items():
        np.testing.assert_array_equal(array, known[name][rows])
    assert found.factors.values("identity").tolist() == WHO
    assert found.factors.values("age").tolist() == known["age"].tolist()
    assert found.factors.values("when")[1] == "2020-01-02"
    assert (found.name, repr(found)) == ("faces", "ArrayDataset('faces', 12 rows)")
    assert same_after_pickling(found) < 5000
    out = {"depth": np.empty((2, 8, 6), np.float32)}
    found.fetch_into([4, 3], out)
    np.testing.assert_array_equal(out["depth"], known["depth"][[4, 3]])
    np.testing.assert_array_equal(setsup.from_arrays(faces).fetch(2)["image"], known["image"][2])


def test_factors_beside_a_file(faces: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("\n".join(["who,light", *(f"{one},{row % 2}" for row, one in enumerate(WHO))]))
    pandas.read_csv(tmp_path / "labels.csv").to_parquet(tmp_path / "labels.parquet")
    np.save(tmp_path / "images.npy", pixels(8, 6, 3))
    for source in (faces, tmp_path / "images.npy"):
        for labels in ("labels.csv", "labels.parquet"):
            found = setsup.open(source, factors=tmp_path / labels)
            assert found.factors.names == ("who", "light")
            np.testing.assert_array_equal(found.fetch([3, 1])["image"], pixels(8, 6, 3)[[3, 1]])
    assert same_after_pickling(setsup.open(tmp_path / "images.npy", factors={"who": WHO})) < 5000
    assert list(options_of(faces)) == ["factors", "kinds", "arrays", "channels_first"]
    assert path_options(faces) == {"factors"}
    with pytest.raises(
        DataError,
        match=r"images\.npy contains images \(dtype uint8, shape \(12, 8, 6, 3\)\), but no factors; pass a table w",
    ):
        setsup.open(tmp_path / "images.npy")
    with pytest.raises(DataError, match=r"is a \.npy file, which contains a single unnamed array; leave out arrays="):
        setsup.open(tmp_path / "images.npy", arrays=["image"], factors={"who": WHO})


def test_the_npz_of_keras(tmp_path: Path) -> None:
    """Training and test images in one file, with their labels."""
    arrays = {"x_train": pixels(4, 4), "y_train": np.arange(N), "x_test": pixels(4, 4)[:5], "y_test": np.arange(5)}
    np.savez(tmp_path / "mnist.npz", **arrays)
    with pytest.raises(
        DataError,
        match=r"arrays of different lengths \(5 and 12 rows\): x_test uint8 \(5, 4, 4\), x_train .*arrays=x_te",
    ):
        setsup.open(tmp_path / "mnist.npz")
    found = setsup.open(tmp_path / "mnist.npz", arrays=["x_test", "y_test"])
    assert (found.factors.names, list(found.modalities), len(found)) == (("y_test",), ["x_test"], 5)


def test_what_is_left_out_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    np.savez(tmp_path / "x.npz", image=pixels(4, 4), who=WHO, names=["ann", "bob"], about=np.array({"a": 1}, object))
    found = setsup.open(tmp_path / "x.npz")
    assert found.skipped == {"about": "object (1,)", "names": "<U3 (2,)"}
    assert "x.npz is opened without about (object (1,)), names (<U3 (2,))" in caplog.text


@pytest.mark.parametrize(
    ("arrays", "options", "sentence"),
    [
        (
            {"image": pixels(4, 4)},
            {},
            r"contains no factors, which must be arrays of shape \(12,\); it contains image uint8 \(12, 4, 4\)",
        ),
        (
            {"who": np.array(WHO)},
            {},
            r"contains no images: expected arrays of shape .*, with at least three axes, not who <U1 \(12,\)",
        ),
        (
            {"image": pixels(4, 4), "who": np.array(WHO, object)},
            {},
            "who contains pickled Python objects .*never reads; save",
        ),
        (
            {"image": pixels(4, 4), "who": np.array(WHO)},
            {"arrays": "imgae"},
            r"no array 'imgae'; did you mean 'image'\?",
        ),
        (
            {"image": pixels(3, 8, 8), "who": np.array(WHO)},
            {},
            "image has dtype uint8 .* looks like .*channels_first=True",
        ),
        (
            {"image": np.zeros((N, 4, 4), "c8"), "who": np.array(WHO)},
            {},
            "the dtype '<c8'; expected an array of numbers or strings",
        ),
        ({"image": np.asfortranarray(pixels(4, 4)), "who": np.array(WHO)}, {}, "in Fortran order; save numpy"),
        (
            {"image": pixels(4, 4), "who": np.array(WHO)},
            {"size": (2, 2)},
            "has no option 'size'; choose from factors, kinds",
        ),
        ({"image": pixels(4, 4)}, {"factors": "absent.csv"}, "absent.csv"),
    ],
)
def test_files_that_are_no_dataset(tmp_path: Path, arrays: Any, options: Any, sentence: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(SetsupError, match=sentence) as caught:
        setsup.open(tmp_path / "x.npz", **options)
    assert "\n" not in str(caught.value)


class Evil:
    """What a pickle can do."""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path("ran"),))


def test_nothing_is_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("evil.npy", np.array([[[Evil()]]], object), allow_pickle=True)
    with pytest.raises(DataError, match="contains pickled Python objects, which setsup never reads"):
        setsup.open(tmp_path / "evil.npy", factors={"who": ["a"]})
    np.savez("evil.npz", image=pixels(4, 4)[:1], who=np.array([Evil()], object))
    with pytest.raises(DataError, match="never reads"):
        setsup.open(tmp_path / "evil.npz")
    assert not Path("ran").exists()


def npy(header: str, content: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header.encode() + b"\n" + content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff{",
        b"not an array",
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (999999, 64, 64), }"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 64, 64), }"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (-1, 64, 64), }"),
        npy("{'descr': '<U9999999', 'fortran_order': False, 'shape': (9999999999999, 64, 64), }"),
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1, 1), }", b"1234"),
        npy("{'descr': __import__('os').mkdir('x'), 'fortran_order': False, 'shape': (1, 1, 1), }", b"1"),
    ],
)
def test_damaged_headers(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("image.npy", content)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(DataError, match=r"x\.np[yz]") as caught:
            open_arrays(tmp_path / name, {"who": ["a"]})
        assert "\n" not in str(caught.value)


def test_files_that_are_cut_off(faces: Path, tmp_path: Path) -> None:
    whole = faces.read_bytes()
    for length in range(0, len(whole), 97):
        faces.write_bytes(whole[:length])
        with pytest.raises(DataError):
            setsup.open(faces).fetch(range(N))
    buffer = io.BytesIO()
    np.save(buffer, pixels(4, 4))
    (tmp_path / "x.npy").write_bytes(buffer.getvalue()[:-1])
    with pytest.raises(DataError, match="the header specifies the shape"):
        setsup.open(tmp_path / "x.npy", factors={"who": WHO})
    with pytest.raises(DataError, match=r"absent\.npz does not exist"):
        setsup.open(tmp_path / "absent.npz")


def test_a_bit_that_changed_is_noticed_where_the_file_is_packed(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", image=np.zeros((N, 64, 64), np.uint8), who=WHO)
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[120] ^= 16
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(DataError, match="image"):
        setsup.open(tmp_path / "x.npz").fetch(0)


def test_fetching_from_an_npz_copies_rows_only(tmp_path: Path) -> None:
    """Arrays in an npz lie at odd places, where numpy's take would copy all of them first."""
    np.savez(tmp_path / "x.npz", image=np.zeros((2000, 32, 32), np.float32), who=np.arange(2000))
    found = setsup.open(tmp_path / "x.npz")
    found.fetch(0)
    with traced():
        found.fetch([1, 5, 9])
        assert tracemalloc.get_traced_memory()[1] < 200_000


# -- use ---------------------------------------------------------------------------------------------------------------


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("workers", [0, 2])
def test_sets_of_a_loader(faces: Path, workers: int) -> None:
    found = setsup.open(faces)
    sampler = setsup.SetSampler(found.factors, inactive=["identity"], size=3)
    for step, batch in zip(range(3), setsup.loader(found, sampler, workers=workers), strict=False):
        np.testing.assert_array_equal(batch["vectors"], np.load(faces)["vectors"][sampler[step].indices])


def test_a_selection(faces: Path) -> None:
    some = setsup.open(faces, where="identity == 'b'")
    np.testing.assert_array_equal(some.fetch(range(4))["image"], np.load(faces)["image"][4:8])


def test_mixed_values_of_a_factor() -> None:
    with pytest.raises(FactorError, match="column 'who'"):
        setsup.from_arrays(pixels(4, 4), {"who": ["a", 1] * 6})
