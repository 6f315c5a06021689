"""Folders of images with metadata, compared with ``load_dataset("imagefolder")`` of Hugging Face ``datasets``."""

import gc
import json
import logging
import math
import os
import pickle
import shutil
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError, SetsupError
from tests.fuzzing import mutations

datasets = pytest.importorskip("datasets")
LINES = "file_name,subject,light,age,glasses"
ROWS = [("a.png", "ann", 1, 3.5, True), ("in/b.png", "bob", 2, 4.0, False), ("c.png", "ann", 2, 0.25, True)]


def draw(path: Path, seed: int, size: tuple[int, int] = (6, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
    Image.fromarray(pixels).save(path)


def images(folder: Path, names: Iterable[str], first: int = 0) -> None:
    for seed, name in enumerate(names, first):
        draw(folder / name, seed)


def csv(folder: Path, rows: Iterable[tuple[Any, ...]] = ROWS, first: int = 0) -> None:
    rows = list(rows)
    images(folder, (row[0] for row in rows), first)
    text = "\n".join([LINES, *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)])
    (folder / "metadata.csv").write_text(text + "\n")


def jsonl(folder: Path, rows: Iterable[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def pack(folder: Path, name: str | None = None) -> None:
    """Replace a folder by a zip of it."""
    target = folder.parent / (name or f"{folder.name}.zip")
    target.parent.mkdir(exist_ok=True)
    shutil.make_archive(str(target.with_suffix("")), "zip", folder)
    shutil.rmtree(folder)


# -- folders -----------------------------------------------------------------------------------------------------------


def plain(top: Path) -> None:
    csv(top)


def unknown_values(top: Path) -> None:
    csv(top, [("a.png", "ann", 1, None, True), ("b.png", None, 2, 1.5, False), ("c.png", "ann", 2, 0.25, True)])


def lines_of_json(top: Path) -> None:
    images(top, ["0.png", "1.png", "m/0.png", "m/1.png"])
    jsonl(
        top,
        [
            {
                "file_name": "0.png",
                "mask_file_name": "m/0.png",
                "label": {"digit": 3, "of": {"who": "ann"}},
                "x": "007",
            },
            {"file_name": "1.png", "mask_file_name": "m/1.png", "label": {"digit": 4, "of": None}, "x": None},
        ],
    )


def parquet(top: Path) -> None:
    images(top, ["0.png", "1.png", "2.png"])
    pose = [{"yaw": 1.5, "code": 1}, {"yaw": 2.5, "code": None}, None]
    pq.write_table(
        pa.table(
            {"file_name": ["0.png", "1.png", "2.png"], "pose": pose, "n": [3, None, 5], "lit": [True, False, None]}
        ),
        top / "metadata.parquet",
    )


def folders_of_splits(top: Path) -> None:
    csv(top / "train", ROWS)
    csv(top / "test", ROWS[:2], 10)
    csv(top / "extra", ROWS[:1], 20)


def other_names_of_splits(top: Path) -> None:
    csv(top / "data" / "my-training.v2", ROWS)
    csv(top / "data" / "val 1" / "deep", ROWS[:2], 10)
    csv(top / "data" / "constrain", ROWS[:2], 10)


def zips_of_splits(top: Path) -> None:
    csv(top / "train", ROWS)
    csv(top / "x", ROWS[:2], 10)
    pack(top / "train", "birds_train.ZIP".lower())
    pack(top / "x", "test-2.zip")


def numbered_zips(top: Path) -> None:
    for number, split in enumerate(["train", "test", "easy"]):
        csv(top / split, ROWS[: 3 - number], 10 * number)
        pack(top / split, f"../{top.name}/{split}.zip")
        (top / "data").mkdir(exist_ok=True)
        (top / f"{split}.zip").rename(top / "data" / f"{split}-00000-of-00001.zip")


def a_zip_beside(top: Path) -> None:
    csv(top / "one", ROWS)
    pack(top / "one")
    csv(top, [("z.png", "cem", 2, 9.0, True)], 30)


def several_images(top: Path) -> None:
    images(top, [f"{row}-{view}.png" for row in range(3) for view in range(2)])
    jsonl(top, [{"file_names": [f"{row}-0.png", f"{row}-1.png"], "subject": "ab"[row % 2]} for row in range(3)])


def several_named_images(top: Path) -> None:
    images(top, [f"{split}/{row}-{view}.png" for split in ("train", "test") for row in range(3) for view in range(4)])
    for split in ("train", "test"):
        names = [[f"{row}-{view}.png" for view in range(4)] for row in range(3)]
        rows = [
            {"left_file_name": one[0], "right_file_name": one[1], "far_file_names": one[2:], "n": row}
            for row, one in enumerate(names)
        ]
        jsonl(top / split, rows)


def images_in_structs(top: Path) -> None:
    images(top, ["0.png", "1.png", "2.png", "3.png"])
    jsonl(
        top, [{"view": {"file_name": f"{row}.png", "side_file_name": f"{row + 2}.png"}, "n": row} for row in range(2)]
    )


def repeated_and_odd_paths(top: Path) -> None:
    csv(top, [*ROWS, *ROWS[:2]])
    text = (top / "metadata.csv").read_text()
    (top / "metadata.csv").write_text(text.replace("\nin/b.png", "\nin\\b.png", 1) + "./in/../c.png,bob,1,2.5,False\n")


def hidden_files(top: Path) -> None:
    csv(top / "a", ROWS)
    csv(top / ".hidden", ROWS[:1], 10)
    csv(top / "__pycache__", ROWS[:1], 10)


CASES = [
    *(plain, unknown_values, lines_of_json, parquet, folders_of_splits, other_names_of_splits, zips_of_splits),
    *(numbered_zips, a_zip_beside, several_images, several_named_images, images_in_structs, repeated_and_odd_paths),
    hidden_files,
]


# -- what datasets reads -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()


def flat(row: dict[str, Any], outer: str = "") -> dict[str, Any]:
    found = {}
    for name, value in row.items():
        found |= flat(value, f"{outer}{name}.") if isinstance(value, dict) else {f"{outer}{name}": value}
    return found


def their_rows(folder: Path, cache: Path, named: bool) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # its tables of CSV are never closed
        splits = datasets.load_dataset("imagefolder", data_dir=str(folder), cache_dir=str(cache))
        gc.collect()
    return [
        {**flat(row), **({"split": split} if named else {})}
        for split, part in splits.items()
        for row in part.flatten().flatten()
    ]


def our_rows(dataset: Any) -> list[dict[str, Any]]:
    fetched = dataset.fetch(np.arange(len(dataset)))
    return [
        {**dataset.factors.row(row), **{name: arrays[row] for name, arrays in fetched.items()}}
        for row in range(len(dataset))
    ]


def key(row: dict[str, Any]) -> str:
    return repr({name: plain_value(value) for name, value in sorted(row.items())})


def plain_value(value: Any) -> Any:
    if isinstance(value, Image.Image | np.ndarray):
        return np.asarray(value).tolist()
    if isinstance(value, list):
        return [plain_value(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(np.float32(value))
    return value


@pytest.mark.parametrize("write", CASES, ids=lambda write: write.__name__)
def test_the_same_rows_as_datasets(write: Callable[[Path], None], tmp_path: Path) -> None:
    folder = tmp_path / write.__name__
    folder.mkdir()
    write(folder)
    dataset = setsup.open(folder)
    theirs = their_rows(folder, tmp_path / "cache", "split" in dataset.factors)
    ours = our_rows(dataset)
    assert len(theirs) == len(ours) > 0
    # rows of one table are in its order; that of several tables of a split is arbitrary in datasets
    assert sorted(map(key, ours)) == sorted(map(key, theirs))
    if write is not a_zip_beside:
        assert list(map(key, ours)) == list(map(key, theirs))
    assert np.array_equal(
        pickle.loads(pickle.dumps(dataset)).fetch(0)[next(iter(dataset.modalities))],
        ours[0][next(iter(dataset.modalities))],
    )


# -- what datasets does not say ----------------------------------------------------------------------------------------


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def refused(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        setsup.open(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_factors_splits_and_options(tmp_path: Path) -> None:
    folders_of_splits(tmp_path)
    whole = setsup.open(tmp_path, kinds={"age": "ordinal", "light": "nominal"}, size=(4, 4))
    assert whole.factors["age"].levels == (0.25, 3.5, 4.0)
    assert whole.factors["split"].role == "split"
    assert whole.modalities["image"].shape == (4, 4, 3)
    test = setsup.open(tmp_path, split="test", where="subject == 'bob'")
    assert test.factors.values("age").tolist() == [4.0]
    sets = setsup.SetSampler(whole.factors, inactive=["subject"], size=2)
    batch = next(iter(setsup.loader(whole, sets, to="numpy", workers=0)))
    assert batch["image"].shape == (2, 2, 4, 4, 3)


def test_identifiers_keep_their_digits(tmp_path: Path) -> None:
    csv(tmp_path, [("a.png", "007", 1, 2.5, True), ("b.png", "010", 1, 2.5, True)])
    assert setsup.open(tmp_path).factors["subject"].levels == ("007", "010")


def test_images_that_no_row_names_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    csv(tmp_path)
    images(tmp_path, ["more/0.png", "more/1.png"])
    setsup.show(setsup.open(tmp_path), [0]).save(tmp_path / "sheet.png")
    caplog.clear()
    assert len(setsup.open(tmp_path)) == 3
    (message,) = said(caplog)
    assert message.startswith(f"{tmp_path}: 2 images are in no table of metadata, and left out: ")


def test_other_columns_and_images_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    images(tmp_path, ["0.png", "1.png"])
    rows = [
        {"file_name": "0.png", "mask_file_name": "0.png", "far_file_names": ["1.png"], "tags": ["x"], "n": 1},
        {"file_name": "1.png", "mask_file_name": None, "far_file_names": [], "tags": [], "n": 2},
    ]
    jsonl(tmp_path, rows)
    dataset = setsup.open(tmp_path)
    assert (list(dataset.modalities), dataset.factors.names) == (["image"], ("n",))
    table, mask, far = said(caplog)
    assert table == f"{tmp_path}/metadata.jsonl is opened without tags (lists or objects)"
    assert mask == (
        f"{tmp_path} is opened without the images 'mask': 1 of 2 names are missing in {tmp_path}/metadata.jsonl"
    )
    assert far == f"{tmp_path} is opened without the images 'far': rows have different numbers of them, or none"


def test_columns_that_only_some_splits_have_are_unknown_elsewhere(tmp_path: Path) -> None:
    images(tmp_path, ["train/0.png", "train/1.png", "test/0.png"])
    jsonl(tmp_path / "train", [{"file_name": f"{row}.png", "label": "ab"[row]} for row in range(2)])
    jsonl(tmp_path / "test", [{"file_name": "0.png"}])
    rows = setsup.open(tmp_path).factors
    assert [rows.row(row)["label"] for row in range(3)] == ["a", "b", None]


def test_a_column_split_comes_before_folders(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    images(tmp_path, ["train/0.png", "train/1.png"])
    jsonl(tmp_path / "train", [{"file_name": f"{row}.png", "split": "ab"[row]} for row in range(2)])
    assert setsup.open(tmp_path).factors["split"].levels == ("a", "b")
    assert "is the column of the metadata" in said(caplog)[0]


def test_tables_without_images_leave_the_paths(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    images(tmp_path, ["ann/0.png", "bob/0.png"])
    (tmp_path / "metadata.csv").write_text("image,age\nann/0.png,3\nbob/0.png,4\n")
    assert setsup.open(tmp_path).factors.names == ("folder",)
    assert f"not read from {tmp_path}/metadata.csv" in said(caplog)[0]


def test_a_zip_that_is_damaged_matters_only_beside_metadata(tmp_path: Path) -> None:
    images(tmp_path, ["ann/0.png", "bob/0.png"])
    (tmp_path / "old.zip").write_bytes(b"PK\x03\x04 and no more")
    assert setsup.open(tmp_path).factors.names == ("folder",)
    (tmp_path / "metadata.csv").write_text("file_name,age\nann/0.png,3\nbob/0.png,4\n")
    assert "old.zip" in refused(tmp_path)


@pytest.mark.parametrize(
    "name", ["../x.png", "/x.png", "in/../../x.png", "..\\x.png", "file://x.png", "http://h/x.png", ".", ".."]
)
def test_names_that_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    draw(tmp_path / "x.png", 0)
    csv(tmp_path / "photos")
    with (tmp_path / "photos" / "metadata.csv").open("a") as file:
        file.write(f"{name},ann,1,2.5,True\n")
    assert f"the file name {name!r} does not stay in the folder of the table".replace("\\\\", "\\") in refused(
        tmp_path / "photos"
    ).replace("\\\\", "\\")
    pack(tmp_path / "photos")
    assert "does not stay in the folder of the table" in refused(tmp_path / "photos.zip")


def test_missing_files_are_counted(tmp_path: Path) -> None:
    csv(tmp_path / "train")
    os.remove(tmp_path / "train" / "a.png")
    os.rename(tmp_path / "train" / "c.png", tmp_path / "train" / "C.PNG")
    sentence = refused(tmp_path)
    assert sentence.startswith(
        f"{tmp_path}/train/metadata.csv: 2 image files are missing: a.png, c.png; paths are relative"
    )
    csv(tmp_path / "train")
    os.remove(tmp_path / "train" / "a.png")
    pack(tmp_path / "train")
    assert "train.zip: metadata.csv: 1 image file is missing: a.png" in refused(tmp_path)


def test_rows_without_an_image_are_counted(tmp_path: Path) -> None:
    csv(tmp_path)
    with (tmp_path / "metadata.csv").open("a") as file:
        file.write(",ann,1,2.5,True\n")
    assert "1 of 4 rows have no image, such as row 3" in refused(tmp_path)


def test_two_columns_for_one_modality(tmp_path: Path) -> None:
    images(tmp_path, ["0.png"])
    for row, both in [
        ({"file_name": "0.png", "image_file_name": "0.png"}, "'file_name' and 'image_file_name' .* be called 'image'"),
        ({"file_name": "0.png", "image": "x"}, "'image' and 'file_name' would both be called 'image'"),
        ({"mask_file_names": ["0.png"], "mask_file_name": "0.png"}, "would both be called 'mask'"),
    ]:
        jsonl(tmp_path, [{**row, "n": 1}])
        with pytest.raises(DataError, match=both):
            setsup.open(tmp_path)
    (tmp_path / "metadata.jsonl").unlink()
    (tmp_path / "metadata.csv").write_text("file_name,n,n\n0.png,1,2\n")
    assert refused(tmp_path) == f"{tmp_path}/metadata.csv: two columns have the name 'n'; rename one"


def test_two_tables(tmp_path: Path) -> None:
    csv(tmp_path)
    jsonl(tmp_path, [{"file_name": "a.png", "n": 1}])
    assert refused(tmp_path) == (
        f"metadata of two formats: {tmp_path}/metadata.csv, {tmp_path}/metadata.jsonl; keep one of them"
    )
    (tmp_path / "metadata.jsonl").unlink()
    (tmp_path / "in" / "metadata.csv").write_text("image,n\nb.png,1\n")
    assert f"{tmp_path}/in/metadata.csv: no column file_name" in refused(tmp_path)
    (tmp_path / "in" / "metadata.csv").write_text("file_name;n\nb.png;1\n")
    assert "have different delimiters" in refused(tmp_path)


def test_tables_that_are_damaged(tmp_path: Path) -> None:
    csv(tmp_path)
    table = tmp_path / "metadata.csv"
    text = table.read_bytes()
    for content, sentence in [
        (text.replace(b"bob", b"b\xf6b"), "line 3: the byte b'\\xf6' is not valid UTF-8"),
        (text.replace(b"bob,", b""), "line 3 must have 5 fields"),
        (text.partition(b"\n")[0] + b"\n", "contains a header, but no rows"),
        (b"", "is empty"),
        (b"file_name," + b",".join(b"c%d" % number for number in range(70_000)) + b"\n", "it has 70,001 columns"),
    ]:
        table.write_bytes(content)
        found = refused(tmp_path)
        assert sentence in found
        assert str(table) in found
        with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
            packed.write(tmp_path / "a.png", "a.png")
            packed.writestr("metadata.csv", content)
        assert sentence in refused(tmp_path / "x.zip")
        assert "x.zip: metadata.csv" in refused(tmp_path / "x.zip")
        os.remove(tmp_path / "x.zip")
    table.unlink()
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.png", "n": 1}\n[]\n')
    assert "line 2" in refused(tmp_path)
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.png", "n": 1}\n{"file_name": "a.png", "n": "x"}\n')
    assert "metadata.jsonl: column 'n'" in refused(tmp_path)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    "write", [plain, several_named_images, parquet, zips_of_splits], ids=lambda write: write.__name__
)
def test_damaged_tables_end_in_a_sentence(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path)
    path = next(
        path for path in sorted(tmp_path.rglob("*")) if path.name.startswith("metadata") or path.suffix == ".zip"
    )
    sentences = []
    for content in mutations(path.read_bytes(), 150):
        path.write_bytes(content)
        try:
            dataset = setsup.open(tmp_path)
            dataset.fetch(np.arange(len(dataset)))
        except SetsupError as error:
            sentences.append(str(error))
    assert len(sentences) > 10
    assert not any("\n" in sentence for sentence in sentences)


def test_images_in_a_zip_beside_their_table_are_told_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "0.png", "subject": "a"}\n')
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as packed:
        packed.writestr("0.png", b"")
    with pytest.raises(
        DataError, match=r"metadata.jsonl: 1 image file is missing: 0.png; .*images.zip contains 0.png; unpack it"
    ):
        setsup.open(tmp_path)
