"""Captures with COLMAP models, written here: known points fall on the pixels that observe them."""

import contextlib
import pickle
import struct
import zipfile

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets import open_capture
from setsup.datasets.own.captures.colmap import ColmapFrames
from setsup.errors import DataError
from setsup.opening import find_kind
from tests import capture_files as true
from tests.fuzzing import survives
from tests.true_files.rings import marks, project


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures") / "box"
    folder.mkdir()
    true.write_colmap(folder)
    return folder


def check(found, lens="PINHOLE", undistorted=True):
    """Poses, intrinsics, images, observations and points of a capture of one scene."""
    assert isinstance(found, ColmapFrames)
    whole = found.fetch(range(len(found)))
    assert len(found) == len(true.AZIMUTHS)
    assert [path.rpartition("/")[2] for path in found.paths(range(len(found)))] == sorted(true.pictures(lens))
    assert np.allclose(whole["pose"], true.poses(), atol=1e-5)
    assert np.allclose(whole["intrinsics"], true.intrinsics(lens), atol=1e-4)
    points = found.points(0)
    assert points.ids.tolist() == [true.point_id(number) for number in range(len(true.cloud()))]
    assert np.allclose(points.xyz, true.world(true.cloud()))
    assert points.rgb[:3].tolist() == [[0, 0, 255], [1, 2, 255], [2, 4, 255]]
    assert points.errors[0] == 0.5
    assert points.views[:2].tolist() == [5, 5]
    for row in range(len(found)):
        pixels, ids = found.observations(row)
        assert true.point_id(row) not in ids
        assert len(ids) == len(points.ids) - 1
        xyz = points.xyz[np.searchsorted(points.ids, ids)]
        pinhole = project(xyz, whole["pose"][row].astype(float), whole["intrinsics"][row].astype(float))
        seen = np.delete(true.observed(true.poses()[row], lens), row, axis=0) - 0.5
        assert np.allclose(pixels, pinhole if undistorted else seen, atol=1e-3)
        assert not undistorted or true.shown(
            true.world(marks()), whole["image"][row], whole["pose"][row], whole["intrinsics"][row]
        )
    return whole


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("model", ["sparse/0", "sparse", "colmap/sparse/0", "."])
def test_where_models_are(tmp_path, text, model):
    true.write_colmap(tmp_path, text=text, model=model)
    true.put(tmp_path / model, {"rigs.bin": b"\xff", "frames.bin": b"\xff", "rigs.txt": b"1 2", "frames.txt": b"-"})
    assert find_kind(tmp_path) == "capture"
    found = setsup.open(tmp_path)
    whole = check(found)
    assert found.factors.values("scene").tolist() == [tmp_path.name] * 6
    assert found.factors.values("frame").tolist() == list(range(6))
    for row, content in enumerate(true.pictures().values()):
        assert np.array_equal(whole["image"][row], np.asarray(Image.open(true.io.BytesIO(content))))
    assert np.allclose((found.factors.values("azimuth") - true.AZIMUTHS + 180) % 360, 180, atol=1e-3)
    assert np.allclose(found.factors.values("elevation"), 25, atol=1e-3)
    assert np.allclose(found.factors.values("distance"), 3 * true.SCALE, atol=1e-4)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("lens", [name for name, (_, bend) in true.LENSES.items() if bend])
def test_distorted_images_are_undistorted(tmp_path, lens, text):
    true.write_colmap(tmp_path, lens, text=text)
    found = setsup.open(tmp_path)
    assert "distortion" not in found.modalities
    check(found, lens)
    stored = setsup.open(tmp_path, undistort=False)
    whole = check(stored, lens, undistorted=False)
    assert np.allclose(whole["distortion"], true.distortion(lens), atol=1e-6)
    for row, content in enumerate(true.pictures(lens).values()):
        assert np.array_equal(whole["image"][row], np.asarray(Image.open(true.io.BytesIO(content))))


