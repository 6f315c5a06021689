import io
import logging
import shutil
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import setsup
from setsup.datasets.benchmarks import celeba
from setsup.datasets.benchmarks.celeba.annotations import read_annotation
from setsup.datasets.benchmarks.celeba.dataset import ATTRIBUTES, CelebA
from setsup.datasets.benchmarks.celeba.frame import Frame
from setsup.errors import DataError, RowError
from setsup.evaluation import group_accuracy
from setsup.files import load_manifest
from setsup.files.archives.members import open_members
from tests.true_files.celeba import ATTRIBUTES as PUBLISHED
from tests.true_files.celeba import PERSONS, faces, jpeg, kaggle, texts, write

EVERY = faces()


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("celeba")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def whole(release):
    return celeba.open(release)


def _images(folder, count=5, size=(178, 218), kind="jpg", first=1):
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        Image.new("RGB", size, (number, 0, 0)).save(folder / f"{number:06}.{kind}")


def _decoded(face):
    return np.asarray(Image.open(io.BytesIO(jpeg(face))))


def test_the_groups_of_group_dro(release):
    found = setsup.load("celeba", release, split="test")
    group = ["blond_hair", "male"]
    there = [face for face in EVERY if face.part == 2]
    counted = Counter(("Blond_Hair" in face.has, "Male" in face.has) for face in there)
    # whoever takes women for blond is right about blond women and dark men
    women = ~found.factors.values("male").astype(bool)
    report = group_accuracy(women == found.factors.values("blond_hair"), found.factors, group)
    assert report.rows.tolist() == [counted[key] for key in sorted(counted)]
    assert report.accuracy.tolist() == [float(blond != male) for blond, male in sorted(counted)]
    assert report.worst == 0


# -- factors -----------------------------------------------------------------------------------------------------------


def test_factors_say_what_the_texts_say(release, whole):
    read = {
        name: pd.read_csv(release / folder / f"{name}.txt", sep=r"\s+", header=None, skiprows=skipped, index_col=0)
        for folder, name, skipped in (
            ("Anno", "identity_CelebA", 0),
            ("Anno", "list_attr_celeba", 2),
            ("Eval", "list_eval_partition", 0),
        )
    }
    table = whole.factors
    assert len(table) == len(EVERY) == 69
    names = [Path(path).name for path in whole.paths(range(69))]
    assert names == list(read["identity_CelebA"].index)
    assert table.values("number").tolist() == list(range(1, 70))
    assert table.values("identity").tolist() == read["identity_CelebA"][1].tolist()
    assert table["identity"].levels == tuple(sorted(PERSONS))
    for place, published in enumerate(PUBLISHED, 1):
        told = (read["list_attr_celeba"][place] == 1).tolist()
        assert table.values(ATTRIBUTES[published]).tolist() == told, published
    parts = {0: "train", 1: "valid", 2: "test"}
    assert table.values("split").tolist() == [parts[code] for code in read["list_eval_partition"][1]]
    assert table.values("face_found").tolist() == [any(face.outline) for face in EVERY]


def test_attributes_can_stand_in_expressions(whole):
    assert list(ATTRIBUTES) == PUBLISHED
    assert all(name.isidentifier() and name == name.lower() for name in ATTRIBUTES.values())
    assert ATTRIBUTES["5_o_Clock_Shadow"] == "five_o_clock_shadow"
    told = {factor.name: factor.description for factor in load_manifest("celeba").factors}
    assert all(told[name] == published for published, name in ATTRIBUTES.items())
    found = whole.where("smiling == True and five_o_clock_shadow == False and not eyeglasses == True")
    assert len(found) == sum("Smiling" in face.has and "Eyeglasses" not in face.has for face in EVERY)


