import gzip
import io
import json
import pickle
import struct
import tracemalloc
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from setsup.datasets import load, open_table
from setsup.datasets.adapters.named_files import find_missing
from setsup.datasets.images import decode, header
from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, Kind


def _pixels(row, height=6, width=8, channels=3):
    return np.random.default_rng(row).integers(0, 256, (height, width, channels)).astype(np.uint8)


def _save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(path, **options)


def _png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def photos(tmp_path):
    """A CSV file of twenty PNG images in a folder below, and their pixels."""
    pixels = np.stack([_pixels(row) for row in range(20)])
    lines = ["image,subject,age,id"]
    for row in range(20):
        _save(tmp_path / "images" / f"{row}.png", pixels[row])
        lines.append(f"images/{row}.png,{('ann', 'bob', 'eve', 'joe')[row % 4]},{20 + row % 5},{1000 + row}")
    (tmp_path / "photos.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "photos.csv", pixels


def test_images_and_factors(photos):
    path, pixels = photos
    data = open_table(path)
    assert data.name == "photos"
    assert len(data) == 20
    assert data.factors.names == ("subject", "age", "id")
    assert data.factors["subject"].kind is Kind.NOMINAL
    assert data.factors["age"].kind is Kind.ORDINAL
    assert data.factors["id"].role == "key"
    assert data.factors.counts("subject").tolist() == [5, 5, 5, 5]
    modality = data.modalities["image"]
    assert (modality.shape, modality.dtype, modality.color) == ((6, 8, 3), "uint8", "srgb")
    for rows in ([[3, 19], [3, 0]], [], 7, list(range(20)) * 3, [[]]):
        assert np.array_equal(data.fetch(rows)["image"], pixels[np.asarray(rows, int)])
    assert np.array_equal(data.where("subject == 'bob'").fetch([0, 4])["image"], pixels[[1, 17]])


def test_load_opens_a_table_by_its_path(photos):
    path, pixels = photos
    assert np.array_equal(load("table", root=path, where="age > 23").fetch(0)["image"], pixels[4])
    with pytest.raises(DataError, match="pass its path"):
        load("table")


def test_kinds_and_factors_can_be_given(photos):
    path, _ = photos
    data = open_table(path, kinds={"age": "continuous", "id": Kind.ORDINAL})
    assert data.factors["age"].continuous
    subject = Factor("subject", Kind.NOMINAL, ("joe", "eve", "bob", "ann", "zoe"))
    assert open_table(path, factors=[subject]).factors["subject"] == subject
    with pytest.raises(SetsupError, match=r"'agee'.*did you mean 'age'"):
        open_table(path, kinds={"agee": "continuous"})
    with pytest.raises(SetsupError, match="unknown kind 'continous'"):
        open_table(path, kinds={"age": "continous"})


@pytest.mark.parametrize("name", ["path", "image", "Image", "filename", "file_name", "img_path"])
def test_the_image_column_is_found_by_its_name(tmp_path, name):
    _save(tmp_path / "a.png", _pixels(0))
    (tmp_path / "t.csv").write_text(f"kind,{name}\nx,a.png\ny,a.png\n")
    assert open_table(tmp_path / "t.csv").factors.names == ("kind",)


def test_the_image_column_can_be_named(tmp_path):
    for row in range(2):
        _save(tmp_path / f"{row}.png", _pixels(row))
    (tmp_path / "t.csv").write_text("path,left,right\n/raw/0,0.png,1.png\n/raw/1,1.png,0.png\n")
    data = open_table(tmp_path / "t.csv", image="right")
    assert data.factors.names == ("path", "left")
    assert np.array_equal(data.fetch([0])["image"][0], _pixels(1))
    with pytest.raises(DataError, match=r"t\.csv has no column 'rihgt'; did you mean 'right'"):
        open_table(tmp_path / "t.csv", image="rihgt")
    (tmp_path / "u.csv").write_text("left,shape\n0.png,x\n1.png,y\n")
    with pytest.raises(DataError, match=r"u\.csv has no column named image.*left, shape.*image="):
        open_table(tmp_path / "u.csv")


def test_names_that_look_like_numbers_and_absolute_paths(tmp_path):
    for name in ("007", "7", "12"):
        _save(tmp_path / "x" / f"{name}.png", _pixels(int(name)))
        (tmp_path / "x" / f"{name}.png").rename(tmp_path / "x" / name)
    rows = [f"{tmp_path / 'x' / '007'},a", "x/7,b", "x/12,c"]
    (tmp_path / "t.csv").write_text("\n".join(["image,kind", *rows]))
    assert np.array_equal(open_table(tmp_path / "t.csv").fetch([2, 0])["image"], [_pixels(12), _pixels(7)])
    (tmp_path / "x" / "t.csv").write_text("image,kind\n007,a\n12,b\n")
    assert np.array_equal(open_table(tmp_path / "x" / "t.csv").fetch([1, 0])["image"], [_pixels(12), _pixels(7)])


# -- bad tables --------------------------------------------------------------------------------------------------------


def test_all_missing_images_are_reported_at_once(photos):
    path, _ = photos
    for row in (2, 3, 5, 7, 11, 13):
        (path.parent / "images" / f"{row}.png").unlink()
    with pytest.raises(DataError, match=r"photos\.csv: 6 image files are missing") as caught:
        open_table(path)
    sentence = str(caught.value)
    assert all(f"images/{row}.png" in sentence for row in (2, 3, 5, 7, 11))
    assert "images/13.png" not in sentence
    assert f"relative to {path.parent}" in sentence


def test_paths_of_windows_are_read(tmp_path):
    for row, name in enumerate(["a/x/0.png", "a/x/1.png", "b.png", "a\\x\\2.png"]):
        _save(tmp_path / name, _pixels(row))
    _save(tmp_path / "a" / "x" / "2.png", _pixels(9))
    names = ["a\\x\\0.png", "a/x\\1.png", ".\\b.png", "a\\x\\2.png"]
    data = open_table(_table(tmp_path, *names))
    # the last is a file of that very name
    assert np.array_equal(data.fetch(range(4))["image"], [_pixels(row) for row in range(4)])
    with pytest.raises(DataError, match=r"2 image files are missing: C:.photos.b\.png, a.y\.png; paths are relative"):
        open_table(_table(tmp_path, *names, "C:\\photos\\b.png", "a\\y.png"))
    packed = pa.array([{"bytes": None, "path": "a\\x\\0.png"}, {"bytes": _png(_pixels(5)), "path": None}])
    pq.write_table(pa.table({"image": packed, "kind": ["x", "y"]}), tmp_path / "t.parquet")
    assert np.array_equal(open_table(tmp_path / "t.parquet").fetch([0, 1])["image"], [_pixels(0), _pixels(5)])


def test_many_images_in_folders_links_and_repeats(tmp_path):
    """Folders are listed where many names lie in one; what a list says nothing of is asked for."""
    names = [f"many/{row:03}.png" for row in range(100)]
    for name in names:
        _save(tmp_path / name, _pixels(0))
    (tmp_path / "many" / "link.png").symlink_to("000.png")
    (tmp_path / "many" / "broken.png").symlink_to("nothing.png")
    (tmp_path / "many" / "folder.png").mkdir()
    there = [*names, "many/link.png", "many/../many/001.png", *names]
    assert len(open_table(_table(tmp_path, *there))) == 202
    (tmp_path / "many" / "050.png").unlink()
    absent = [f"none/{row}.png" for row in range(50)]
    with pytest.raises(DataError, match=r"53 image files are missing: many/050.png, many/broken.png, many/folder.png"):
        open_table(_table(tmp_path, *there, "many/broken.png", "many/folder.png", *absent))
    assert find_missing(str(tmp_path), ["/many/001.png", f"{tmp_path}/many/001.png"] * 40) == ["/many/001.png"]


def test_tables_of_text_in_other_forms(photos):
    path, pixels = photos
    lines = [line.split(",") for line in path.read_text().splitlines()]
    expected = open_table(path)
    for name, content in {
        "p.tsv": "\n".join("\t".join(line) for line in lines).encode("utf-16"),
        "p.txt": "\n".join(";".join(line) for line in lines).encode("utf-8-sig"),
        "p.csv.gz": gzip.compress(path.read_bytes()),
        "p.jsonl": "\n".join(
            json.dumps({**dict(zip(lines[0], line, strict=True)), "age": int(line[2]), "id": int(line[3])})
            for line in lines[1:]
        ).encode(),
    }.items():
        (path.parent / name).write_bytes(content)
        found = open_table(path.parent / name)
        assert found.factors.fingerprint == expected.factors.fingerprint
        assert np.array_equal(found.fetch([19, 0])["image"], pixels[[19, 0]])


def test_rows_without_an_image_are_counted(tmp_path):
    _save(tmp_path / "a.png", _pixels(0))
    (tmp_path / "t.csv").write_text("image,kind\na.png,x\n,y\na.png,x\n,y\n")
    with pytest.raises(DataError, match=r"t\.csv: 2 of 4 rows have no image, such as row 1"):
        open_table(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text("image,kind\n,x\n,y\n")
    with pytest.raises(DataError, match=r"u\.csv: 2 of 2 rows have no image"):
        open_table(tmp_path / "u.csv")


def test_equal_paths_take_no_more_than_codes(tmp_path):
    rows = 2_000_000
    _save(tmp_path / "a.png", _pixels(0))
    texts = pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["a.png"]).cast(pa.string())
    pq.write_table(pa.table({"path": texts, "k": texts}), tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 100_000
    tracemalloc.start()
    try:
        found = open_table(tmp_path / "t.parquet")
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.factors) == rows
    assert kept < 8 * rows  # a list of one text would be 8 bytes per row, its encoded texts 38
    assert most < 16 * rows
    assert len(pickle.dumps(found)) < 4 * rows
    assert np.array_equal(found.fetch([0, rows - 1])["image"], np.stack([_pixels(0)] * 2))


def test_texts_that_repeat_are_checked_once_and_named_in_the_order_of_rows(tmp_path):
    for number, name in enumerate(["z.png", "deep/b.png", "a.png"]):
        _save(tmp_path / name, _pixels(number))
    names = ["z.png", "deep\\b.png", "a.png", "deep\\b.png", "z.png", "deep/b.png"]
    (tmp_path / "t.csv").write_text("image,kind\n" + "".join(f"{name},x\n" for name in names))
    levels = ["unused.png", *sorted(set(names)), "unused too.png"]  # levels of no row need no file
    found = open_table(tmp_path / "t.csv", factors=[Factor("image", Kind.NOMINAL, levels)])
    expected = [_pixels(number) for number in (0, 1, 2, 1, 0, 1)]
    for each in (found, pickle.loads(pickle.dumps(found)), open_table(tmp_path / "t.csv")):
        assert np.array_equal(each.fetch(range(6))["image"], expected)
    (tmp_path / "z.png").unlink()
    (tmp_path / "a.png").unlink()
    with pytest.raises(DataError, match=r"2 image files are missing: z\.png, a\.png; "):
        open_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "t.csv"),
        ("image,kind\n", "t.csv"),
        ("image\na.png\n", "no columns besides the image column 'image'"),
        ("image,kind,kind\na.png,1,2\n", "kind"),
        ("image,kind\na.png,x\na.png\n", "t.csv"),
        ("image,kind\na.png,1\na.png,x\n", "mixes"),
        ("image,kind\n\0,1\n", "t.csv"),
        ("image,kind\na.png/b.png,1\n", "1 image file is missing"),
        ("image,kind\n.,1\n", "1 image file is missing"),
        ("image,kind\n" + "x" * 5000 + ",1\n", "1 image file is missing"),
    ],
)
def test_bad_csv(tmp_path, content, sentence):
    _save(tmp_path / "a.png", _pixels(0))
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(SetsupError, match=r"t\.csv") as caught:
        open_table(tmp_path / "t.csv")
    assert sentence in str(caught.value)