@pytest.mark.parametrize("lens", ["PINHOLE", "OPENCV"])
@pytest.mark.parametrize("size", [(60, 60), (45, 60), (100, 150)])
def test_another_size(tmp_path, lens, size):
    """Discs and observations are where the cameras of the resized images say."""
    true.write_colmap(tmp_path, lens)
    found = setsup.open(tmp_path, size=size)
    whole = found.fetch(range(6))
    assert whole["image"].shape == (6, *size, 3)
    points = found.points(0)
    for row in range(6):
        pose, k = whole["pose"][row].astype(float), whole["intrinsics"][row].astype(float)
        assert true.shown(true.world(marks()), whole["image"][row], pose, k)
        pixels, ids = found.observations(row)
        assert np.allclose(pixels, project(points.xyz[np.searchsorted(points.ids, ids)], pose, k), atol=1e-3)


def test_smaller_copies_of_the_images(release, tmp_path):
    true.write_colmap(tmp_path)
    for name, content in true.pictures().items():
        small = Image.open(true.io.BytesIO(content)).reduce(2)
        true.put(tmp_path, {f"images_2/{name}": true.png(small)})
    found = setsup.open(tmp_path, images="images_2")
    whole = found.fetch(range(6))
    assert whole["image"].shape == (6, 45, 60, 3)
    assert np.allclose(whole["intrinsics"][0, :2, :2], true.K[:2, :2] / 2, atol=1e-4)
    assert all(
        true.shown(true.world(marks()), *(whole[name][row] for name in ("image", "pose", "intrinsics")))
        for row in range(6)
    )
    with pytest.raises(DataError, match=r"images='\.\./\.\./x' leads out of the capture; pass a folder relative"):
        setsup.open(tmp_path, images="../../x")
    with pytest.raises(DataError, match=r"none of its 6 images was found, such as 'frame_00.png', in images_8/"):
        setsup.open(tmp_path, images="images_8")


def test_several_models_and_captures(tmp_path):
    """A scene for each model: their worlds differ, and an image may be in several."""
    for capture in ("box", "other"):
        true.put(tmp_path / capture / "images", true.pictures())
    for number in (0, 1):
        true.put(tmp_path / "box" / "sparse" / str(number), true.binary_model())
    true.put(tmp_path / "other" / "sparse", true.text_model())
    true.put(tmp_path / "other" / "sparse" / "0", true.text_model())  # merged into that of sparse
    assert find_kind(tmp_path) == "capture"
    found = setsup.open(tmp_path)
    assert found.factors["scene"].levels == ("box/0", "box/1", "other")
    assert found.factors.values("frame").tolist() == [*range(6)] * 3
    one = setsup.open(tmp_path / "box")
    assert one.factors["scene"].levels == ("0", "1")
    assert one.name == "box"
    other = found.where("scene == 'other'")
    assert np.array_equal(other.observations(2)[0], found.observations(14)[0])
    assert other.paths([0]) == ["other/images/frame_00.png"]
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.observations(7)[1], found.observations(7)[1])
    assert np.array_equal(again.fetch([7])["image"], found.fetch([7])["image"])


