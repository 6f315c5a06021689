"""Market-1501, MSMT17, PKU VehicleID and VeRi-776: rows equal to what a walk over the files, or their lists, gives."""

import io
import logging
import shutil
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.described.columns import check_rows, read_tables
from setsup.datasets.described.schema import read_layout
from setsup.errors import DataError
from setsup.files import load_manifest
from setsup.files.archives.members import open_members
from tests.true_files import market_1501, msmt17, vehicleid, veri776


def _decoded(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("form", ["folder", "zip"])
def test_market_1501(tmp_path, form):
    market_1501.write(tmp_path)
    if form == "zip":
        shutil.make_archive(str(tmp_path / "Market-1501-v15.09.15"), "zip", tmp_path, "Market-1501-v15.09.15")
        shutil.rmtree(tmp_path / "Market-1501-v15.09.15")
    found, rows, files = setsup.load("market-1501", tmp_path), market_1501.rows(), market_1501.files()
    for column, name in ((0, "split"), (2, "person"), (3, "camera"), (4, "sequence"), (5, "frame"), (6, "box")):
        assert found.factors.values(name).tolist() == [row[column] for row in rows]
    kinds = {0: "distractor", -1: "junk"}
    assert found.factors.values("kind").tolist() == [kinds.get(row[2], "person") for row in rows]
    expected = [_decoded(files[f"{market_1501.FOLDERS[row[0]]}/{row[1]}"]) for row in rows]
    assert np.array_equal(found.fetch(range(len(rows)))["image"], expected)
    ranked = setsup.load("market-1501", tmp_path, split="gallery-without-junk")
    assert set(ranked.factors.values("person").tolist()) == {0, 1, 3}


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_msmt17(tmp_path, version):
    msmt17.write(tmp_path, version)
    found, rows, files = setsup.load("msmt17", tmp_path), msmt17.rows(), msmt17.files(version)
    for name in ("part", "person", "camera", "date", "time", "frame"):
        assert found.factors.values(name).tolist() == [getattr(row, name) for row in rows]
    assert found.factors.values("split").tolist() == [row.list for row in rows]
    for number in range(0, len(rows), 5):
        content = files[f"{msmt17.FOLDERS[version][rows[number].part]}/{rows[number].path}"]
        assert np.array_equal(found.fetch(number)["image"], _decoded(content))
    assert set(setsup.load("msmt17", tmp_path, split="train-val").factors.values("split")) == {"train", "val"}


def test_persons_of_one_number_in_both_parts_of_msmt17_are_two(tmp_path):
    msmt17.write(tmp_path)
    found = setsup.load("msmt17", tmp_path)
    orbits = setsup.OrbitSampler(found.factors, "person", sets=5, size=3, seed=0)
    told = list(zip(found.factors.values("part"), found.factors.values("person"), strict=True))
    drawn = [{told[row] for row in rows} for step in range(10) for rows in orbits[step].indices.tolist()]
    assert {len(each) for each in drawn} == {1}
    assert {("train", 0), ("test", 0)} <= set.union(*drawn)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "0000/0000_010_12_0303morning_0006_2.jpg 1",
            r"list_query\.txt: person of line 1 is 0000",
        ),
        ("0000/0000_010_12_0303evening_0006_2.jpg 0", "line 1 is .*; expected a path such as"),
        ("0000_010_12_0303morning_0006_2.jpg 0", "line 1 is .*; expected a path such as"),
        ("../0000_010_12_0303morning_0006_2.jpg 0", "line 1 is .*; expected a path such as"),
        (msmt17.rows()[-1].path + " 3059", "lists .* 2 times; expected each file once"),
    ],
)
def test_bad_lists_of_msmt17(tmp_path, line, message):
    msmt17.write(tmp_path)
    (tmp_path / "MSMT17_V1" / "list_query.txt").write_text(f"{line}\n")
    with pytest.raises(DataError, match=message) as found:
        setsup.load("msmt17", tmp_path)
    assert "\n" not in str(found.value)