def test_missing_table_and_wrong_size(tmp_path, photos):
    with pytest.raises(DataError, match=r"nothing\.csv does not exist"):
        open_table(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="is not a file; expected a CSV, Parquet or JSON lines file"):
        open_table(tmp_path)
    for size in ((0, 4), (4,), (4, 4, 3), (4.0, 4.0)):
        with pytest.raises(DataError, match=r"size must be \(height, width\)"):
            open_table(photos[0], size=size)


# -- modes and sizes ---------------------------------------------------------------------------------------------------


def _table(folder, *names):
    (folder / "t.csv").write_text("\n".join(["image,kind", *(f"{name},k{i}" for i, name in enumerate(names))]))
    return folder / "t.csv"


def test_grey_stays_grey_and_is_widened_beside_color(tmp_path):
    _save(tmp_path / "grey.png", _pixels(0, channels=1))
    _save(tmp_path / "colour.png", _pixels(1))
    _save(tmp_path / "alpha.png", _pixels(2, channels=4))
    grey = open_table(_table(tmp_path, "grey.png", "grey.png"))
    assert (grey.modalities["image"].shape, grey.modalities["image"].color) == ((6, 8, 1), "grey")
    assert np.array_equal(grey.fetch(0)["image"], _pixels(0, channels=1))
    mixed = open_table(_table(tmp_path, "grey.png", "colour.png", "alpha.png"))
    assert mixed.modalities["image"].shape == (6, 8, 3)
    found = mixed.fetch([0, 1, 2])["image"]
    assert np.array_equal(found[0], np.repeat(_pixels(0, channels=1), 3, axis=-1))
    assert np.array_equal(found[1], _pixels(1))
    assert np.array_equal(found[2], _pixels(2, channels=4)[..., :3])
    alpha = open_table(_table(tmp_path, "alpha.png", "alpha.png"))
    assert alpha.modalities["image"].shape == (6, 8, 4)
    assert np.array_equal(alpha.fetch(1)["image"], _pixels(2, channels=4))


