"""MVImgNet: frames equal to the files, with cameras that show known points where they are."""

import io
import struct
import zipfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.correspondence import overlap
from setsup.errors import DataError, SetsupError
from tests.true_files import mvimgnet as true
from tests.true_files.rings import MARKS, marks, project


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mvimgnet")
    true.write(folder)
    return folder


def shows_marks(image, pose, k):
    """Whether discs are where the camera says, in COLMAP's world."""
    points = true.SCALE * true.TURN.apply(marks()) + true.SHIFT
    pixels = np.rint(project(points, pose.astype(float), k.astype(float))).astype(int)
    return np.abs(image[pixels[:, 1], pixels[:, 0]].astype(int) - np.array(list(MARKS.values()))).max() < 100


def check(found):
    rows, table = true.frames(), found.factors
    assert table.values("category").tolist() == [true.CATEGORIES[category] for category, *_ in rows]
    assert table.values("sequence").tolist() == [sequence for _, sequence, *_ in rows]
    assert table.values("frame").tolist() == [frame for *_, frame in rows]
    whole = found.fetch(range(len(found)))
    for row, (category, sequence, number, frame) in enumerate(rows):
        content = true.release()[f"{category}/{sequence}/images/{true.image_name(frame)}"]
        assert np.array_equal(whole["image"][row], np.asarray(Image.open(io.BytesIO(content))))
        if (category, sequence, frame) == true.LOST:
            assert all(np.isnan(whole[name][row]).any() for name in ("pose", "intrinsics", "distortion"))
            assert np.isnan(table.values("azimuth")[row])
            continue
        pose, k = true.poses(number)[frame], true.intrinsics(category)
        assert np.allclose(whole["pose"][row], pose, atol=1e-5)
        assert np.allclose(whole["intrinsics"][row], k, atol=1e-4)
        assert np.allclose(whole["distortion"][row], [0.0125 * (category == 7), 0, 0, 0])
        assert shows_marks(whole["image"][row], whole["pose"][row], whole["intrinsics"][row])
        # COLMAP's own formula: R X + t, then pixels from the corner of the image
        points = true.SCALE * true.TURN.apply(marks()) + true.SHIFT
        view = points @ pose[:3, :3] - pose[:3, :3].T @ pose[:3, 3]
        corner = view[:, :2] / view[:, 2:] * [k[0, 0], k[1, 1]] + [k[0, 2] + 0.5, k[1, 2] + 0.5]
        assert np.allclose(project(points, whole["pose"][row].astype(float), k), corner - 0.5, atol=1e-3)
        angles = true.azimuths(number)
        assert abs((table.values("azimuth")[row] - angles[frame] + angles[0] + 180) % 360 - 180) < 1e-3
        assert abs(table.values("elevation")[row] - 20 - 8 * number) < 1e-3
        assert abs(table.values("distance")[row] - 3 * true.SCALE) < 1e-4


def test_frames(release):
    check(setsup.load("mvimgnet", release))


def test_a_deflated_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "mvi_00.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in true.release().items():
            file.writestr(name, content)
    check(setsup.load("mvimgnet", tmp_path))


def test_another_size(release):
    found = setsup.load("mvimgnet", release, size=(60, 60))
    whole = found.fetch(range(len(found)))
    assert whole["image"].shape == (24, 60, 60, 3)
    rows = [row for row, frame in enumerate(true.frames()) if (*frame[:2], frame[3]) != true.LOST]
    assert all(shows_marks(*(whole[name][row] for name in ("image", "pose", "intrinsics"))) for row in rows)


def test_what_is_not_there(tmp_path):
    true.write(tmp_path)
    (tmp_path / "mvimgnet_category.txt").unlink()
    (tmp_path / "7" / "0801f4c3" / "sparse" / "0" / "cameras.bin").unlink()
    found = setsup.load("mvimgnet", tmp_path)
    assert found.factors["category"].levels == ("56", "7")
    unknown = [False] * 12 + [True] * 6 + [False, False, True] + [False] * 3
    assert np.isnan(found.factors.values("azimuth")).tolist() == unknown


def test_damaged_models(tmp_path):
    true.write(tmp_path)
    folder = tmp_path / "7" / "0801f4c3" / "sparse" / "0"
    cameras, images = true.cameras_bin(7), true.images_bin(7, "0801f4c3")
    unknown = struct.pack("<QiiQQ", 1, 1, 5, 80, 120) + bytes(64)
    for name, content, words in (
        ("cameras.bin", cameras[:-1], "cameras.bin ends inside an entry"),
        ("cameras.bin", b"\xff" * 60, "expected a binary COLMAP model"),
        ("cameras.bin", unknown, "has the camera model OPENCV_FISHEYE; supported models are SIMPLE_PINHOLE"),
        ("cameras.bin", cameras[:8] + b"\x02" + cameras[9:], "refers to the camera 1, which is not in cameras.bin"),
        ("images.bin", images[:50], "images.bin ends inside an entry"),
        (
            "images.bin",
            images[:12] + bytes(8) + images[20:],
            "image '026.jpg' has the pose .*; expected finite numbers .* unit quaternion; write the model",
        ),
        ("images.bin", b"", "images.bin ends inside an entry"),
    ):
        (folder / "cameras.bin").write_bytes(cameras)
        (folder / "images.bin").write_bytes(images)
        (folder / name).write_bytes(content)
        with pytest.raises(DataError, match=words):
            setsup.load("mvimgnet", tmp_path)
    true.write(tmp_path)
    (tmp_path / "mvimgnet_category.txt").write_text("7,stove\nbear\n")
    with pytest.raises(DataError, match="line 2 is not of the form 'number,name'"):
        setsup.load("mvimgnet", tmp_path)