def test_the_parts_of_dcodr(release):
    found = {part: setsup.load("celeba", release, split=f"dcodr-{part}") for part in ("train", "test")}
    expected = {}
    for part, code, fewest in (("train", 0, 20), ("test", 2, 2)):
        counts = Counter(face.person for face in EVERY if face.part == code)
        expected[part] = [face.person for face in EVERY if face.part == code and counts[face.person] >= fewest]
    assert {part: kept.factors.values("identity").tolist() for part, kept in found.items()} == expected
    assert set(expected["train"]) == {2880, 8692}
    assert set(expected["test"]) == {4153}
    assert len(setsup.load("celeba", release, split="dcodr")) == 46


def test_published_parts(release):
    for part, code in (("train", 0), ("valid", 1), ("test", 2)):
        assert len(setsup.load("celeba", release, split=part)) == sum(face.part == code for face in EVERY)


def test_persons_of_twenty_images_and_more(whole):
    """What the page of the dataset says about filters by the size of a group."""
    table = whole.factors
    kept = whole.where("count(identity) >= 20")
    assert set(kept.factors.values("identity").tolist()) == {2880, 8692}
    draw = setsup.DomainSampler(table, "identity", sets=2, size=20, on_small_group="drop")[3]
    assert set(table.values("identity", draw.indices).reshape(-1).tolist()) == {2880, 8692}


# -- pictures and landmarks --------------------------------------------------------------------------------------------


def test_pictures(whole):
    assert whole.modalities["image"].shape == (218, 178, 3)
    assert whole.cpu_bound
    for rows in ([[3, 68], [3, 0]], [], 7, [[]], list(range(20))):
        found = whole.fetch(rows)["image"]
        assert found.shape == (*np.shape(rows), 218, 178, 3)
        expected = [_decoded(EVERY[row]) for row in np.asarray(rows, int).reshape(-1)]
        assert all(map(np.array_equal, found.reshape(-1, 218, 178, 3), expected))
    with pytest.raises(RowError):
        whole.fetch([69])


def test_the_crop_of_lord_and_dcodr(release):
    small = celeba.open(release, crop=(128, 128), size=(64, 64))
    assert small.modalities["image"].shape == (64, 64, 3)
    rows = np.array([[3, 60], [3, 0]])
    found = small.fetch(rows)["image"].reshape(-1, 64, 64, 3)
    for image, row in zip(found, rows.reshape(-1), strict=True):
        crop = _decoded(EVERY[row])[45:173, 25:153].astype(int)
        means = (crop[::2, ::2] + crop[1::2, ::2] + crop[::2, 1::2] + crop[1::2, 1::2] + 2) // 4
        assert np.array_equal(image, means)
    out = np.zeros((2, 2, 64, 64, 3), np.uint8)
    small.fetch_into(rows, {"image": out})
    assert np.array_equal(out.reshape(-1, 64, 64, 3), found)
    strided = np.zeros((2, 4, 64, 64, 3), np.uint8)[:, ::2]
    small.fetch_into(rows, {"image": strided})
    assert np.array_equal(strided, out)


def test_the_published_programs_resize_so(release):
    cv2 = pytest.importorskip("cv2")
    small = celeba.open(release, crop=(128, 128), size=(64, 64))
    for row in (0, 33, 68):
        expected = cv2.resize(np.ascontiguousarray(_decoded(EVERY[row])[45:173, 25:153]), dsize=(64, 64))
        assert np.array_equal(small.fetch(row)["image"], expected)


@pytest.mark.parametrize("crop", [None, (128, 128), (101, 77), (218, 178)])
def test_crops(release, crop):
    height, width = crop or (218, 178)
    found = celeba.open(release, crop=crop).fetch([5])["image"][0]
    top, left = (218 - height) // 2, (178 - width) // 2
    assert np.array_equal(found, _decoded(EVERY[5])[top : top + height, left : left + width])


def test_landmarks_of_the_aligned_image(release, whole):
    text = (release / "Anno" / "list_landmarks_align_celeba.txt").read_text().splitlines()
    expected = np.array([line.split()[1:] for line in text[2:]], float).reshape(-1, 5, 2)
    found = whole.fetch([[68, 0], [5, 5]])["landmarks"]
    assert found.dtype == np.float32
    assert np.array_equal(found, expected[[[68, 0], [5, 5]]])
    out = np.zeros((2, 5, 2), np.float32)
    whole.fetch_into([1, 2], {"landmarks": out})
    assert np.array_equal(out, expected[1:3])