def test_vehicleid(tmp_path):
    vehicleid.write(tmp_path)
    found, rows, files = setsup.load("vehicleid", tmp_path), vehicleid.rows(), vehicleid.files()
    assert found.factors.values("number").tolist() == [image for image, _ in rows]
    assert found.factors.values("vehicle").tolist() == [vehicle for _, vehicle in rows]
    assert list(found.factors.values("model")) == [vehicleid.MODELS.get(vehicle) for _, vehicle in rows]
    assert found.factors.codes("color").tolist() == [vehicleid.PAINT.get(vehicle, -1) for _, vehicle in rows]
    assert np.array_equal(found.fetch(5)["image"], _decoded(files[f"image/{rows[5][0]:07}.jpg"]))
    for split, name in (("train", "train_list"), ("test", "test_list_13164"), ("test-1600", "test_list_1600")):
        part = setsup.load("vehicleid", tmp_path, split=split)
        assert set(part.factors.values("vehicle").tolist()) == set(vehicleid.LISTS[name])
        assert len(part) == vehicleid.EACH * len(vehicleid.LISTS[name])
    assert found.factors["color"].levels[4] == "silver", "published as sliver"


def test_lists_of_vehicleid_may_be_missing_and_count_by_the_vehicle(tmp_path):
    vehicleid.write(tmp_path)
    top = tmp_path / "VehicleID_V1.0"
    (top / "attribute" / "model_attr.txt").unlink()
    for name in ("train_list", "test_list_13164", "test_list_1600"):
        (top / "train_test_split" / f"{name}.txt").unlink()
    small = top / "train_test_split" / "test_list_800.txt"
    small.write_text(small.read_text().replace(" 8\n", " 9\n", 1))  # as an early list has it
    assert setsup.load("vehicleid", tmp_path).factors.names == ("vehicle", "color", "number", "test_800", "test_2400")
    assert len(setsup.load("vehicleid", tmp_path, split="test-800")) == vehicleid.EACH - 1
    with pytest.raises(DataError, match="test-1600"):
        setsup.load("vehicleid", tmp_path, split="test-1600")


def _values(table, name):
    return [None if value is None else str(value) for value in table.values(name)]


@pytest.mark.parametrize("encoding", ["gb2312", "GBK", "gb18030", "utf-8"])
def test_colors_and_types_of_veri776(tmp_path, encoding):
    veri776.write(tmp_path)
    for name in ("train_label.xml", "test_label.xml"):
        place = tmp_path / "VeRi" / name
        text = place.read_bytes().decode("gb2312").replace("gb2312", encoding)
        place.write_bytes(text.encode(encoding))
    found = setsup.load("veri776", tmp_path)
    published = [veri776.LABELS[vehicle] for _, _, vehicle, *_ in veri776.names()]
    assert _values(found.factors, "color") == [veri776.COLORS[color - 1] for color, _ in published]
    assert _values(found.factors, "type") == [veri776.TYPES[kind - 1] if kind else None for _, kind in published]
    texts = [
        ElementTree.fromstring(veri776.labels(part).decode("gb2312").partition("\n")[2])
        for part in ("train", "gallery")
    ]
    told = {item.get("imageName"): item.get("colorID") for text in texts for item in text.iter("Item")}
    names = [path.rpartition("/")[2] for path in found.paths(range(len(found)))]
    assert [str(code + 1) for code in found.factors.codes("color")] == [told[name] for name in names]