def test_a_deflated_zip(release, tmp_path):
    with zipfile.ZipFile(tmp_path / "box.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for path in release.rglob("*.*"):
            file.write(path, path.relative_to(release))
    check(open_capture(tmp_path / "box.zip"))


def test_masks(tmp_path):
    true.write_colmap(tmp_path)
    picture = np.zeros((90, 120), np.uint8)
    picture[:, 60:] = 7
    true.put(tmp_path, {"masks/frame_01.png.png": true.png(Image.fromarray(picture))})
    true.put(tmp_path, {"masks/frame_02.png": true.png(Image.fromarray(picture[::2, ::2]))})
    found = setsup.open(tmp_path)
    masks = found.fetch([1, 2], ["object_mask"])["object_mask"]
    assert masks.shape == (2, 90, 120)
    assert (masks == 255 * (picture > 0)).all()
    with pytest.raises(DataError, match=r"row 0 \(images/frame_00.png\) has no object_mask; select other rows"):
        found.fetch([0], ["object_mask"])


def test_grey_images(tmp_path):
    true.write_colmap(tmp_path, "SIMPLE_RADIAL")
    for name, content in true.pictures("SIMPLE_RADIAL").items():
        true.put(tmp_path / "images", {name: true.png(Image.open(true.io.BytesIO(content)).convert("L"))})
    found = setsup.open(tmp_path)
    assert found.modalities["image"].shape == (90, 120, 1)
    assert found.fetch(0)["image"].shape == (90, 120, 1)


def test_missing_images_are_told(tmp_path, caplog):
    true.write_colmap(tmp_path)
    for frame in (1, 4):
        (tmp_path / "images" / true.image_name(frame)).unlink()
    assert len(setsup.open(tmp_path)) == 4
    [line] = caplog.messages
    assert "2 of the 6 listed images are missing" in line
    assert "frame_01.png" in line
    for path in (tmp_path / "images").iterdir():
        path.unlink()
    with pytest.raises(
        DataError, match=r"images.bin: none of its 6 images was found, such as .*; open the folder that"
    ):
        setsup.open(tmp_path)


def test_cameras_that_look_outward_have_no_azimuth(tmp_path):
    """About the centre of a scene that cameras look away from, angles mean nothing."""
    outward = true.poses() @ np.diag([-1.0, 1, -1, 1])
    text = "5 PINHOLE 120 90 100 100 60 45\n", ""
    lines = []
    for frame, pose in enumerate(outward):
        x, y, z, w = true.Rotation.from_matrix(pose[:3, :3].T).as_quat()
        shift = (-pose[:3, :3].T @ pose[:3, 3]).tolist()
        lines.append(f"{frame} {w} {x} {y} {z} {shift[0]} {shift[1]} {shift[2]} 5 {true.image_name(frame)}\n\n")
    true.put(tmp_path / "images", true.pictures())
    true.put(tmp_path / "sparse", {"cameras.txt": text[0].encode(), "images.txt": "".join(lines).encode()})
    found = setsup.open(tmp_path)
    assert np.isnan(found.factors.values("azimuth")).all()
    assert all(len(array) == 0 for array in found.observations(0))
    with pytest.raises(DataError, match=r"sparse/ has no points3D.bin or points3D.txt; add the file"):
        found.points(0)


# -- what is refused ---------------------------------------------------------------------------------------------------


def refused(folder, words, read=setsup.open):
    with pytest.raises(DataError, match=words) as error:
        read(folder)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("code", true.REFUSED)
def test_other_lenses_are_refused_by_name(tmp_path, code):
    name, count = true.REFUSED[code]
    true.write_colmap(tmp_path)
    words = f"camera 5 has the camera model {name}; supported models are SIMPLE_PINHOLE, .*; undistort the images"
    binary = struct.pack("<QIiQQ", 1, 5, code, 120, 90) + struct.pack(f"<{count}d", *[1.0] * count)
    true.put(tmp_path / "sparse" / "0", {"cameras.bin": binary})
    refused(tmp_path, words)
    for path in (tmp_path / "sparse" / "0").iterdir():
        path.unlink()
    text = true.text_model() | {"cameras.txt": f"5 {name} 120 90 {' '.join(['1'] * count)}\n".encode()}
    true.put(tmp_path / "sparse" / "0", text)
    refused(tmp_path, words)


def changed(files, name, old, new):
    assert old in files[name], old
    return {name: files[name].replace(old, new, 1)}


@pytest.mark.parametrize("text", [False, True])
def test_damaged_models(tmp_path, text):
    true.put(tmp_path / "images", true.pictures())
    model = tmp_path / "sparse" / "0"
    files, end = (true.text_model(), "txt") if text else (true.binary_model(), "bin")
    nan = b"nan" if text else struct.pack("<d", np.nan)
    first = repr(float(true.entries()[0][1][0])).encode() if text else struct.pack("<d", true.entries()[0][1][0])
    focal = b"110.0" if text else struct.pack("<d", 110.0)
    zero = b"0" if text else bytes(8)
    number = b"5 PINHOLE" if text else struct.pack("<QI", 1, 5)
    other = b"6 PINHOLE" if text else struct.pack("<QI", 1, 6)
    for damage, words in (
        (changed(files, f"images.{end}", b"frame_03.png", b"frame_02.png"), "lists the image 'frame_02.png' twice"),
        (changed(files, f"images.{end}", first, nan), r"has the pose \[nan, .*expected finite numbers that start with"),
        (changed(files, f"images.{end}", first, zero), "expected finite numbers that start with a unit quaternion"),
        (changed(files, f"cameras.{end}", focal, nan), "finite parameters, the focal lengths positive"),
        (changed(files, f"cameras.{end}", focal, zero), "finite parameters, the focal lengths positive"),
        (changed(files, f"cameras.{end}", number, other), "refers to the camera 5, which is not in .*cameras"),
    ):
        true.put(model, files | damage)
        refused(tmp_path, words)


def test_a_camera_that_is_listed_twice(tmp_path):
    true.write_colmap(tmp_path, text=True)
    line = b"5 PINHOLE 120 90 100 100 60 45\n"
    true.put(tmp_path / "sparse" / "0", {"cameras.txt": 2 * line})
    refused(tmp_path, "lists the camera 5 twice; expected each number once")


@pytest.mark.parametrize("text", [False, True])
def test_a_number_that_is_listed_twice(tmp_path, text):
    """Of images and of points; observations and tracks would refer to either."""
    true.put(tmp_path / "images", true.pictures())
    model = tmp_path / "sparse" / "0"
    files, end = (true.text_model(), "txt") if text else (true.binary_model(), "bin")
    one, other = (f"{number} " if text else struct.pack("<I", number) for number in (8, 7))  # of the first two images
    one, other = (part.encode() if isinstance(part, str) else part for part in (one, other))
    content = files[f"images.{end}"]
    at = content.index(b"\n" + other, content.index(b"frame_05")) + 1 if text else content.index(other, 80)
    images = content[:at] + one + content[at + len(other) :]
    true.put(model, files | {f"images.{end}": images})
    refused(
        tmp_path, "lists the images 'frame_05.png' and 'frame_04.png' with the number 8; expected each number once;"
    )
    first, second = (
        f"\n{true.point_id(at)} ".encode() if text else struct.pack("<Q", true.point_id(at)) for at in (0, 1)
    )
    true.put(model, files | changed(files, f"points3D.{end}", second, first))
    refused(tmp_path, "lists the point 1000 twice; expected each number once; write the model again", everything)


def test_points_whose_number_is_no_integer(tmp_path):
    true.put(tmp_path / "images", true.pictures())
    files = true.text_model()
    for name in ("points3D.txt", "images.txt"):
        true.put(tmp_path / "sparse" / "0", files | changed(files, name, b"1007", b"1007.5"))
        refused(tmp_path, rf"{name}.* 1007\.5.*; expected an integer", everything)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("model", ["sparse/0", "sparse", "colmap/sparse", "."])
def test_an_incomplete_model(tmp_path, text, model):
    """Each lack is named, whether the capture is opened, a folder above it, or the model's own folder."""
    end = "txt" if text else "bin"
    files = true.text_model() if text else true.binary_model()
    for number, (lacking, there, says) in enumerate(
        (("cameras", "images", "the cameras of its images"), ("images", "cameras", "the poses of its images"))
    ):
        capture = tmp_path / f"{number}" / "box"
        true.put(capture / "images", true.pictures())
        true.put(capture / model, {name: content for name, content in files.items() if lacking not in name})
        for folder in (capture, capture / model, capture.parent):
            if folder == capture.parent and model == "colmap/sparse":
                continue
            assert find_kind(folder) == "capture"
            refused(
                folder,
                rf"has {there}\.{end}, but neither {lacking}\.bin nor {lacking}\.txt, which contains {says}; "
                "write the model again, or add the file",
            )


def test_an_incomplete_model_beside_others(tmp_path, caplog):
    true.write_colmap(tmp_path)
    true.put(tmp_path / "sparse" / "1", {"images.bin": true.binary_model()["images.bin"]})
    check(setsup.open(tmp_path))
    [line] = caplog.messages
    assert "sparse/1/ has images.bin, but neither cameras.bin nor cameras.txt" in line
    assert line.endswith("it is left out")


def test_a_folder_of_images_with_a_list(tmp_path):
    """A list of images has the name of a file of a model."""
    for name, content in true.pictures().items():
        true.put(tmp_path / name[:8], {name: content})
    true.put(tmp_path, {"images.txt": b"1 a.png", "cameras.txt": b""})
    assert find_kind(tmp_path) == "capture"
    (tmp_path / "cameras.txt").unlink()
    assert find_kind(tmp_path) == "images"


@pytest.mark.parametrize("size", [(90, 100), (90, 60), (80, 120)])
def test_images_of_another_size(tmp_path, size):
    true.write_colmap(tmp_path)
    true.put(tmp_path / "images", {"frame_03.png": true.png(Image.new("RGB", size[::-1]))})
    refused(
        tmp_path,
        rf"frame_03.png \(row 3\) is {size[0]} × {size[1]} pixels .*, but its camera was calibrated for 90 × 120",
    )


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("text", [False, True])
def test_truncated_files(tmp_path, text):
    """Cut off anywhere, cameras and images are refused when the capture is opened, points when they are read."""
    true.put(tmp_path / "images", true.pictures())
    files = true.text_model() if text else true.binary_model()
    model = tmp_path / "sparse" / "0"
    for name, content in files.items():
        cuts = range(0, len(content) - 1, max(1, len(content) // 40))
        for cut in cuts:
            true.put(model, files | {name: content[:cut]})
            # a text that ends with a line, or in a number, is another text; that images are missing is noticed
            if text and (not name.startswith("images") or cut > content.rstrip().rfind(b"\n")):
                with contextlib.suppress(DataError):
                    everything(tmp_path)
            else:
                refused(tmp_path, "truncated|lists no images|but its comment says|expected", everything)


def everything(folder):
    """Read all there is of a capture."""
    found = setsup.open(folder)
    found.fetch([0, len(found) - 1])
    return [found.observations(row) for row in range(len(found))], found.points(0)


def test_cameras_of_both_kinds(tmp_path):
    true.write_colmap(tmp_path)
    true.put(tmp_path, {"transforms.json": true.transforms([f"images/{true.image_name(frame)}" for frame in range(6)])})
    refused(tmp_path, "contains COLMAP models and transforms.json; choose the cameras with cameras='colmap' or ")
    check(setsup.open(tmp_path, cameras="colmap"))


def test_a_folder_without_cameras(tmp_path):
    true.put(tmp_path, true.pictures())
    refused(tmp_path, "has no cameras; expected cameras.bin and images.bin", open_capture)


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize(
    "name", ["cameras.bin", "images.bin", "points3D.bin", "cameras.txt", "images.txt", "points3D.txt"]
)
def test_any_bytes(tmp_path, name):
    true.write_colmap(tmp_path, "OPENCV", text=name.endswith("txt"))
    file = tmp_path / "sparse" / "0" / name

    def read(content):
        file.write_bytes(content)
        everything(tmp_path)

    healthy = file.read_bytes()
    assert survives(healthy, read, 16, slack=12 << 20) > 3