def test_color_among_grey_that_was_not_looked_at(tmp_path):
    _save(tmp_path / "grey.png", _pixels(0, channels=1))
    _save(tmp_path / "colour.png", _pixels(1))
    names = ["grey.png"] * 1000
    names[1] = "colour.png"
    data = open_table(_table(tmp_path, *names))
    assert data.fetch([0, 2])["image"].shape == (2, 6, 8, 1)
    with pytest.raises(DataError, match=r"colour\.png \(row 1\) is a color image"):
        data.fetch([0, 1])


def test_palettes_and_bits_are_unfolded(tmp_path):
    Image.fromarray(_pixels(0)).quantize(16).save(tmp_path / "palette.png")
    expected = np.asarray(Image.fromarray(_pixels(0)).quantize(16).convert("RGB"))
    assert np.array_equal(open_table(_table(tmp_path, "palette.png", "palette.png")).fetch(0)["image"], expected)
    bits = _pixels(3, channels=1)[..., 0] > 127
    Image.fromarray(bits).save(tmp_path / "bits.png")
    assert np.array_equal(open_table(_table(tmp_path, "bits.png", "bits.png")).fetch(0)["image"][..., 0], bits * 255)


def test_more_than_eight_bits_are_refused_among_images_of_eight(tmp_path):
    Image.fromarray(np.full((4, 4), 40_000, np.uint16)).save(tmp_path / "deep.png")
    Image.fromarray(np.full((4, 4), 40, np.uint8)).save(tmp_path / "plain.png")
    with pytest.raises(DataError, match=r"deep\.png \(row 1\) has pixels of mode I;16; expected 8 bits"):
        open_table(_table(tmp_path, "plain.png", "deep.png"))
    with pytest.raises(DataError, match=r"plain\.png \(row 1\) has the Pillow mode L; expected pixels of dtype uint16"):
        open_table(_table(tmp_path, "deep.png", "plain.png"))
    assert open_table(_table(tmp_path, "deep.png")).fetch(0)["image"].tolist() == np.full((4, 4), 40_000).tolist()


