"""Tables as users have them: no header, images that lie elsewhere, nested columns, odd numbers and paths."""

import io
import json
import logging
import os
import tarfile
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError, FactorError
from setsup.shards import index_shards


def png(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (8, 8)).save(path, "JPEG" if path.suffix == ".jpg" else "PNG")


def refused(path: Path, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        setsup.open(path, **options)
    return str(caught.value)


# -- lists "path label" ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("list.txt", ["./Art/Drill/00014.jpg 0", "./Art/Drill/00005.jpg 0", "./Art/Fan/00012.jpg 1"]),
        ("list.txt", ["Art/Drill/00014 0", "Art/Fan/00012 1"]),
        ("list.txt", ["000012 1", "000013 -1"]),
        ("train.csv", ["a.jpg,0", "b.jpg,1"]),
        ("train.csv", ["a.jpg,0,0", "b.jpg,1,1"]),
        ("train.tsv", ["Drill\ta.PNG", "Fan\tb.PNG"]),
    ],
)
def test_a_list_without_a_header_is_refused_as_such(tmp_path, name, lines):
    (tmp_path / name).write_text("\n".join(lines))
    message = refused(tmp_path / name)
    assert "has no header: its first line is" in message
    assert "start the file with column names, such as image,label" in message
    assert ("separate its fields by commas" in message) == (" " in lines[0])


def test_a_list_without_an_ending_is_known_too(tmp_path):
    (tmp_path / "train").write_text("./Art/Drill/00014.jpg 0\n")
    assert "if it is a list of images, save it as .csv, with commas and a header" in refused(tmp_path / "train")


def test_names_of_columns_that_look_a_little_like_data_stay(tmp_path):
    (tmp_path / "t.csv").write_text("trial 1\nann\nbob\n")
    assert setsup.FactorTable.from_csv(tmp_path / "t.csv").names == ("trial 1",)
    (tmp_path / "t.csv").write_text("subject.name,run 2\nann,1\n")
    assert setsup.FactorTable.from_csv(tmp_path / "t.csv").names == ("subject.name", "run 2")


# -- missing images ----------------------------------------------------------------------------------------------------

NFC, NFD = (unicodedata.normalize(form, "é.jpg") for form in ("NFC", "NFD"))


@pytest.mark.parametrize(
    ("there", "named", "said"),
    [
        ("a.jpg", "A.JPG", "A.JPG does not exist, but a.jpg does; correct the table"),
        ("a.jpg", "a", "a does not exist, but a.jpg does; correct the table"),
        ("a.png", "a.jpg", "a.jpg does not exist, but a.png does; correct the table"),
        ("images/c.jpg", "c.jpg", "c.jpg does not exist, but images/c.jpg does; correct the table"),
        (
            "c.jpg",
            "/home/someone/data/c.jpg",
            "/home/someone/data/c.jpg does not exist, but c.jpg does; correct the table",
        ),
        ("train/c.jpg", "data/train/c.jpg", "data/train/c.jpg does not exist, but train/c.jpg does; correct the table"),
        (NFD, NFC, f"{NFC} does not exist, but {NFD} does; correct the table"),
        (NFC, NFD, f"{NFD} does not exist, but {NFC} does; correct the table"),
        (
            "b.jpg",
            "http://host/a.jpg",
            "http://host/a.jpg is a URL, which setsup does not download; download the images",
        ),
        ("a.jpg", "../a.jpg", "../a.jpg does not exist, but a.jpg does; correct the table"),
        ("b.jpg", "a.jpg", "add the files, or correct the table"),
    ],
)
def test_what_is_there_in_place_of_a_missing_image(tmp_path, there, named, said):
    png(tmp_path / there)
    (tmp_path / "t.csv").write_text(f"image,k\n{named},0\n")
    message = refused(tmp_path / "t.csv")
    assert "1 image file is missing" in message
    assert said in message


def test_an_archive_that_has_it_is_named(tmp_path):
    png(tmp_path / "one.png")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as packed:
        packed.write(tmp_path / "one.png", "inner/a.png")
    (tmp_path / "t.csv").write_text("image,k\na.png,0\n")
    assert "images.zip contains a.png; unpack it" in refused(tmp_path / "t.csv")


# -- columns that are no factors ---------------------------------------------------------------------------------------


def said(caplog):
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]