@given(
    crop=st.none() | st.tuples(st.integers(60, 218), st.integers(60, 178)),
    size=st.none() | st.tuples(st.integers(30, 300), st.integers(30, 300)),
    spot=st.tuples(st.floats(-8, 8), st.floats(-8, 8)),
)
def test_points_are_where_the_picture_shows_them(crop, size, spot):
    frame = Frame(crop, size)
    centre = np.array([88.5, 108.5]) + spot
    y, x = np.mgrid[:218, :178]
    blob = 250 * np.exp(-((x - centre[0]) ** 2 + (y - centre[1]) ** 2) / (2 * 4**2))
    shown = frame.apply(np.repeat(np.rint(blob)[..., None], 3, axis=2).astype(np.uint8))[..., 0].astype(float)
    assert shown.shape == frame.shape
    expected = frame.points(centre)
    edge = np.concatenate([shown[[0, -1]].reshape(-1), shown[:, [0, -1]].reshape(-1)])
    if edge.max() > 2:
        return  # the blob is cut, and its centre with it
    y, x = np.mgrid[: shown.shape[0], : shown.shape[1]]
    seen = np.array([(x * shown).sum(), (y * shown).sum()]) / shown.sum()
    np.testing.assert_allclose(seen, expected, atol=0.12)


@given(st.tuples(st.floats(-50, 250), st.floats(-50, 250)), st.tuples(st.integers(1, 218), st.integers(1, 178)))
def test_points_go_there_and_back(point, crop):
    frame, aligned = Frame(crop, (50, 50)), Frame()
    np.testing.assert_allclose(aligned.points(frame.points(np.array(point)), frame), point, atol=1e-6)


def test_68_landmarks_are_carried_along(release, whole):
    outlines = np.array([face.outline for face in EVERY], np.float32).reshape(-1, 68, 2)
    outlines[(outlines == 0).all(axis=(1, 2))] = np.nan
    small = celeba.open(release, crop=(128, 128), size=(64, 64))
    rows = np.arange(69).reshape(3, 23)
    assert np.array_equal(small.fetch(rows)["landmarks68"], outlines[rows], equal_nan=True)
    np.testing.assert_allclose(whole.fetch(rows)["landmarks68"], outlines[rows] * 2 + 0.5 + [25, 45], atol=1e-4)
    cropped = celeba.open(release, crop=(128, 128))
    np.testing.assert_allclose(cropped.fetch(rows)["landmarks68"], outlines[rows] * 2 + 0.5, atol=1e-4)
    known = small.where("face_found == True")
    assert np.isfinite(known.fetch(range(len(known)))["landmarks68"]).all()


@pytest.mark.parametrize(
    "wrong", [{"crop": (219, 10)}, {"crop": (10, 179)}, {"crop": 128}, {"size": (0, 5)}, {"size": "64"}]
)
def test_crops_and_sizes_that_are_none(release, wrong):
    with pytest.raises(DataError, match=next(iter(wrong))):
        celeba.open(release, **wrong)


# -- releases ----------------------------------------------------------------------------------------------------------