def test_jpeg_orientation_is_applied(tmp_path):
    upright = np.zeros((16, 32, 3), np.uint8)
    upright[:, 16:] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees clockwise to see it upright"
    Image.fromarray(np.rot90(upright).copy()).save(tmp_path / "turned.jpg", exif=exif, quality=95)
    data = open_table(_table(tmp_path, "turned.jpg", "turned.jpg"))
    assert data.modalities["image"].shape == (16, 32, 3)
    assert np.abs(data.fetch(0)["image"].astype(int) - upright).max() < 30


def test_different_sizes_are_declared_and_refused_together(tmp_path):
    _save(tmp_path / "a.png", _pixels(0, 6, 8))
    _save(tmp_path / "b.png", _pixels(1, 5, 8))
    data = open_table(_table(tmp_path, "a.png", "b.png", "a.png"))
    assert data.modalities["image"].shape == (None, None, 3)
    assert data.fetch([0, 2])["image"].shape == (2, 6, 8, 3)
    assert np.array_equal(data.fetch(1)["image"], _pixels(1, 5, 8))
    with pytest.raises(
        DataError,
        match=r"b\.png \(row 1\) is 5 × 8 .* expected 6 × 8, as in .*; .*size=\(height, width\) \(--opt",
    ):
        data.fetch([0, 1])


