import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from PIL import Image

import setsup
from setsup.errors import SetsupError

N = 6
WHO = ["ann", "bob"] * 3


def picture(row: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(row).integers(0, 256, (4, 6, 3), np.uint8))


def png(row: int) -> bytes:
    file = io.BytesIO()
    picture(row).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pictures").mkdir()
    for row in range(N):
        picture(row).save(tmp_path / "pictures" / f"{row}.png")
    return tmp_path


def columns(root: Path) -> dict[str, list[Any]]:
    """Images of a frame in every form."""
    return {
        "absolute": [str(root / f"pictures/{row}.png") for row in range(N)],
        "paths": [root / f"pictures/{row}.png" for row in range(N)],
        "bytes": [png(row) for row in range(N)],
        "structs": [{"bytes": png(row), "path": None} for row in range(N)],
        "named": [{"bytes": None, "path": str(root / f"pictures/{row}.png")} for row in range(N)],
        "pillow": [picture(row) for row in range(N)],
        "arrays": [np.asarray(picture(row)) for row in range(N)],
    }


@pytest.mark.parametrize("form", ["absolute", "paths", "bytes", "structs", "named", "pillow", "arrays"])
def test_images_in_every_form(root: Path, form: str) -> None:
    frame = pandas.DataFrame({"who": WHO, "image": columns(root)[form]}, index=range(50, 50 + N))
    found = setsup.from_pandas(frame, "image")
    assert (found.factors.names, found.modalities["image"].shape, found.cpu_bound) == (("who",), (4, 6, 3), True)
    for one in (found, pickle.loads(pickle.dumps(found))):
        images = one.fetch([5, 0, 5])["image"]
        np.testing.assert_array_equal(images, np.stack([np.asarray(picture(row)) for row in (5, 0, 5)]))
    assert setsup.from_pandas(frame, "image", size=(2, 2)).fetch(0)["image"].shape == (2, 2, 3)


def test_paths_and_factors(root: Path) -> None:
    frame = pandas.DataFrame(
        {
            "path": [f"pictures/{row}.png" for row in range(N)],
            "light": pandas.Categorical(["low", "high"] * 3, ["low", "high"], ordered=True),
            "when": pandas.date_range("2020-01-01", periods=N),
            "age": np.arange(N) / 4,
            3: range(N),
        }
    )
    found = setsup.from_pandas(frame, root=root, kinds={"3": "nominal"}, name="album")
    table = setsup.FactorTable.from_pandas(frame.drop(columns="path"), kinds={"3": "nominal"})
    assert found.factors.fingerprint == table.fingerprint
    assert (found.factors["light"].levels, found.factors["light"].kind) == (("low", "high"), "ordinal")
    assert found.name == "album"
    np.testing.assert_array_equal(found.fetch(4)["image"], np.asarray(picture(4)))


def test_a_frame_that_pandas_read(root: Path) -> None:
    lines = ["path,who", *(f"pictures/{row}.png,{WHO[row]}" for row in range(N))]
    (root / "photos.csv").write_text("\n".join(lines))
    found = setsup.from_pandas(pandas.read_csv(root / "photos.csv").query("who == 'bob'"), root=root)
    np.testing.assert_array_equal(found.fetch([0, 2])["image"], [np.asarray(picture(1)), np.asarray(picture(5))])


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ({"path": WHO}, "from_pandas expects a pandas.DataFrame, not dict"),
        (
            pandas.DataFrame({"img": ["a"], "who": ["b"]}),
            "the frame has no column 'path'; choose from img, who; name the column",
        ),
        (
            pandas.DataFrame({"path": ["a"]}),
            "the frame has no columns besides the image column 'path'; add one column per factor",
        ),
        (pandas.DataFrame({"path": [], "who": []}), "the frame has no rows"),
        (
            pandas.DataFrame({"path": ["a", None, ""], "who": WHO[:3]}),
            "2 of 3 rows of the frame have no value in 'path', such as row",
        ),
        (
            pandas.DataFrame({"path": ["a", float("nan")], "who": WHO[:2]}),
            "1 of 2 rows of the frame have no value in 'path'",
        ),
        (pandas.DataFrame({"path": ["absent.png"] * 2, "who": WHO[:2]}), "1 image file is missing: absent.png; paths"),
        (
            pandas.DataFrame({"path": ["a", b"a"], "who": WHO[:2]}),
            "the column 'path' mixes bytes and str; convert all values to the same",
        ),
        (
            pandas.DataFrame({"path": [1, 2], "who": WHO[:2]}),
            "the column 'path' contains int; expected images: paths, encoded",
        ),
        (
            pandas.DataFrame({"path": [np.ones((3, 3))] * 2, "who": WHO[:2]}),
            "the column 'path' contains ndarray; expected images",
        ),
        (
            pandas.DataFrame({"path": [b"not an image"] * 2, "who": WHO[:2]}),
            "path of frame, row 0 is not a readable image",
        ),
        (pandas.DataFrame({"path": [png(0)] * 2, "who": ["a", 1]}), "column 'who'"),
    ],
)
def test_what_is_no_dataset_is_one_sentence(frame: Any, sentence: str) -> None:
    with pytest.raises(SetsupError, match=sentence) as caught:
        setsup.from_pandas(frame)
    assert "\n" not in str(caught.value)


@pytest.mark.long("worker processes")
@pytest.mark.parametrize("form", ["bytes", "pillow"])
def test_worker_processes(root: Path, form: str) -> None:
    found = setsup.from_pandas(pandas.DataFrame({"who": WHO, "image": columns(root)[form]}), "image")
    sampler = setsup.SetSampler(found.factors, inactive=["who"], size=3)
    for step, batch in zip(range(2), setsup.loader(found, sampler, workers=2), strict=False):
        wanted = found.fetch(sampler[step].indices)["image"]
        np.testing.assert_array_equal(np.moveaxis(np.asarray(batch["image"]), -3, -1), wanted)