def _layout(folder, release, layout):
    """Bring the release into another layout; gives the root."""
    with zipfile.ZipFile(release / "Img" / "img_align_celeba.zip") as file:
        if layout == "unpacked":
            shutil.copytree(release / "Anno", folder / "Anno")
            shutil.copytree(release / "Eval", folder / "Eval")
            file.extractall(folder / "Img")
        elif layout == "flat":
            for path in (*(release / "Anno").iterdir(), *(release / "Eval").iterdir()):
                shutil.copy(path, folder)
            shutil.copy(release / "Img" / "img_align_celeba.zip", folder)
        elif layout == "flat, unpacked, in its own folder":
            for path in (*(release / "Anno").iterdir(), *(release / "Eval").iterdir()):
                (folder / "celeba").mkdir(exist_ok=True)
                shutil.copy(path, folder / "celeba")
            file.extractall(folder / "celeba")
        elif layout == "png":
            (folder / "Img" / "img_align_celeba_png.7z" / "img_align_celeba_png").mkdir(parents=True)
            shutil.copytree(release / "Anno", folder / "Anno")
            shutil.copytree(release / "Eval", folder / "Eval")
            for face in EVERY:
                place = folder / "Img" / "img_align_celeba_png.7z" / "img_align_celeba_png" / face.name
                Image.fromarray(_decoded(face)).save(place.with_suffix(".png"))
        elif layout == "one tar":
            with tarfile.open(folder / "everything.tar", "w") as tar:
                tar.add(release / "Anno", "CelebA/Anno")
                tar.add(release / "Eval", "CelebA/Eval")
                file.extractall(folder / "part")
                tar.add(folder / "part", "CelebA/Img")
            shutil.rmtree(folder / "part")
        elif layout == "zip as root":
            shutil.copytree(release, folder / "all")
            return folder / "all" / "Img" / "img_align_celeba.zip"
    return folder


@pytest.mark.parametrize(
    "layout", ["unpacked", "flat", "flat, unpacked, in its own folder", "png", "one tar", "zip as root"]
)
def test_layouts(tmp_path, release, whole, layout):
    found = setsup.load("celeba", _layout(tmp_path, release, layout))
    assert found.factors.fingerprint == whole.factors.fingerprint
    assert list(found.modalities) == list(whole.modalities)
    rows = [0, 30, 68]
    for name, expected in whole.fetch(rows).items():
        assert np.array_equal(found.fetch(rows)[name], expected, equal_nan=name != "image")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("identities", [None, "txt", "csv"])
def test_the_copy_of_kaggle(tmp_path, whole, packed, identities):
    if packed:
        with zipfile.ZipFile(tmp_path / "archive.zip", "w") as file:
            for face in EVERY:
                file.writestr(f"img_align_celeba/img_align_celeba/{face.name}", jpeg(face))
            for name, text in kaggle().items():
                file.writestr(name, text)
    else:
        inner = tmp_path / "img_align_celeba" / "img_align_celeba"
        inner.mkdir(parents=True)
        for face in EVERY:
            (inner / face.name).write_bytes(jpeg(face))
        for name, text in kaggle().items():
            (tmp_path / name).write_text(text.replace("\n", "\r\n"), newline="")
    if identities:
        text = texts()["identity_CelebA.txt"]
        text = text if identities == "txt" else "image_id,identity\n" + text.replace(" ", ",")
        (tmp_path / f"identity_CelebA.{identities}").write_text(text)
    found = setsup.load("celeba", tmp_path)
    absent = {"face_found"} | (set() if identities else {"identity", "dcodr"})
    assert set(whole.factors.names) - set(found.factors.names) == absent
    for name in found.factors.names:
        assert found.factors.values(name).tolist() == whole.factors.values(name).tolist()
    assert list(found.modalities) == ["image", "landmarks"]
    assert np.array_equal(found.fetch([7])["image"], whole.fetch([7])["image"])
    assert np.array_equal(found.fetch([7])["landmarks"], whole.fetch([7])["landmarks"])
    assert len(setsup.load("celeba", tmp_path, split="test")) == 5


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_listed_images_that_are_not_there_are_left_out(tmp_path, release, whole, caplog, ending):
    shutil.copytree(release, tmp_path / "celeba")
    if ending == "csv":
        for text in ("Anno/list_landmarks_align_celeba.txt", "Eval/list_eval_partition.txt"):
            (tmp_path / "celeba" / text).unlink()
        rows = "".join(f"{number:06}.jpg,{part}\n" for number, part in enumerate((face.part for face in EVERY), 1))
        (tmp_path / "celeba" / "Eval" / "list_eval_partition.csv").write_text(f"image_id,partition\n{rows}")
    packed = tmp_path / "celeba" / "Img" / "img_align_celeba.zip"
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(packed.parent)
    packed.unlink()
    images = sorted(packed.parent.rglob("0*.jpg"))
    for image in images[1::3]:
        image.unlink()
    kept = np.flatnonzero(np.arange(len(images)) % 3 != 1)
    found = celeba.open(tmp_path / "celeba")
    assert ": 23 of the 69 listed images are missing (000002.jpg, 000005.jpg, 000008.jpg and" in caplog.text
    assert len(found) == len(kept) == 46
    # of persons too, who would have too few images for a part of DCoDR if only those that are there counted
    for name in found.factors.names:
        assert found.factors.values(name).tolist() == whole.factors.values(name, kept).tolist(), name
    for name in found.modalities:
        assert np.array_equal(
            found.fetch(np.arange(46), [name])[name], whole.fetch(kept, [name])[name], equal_nan=name != "image"
        )