def test_a_size_that_was_not_looked_at_names_the_file(tmp_path):
    _save(tmp_path / "a.png", _pixels(0))
    _save(tmp_path / "b.png", _pixels(1, 7, 8))
    names = ["a.png"] * 1000
    names[1] = "b.png"
    data = open_table(_table(tmp_path, *names))
    assert data.modalities["image"].shape == (6, 8, 3)
    for rows in ([1], [0, 1], 1):
        with pytest.raises(DataError, match=r"b\.png \(row 1\) is 7 × 8 .* expected 6 × 8"):
            data.fetch(rows)


def test_size_covers_and_cuts_the_centre(tmp_path):
    wide = np.zeros((32, 96, 3), np.uint8)
    wide[:, 32:64] = (200, 100, 50)
    _save(tmp_path / "wide.png", wide)
    _save(tmp_path / "high.png", wide.transpose(1, 0, 2))
    _save(tmp_path / "same.png", _pixels(0, 16, 16))
    data = open_table(_table(tmp_path, "wide.png", "high.png", "same.png"), size=(16, 16))
    assert data.modalities["image"].shape == (16, 16, 3)
    found = data.fetch([0, 1, 2])["image"]
    assert (found[:2, 3:-3, 3:-3] == (200, 100, 50)).all(), "the middle third fills the image"
    assert np.array_equal(found[2], _pixels(0, 16, 16)), "what has the size already stays as it is"


def test_shrinking_is_antialiased(tmp_path):
    board = np.zeros((64, 64, 3), np.uint8)
    board[::2, ::2] = board[1::2, 1::2] = 255
    _save(tmp_path / "a.png", board)
    found = open_table(_table(tmp_path, "a.png"), size=(8, 8)).fetch(0)["image"]
    assert np.abs(found.astype(int) - 127).max() <= 8


# -- packed images -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), "struct", "struct without path"])
def test_images_packed_in_parquet(tmp_path, kind):
    pixels = [_pixels(row) for row in range(12)]
    data = [_png(image) for image in pixels]
    if kind == "struct":
        image = pa.array([{"bytes": one, "path": f"{i}.png"} for i, one in enumerate(data)])
    elif kind == "struct without path":
        image = pa.array([{"bytes": one} for one in data])
    else:
        image = pa.array(data, kind)
    table = pa.table(
        {"picture": image, "label": [row % 3 for row in range(12)], "path": [f"/x/{r}" for r in range(12)]}
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=5)
    found = open_table(tmp_path / "t.parquet", image="picture")
    assert found.factors.names == ("label", "path")
    assert np.array_equal(found.fetch([[11, 0], [5, 11]])["image"], np.stack(pixels)[[[11, 0], [5, 11]]])
    carried = pickle.dumps(found)
    assert len(carried) < 5000, "the images stay in the file"
    assert np.array_equal(pickle.loads(carried).fetch(7)["image"], pixels[7])
    pq.write_table(table.drop_columns("path"), tmp_path / "u.parquet")
    assert open_table(tmp_path / "u.parquet").factors.names == ("label",)


