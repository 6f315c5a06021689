"""NAVI: images equal to their annotations, cameras as the published code projects, and matches as rays meet a box."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import setsup
from setsup.correspondence import Status
from setsup.correspondence.matching import Window, matched
from setsup.errors import DataError
from tests.fuzzing import survives
from tests.true_files import navi
from tests.true_files.rings import found_at_marks, marks

NAMES = list(navi.SCENES)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("navi")
    navi.write(folder)
    return folder


@pytest.fixture(scope="module")
def frames(release: Path) -> Any:
    return setsup.load("navi", release)


@pytest.fixture(scope="module")
def crops(release: Path) -> Any:
    return setsup.load("navi", release, crop=(72, 72))


def test_rows_are_annotated_images(release: Path, frames: Any) -> None:
    table = frames.factors
    said = [navi.annotation(*row) for row in navi.rows()]
    assert table.values("object").tolist() == [each["object_id"] for each in said]
    assert table.values("scene").tolist() == [each["scene_name"] for each in said]
    assert table.values("kind").tolist() == [each["scene_name"].partition("-")[0] for each in said]
    assert table.values("file").tolist() == [each["filename"].removesuffix(".jpg") for each in said]
    assert table.values("camera").tolist() == [each["camera"]["camera_model"] for each in said]
    assert table.values("occluded").tolist() == [each["occluded"] for each in said]
    assert table.values("split").tolist() == [each["split"] for each in said]
    for row, (thing, scene, image) in enumerate(navi.rows()):
        found, top = frames.fetch(row), release / NAMES[thing] / scene
        with Image.open(top / "images" / f"{image:03}.jpg") as photo:
            assert np.array_equal(found["image"], np.asarray(ImageOps.exif_transpose(photo)))
        assert found["image"].shape[:2] == navi.size_of(scene, image)
        with Image.open(top / "masks" / f"{image:03}.png") as mask:
            assert np.array_equal(found["object_mask"], np.asarray(mask))
        exact = navi.depth_of(*navi.camera(thing, scene, image), navi.grid(navi.size_of(scene, image))) / 1000
        there = np.isfinite(exact)
        assert np.array_equal(found["depth"] > 0, there)
        assert np.abs(found["depth"][there] - exact[there]).max() < 4.5e-4, "half a step of the disparity"


def published_pixels(said: dict[str, Any], points: np.ndarray) -> np.ndarray:
    """Where the published code draws points (millimetres): its projection to OpenGL's coordinates, and the viewport."""
    w, x, y, z = said["camera"]["q"]
    s = 2.0 / (w * w + x * x + y * y + z * z)
    rotation = np.array(
        [
            [1 - s * (y**2 + z**2), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1 - s * (x**2 + z**2), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x**2 + y**2)],
        ]
    )
    (height, width), focal = said["image_size"], said["camera"]["focal_length"]
    seen = points @ rotation.T + said["camera"]["t"]
    device = np.stack(
        [
            (2 * focal / width * seen[:, 0] + (2 * (width // 2 / width) - 1) * seen[:, 2]) / seen[:, 2],
            (2 * focal / height * seen[:, 1] + (2 * (height // 2 / height) - 1) * seen[:, 2]) / seen[:, 2],
        ],
        axis=1,
    )
    # the lowest row of the viewport, at -1, is the first of the array: from its corner to centres of pixels
    return (device + 1) / 2 * [width, height] - 0.5


def test_cameras_are_those_of_the_published_code(frames: Any, crops: Any, release: Path) -> None:
    resized = setsup.load("navi", release, size=(80, 80))
    for row, (thing, scene, image) in enumerate(navi.rows()):
        said = navi.annotation(thing, scene, image)
        camera = frames.camera(row)
        points = marks() * navi.UNIT
        found, depth = camera.project(points / 1000)
        np.testing.assert_allclose(found, published_pixels(said, points), atol=1e-3)
        assert (depth > 0).all()
        for dataset in (frames, crops, resized):
            whole = dataset.fetch(row, ["image", "pose", "intrinsics"])
            metres = whole["pose"].astype(np.float64)
            metres[:3, 3] /= navi.UNIT / 1000  # to the unit of the marks
            height, width = whole["image"].shape[:2]
            inside = dataset.camera(row).project(points / 1000)[0]
            if ((inside > 1) & (inside < [width - 2, height - 2])).all():
                assert found_at_marks(whole["image"], metres, whole["intrinsics"])
            one = dataset.camera(row)
            assert (one.height, one.width) == (height, width)
            np.testing.assert_allclose(one.k, whole["intrinsics"], atol=1e-4)
            np.testing.assert_allclose(one.centre, whole["pose"][:3, 3], atol=1e-6)


def test_crops_are_the_smallest_windows_around_objects(frames: Any, crops: Any) -> None:
    for row in range(len(frames)):
        whole, part = frames.fetch(row), crops.fetch(row)
        y, x = np.nonzero(whole["depth"])
        assert part["image"].shape == (72, 72, 3)
        # the object spans the window in one direction, up to a pixel, or is wider than the image
        rows, columns = np.nonzero(part["depth"])
        spans = max(np.ptp(rows), np.ptp(columns)) + 1
        fits = max(np.ptp(y), np.ptp(x)) + 1 <= min(whole["depth"].shape)
        assert fits
        assert spans >= 71
        # pixels of the crop are those of the image at the same rays
        k, own = part["intrinsics"].astype(np.float64), whole["intrinsics"].astype(np.float64)
        grid = navi.grid((72, 72)).reshape(-1, 2)
        rays = np.concatenate([grid, np.ones((len(grid), 1))], axis=1) @ np.linalg.inv(k).T
        at = np.floor((rays @ own.T)[:, :2] + 0.5001).astype(int)  # a corner of pixels belongs to the later one
        height, width = whole["depth"].shape
        near = whole["depth"][at[:, 1].clip(0, height - 1), at[:, 0].clip(0, width - 1)]
        assert (near == part["depth"].reshape(-1)).all()


def exact_pairs(first: Any, second: Any, pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of pixels of view 1: whether the box is there, where view 2 has the point, and whether it sees it (by rays)."""
    depths = []
    for camera, at in ((first, pixels),):
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = camera.rotation.T, camera.centre * 1000
        depths.append(navi.depth_of(pose, camera.k, at) / 1000)
    (depth,) = depths
    there = np.isfinite(depth)
    points = first.centre + np.where(there, depth, 1.0)[:, None] * first.rays(pixels)
    places, distance = second.project(points)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = second.rotation.T, second.centre * 1000
    met = navi.depth_of(pose, second.k, places) / 1000
    return there, places, there & (met > distance - 1e-6)


@pytest.mark.parametrize("name", ["frames", "crops"])
def test_matches_by_depth_are_those_of_exact_rays(request: pytest.FixtureRequest, name: str) -> None:
    dataset = request.getfixturevalue(name)
    errors, right, found = [], [], []
    for one, other in ((0, 1), (1, 2), (5, 6), (6, 8), (11, 12), (16, 17)):
        cameras = dataset.camera(one), dataset.camera(other)
        windows = [Window(0, 0, camera.height, camera.width) for camera in cameras]
        pairs = matched(dataset, one, other, *windows, 1.0, 0)
        there, places, sees = exact_pairs(*cameras, pairs.points1)
        assert np.mean((pairs.status != Status.NO_SURFACE) == there) > 0.97, "but on the rim of crops"
        visible = pairs.status == Status.VISIBLE
        errors.append(np.linalg.norm(pairs.points2[visible & there] - places[visible & there], axis=1))
        right.append(sees[visible])
        height, width = cameras[1].height, cameras[1].width
        inside = sees & ((places > 0) & (places < [width - 1, height - 1])).all(axis=1)
        found.append(visible[inside])
    distances = np.concatenate(errors)
    assert len(distances) > 10_000
    # depth has steps of 0.5 mm; in crops, it is that of a ray up to half a pixel of the photograph beside
    limits = {"frames": (0.05, 0.12, 0.2), "crops": (0.15, 1.5, 3.0)}[name]
    assert (np.quantile(distances, [0.5, 0.99, 1]) < limits).all()
    assert np.concatenate(right).mean() > 0.99
    # what faces view 2 at a glancing angle changes by more than the tolerance from pixel to pixel
    assert np.concatenate(found).mean() > {"frames": 0.9, "crops": 0.8}[name]


def test_views_of_a_scene_or_of_an_object(frames: Any) -> None:
    from setsup.correspondence import PixelPairSampler

    assert frames.pair_factors == ("object", "scene")
    rows = PixelPairSampler(frames, pairs=20)[0].indices
    assert (frames.factors.codes("scene", rows[:, 0]) == frames.factors.codes("scene", rows[:, 1])).all()
    wild = frames.where("kind == 'wild_set'")
    assert len(wild) == 10
    assert np.array_equal(wild.camera(1).rotation, frames.camera(6).rotation)


def test_options(release: Path) -> None:
    assert setsup.load("navi", release, every=4).factors.values("file").tolist() == ["000", "004", "003", "002", "001"]
    assert len(setsup.load("navi", release, split="split-val")) == 4
    for options, sentence in (
        ({"size": (8, 8), "crop": (8, 8)}, "size and crop cannot be combined"),
        ({"every": 0}, "every must be"),
    ):
        with pytest.raises(DataError, match=sentence):
            setsup.load("navi", release, **options)


def test_parts_of_a_release(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    navi.write(tmp_path)
    top = tmp_path / NAMES[0] / "wild_set"
    (top / "images" / "000.jpg").unlink()
    (top / "depth" / "001.png").unlink()
    Image.open(top / "images" / "002.jpg").save(top / "images" / "downsampled_002.jpg")
    (top / "depth" / "003.png").write_bytes(navi.encoded(Image.fromarray(np.zeros((131, 97), np.uint16)), "PNG"))
    (top.parent / "multiview-00-pixel_5").rename(top.parent / "multiview_00_pixel_5")  # as version 1.0 has it
    dataset = setsup.load("navi", tmp_path, crop=(8, 8))
    assert "1 of the 20 listed images are missing" in caplog.text
    assert len(dataset) == 19
    assert dataset.factors.values("kind").tolist()[:6] == ["multiview"] * 5 + ["wild_set"]
    with pytest.raises(DataError, match=r"row 5 \(.*001\.jpg\) has no depth, by which its object is cropped"):
        dataset.fetch(5)
    with pytest.raises(DataError, match=r"003\.png \(row 7\) has no pixel of the object"):
        dataset.fetch(7)


def test_damaged_annotations(tmp_path: Path) -> None:
    navi.write(tmp_path)
    file = tmp_path / NAMES[0] / "wild_set" / "annotations.json"
    healthy = navi.annotation(0, "wild_set", 0)
    for content, words in (
        ({}, "is not a list of annotations"),
        ([healthy, {**healthy, "camera": {}}], "image 1 .*'focal_length' is missing"),
        ([{**healthy, "camera": {**healthy["camera"], "q": [0, 0, 0, 0]}}], "image 0 .*q must be a quaternion"),
        ([{**healthy, "camera": {**healthy["camera"], "focal_length": 0}}], "focal_length must be above 0"),
        ([{**healthy, "image_size": [96]}], "image 0 does not match"),
        ([{**healthy, "image_size": [96.5, 3]}], "image_size must be two integers"),
        ([{**healthy, "filename": "../a.jpg"}], "filename must be the name of a file"),
        ([healthy, healthy], r"lists the image '000\.jpg' more than once"),
    ):
        file.write_text(json.dumps(content))
        with pytest.raises(DataError, match=words):
            setsup.load("navi", tmp_path)
    file.write_text(json.dumps([{**healthy, "image_size": [128, 96]}]))  # of the photograph as stored on its side
    with pytest.raises(DataError, match="its intrinsics are unknown"):
        setsup.load("navi", tmp_path).fetch(range(20), ["intrinsics"])


@pytest.mark.long("reports")
def test_the_report_on_dense_features_measures_by_depth(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from setsup_cli.main import main

    words = ["report", "dense", "navi", "--root", str(release), "--option", "crop=64,64", "--where"]
    words += ["kind == 'wild_set'", "--encoder", "colors", "-n", "6", "--queries", "50", "--json"]
    assert main(words) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    values = found["encoders"]["colors"]["values"]
    assert 0 < values["ratio: within 2 cm"]["mean"] <= 1
    assert {pair["angle"] < 120 for pair in found["pairs"]} == {True, False}


@pytest.mark.long("fuzzing")
def test_damaged_annotations_and_depth_are_refused_or_read(tmp_path: Path) -> None:
    navi.write(tmp_path)
    top = tmp_path / NAMES[0] / "wild_set"
    for file in (top / "annotations.json", top / "depth" / "000.png"):
        healthy = file.read_bytes()

        def read(content: bytes, file: Path = file) -> None:
            file.write_bytes(content)
            dataset = setsup.load("navi", tmp_path, crop=(16, 16))
            for row in range(5, min(10, len(dataset))):
                found = dataset.fetch(row)
                assert np.isfinite(found["depth"]).all()
                assert np.isfinite(found["pose"]).all()
                dataset.camera(row)

        assert survives(healthy, read, 60, times=200) > 20
        file.write_bytes(healthy)