@pytest.mark.parametrize("kept", sorted(texts()))
def test_one_annotation_is_enough(tmp_path, release, kept):
    shutil.copytree(release / "Img", tmp_path / "Img")
    (tmp_path / kept).write_text(texts()[kept])
    found = celeba.open(tmp_path)
    assert {
        "identity_CelebA.txt": {"identity"},
        "list_attr_celeba.txt": set(ATTRIBUTES.values()),
        "list_eval_partition.txt": {"split"},
        "list_landmarks_align_celeba.txt": set(),
        "list_landmarks68_celeba_x64.csv": {"face_found"},
    }[kept] == set(found.factors.names) - {"number"}
    assert len(found) == 69


def test_no_annotation_at_all(tmp_path, release):
    shutil.copytree(release / "Img", tmp_path / "Img")
    with pytest.raises(DataError, match=rf"list_attr_celeba.txt.*setsup fetch celeba --root {tmp_path}"):
        celeba.open(tmp_path)


def test_no_images(tmp_path):
    for name, text in texts().items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=r"img_align_celeba/000001\.jpg not found.*setsup fetch celeba"):
        celeba.open(tmp_path)


def test_images_in_the_wild_are_others(tmp_path):
    _images(tmp_path / "img_celeba", size=(400, 300))
    (tmp_path / "identity_CelebA.txt").write_text("".join(f"{number:06}.jpg 1\n" for number in range(1, 6)))
    with pytest.raises(DataError, match=r"img_align_celeba/000001\.jpg not found"):
        celeba.open(tmp_path)
    (tmp_path / "img_celeba").rename(tmp_path / "img_align_celeba")
    with pytest.raises(
        DataError,
        match=r"000001\.jpg \(row 0\) is 300 × 400 pixels .*expected 218 × 178, the size of the aligned images",
    ):
        celeba.open(tmp_path)


def test_an_image_of_two_kinds(tmp_path):
    _images(tmp_path / "img_align_celeba", 3)
    _images(tmp_path / "img_align_celeba", 1, kind="png", first=2)
    with pytest.raises(DataError, match=r"000002\.jpg and .*000002\.png have the same image number"):
        celeba.open(tmp_path)


def test_of_two_folders_of_images_one_is_taken(tmp_path, caplog):
    _images(tmp_path / "img_align_celeba", 5)
    _images(tmp_path / "img_align_celeba_png", 5, kind="png")
    (tmp_path / "identity_CelebA.txt").write_text("".join(f"{number:06}.jpg 1\n" for number in range(1, 6)))
    with caplog.at_level(logging.WARNING, "setsup"):
        found = celeba.open(tmp_path)
    assert found.paths([0, 4]) == ["img_align_celeba/000001.jpg", "img_align_celeba/000005.jpg"]