def nested() -> pa.Table:
    """As datasets of the Hub have it."""
    stream = io.BytesIO()
    Image.new("L", (8, 8)).save(stream, "PNG")
    image = {"bytes": stream.getvalue(), "path": "0.png"}
    return pa.table(
        {
            "image": [image, image],
            "label": [{"digit": 1, "slant": 0.5}, {"digit": 2, "slant": 0.1}],
            "tags": [["a"], ["b", "c"]],
            "emb": pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2)),
            "k": [3, 4],
        }
    )


def test_nested_columns_of_parquet_are_named(tmp_path, caplog):
    pq.write_table(nested(), tmp_path / "x.parquet")
    dataset = setsup.open(tmp_path / "x.parquet")
    assert dataset.factors.names == ("label.digit", "label.slant", "k")
    assert dataset.factors.values("label.digit").tolist() == [1, 2]
    assert np.allclose(dataset.factors.values("label.slant"), [0.5, 0.1])
    assert dataset.where("label.digit == 2 and k > 3").factors.values("k").tolist() == [4]
    (message,) = said(caplog)
    assert message.startswith(f"{tmp_path / 'x.parquet'} is opened without tags (list<")
    assert "emb (fixed_size_list<" in message
    assert "image" not in message
    assert "k (" not in message


def test_nested_values_of_other_tables_are_named(tmp_path, caplog):
    (tmp_path / "x.jsonl").write_text('{"k": 1, "turns": [1], "box": {"x": 1}}\n{"k": 2, "turns": null}\n')
    assert setsup.FactorTable.from_csv(tmp_path / "x.jsonl").names == ("k", "box.x")
    table, names = nested(), ("label.digit", "label.slant", "k")
    assert setsup.FactorTable.from_arrow(table).names == names
    assert setsup.FactorTable.from_pandas(table.select(["tags", "label", "k"]).to_pandas()).names == names
    first, second, third = said(caplog)
    assert first == f"{tmp_path / 'x.jsonl'} is opened without turns (lists or objects)"
    assert second.startswith("the Arrow table is opened without image (struct<")
    assert third.startswith("the frame is opened without tags (list<")


def test_the_columns_of_structs_are_those_of_datasets_flatten(tmp_path, caplog):
    datasets = pytest.importorskip("datasets")
    rows = [
        {"a": {"b": 1, "c": {"d": "x", "e": [1]}}, "f": 0.5},
        {"a": {"b": None, "c": {"d": "y", "e": []}}, "f": 1.5},
        {"a": None, "f": 2.5},
    ]
    theirs = datasets.Dataset.from_list(rows)
    flat = theirs.flatten().flatten()
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    theirs.to_parquet(tmp_path / "x.parquet")
    tables = [
        setsup.FactorTable.from_csv(tmp_path / "x.jsonl"),
        setsup.FactorTable.from_parquet(tmp_path / "x.parquet"),
        setsup.FactorTable.from_arrow(theirs.data.table),
        setsup.FactorTable.from_huggingface(theirs),
    ]
    assert [message.partition("without ")[2].partition(" (")[0] for message in said(caplog)] == ["a.c.e"] * 4
    for table in tables:
        assert set(table.names) == {"a.b", "a.c.d", "f"} == set(flat.column_names) - {"a.c.e"}
        for name in ("a.b", "a.c.d"):
            told = [None if row[name] is None else row[name] for row in flat]
            assert [table.row(number)[name] for number in range(3)] == told


def test_objects_and_plain_values_under_one_key(tmp_path, caplog):
    (tmp_path / "x.jsonl").write_text('{"a": 1, "b": null, "c": {}}\n{"a": {"x": 2}, "b": {"y": 3}}\n')
    table = setsup.FactorTable.from_csv(tmp_path / "x.jsonl")
    assert table.names == ("a.x", "b.y")
    assert said(caplog) == [f"{tmp_path / 'x.jsonl'} is opened without a (lists or objects)"]