def test_labels_of_veri776_may_be_missing(tmp_path, caplog):
    veri776.write(tmp_path)
    top = tmp_path / "VeRi"
    whole = (top / "test_label.xml").read_bytes()
    (top / "test_label.xml").write_bytes(b"".join(line for line in whole.splitlines(True) if b'"0030_c004' not in line))
    with caplog.at_level(logging.INFO, "setsup"):
        found = setsup.load("veri776", tmp_path)
    [told] = [message for message in caplog.messages if "lacks" in message]
    assert told.endswith("test_label.xml lacks 1 of 10 images, such as 0030_c004_00017054_0.jpg")
    names = veri776.names()
    assert [row for row, color in enumerate(_values(found.factors, "color")) if color is None] == [
        row for row, name in enumerate(names) if name[1].startswith("0030_c004")
    ]
    (top / "train_label.xml").unlink()
    colors = _values(setsup.load("veri776", tmp_path).factors, "color")
    assert [color is None for color in colors[:9]] == [True] * 9
    (top / "test_label.xml").unlink()
    assert setsup.load("veri776", tmp_path).factors.names == ("vehicle", "camera", "frame", "split")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'colorID="5"', b'colorID="11"', "line 5 has the colorID '11'; expected 0 to 10"),
        (b'typeID="1"', b'typeID="-1"', "line 5 has the typeID '-1'; expected 0 to 9"),
        (b'typeID="1"', b'typeID="\xb3\xb5"', "line 5 has the typeID '\u8f66'; expected 0 to 9"),
        (b'imageName="0001_c001_00016036_0.jpg"', b"", "the Item in line 5 has no imageName"),
        (b"c004_00016039", b"c001_00016036", ""),  # of the same color and type
        (
            b"0007_c001_00016246",
            b"0001_c001_00016036",
            "line 8 repeats the image 0001_c001_00016036_0.jpg with another",
        ),
        (
            b'imageName="0',
            b'imageName="1',
            "labels none of the 9 images of image_train, such as 0001_c001_00016036_0.jpg",
        ),
        (b"<Item ", b"<Thing ", "contains no Item"),
        (b"</Items>", b"", "could not be parsed as XML: mismatched tag"),
        (b"<!-- \xb3\xb5", b"<!-- \xff\xff", "could not be parsed as XML: 'gb18030' codec can't decode byte 0xff"),
        (b"<TrainingImages", b"<!DOCTYPE a><TrainingImages", "contains a DOCTYPE"),
    ],
)
def test_bad_labels_of_veri776(tmp_path, old, new, message):
    veri776.write(tmp_path)
    place = tmp_path / "VeRi" / "train_label.xml"
    healthy = place.read_bytes()
    assert old in healthy
    place.write_bytes(healthy.replace(old, new, -1 if old in (b"<Item ", b'imageName="0') else 1))
    if not message:
        setsup.load("veri776", tmp_path)
        return
    with pytest.raises(DataError, match=rf"train_label\.xml.*{message}") as found:
        setsup.load("veri776", tmp_path)
    assert "\n" not in str(found.value)


def _columns(name, folder, reason):
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist ({reason})")
    layout = read_layout(load_manifest(name))
    columns = read_tables(open_members(folder), layout)
    check_rows(columns, layout)
    return columns


@pytest.mark.long("genuine files")
def test_genuine_lists_of_msmt17(genuine):
    columns = _columns("msmt17", genuine / "msmt17", "the lists of SamvitJ/MSMT17-Dataset; may not be passed on")
    counts = {"train": 30_248, "val": 2_373, "query": 11_659, "gallery": 82_161}
    assert Counter(columns.values["list"].to_pylist()) == counts
    values, _ = columns.encode("camera")
    assert sorted(values) == list(range(1, 16))


@pytest.mark.long("genuine files")
def test_genuine_attributes_of_vehicleid(genuine):
    reason = "attribute/*.txt of CaptainEven/RepNet-MDNet-VehicleReID; may not be passed on"
    columns = _columns("vehicleid", genuine / "vehicleid", reason)
    assert len(columns) == 221_567
    assert len(columns.values["vehicle"].unique()) == 26_328
    for name, known in (("model", 90_168), ("color", 78_957)):
        assert len(columns) - columns.values[name].null_count == known