def test_the_genuine_texts(genuine, tmp_path):
    source = genuine / "celeba"
    if not source.is_dir():
        pytest.skip(f"no genuine files at {source}")
    _images(tmp_path / "img_align_celeba")
    for path in source.iterdir():
        shutil.copy(path, tmp_path)
    found = celeba.open(tmp_path)
    # the boxes and the landmarks in the wild are beside, and no part
    assert list(found.modalities) == ["image", "landmarks"]
    lines = (source / "list_landmarks_align_celeba.txt").read_text().splitlines()
    expected = [list(map(int, line.split()[1:])) for line in lines[2:]]
    assert found.fetch(range(5))["landmarks"].reshape(5, 10).tolist() == expected
    assert expected[0] == [69, 109, 106, 113, 77, 142, 73, 152, 108, 154]
    for name, columns in (("list_bbox_celeba", 5), ("list_landmarks_celeba", 10)):
        content = (source / f"{name}.txt").read_bytes()
        if name == "list_bbox_celeba":
            # its second line has a name for the column of the images, as no other
            with pytest.raises(DataError, match="has 5 columns; expected 4"):
                read_annotation(content, name, 4)
            continue
        wild = read_annotation(content, name, columns)
        assert wild.values.tolist() == [list(map(int, line.split()[1:])) for line in content.splitlines()[2:]]


# -- annotations that are wrong ----------------------------------------------------------------------------------------


def _opened(folder, name, text, count=5):
    if not (folder / "img_align_celeba").exists():
        _images(folder / "img_align_celeba", count)
    (folder / name).write_text(text)
    return celeba.open(folder)


GOOD = "".join(f"{number:06}.jpg {number}\n" for number in range(1, 6))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            GOOD.replace("000003.jpg 3\n", ""),
            r"has 4 entries for the 5 images of .*, but none for 000003\.jpg \(row 2\)",
        ),
        (GOOD.replace("000003", "000004"), r"line 4 repeats the entry for 000004\.jpg"),
        (GOOD.replace("000003.jpg 3", "000003.jpg"), r"line 3 is '000003\.jpg'; expected"),
        (GOOD.replace("000003.jpg 3", "000003.jpg 3 4"), "line 3 is"),
        (GOOD.replace("000003.jpg 3", "000003.jpg three"), "line 3 is"),
        (GOOD.replace("000003.jpg 3", "000003.jpg 3.5"), "line 3 is"),
        (GOOD.replace("000003.jpg 3", "000003.jpg 99999999999999"), "could not be parsed"),
        (GOOD.replace("000003.jpg 3", "../003.jpg 3"), "line 3 is"),
        (GOOD.replace("000003.jpg 3", ""), "line 3 is ''"),
        (GOOD.replace("000003.jpg 3", "000003.jpg 0"), "line 3 has 0; expected 1 to"),
        ("", "has no entries"),
        ("5\n" + GOOD, "line 1 is '5'"),
        ("<html>", "line 1 is '<html>'"),
    ],
)
def test_identities_that_are_wrong(tmp_path, text, words):
    with pytest.raises(DataError, match=rf"identity_CelebA\.txt.*{words}"):
        _opened(tmp_path, "identity_CelebA.txt", text)


