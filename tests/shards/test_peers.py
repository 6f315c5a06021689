"""What other programs make of the shards that setsup writes."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.shards.opening import open_shards
from setsup.shards.writing.writer import write_shards
from tests.sharded import FACTORS, Varied

webdataset = pytest.importorskip("webdataset")
pytest.importorskip("datasets")

# webdataset leaves the files that it opened to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")

ROWS = 30


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peers") / "set"
    write_shards(Varied(ROWS), folder, order="by:hue,lit", per_shard=8)
    return folder


def urls(folder):
    return [str(path) for path in sorted(folder.glob("*.tar"))]


def test_webdataset_reads_images_arrays_and_factors(whole):
    varied, rows = Varied(ROWS), open_shards(whole).source_rows(range(ROWS))
    found = list(webdataset.WebDataset(urls(whole), shardshuffle=False, empty_check=False).decode("pil"))
    assert [sample["__key__"] for sample in found] == [f"{row:06}" for row in range(ROWS)]
    names = {"png": "image", "mask.png": "mask", "cutout.png": "cutout"}
    for row, sample in zip(rows, found, strict=True):
        for extension, name in names.items():
            expected = varied.row(row, name)
            picture = np.asarray(sample[extension].convert("RGB"))
            np.testing.assert_array_equal(picture, np.broadcast_to(expected[..., :3], picture.shape))
        for extension in ("pair.npy", "depth.npy", "points.npy", "weight.npy"):
            np.testing.assert_array_equal(sample[extension], varied.row(row, extension[:-4]))
        expected = varied.factors.row(row)
        assert {**sample["json"], "yaw": None} == {**expected, "yaw": None}
        assert (sample["json"]["yaw"] is None) == (expected["yaw"] is None)


def test_webdataset_gives_whole_batches_of_its_own(whole):
    loader = (
        webdataset.WebDataset(urls(whole), shardshuffle=False, empty_check=False)
        .decode("rgb8")
        .to_tuple("png", "json")
        .batched(10, collation_fn=list)
    )
    batches = list(loader)
    assert [len(batch) for batch in batches] == [10, 10, 10]
    rows = open_shards(whole).source_rows(range(ROWS))
    pictures = np.stack([picture for batch in batches for picture, _ in batch])
    np.testing.assert_array_equal(pictures, Varied(ROWS).fetch(rows, ["image"])["image"])


@pytest.mark.parametrize(("format", "extension"), [("webp", "webp"), ("jpeg", "jpg"), ("npy", "npy")])
def test_webdataset_reads_every_format(tmp_path, format, extension):
    write_shards(Varied(5), tmp_path / "set", format=format, modalities=["image"])
    found = list(webdataset.WebDataset(urls(tmp_path / "set"), shardshuffle=False, empty_check=False).decode("pil"))
    assert [set(sample) - {"__key__", "__url__", "__local_path__"} for sample in found] == [{extension, "json"}] * 5
    exact = Varied(5).fetch(range(5), ["image"])["image"]
    pictures = np.stack([np.asarray(sample[extension]) for sample in found])
    if format == "jpeg":
        assert np.abs(pictures.astype(int) - exact).mean() < 12  # noise
    else:
        np.testing.assert_array_equal(pictures, exact)


_LOAD = """
import io, json, sys
from datasets import load_dataset
found = load_dataset(sys.argv[1], split="train", cache_dir=sys.argv[2])
rows = []
for row in found:
    picture = row["png"]
    rows.append({
        "picture": [*picture.size, picture.mode, picture.tobytes().hex()],
        "json": row["json"],
        "depth": row["depth.npy"],
        "points": row["points.npy"],
        "weight": row["weight.npy"],
        "key": row["__key__"],
    })
print(json.dumps({"features": {name: repr(one) for name, one in found.features.items()}, "rows": rows}))
"""


def loaded(folder, tmp_path):
    """What the library loads of a folder, in a process of its own that may not go online."""
    ran = subprocess.run(
        [sys.executable, "-c", _LOAD, str(folder), str(tmp_path / "cache")],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.long("stores")
def test_hugging_face_loads_the_folder_offline(whole, tmp_path):
    found = loaded(whole, tmp_path)
    assert found["features"]["png"].startswith("Image(")
    assert found["features"]["depth.npy"] == "Array2D(shape=(6, 5), dtype='float32')"
    assert found["features"]["points.npy"] == "Array2D(shape=(None, 3), dtype='float64')"
    varied, rows = Varied(ROWS), open_shards(whole).source_rows(range(ROWS))
    assert [row["key"] for row in found["rows"]] == [f"{row:06}" for row in range(ROWS)]
    for row, one in zip(rows, found["rows"], strict=True):
        picture = varied.row(row, "image")
        assert one["picture"] == [5, 6, "RGB", picture.tobytes().hex()]
        np.testing.assert_array_equal(np.float32(one["depth"]), varied.row(row, "depth"))
        np.testing.assert_array_equal(one["points"], varied.row(row, "points"))
        assert one["weight"] == varied.row(row, "weight")
        values = one["json"]
        for name, value in varied.factors.row(row).items():
            assert values[name] == value or np.float32(values[name]) == value


@pytest.mark.long("stores")
def test_hugging_face_loads_what_its_first_rows_do_not_tell(tmp_path):
    """The types stand in the card: the library would take them from five samples, here all unknown."""
    varied = Varied(40)
    codes = varied.factors.codes("category")
    order = np.argsort(codes >= 0, kind="stable")
    assert (codes[order[:5]] < 0).all()
    some = varied.select(order)
    write_shards(some, tmp_path / "set", modalities=["image", "depth", "points", "weight"])
    found = loaded(tmp_path / "set", tmp_path)
    assert [row["json"]["category"] for row in found["rows"]] == some.factors.values("category").tolist()


def test_pillow_and_numpy_read_members_where_the_index_says(whole):
    import pyarrow.parquet as pq

    index = pq.read_table(whole / "index.parquet").to_pylist()
    tars = [path.read_bytes() for path in sorted(whole.glob("*.tar"))]
    varied = Varied(ROWS)
    for row in index:
        tar = tars[row["__shard__"]]
        content = {name: tar[row[f"{name}.offset"] :][: row[f"{name}.size"]] for name in ("image", "depth")}
        np.testing.assert_array_equal(
            Image.open(io.BytesIO(content["image"])), varied.row(row["__source_row__"], "image")
        )
        np.testing.assert_array_equal(np.load(io.BytesIO(content["depth"])), varied.row(row["__source_row__"], "depth"))


def test_the_index_is_a_table_for_anybody(whole):
    import pandas as pd

    frame = pd.read_parquet(whole / "index.parquet")
    varied = Varied(ROWS)
    rows = frame["__source_row__"].to_numpy()
    assert list(frame.columns[: len(FACTORS)]) == [one.name for one in FACTORS]
    assert frame["category"].astype(object).where(frame["category"].notna(), None).tolist() == (
        varied.factors.values("category", rows).tolist()
    )
    assert setsup.FactorTable.from_parquet(whole / "index.parquet", columns=list(varied.factors.names)).fingerprint == (
        varied.factors.select(rows).fingerprint
    )