def test_two_columns_of_one_flat_name(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a.b": 1, "a": {"b": 2}}\n')
    with pytest.raises(DataError, match=r"x\.jsonl: two values have the name 'a\.b'; rename one"):
        setsup.open(tmp_path / "x.jsonl")
    pq.write_table(pa.table({"a.b": [1], "a": [{"b": 2}], "image": ["0.png"]}), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet: two columns have the name 'a\.b'; rename one"):
        setsup.open(tmp_path / "x.parquet")


@pytest.mark.long("fuzzing")
def test_a_million_columns_are_refused_at_once(tmp_path):
    names = [f"c{number}" for number in range(1_000_000)]
    (tmp_path / "x.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    (tmp_path / "x.jsonl").write_text(json.dumps(dict.fromkeys(names, 1)) + "\n")
    for name in ("x.csv", "x.jsonl"):
        with pytest.raises(DataError, match="it has 1,000,000 columns; expected at most 65,536"):
            setsup.open(tmp_path / name)


def test_plain_tables_say_nothing(tmp_path, caplog):
    pq.write_table(nested().select(["image", "k"]), tmp_path / "x.parquet")
    setsup.open(tmp_path / "x.parquet")
    assert not said(caplog)


# -- large integers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("large", [2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30])
def test_integers_beyond_64_bits_keep_their_digits_as_in_csv(tmp_path, large):
    (tmp_path / "t.jsonl").write_text(f'{{"k": {large}, "n": 1}}\n{{"k": 7, "n": 2}}\n{{"k": null, "n": 3}}\n')
    (tmp_path / "t.csv").write_text(f"k,n\n{large},1\n7,2\n,3\n")
    table, other = (setsup.FactorTable.from_csv(tmp_path / name) for name in ("t.jsonl", "t.csv"))
    assert table["k"].levels == other["k"].levels == tuple(sorted([str(large), "7"]))
    assert table.values("k").tolist() == other.values("k").tolist() == [str(large), "7", None]
    with pytest.raises(FactorError, match="an integer that does not fit into 64 bits; convert its values to strings"):
        setsup.FactorTable.from_values({"k": [10 * large, 7, None]})


def test_they_do_so_in_whatever_block_they_stand(tmp_path, monkeypatch):
    monkeypatch.setattr("setsup.factors.io.json_lines.ROWS", 2)
    (tmp_path / "t.jsonl").write_text("".join(f'{{"k": {value}}}\n' for value in (1, 2, 3, 2**63, 5)))
    assert setsup.FactorTable.from_csv(tmp_path / "t.jsonl").values("k").tolist() == ["1", "2", "3", str(2**63), "5"]


def test_integers_of_63_bits_stay_integers(tmp_path):
    (tmp_path / "t.jsonl").write_text(f'{{"k": {2**63 - 1}}}\n{{"k": {-(2**63)}}}\n')
    assert setsup.FactorTable.from_csv(tmp_path / "t.jsonl")["k"].levels == (-(2**63), 2**63 - 1)


# -- images of 16 bits -------------------------------------------------------------------------------------------------


@pytest.fixture
def depth(tmp_path):
    """The same images of 16 bits in folders, a table, a zip and a tar of shards."""
    values = np.arange(4 * 3 * 5, dtype=np.uint16).reshape(4, 3, 5) * 1000
    for row, image in enumerate(values):
        path = tmp_path / "images" / "ab"[row % 2] / f"{row}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    files = sorted((tmp_path / "images").rglob("*.png"))
    lines = [f"images/{file.parent.name}/{file.name},{file.parent.name}" for file in files]
    (tmp_path / "t.csv").write_text("\n".join(["image,kind", *lines]))
    (tmp_path / "tars").mkdir()
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as packed, tarfile.open(tmp_path / "tars" / "0.tar", "w") as tar:
        for file in files:
            packed.write(file, f"{file.parent.name}/{file.name}")
            tar.add(file, f"{file.stem}.png")
            info = tarfile.TarInfo(f"{file.stem}.cls")
            info.size = 1
            tar.addfile(info, io.BytesIO(file.parent.name.encode()))
    pq.write_table(
        pa.table({"image": [file.read_bytes() for file in files], "kind": [file.parent.name for file in files]}),
        tmp_path / "t.parquet",
    )
    return tmp_path, values[[0, 2, 1, 3]]


@pytest.mark.parametrize("name", ["images", "images.zip", "t.csv", "t.parquet"])
def test_folders_and_tables_take_them_as_shards_do(depth, name):
    folder, values = depth
    dataset, shards = setsup.open(folder / name), index_shards(folder / "tars")
    assert dataset.modalities == shards.modalities
    assert np.array_equal(dataset.fetch(range(4))["image"], values)
    assert np.array_equal(dataset.fetch([[3], [1]])["image"], values[[[3], [1]]])
    assert "which setsup cannot resize" in refused(folder / name, size=(2, 2))


def test_a_damaged_or_another_one_is_refused(depth):
    folder, _ = depth
    dataset = setsup.open(folder / "t.csv")
    Image.new("L", (5, 3)).save(folder / "images" / "a" / "2.png")
    with pytest.raises(DataError, match=r"2\.png \(row 1\) has the Pillow mode L; expected pixels of dtype uint16"):
        dataset.fetch(1)
    content = bytearray((folder / "images" / "b" / "1.png").read_bytes())
    content[-20] ^= 1
    (folder / "images" / "b" / "1.png").write_bytes(content)
    with pytest.raises(DataError, match=r"1\.png \(row 2\) cannot be decoded"):
        dataset.fetch(2)


# -- paths and messages ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="names of files are text there")
@pytest.mark.parametrize("kind", [str, Path])
def test_paths_that_are_no_utf8(tmp_path, caplog, kind):
    caplog.set_level(logging.ERROR, "setsup")  # pytest's worker processes cannot report such a path
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this disk has UTF-8 names only")
    for name in ("a/0.png", "b/0.png"):
        png(folder / name)
    (folder / "t.csv").write_text("image,k\na/0.png,x\nb/0.png,y\n")
    (folder / "t.jsonl").write_text('{"image": "a/0.png", "k": "x"}\n{"image": "b/0.png", "k": "y"}\n')
    pq.write_table(pa.table({"image": ["a/0.png", "b/0.png"], "k": ["x", "y"]}), tmp_path / "t.parquet")
    (tmp_path / "t.parquet").rename(folder / "t.parquet")
    with pa.OSFile(str(tmp_path / "p.parquet"), "wb") as sink:
        pq.write_table(nested(), sink)
    (tmp_path / "p.parquet").rename(folder / "p.parquet")
    assert setsup.open(kind(folder)).factors["folder"].levels == ("a", "b")
    for name in ("t.csv", "t.jsonl", "t.parquet"):
        dataset = setsup.open(kind(folder / name))
        assert dataset.factors["k"].levels == ("x", "y")
        assert dataset.fetch(1)["image"].shape == (8, 8, 1)
    assert setsup.open(kind(folder / "p.parquet")).fetch(1)["image"].shape == (8, 8, 1)
    with pytest.raises(DataError, match="does not exist"):
        setsup.open(kind(folder / "other"))
    frame = pandas.DataFrame({"path": [folder / "a" / "0.png", folder / "b" / "0.png"], "k": ["x", "y"]})
    assert setsup.from_pandas(frame).fetch([1, 0])["image"].shape == (2, 8, 8, 1)


@pytest.mark.parametrize("size", [40, 20_000])
def test_messages_stay_short(tmp_path, size):
    names = [f"{'column' * size}{number}" for number in range(50)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert len(refused(tmp_path / "wide.csv")) < 2500
    (tmp_path / "t.csv").write_text("image,k\n" + "\n".join(f"{'x' * size}{row}.png,1" for row in range(9)))
    assert len(refused(tmp_path / "t.csv")) < 2500
    table = setsup.FactorTable.from_csv(tmp_path / "wide.csv")
    with pytest.raises(FactorError) as caught:
        table["column"]
    assert len(str(caught.value)) < 2500
    long = DataError("a" * 50_000 + "; fetch it again")
    assert len(str(long)) < 2500
    assert long.hint == "fetch it again"


def test_messages_about_long_names_in_archives_stay_short(tmp_path, caplog):
    with zipfile.ZipFile(tmp_path / "long.zip", "w") as packed:
        png(tmp_path / "one.png")
        for number in range(5):
            packed.write(tmp_path / "one.png", f"{'a' * 60_000}{number}.png")
            packed.write(tmp_path / "one.png", f"kind{number}/1.png")
    assert len(setsup.open(tmp_path / "long.zip", pattern="{kind}/{number:d}").factors) == 5
    with pytest.raises(DataError) as caught:
        setsup.open(tmp_path / "long.zip", pattern="{kind}/{a}/{number:d}")
    assert len(str(caught.value)) < 2500
    assert all(len(one.getMessage()) < 2500 for one in caplog.records)