def test_lines_in_another_order(tmp_path):
    found = _opened(tmp_path, "identity_CelebA.txt", "".join(reversed(GOOD.splitlines(keepends=True))))
    assert found.factors.values("identity").tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("69\n", "70\n", 1), "line 1 specifies 70 lines, but the file has 69"),
        (lambda text: text.replace("69\n", "many\n", 1), "line 1 is 'many'"),
        (lambda text: text.replace(" Young", "", 1), "line 2 has 39 columns; expected 40"),
        (lambda text: text.replace("Smiling", "Laughing", 1), "column 32 is named 'Laughing'; expected 'Smiling'"),
        (lambda text: text.replace(" -1 ", "  0 ", 1), "line 3 has 0; expected -1 or 1"),
        (lambda text: text.replace(" -1 ", "  2 ", 1), "line 3 has 2; expected -1 or 1"),
        (lambda text: text[: len(text) // 2], "line"),
        (lambda text: "", "line 1 is ''"),
    ],
)
def test_attributes_that_are_wrong(tmp_path, release, change, words):
    shutil.copytree(release / "Img", tmp_path / "Img")
    (tmp_path / "list_attr_celeba.txt").write_text(change(texts()["list_attr_celeba.txt"]))
    with pytest.raises(DataError, match=rf"list_attr_celeba\.txt.*{words}"):
        celeba.open(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace(" ", ","), r"line 1 is '000001\.jpg,1'; expected the names of columns, starting with image_id"),
        ("image_id,partition,more\n", "line 1 has 2 columns"),
        ("image_id,partition\n", "has no entries"),
        ("image_id,partition\n000001.jpg,3\n", "line 2 has 3; expected 0 to 2"),
        ("image_id,partition\n000001.jpg,\n", "line 2 is"),
        ("image_id,partition\n000001.jpg,1\n\n000002.jpg,1\n", "line 3 is ''"),
    ],
)
def test_a_csv_that_is_wrong(tmp_path, text, words):
    with pytest.raises(DataError, match=rf"list_eval_partition\.csv.*{words}"):
        _opened(tmp_path, "list_eval_partition.csv", text)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (["0"] * 135, "line 2 is"),
        (["0"] * 135 + ["x"], "line 2 is"),
        (["nan"] * 68 + ["1"] * 68, "row 0 has coordinates for only some of its landmarks"),
        (["1"] * 135 + ["1e99"], "row 0 has coordinates for only some of its landmarks"),
    ],
)
def test_68_landmarks_that_are_wrong(tmp_path, numbers, words):
    columns = ",".join(f"{axis}{point}" for point in range(68) for axis in "xy")
    with pytest.raises(DataError, match=rf"list_landmarks68_celeba_x64\.csv.*{words}"):
        _opened(tmp_path, "list_landmarks68_celeba_x64.csv", f"image_id,{columns}\n000001.jpg,{','.join(numbers)}\n", 1)


def test_68_landmarks_that_were_made_anew(tmp_path):
    columns = ",".join(f"{axis}{point}" for point in range(68) for axis in "xy")
    for value in ("1.5", "2.25", "nan"):
        text = f"image_id,{columns}\n000001.jpg,{','.join([value] * 136)}\n"
        found = _opened(tmp_path, "list_landmarks68_celeba_x64.csv", text, 1)
        assert found.factors.values("face_found").tolist() == [value != "nan"]
        expected = np.array([25, 45]) + np.full((68, 2), (float(value) + 0.5) * 2 - 0.5)
        assert np.array_equal(found.fetch(0)["landmarks68"], expected, equal_nan=True)


def test_what_python_reads_is_read_here():
    """Blanks and ends of lines as texts have them."""
    lines = ["000007.jpg\t-1   1 ", "000003.png  1 -1", " ".join(["000010.jpg", "  01", "1"])]
    for end in ("\n", "\r\n"):
        text = end.join(["3 ", "A  B ", *lines, "", ""]).encode()
        found = read_annotation(text, "x.txt", 2)
        assert found.images.tolist() == [7, 3, 10]
        assert found.values.tolist() == [[int(word) for word in line.split()[1:]] for line in lines]
        assert found.columns == ("A", "B")


def test_damaged_images(tmp_path):
    found = _opened(tmp_path, "identity_CelebA.txt", GOOD)
    (tmp_path / "img_align_celeba" / "000003.jpg").write_bytes(jpeg(EVERY[0])[:-300])
    with pytest.raises(DataError, match=r"000003\.jpg .*could not be decoded"):
        found.fetch(range(5))
    with pytest.raises(DataError, match=r"000003\.jpg .*could not be decoded"):
        celeba.open(tmp_path, crop=(20, 20)).fetch([[2]])


def test_the_class_takes_what_open_finds(release, whole):
    members = open_members(release / "Img" / "img_align_celeba.zip")
    bare = CelebA(members, np.arange(69), np.arange(1, 70), {"identity": release / "Anno" / "identity_CelebA.txt"})
    assert bare.factors.names == ("number", "identity")
    assert np.array_equal(bare.fetch([4])["image"], whole.fetch([4])["image"])
    assert repr(bare).startswith("CelebA(")