def test_a_third_of_the_images_removed_is_told_at_every_opening(tmp_path, caplog):
    true.write(tmp_path)
    setsup.load("mvimgnet", tmp_path)
    assert caplog.messages == []
    images = sorted(tmp_path.rglob("*.jpg"))
    for image in images[::3]:
        image.unlink()
    for _ in range(2):  # read from the models, and from what is kept of them
        caplog.clear()
        assert len(setsup.load("mvimgnet", tmp_path)) == 16
        [line] = caplog.messages
        # 24 frames, of which COLMAP placed 23
        assert "8 of the 23 images that have cameras in its COLMAP models are missing" in line


def test_a_sequence_with_a_model_and_no_images_is_told(tmp_path, caplog):
    true.write(tmp_path)
    category, (sequence, *_) = next(iter(true.SEQUENCES.items()))
    for image in (tmp_path / str(category) / sequence / "images").iterdir():
        image.unlink()
    assert len(setsup.load("mvimgnet", tmp_path)) == 18
    [line] = caplog.messages
    assert f"1 of the 4 sequences with a COLMAP model have no images, such as {category}/{sequence}" in line


def test_a_category_without_a_name_is_told(tmp_path, caplog):
    true.write(tmp_path)
    names = tmp_path / "mvimgnet_category.txt"
    first, *others = names.read_text().splitlines(keepends=True)
    names.write_text("".join(others))
    number = first.partition(",")[0]
    assert number in setsup.load("mvimgnet", tmp_path).factors["category"].levels
    [line] = caplog.messages
    assert f"mvimgnet_category.txt lacks 1 of the 2 categories, such as {number}" in line


def test_a_list_of_names_that_is_cut_off_is_told(tmp_path, caplog):
    true.write(tmp_path)
    names = tmp_path / "mvimgnet_category.txt"
    whole = names.read_bytes()
    assert whole.endswith(b"toy bear\n")
    names.write_bytes(whole[: -len(b"y bear\n")])
    assert "to" in setsup.load("mvimgnet", tmp_path).factors["category"].levels
    [line] = caplog.messages
    assert "the last line of mvimgnet_category.txt ('to' for category 56) has no line break" in line
    caplog.clear()
    names.write_bytes(whole.replace(b"\n", b"\r\n"))
    assert "toy bear" in setsup.load("mvimgnet", tmp_path).factors["category"].levels
    assert caplog.messages == []


@pytest.mark.parametrize("size", [None, (60, 70)])
def test_points_that_frames_observe(release, size):
    """Beside the model as it was written: numbers, positions, and pixels where the camera of a row shows them."""
    found = setsup.load("mvimgnet", root=release, size=size)
    lost = [row[:2] + row[3:] for row in true.frames()].index(true.LOST)
    for row, (*_, frame) in enumerate(true.frames()):
        if row == lost:
            assert not len(found.observed(row))
            continue
        pixels, ids = found.observations(row)
        assert set(ids.tolist()) == {100 + point for point in true.observed(frame)}
        cloud = found.points(row)
        assert np.allclose(cloud.xyz, true.cloud())
        pose, k = (found.fetch(row)[name].astype(float) for name in ("pose", "intrinsics"))
        assert np.allclose(project(cloud.xyz[ids - 100], pose, k), pixels, atol=1e-2)
        height, width = found.modalities["image"].shape[:2]
        inside = (pixels >= -0.5).all(axis=1) & (pixels <= (width - 0.5, height - 0.5)).all(axis=1)
        assert set(found.observed(row).tolist()) == set(ids[inside].tolist())
    rows = [row for row in range(len(found)) if row != lost]
    table = overlap(found, rows=rows)
    assert len(table.counts) == 4
    seen = [set(found.observed(row).tolist()) for row in rows]
    for first, second, share in zip(table.first, table.second, table.overlap, strict=True):
        one, two = seen[rows.index(first)], seen[rows.index(second)]
        assert share == np.float32(len(one & two) / len(one)) or (np.isnan(share) and len(one) < 16)
    with pytest.raises(SetsupError, match=f"row {lost} of mvimgnet: a camera pose must be .*; leave the row out"):
        overlap(found)