def test_parquet_with_paths_and_structs_that_name_files(tmp_path):
    for row in range(3):
        _save(tmp_path / f"{row}.png", _pixels(row))
    names = [f"{row}.png" for row in range(3)]
    pq.write_table(pa.table({"file_name": names, "label": ["a", "b", "a"]}), tmp_path / "t.parquet")
    assert np.array_equal(open_table(tmp_path / "t.parquet").fetch(2)["image"], _pixels(2))
    image = pa.array(
        [{"bytes": None, "path": name} for name in names], pa.struct({"bytes": pa.binary(), "path": pa.string()})
    )
    pq.write_table(pa.table({"image": image, "label": ["a", "b", "a"]}), tmp_path / "u.parquet")
    assert np.array_equal(open_table(tmp_path / "u.parquet").fetch(1)["image"], _pixels(1))
    for name in names[1:]:
        (tmp_path / name).unlink()
    for table in ("t.parquet", "u.parquet"):
        with pytest.raises(DataError, match=rf"{table}: 2 image files are missing: 1\.png, 2\.png"):
            open_table(tmp_path / table)


def test_bad_parquet(tmp_path):
    good = _png(_pixels(0))
    pq.write_table(pa.table({"image": [good, None, good], "label": [1, 2, 3]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: 1 rows have no image, such as row 1"):
        open_table(tmp_path / "a.parquet")
    pq.write_table(pa.table({"image": [good, good[:-40], good], "label": [1, 2, 3]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"image of row 1 in .*b\.parquet could not be decoded"):
        open_table(tmp_path / "b.parquet").fetch([0, 1])
    pq.write_table(pa.table({"image": [[1], [2]], "label": [1, 2]}), tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"c\.parquet: the column 'image' contains list"):
        open_table(tmp_path / "c.parquet")
    pq.write_table(pa.table({"image": [good], "picture": [good], "label": [1]}).select(["label", "picture", "image"]).
                   rename_columns(["label", "one", "two"]), tmp_path / "d.parquet")  # fmt: skip
    with pytest.raises(DataError, match=r"d\.parquet has no column named image.*label, one, two"):
        open_table(tmp_path / "d.parquet")
    (tmp_path / "e.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    with pytest.raises(DataError, match=r"e\.parquet could not be read as Parquet"):
        open_table(tmp_path / "e.parquet")


# -- bad images --------------------------------------------------------------------------------------------------------


def test_unreadable_images_name_file_and_row(photos):
    path, _ = photos
    data = open_table(path)
    image = path.parent / "images" / "13.png"
    whole = image.read_bytes()
    for content, sentence in [
        (whole[:-30], "could not be decoded"),
        (whole[:20], "could not be decoded|no image"),
        (b"<html>not found</html>", "is not a readable image"),
        (b"", "is not a readable image"),
    ]:
        image.write_bytes(content)
        with pytest.raises(DataError, match=rf"images/13\.png \(row 13\).*({sentence})"):
            data.fetch([[12, 13]])
    image.unlink()
    with pytest.raises(DataError, match=r"images/13\.png \(row 13\) is missing"):
        data.fetch(range(20))


def _huge_png(width, height):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    start = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + start + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("width", "height"), [(10_000, 9_000), (30_000, 30_000), (2**31 - 1, 2**31 - 1)])
def test_decompression_bombs_are_refused(width, height):
    for read in (header, lambda source, label: decode(source, label, 1)):
        with pytest.raises(DataError, match=r"bomb\.png"):
            read(_huge_png(width, height), "bomb.png")


def test_formats_that_run_other_programs_are_no_images():
    with pytest.raises(DataError, match="is not a readable image"):
        header(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n", "a.eps")


# -- processes and threads ---------------------------------------------------------------------------------------------


# -- mutations ---------------------------------------------------------------------------------------------------------


@st.composite
def mutated(draw, content):
    content = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(content) - 1, 0)))
        what = draw(st.sampled_from(["flip", "cut", "insert", "zero"]))
        if what == "cut":
            del content[at:]
        elif what == "insert":
            content[at:at] = draw(st.one_of(st.binary(min_size=1, max_size=9), st.sampled_from([b",", b'"', b"\n"])))
        elif content:
            content[at] = 0 if what == "zero" else content[at] ^ (1 << draw(st.integers(0, 7)))
    return bytes(content)


CSV = b"image,subject,age\na.png,ann,4\nb.png,bob,5\na.png,bob,4.5\n"


@pytest.mark.long("fuzzing")
@settings(max_examples=300)
@given(content=mutated(CSV))
def test_mutated_csv(tmp_path_factory, content):
    folder = tmp_path_factory.getbasetemp() / "mutated-csv"
    folder.mkdir(exist_ok=True)
    for row, name in enumerate(("a.png", "b.png")):
        if not (folder / name).exists():
            _save(folder / name, _pixels(row))
    (folder / "t.csv").write_bytes(content)
    try:
        data = open_table(folder / "t.csv")
        images = data.fetch(range(len(data)))["image"]
    except SetsupError:
        return
    names = [line.split(b",")[0].strip(b' "\t\r') for line in content.splitlines()[1:] if line.strip()]
    if content.startswith(b"image,") and all(name in (b"a.png", b"b.png") for name in names):
        assert np.array_equal(images, [_pixels(int(name == b"b.png")) for name in names])


def _encoded(name):
    stream = io.BytesIO()
    image = Image.fromarray(np.tile(np.arange(16, dtype=np.uint8)[:, None, None] * 8, (1, 16, 3)))
    image.save(stream, name)
    return stream.getvalue()


@pytest.mark.long("fuzzing")
@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@settings(max_examples=150)
@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP"])
@given(data=st.data())
def test_mutated_images(name, data):
    content = data.draw(mutated(_encoded(name)))
    try:
        found = header(content, "some.image")
        image = decode(content, "some.image", 3, (4, 4))
    except SetsupError as error:
        if "some.image" not in str(error):
            raise
    else:
        assert found.height > 0
        assert image.shape == (4, 4, 3)


@pytest.mark.long("fuzzing")
@settings(max_examples=150)
@given(data=st.data())
def test_mutated_parquet(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp() / "mutated-parquet"
    folder.mkdir(exist_ok=True)
    path = folder / "good.parquet"
    if not path.exists():
        good = [_png(_pixels(row)) for row in range(3)]
        pq.write_table(pa.table({"image": good, "label": ["a", "b", "a"]}), path)
    (folder / "bad.parquet").write_bytes(data.draw(mutated(path.read_bytes())))
    try:
        table = open_table(folder / "bad.parquet")
        table.fetch(range(len(table)))
    except SetsupError:
        return


@pytest.mark.long("large or genuine files")
@pytest.mark.parametrize("workers", ["thread", 2])
def test_an_image_that_breaks_while_loading_is_named_with_its_mend(tmp_path, workers):
    from setsup import SetSampler, loader

    for number in range(6):
        noise = np.random.default_rng(number).integers(0, 256, (64, 64, 3), dtype=np.uint8)  # so that half has pixels
        Image.fromarray(noise).save(tmp_path / f"{number}.png")
    (tmp_path / "photos.csv").write_text("path,subject\n" + "".join(f"{n}.png,{n % 2}\n" for n in range(6)))
    photos = open_table(tmp_path / "photos.csv")
    batches = loader(photos, SetSampler(photos.factors, inactive=["subject"], size=3), workers=workers, to="numpy")
    whole = (tmp_path / "3.png").read_bytes()
    (tmp_path / "3.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"3\.png \(row 3\) could not be decoded.*; replace or remove it"):
        list(zip(batches, range(20), strict=False))
    (tmp_path / "3.png").unlink()
    with pytest.raises(DataError, match=r"3\.png \(row 3\) is missing; add it, or remove its row"):
        list(zip(batches, range(20), strict=False))
    position = batches.state_dict()["delivered"]
    (tmp_path / "3.png").write_bytes(whole)
    assert next(iter(batches))["step"] == position  # nothing is lost
