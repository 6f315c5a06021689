import hashlib
import io
import itertools
import json
import math
import os
import re
import struct
import zipfile

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation

from setsup.datasets import load
from setsup.datasets.adapters import record_files
from setsup.datasets.benchmarks import shapenet_renderings
from setsup.datasets.benchmarks.shapenet_renderings.poses import (
    TO_PASCAL3D,
    azimuth_elevation,
    crop_to_alpha,
    to_pascal3d,
)
from setsup.datasets.benchmarks.shapenet_renderings.records import read_views
from setsup.errors import DataError, RowError
from tests.fuzzing import survives
from tests.true_files import shapenet_renderings as writer


@pytest.fixture(scope="module")
def cars():
    return writer.release("cars", count=6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("renderings")
    writer.write(root)
    return root


@pytest.fixture(scope="module")
def views(folder, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SETSUP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield shapenet_renderings.open(folder)


def read(files, record):
    """Images and matrices of a record file, found by looking for what the writer wrote, without any parser."""
    content = files[f"{record:04d}.tfrecord"]
    starts = [found.start() for found in re.finditer(rb"\x89PNG\r\n\x1a\n", content)]
    pictures = [np.asarray(Image.open(io.BytesIO(content[start:]))) for start in starts]
    matrices = []
    for found in re.finditer(rb"mv[01]", content):
        # name, then field 2 of 68 bytes, field 2 of 66 bytes, field 1 of 64 bytes
        assert content[found.end() : found.end() + 6] == b"\x12\x44\x12\x42\x0a\x40"
        matrices.append(struct.unpack("<16f", content[found.end() + 6 : found.end() + 70]))
    return np.stack(pictures), np.array(matrices, np.float32).reshape(-1, 4, 4)


@pytest.mark.long("large or genuine files")
def test_every_view_is_what_was_written(views):
    row = 0
    for plural, category in (("cars", "car"), ("planes", "plane"), ("chairs", "chair")):
        files = writer.release(plural)
        for record in range(4):
            pictures, matrices = read(files, record)
            _, angles = writer.pairs(plural, record, 10)
            rows = np.arange(row, row + len(pictures))
            found = views.fetch(rows)
            assert found["image"].dtype == np.uint8
            assert np.array_equal(found["image"], pictures)
            assert np.array_equal(found["model_view"], matrices)
            table = views.factors
            assert set(table.values("category", rows)) == {category}
            assert set(table.values("record", rows)) == {f"{record:04d}"}
            assert set(table.values("object", rows)) == {writer.object_id(plural, record)}
            assert set(table.values("split", rows)) == {("dev", "train", "train", "test")[record]}
            assert table.values("pair", rows).tolist() == [number // 2 for number in range(20)]
            assert table.values("view", rows).tolist() == list(range(20))
            assert np.allclose(table.values("azimuth", rows), [azimuth for azimuth, _ in angles], atol=2e-3)
            assert np.allclose(table.values("elevation", rows), [elevation for _, elevation in angles], atol=2e-3)
            row += len(pictures)
    assert len(views) == row == 240


@pytest.mark.long("large or genuine files")
def test_the_factors_are_described(views):
    kinds = {factor.name: (str(factor.kind), factor.role, factor.within) for factor in views.factors.factors}
    assert kinds == {
        "category": ("nominal", "variation", None),
        "object": ("nominal", "variation", "category"),
        "azimuth": ("continuous", "variation", None),
        "elevation": ("continuous", "variation", None),
        "record": ("nominal", "key", "category"),
        "pair": ("ordinal", "key", "object"),
        "view": ("ordinal", "key", "object"),
        "split": ("nominal", "split", None),
    }
    assert views.factors["azimuth"].period == 360
    assert views.factors["azimuth"].unit == views.factors["elevation"].unit == "deg"
    assert views.cpu_bound


def test_the_two_views_of_a_pair(views):
    pairs = views.factors.group_by(["pair"])
    assert pairs.names == ("category", "object", "pair")
    assert set(pairs.sizes.tolist()) == {2}
    rows = np.arange(len(views))
    for group in range(0, len(pairs), 7):
        one, other = pairs.members(group)
        assert rows[one] ^ 1 == other


def test_the_projection(views):
    projection = views.projections["car"]
    assert projection.dtype == np.float32
    assert projection[0, 0] == np.float32(writer.FOCAL)
    centre = views.fetch(range(20), ["model_view"])["model_view"] @ np.array([0, 0, 0, 1], np.float32)
    seen = -projection[0, 0] * centre[:, :2] / centre[:, 2:3]
    assert np.abs(seen).max() < 0.2 * np.sqrt(3) * writer.FOCAL / 29, (
        "the origin is near the middle, up to the jitter of the camera"
    )


# -- poses -------------------------------------------------------------------------------------------------------------


def pascal3d_camera(azimuth, elevation, tilt=0.0):
    """Rz(tilt)·Rx(−(90° − e))·Rz(−a), written out."""

    def about_x(angle):
        c, s = math.cos(angle), math.sin(angle)
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])

    def about_z(angle):
        c, s = math.cos(angle), math.sin(angle)
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])

    a, e, t = np.deg2rad([azimuth, elevation, tilt])
    return about_z(t) @ about_x(-(math.pi / 2 - e)) @ about_z(-a)


@pytest.mark.parametrize(("azimuth", "elevation"), [*itertools.product(range(0, 360, 24), (0, 10, 45, 74.4, 89))])
def test_poses_in_the_axes_of_pascal3d(azimuth, elevation):
    expected = pascal3d_camera(azimuth, elevation)
    euler = Rotation.from_euler("zxz", [-np.deg2rad(azimuth), np.deg2rad(elevation) - np.pi / 2, 0]).as_matrix()
    assert np.abs(expected - euler).max() < 1e-12
    # from Blender's camera, as the published renderer has it, without the rounding of its print
    a, e = np.deg2rad([azimuth, elevation])
    away = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.cross([0, 0, 1], away) / np.cos(e)
    blender = np.stack([right, np.cross(away, right), away])
    rotation = blender @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    assert np.abs(to_pascal3d(rotation) - expected).max() < 1e-6
    assert np.array_equal(to_pascal3d(rotation), rotation @ TO_PASCAL3D)
    # the published test of elevations
    assert rotation[2, 1] == pytest.approx(np.sin(e), abs=1e-12)
    for tilt in (0, 30, -100):
        tilted = pascal3d_camera(0, 90, tilt) @ rotation
        found = azimuth_elevation(tilted)
        assert found[0] % 360 == pytest.approx(azimuth, abs=1e-9)
        assert found[1] == pytest.approx(elevation, abs=1e-9)
        assert np.abs(to_pascal3d(tilted) - pascal3d_camera(azimuth, elevation, tilt)).max() < 1e-6
    # the camera of Pascal3D+ stands at (cos e sin a, −cos e cos a, sin e)
    camera = [np.cos(e) * np.sin(a), -np.cos(e) * np.cos(a), np.sin(e)]
    assert np.abs(to_pascal3d(rotation)[2] - camera).max() < 1e-12


def test_the_rotations_of_the_data_set(views):
    found = views.fetch(range(240), ["rotation", "model_view"])
    azimuth, elevation = (views.factors.column(name).astype(np.float64) for name in ("azimuth", "elevation"))
    expected = np.stack([pascal3d_camera(a, e) for a, e in zip(azimuth, elevation, strict=True)])
    # six decimals were printed, and the less of them count the nearer a view is to the pole
    assert np.abs(found["rotation"] - expected)[elevation < 80].max() < 1e-5
    assert np.array_equal(found["rotation"], found["model_view"][:, :3, :3] @ TO_PASCAL3D)


def test_angles_stay_in_their_ranges():
    tiny = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1e-12]], np.float32)
    azimuth, elevation = azimuth_elevation(tiny)
    assert (azimuth, elevation) == (0, 0)
    assert azimuth.dtype == elevation.dtype == np.float32
    assert azimuth_elevation(np.zeros((5, 0, 3, 3)))[0].shape == (5, 0)
    random = Rotation.random(1000, rng=0).as_matrix().astype(np.float32)
    azimuth, elevation = azimuth_elevation(random)
    assert azimuth.min() >= 0
    assert azimuth.max() < 360
    assert np.abs(elevation).max() <= 90
    with pytest.raises(DataError, match=r"\(…, 3, 3\)"):
        to_pascal3d(np.zeros((4, 4)))


# -- cropping ----------------------------------------------------------------------------------------------------------


def resampled(picture, top, left, bottom, right, size):
    """The formula of the published protocol, pixel by pixel: a box in shares of the image, then bilinear."""
    height, width = picture.shape[:2]
    found = np.empty((*size, 4), np.float64)
    for i in range(size[0]):
        y = top / height * (height - 1) + i * ((bottom / height - top / height) * (height - 1) / (size[0] - 1))
        for j in range(size[1]):
            x = left / width * (width - 1) + j * ((right / width - left / width) * (width - 1) / (size[1] - 1))
            y0, x0 = int(np.floor(y)), int(np.floor(x))
            y1, x1 = int(np.ceil(y)), int(np.ceil(x))
            above = picture[y0, x0] * (1 - (x - x0)) + picture[y0, x1] * (x - x0)
            below = picture[y1, x0] * (1 - (x - x0)) + picture[y1, x1] * (x - x0)
            found[i, j] = above * (1 - (y - y0)) + below * (y - y0)
    return found


def test_the_crop_is_that_of_the_protocol(views):
    for row in (0, 87, 200):
        picture = views.fetch(row)["image"]
        solid = np.argwhere(picture[..., 3] > 0)
        (top, left), (bottom, right) = solid.min(axis=0), solid.max(axis=0)
        scaled = picture.astype(np.float32) / 255
        expected = resampled(scaled.astype(np.float64), top, left, bottom, right, (40, 33))
        found = crop_to_alpha(scaled, (40, 33))
        assert found.dtype == np.float32
        assert np.abs(found - expected).max() < 1e-5
        whole = crop_to_alpha(picture)
        assert (whole.shape, whole.dtype) == ((128, 128, 4), np.uint8)
        assert np.abs(crop_to_alpha(scaled) * 255 - whole).max() <= 0.5 + 1e-3
        # an object now reaches all four edges
        touched = crop_to_alpha(picture, (64, 64))[..., 3] > 0
        assert min(touched[:2].any(), touched[-2:].any(), touched[:, :2].any(), touched[:, -2:].any())


def test_crops_that_cannot_be():
    with pytest.raises(DataError, match="completely transparent"):
        crop_to_alpha(np.zeros((8, 8, 4), np.uint8))
    with pytest.raises(DataError, match="with alpha"):
        crop_to_alpha(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(DataError, match="size must be"):
        crop_to_alpha(np.ones((8, 8, 4), np.uint8), (1, 4))
    dot = np.zeros((8, 8, 4), np.uint8)
    dot[3, 5] = 100
    assert crop_to_alpha(dot, (4, 4)).shape == (4, 4, 4)


# -- named subsets -----------------------------------------------------------------------------------------------------


def test_the_subsets_of_abc(views, folder):
    for category, limit in (("car", 0.5), ("chair", 1.3)):
        subset = load("shapenet-renderings", folder, split=f"abc-{category}s")
        matrices = views.fetch(np.arange(240), ["model_view"])["model_view"]
        kept = (matrices[:, 2, 1] < np.sin(limit)) & (views.factors.values("category") == category)
        assert 0 < kept.sum() < 80
        assert np.array_equal(subset.rows, np.flatnonzero(kept))


def test_the_splits_and_the_lookup_records(tmp_path):
    writer.pack(writer.release("chairs", (3, 47, 48, 50), 5), tmp_path / "chairs_with_keypoints")
    for split, records in {"dev": {"0003"}, "train": {"0047", "0048"}, "test": {"0050"}}.items():
        assert set(load("shapenet-renderings", tmp_path, split=split).factors.values("record")) == records
    lookup = load("shapenet-renderings", tmp_path, split="abc-chairs-lookup")
    assert set(lookup.factors.values("record")) == {"0047", "0048"}
    assert lookup.factors.values("elevation").max() < 74.49
    assert set(lookup.factors.values("object")) == {writer.object_id("chairs", 47), writer.object_id("chairs", 48)}


# -- where the files lie -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", ["", "cars_with_keypoints/", "a folder/cars/"])
@pytest.mark.parametrize(
    "name", ["cars_with_keypoints", "cars_with_keypoints.zip", "cars_with_keypoints.tar", "cars", "cars.zip"]
)
def test_folders_and_archives(tmp_path, cars, name, wrap):
    writer.pack(cars, tmp_path / name, wrap)
    pictures, _ = read(cars, 2)
    for root in (tmp_path, tmp_path / name):
        found = shapenet_renderings.open(root)
        assert len(found) == 48
        assert np.array_equal(found.fetch(range(24, 36))["image"], pictures)


def test_stored_zips_and_the_named_folder(tmp_path, cars):
    writer.pack(cars, tmp_path / "shapenet-renderings" / "cars_with_keypoints.zip", deflate=False)
    found = load("shapenet-renderings", tmp_path)
    assert np.array_equal(found.fetch(range(12))["image"], read(cars, 0)[0])
    assert found.factors["category"].levels == ("car", "plane", "chair")


def test_other_files_beside_the_records_do_not_matter(tmp_path, cars):
    files = {**cars, "._0000.tfrecord": b"junk", "__MACOSX/._0000.tfrecord": b"junk", "deeper/0000.tfrecord": b"junk"}
    writer.pack(files, tmp_path / "cars_with_keypoints.zip")
    assert len(shapenet_renderings.open(tmp_path)) == 48


def test_a_folder_without_records_gives_way_to_the_archive(tmp_path, cars):
    (tmp_path / "cars_with_keypoints").mkdir()
    writer.pack(cars, tmp_path / "cars_with_keypoints.zip")
    assert len(shapenet_renderings.open(tmp_path)) == 48


def test_nothing_there(tmp_path):
    with pytest.raises(
        DataError, match=r"none of cars_with_keypoints, .*looked in .*`setsup fetch shapenet-renderings"
    ):
        shapenet_renderings.open(tmp_path)


def test_the_index_is_made_once_and_anew_when_files_change(tmp_path, cars, monkeypatch, own_cache):
    from setsup.datasets.benchmarks.shapenet_renderings import records as view_records

    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "cache"))
    made = []
    real = view_records.read_views
    monkeypatch.setattr(view_records, "read_views", lambda *given: made.append(given[1]) or real(*given))
    data = tmp_path / "data"
    writer.pack(cars, data / "cars_with_keypoints")
    first = shapenet_renderings.open(data)
    assert len(made) == 4
    assert first.factors.path is not None
    again = shapenet_renderings.open(data)
    assert len(made) == 4
    assert again.factors.fingerprint == first.factors.fingerprint
    # lists count at once, without reading records again
    (data / "cars_with_keypoints" / "test.txt").write_text("0001\n")
    assert set(shapenet_renderings.open(data).where("split == 'test'").factors.values("record")) == {"0001"}
    assert len(made) == 4
    # a damaged index is made anew, and so is that of files that changed
    for path in (tmp_path / "cache" / "views").glob("*.arrow"):
        path.write_bytes(path.read_bytes()[:-100])
    assert np.array_equal(shapenet_renderings.open(data).fetch(range(12))["image"], read(cars, 0)[0])
    assert len(made) == 8
    other = writer.release("cars", (7,), 6)["0007.tfrecord"]
    (data / "cars_with_keypoints" / "0000.tfrecord").write_bytes(other)
    changed = shapenet_renderings.open(data)
    assert len(made) == 12
    assert np.array_equal(changed.fetch(range(12))["image"], read({"0007.tfrecord": other}, 7)[0])
    # nothing was written beside the data
    assert {path.name for path in data.iterdir()} == {"cars_with_keypoints"}


def test_files_that_shrink_after_opening(tmp_path, cars):
    writer.pack(cars, tmp_path / "cars")
    found = shapenet_renderings.open(tmp_path)
    (tmp_path / "cars" / "0001.tfrecord").write_bytes(cars["0001.tfrecord"][:5000])
    with pytest.raises(DataError, match=r"0001\.tfrecord.* was truncated after it was opened"):
        found.fetch(range(48))
    (tmp_path / "cars" / "0001.tfrecord").unlink()
    with pytest.raises(DataError, match=r"0001\.tfrecord"):
        found.fetch(range(48))


# -- fetching ----------------------------------------------------------------------------------------------------------


def test_rows_of_any_shape(views):
    everything = views.fetch(range(240))
    rows = np.random.default_rng(0).integers(0, 240, (5, 7))
    for index in (rows, 17, [], [[]], [3, 3, 239, 0], rows[::-1]):
        found = views.fetch(index)
        for name, modality in views.modalities.items():
            assert found[name].shape == np.shape(index) + modality.shape
            assert found[name].dtype == modality.dtype
            assert np.array_equal(found[name], everything[name][np.asarray(index, int)])
    for order in "CF":
        out = {name: np.empty((5, 7, *each.shape), each.dtype, order=order) for name, each in views.modalities.items()}
        views.fetch_into(rows, out)
        assert all(np.array_equal(array, everything[name][rows]) for name, array in out.items())
    assert views.fetch(3, ["rotation"]).keys() == {"rotation"}
    with pytest.raises(RowError, match="240 rows"):
        views.fetch(240)
    with pytest.raises(DataError, match="no modality"):
        views.fetch(0, ["mask"])


def test_a_small_cache_holds_few_files_and_says_once_what_would_be_faster(folder, monkeypatch, caplog, views):
    rows = np.random.default_rng(1).permutation(240)
    expected = views.fetch(rows)["image"]
    monkeypatch.setattr(record_files, "_KEPT", 30_000)
    found = shapenet_renderings.open(folder)
    for _ in range(3):
        assert np.array_equal(found.fetch(rows)["image"], expected)
    held = next(iter(found._parts[0].files._held.values()))
    assert sum(map(len, held.unpacked.values())) <= 30_000
    said = [message for message in caplog.messages if "each view decompresses a whole file of records" in message]
    assert len(said) == 3, "once for each archive"


def test_prepared_archives(tmp_path, cars, monkeypatch):
    writer.pack(cars, tmp_path / "cars_with_keypoints.zip")
    monkeypatch.setattr(record_files, "_BLOCK", 10_007)
    (path,) = shapenet_renderings.prepare(tmp_path)
    assert path == tmp_path / "cars_with_keypoints.records.npy"
    names = sorted(name for name in cars if name.endswith(".tfrecord"))
    assert np.load(path).tobytes() == b"".join(cars[name] for name in names)
    found = shapenet_renderings.open(tmp_path)
    monkeypatch.setattr(record_files.RecordFiles, "content", None)  # no file is unpacked any more
    for record in range(4):
        assert np.array_equal(found.fetch(range(12 * record, 12 * record + 12))["image"], read(cars, record)[0])
    assert shapenet_renderings.prepare(tmp_path) == [path]


def test_a_data_set_that_is_open_uses_the_array_once_it_is_there(tmp_path, cars, monkeypatch):
    writer.pack(cars, tmp_path / "cars.zip")
    monkeypatch.setattr(record_files, "_KEPT", 0)
    found = shapenet_renderings.open(tmp_path)
    expected = found.fetch(range(48))["image"]
    found.prepare()
    monkeypatch.setattr(record_files.RecordFiles, "content", None)  # no file is unpacked any more
    assert np.array_equal(found.fetch(range(48))["image"], expected)


def test_every_archive_gets_an_array(tmp_path, cars):
    for name in ("cars.zip", "planes.zip", "chairs"):
        writer.pack(writer.release(name.removesuffix(".zip"), (0, 1), 1), tmp_path / name)
    expected = [tmp_path / f"{name}.records.npy" for name in ("cars", "planes")]
    assert shapenet_renderings.prepare(tmp_path) == expected
    assert all(path.exists() for path in expected)


@pytest.mark.parametrize("name", ["cars", "cars.tar", "cars.zip"])
def test_folders_tars_and_stored_zips_need_no_preparation(tmp_path, cars, name, monkeypatch):
    writer.pack(cars, tmp_path / name, deflate=False)
    assert shapenet_renderings.prepare(tmp_path) == []
    found = shapenet_renderings.open(tmp_path)
    # views are read at random: no file is read whole
    monkeypatch.setattr(record_files.RecordFiles, "content", None)
    for record in range(4):
        assert np.array_equal(found.fetch(range(12 * record, 12 * record + 12))["image"], read(cars, record)[0])
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} <= {name}


def test_a_zip_that_stores_some_and_deflates_others(tmp_path, cars):
    writer.pack(cars, tmp_path / "cars.zip")
    with zipfile.ZipFile(tmp_path / "cars.zip", "w") as archive:
        for name, content in cars.items():
            archive.writestr(name, content, zipfile.ZIP_STORED if name.startswith("0001") else zipfile.ZIP_DEFLATED)
    expected = np.concatenate([read(cars, record)[0] for record in range(4)])
    rows = np.random.default_rng(0).permutation(48)
    assert np.array_equal(shapenet_renderings.open(tmp_path).fetch(rows)["image"], expected[rows])
    assert len(shapenet_renderings.prepare(tmp_path)) == 1
    assert np.array_equal(shapenet_renderings.open(tmp_path).fetch(rows)["image"], expected[rows])


def test_the_same_release_under_two_names(tmp_path, cars, caplog):
    for name in ("cars.zip", "planes.tar"):
        writer.pack(cars, tmp_path / name)
    said = r"cars\.zip and .*planes\.tar contain the same objects \(\w+ and 3 more\), once as car .*; replace"
    with pytest.raises(DataError, match=said):
        shapenet_renderings.open(tmp_path)
    # one object of four may be both; names of records say nothing
    other = writer.release("planes", count=6)
    shared = cars["job.txt"].splitlines()[:1] + other["job.txt"].splitlines()[1:]
    (tmp_path / "planes.tar").unlink()
    writer.pack({**other, "job.txt": b"\n".join(shared)}, tmp_path / "planes")
    assert len(shapenet_renderings.open(tmp_path)) == 96


def test_a_root_without_permission(tmp_path, monkeypatch):
    real = os.stat

    def refused(path, *given, **named):
        if str(path).startswith(str(tmp_path)):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *given, **named)

    (tmp_path / "mine").mkdir()
    monkeypatch.setattr(os, "stat", refused)
    with pytest.raises(DataError, match=r"looked in .*mine \(permission denied\), .*; run `setsup fetch"):
        shapenet_renderings.open(tmp_path / "mine")


# -- what may be wrong -------------------------------------------------------------------------------------------------

PICTURE = writer.png(np.full((128, 128, 4), 90, np.uint8))
MATRIX = writer.camera(40, 20, 0).ravel()
GOOD = {"img0": PICTURE, "mv0": MATRIX, "mvi0": MATRIX, "img1": PICTURE, "mv1": MATRIX, "mvi1": MATRIX}


def without(*names):
    return {name: value for name, value in GOOD.items() if name not in names}


def bent(place, value):
    matrix = MATRIX.copy()
    matrix[place] = value
    return matrix


@pytest.mark.parametrize(
    ("features", "why"),
    [
        (without("img1"), "lacks the feature 'img1'"),
        (without("mv0"), "lacks the feature 'mv0'"),
        ({**GOOD, "img0": MATRIX}, "'img0' has 16 values of type float; expected 1 of type bytes"),
        ({**GOOD, "mv1": b"text"}, "'mv1' has 1 value of type bytes; expected 16 of type float"),
        ({**GOOD, "mv1": MATRIX[:15]}, "'mv1' has 15 values of type float; expected 16 of type float"),
        ({**GOOD, "mv1": [1] * 16}, "'mv1' has 16 values of type int64"),
        ({**GOOD, "mv1": bent(0, 3)}, "'mv1' is not a rotation and translation"),
        ({**GOOD, "mv0": bent(12, 1)}, "'mv0' is not a rotation and translation"),
        ({**GOOD, "mv0": bent(3, np.nan)}, "'mv0' is not a rotation and translation"),
        ({**GOOD, "mv0": bent(0, np.inf)}, "'mv0' is not a rotation and translation"),
        ({**GOOD, "mv0": MATRIX * np.repeat([-1, -1, -1, 1], 4)}, "'mv0' is not a rotation and translation"),
        ({**GOOD, "img0": b"\xff\xd8\xff\xe0 and so on"}, "'img0' is not a PNG"),
        ({**GOOD, "img0": PICTURE[:20]}, "'img0' is not a PNG"),
        (
            {**GOOD, "img1": writer.png(np.zeros((64, 128, 4), np.uint8))},
            r"'img1' has 128 × 64 pixels; expected 128 × 128",
        ),
    ],
)
def test_examples_that_are_no_pair_of_views(features, why):
    content = writer.framed(writer.example(GOOD)) + writer.framed(writer.example(features))
    with pytest.raises(DataError, match=rf"^0003\.tfrecord, record 1.*{why}.*fetch it again$"):
        read_views(content, "0003.tfrecord")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "contains no records"),
        (writer.framed(b"") * 50, "record 0 has 0 bytes; expected at least"),
        (writer.framed(b"\x08" * 300), "record 0 could not be parsed as a tf.train.Example"),
    ],
)
def test_files_that_hold_something_else(content, why):
    with pytest.raises(DataError, match=why):
        read_views(content, "0003.tfrecord")


def test_a_damaged_record_is_named_by_its_file(tmp_path, cars):
    damaged = bytearray(cars["0002.tfrecord"])
    damaged[-100] ^= 1
    writer.pack({**cars, "0002.tfrecord": bytes(damaged)}, tmp_path / "cars_with_keypoints.zip")
    with pytest.raises(DataError, match=r"cars_with_keypoints\.zip.*0002\.tfrecord.*the data of record 5, which"):
        shapenet_renderings.open(tmp_path)
    writer.pack({**cars, "0002.tfrecord": cars["0002.tfrecord"][:-100]}, tmp_path / "other" / "cars")
    with pytest.raises(DataError, match=r"0002\.tfrecord is truncated: it ends after .*inside record 5"):
        shapenet_renderings.open(tmp_path / "other")


def test_a_damaged_picture_is_named_when_it_is_fetched(tmp_path, cars):
    hurt = bytearray(PICTURE)
    hurt[60:80] = bytes(20)
    features = {**GOOD, "img1": bytes(hurt)}
    content = writer.framed(writer.example(GOOD)) + writer.framed(writer.example(features))
    writer.pack({**cars, "0001.tfrecord": content}, tmp_path / "cars")
    found = shapenet_renderings.open(tmp_path)
    found.fetch([12, 13, 14])
    with pytest.raises(DataError, match=r"0001\.tfrecord, record 1, 'img1'"):
        found.fetch(15)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"test.txt": None}, r"test\.txt not found in"),
        ({"dev.txt": None}, r"dev\.txt not found in"),
        ({"dev.txt": b"../0001\n"}, r"dev\.txt lists '\.\./0001'; expected the name of a record"),
        ({"dev.txt": b"\xff\xfe0\x000"}, r"dev\.txt is not UTF-8 text"),
        ({"projection.txt": b"1 2 3\n"}, r"projection\.txt is not a 4 × 4 matrix"),
        ({"projection.txt": b"1 2 3 4\n" * 3 + b"1 2 3 four\n"}, r"projection\.txt is not a 4 × 4 matrix"),
        ({"projection.txt": b"1 2 3 4\n" * 3 + b"1 2 3 nan\n"}, r"projection\.txt is not a 4 × 4 matrix"),
    ],
)
def test_lists_that_do_not_fit(tmp_path, cars, files, why):
    kept = {name: content for name, content in {**cars, **files}.items() if content is not None}
    writer.pack(kept, tmp_path / "cars")
    with pytest.raises(DataError, match=why):
        shapenet_renderings.open(tmp_path)


def test_listed_records_that_are_not_there(tmp_path, cars, caplog):
    writer.pack({**cars, "test.txt": b"0003\n0009\n"}, tmp_path / "cars")
    found = shapenet_renderings.open(tmp_path)
    assert "1 of the 5 listed records are missing (0009.tfrecord); they are left out" in caplog.text
    assert found.factors.values("split", np.arange(0, 48, 12)).tolist()[3] == "test"


def test_lists_as_they_may_be_written(tmp_path, cars):
    files = {**cars, "dev.txt": b"\r\n0001.tfrecord \r\n0002", "test.txt": b"0002\n", "train.txt": b"nothing of this\n"}
    del files["projection.txt"]
    writer.pack(files, tmp_path / "cars")
    found = shapenet_renderings.open(tmp_path)
    firsts = found.factors.values("split", np.arange(0, 48, 12)).tolist()
    assert firsts == ["train", "dev", "test", "train"], "a name in both is test, as for the published trainer"
    assert found.projections == {}


IDS = [hashlib.md5(bytes([n]), usedforsecurity=False).hexdigest() for n in range(6)]
STEMS = ["0000", "0001", "0002", "0003"]


@pytest.mark.parametrize(
    ("jobs", "objects", "said"),
    [
        ("\n".join(IDS), IDS[:4], ""),
        ("".join(f"{n:04d} {IDS[n]}\n" for n in (3, 2, 1, 0)), IDS[:4], ""),
        ("".join(f"{n:04d}.tfrecord\t{IDS[n]}\n" for n in range(4)), IDS[:4], ""),
        ("\n".join(IDS[:3]), STEMS, "job.txt has 3 lines, but no entry for the record 0003"),
        ("0000 a\n0001 b\n0002 c\n", STEMS, "job.txt has no entry for the record 0003"),
        ("a\nb\nb\nc\n", STEMS, "job.txt lists an object twice"),
        ("a b c\nd\n", STEMS, "job.txt has lines other than"),
        ("", STEMS, "job.txt has lines other than"),
        (None, STEMS, ""),
    ],
)
def test_objects_by_the_job_list(tmp_path, cars, caplog, jobs, objects, said):
    files = {name: content for name, content in cars.items() if name != "job.txt"}
    if jobs is not None:
        files["job.txt"] = jobs.encode()
    writer.pack(files, tmp_path / "cars")
    found = shapenet_renderings.open(tmp_path)
    assert found.factors.values("object", np.arange(0, 48, 12)).tolist() == objects
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == bool(said)
    assert all(said in message and "is named after its record" in message for message in warned)


def test_damaged_files_of_records_are_refused(cars):
    content = writer.framed(writer.example(GOOD)) * 3
    assert survives(content, lambda data: read_views(data, "f"), 200, slack=1 << 16) > 150


@pytest.mark.long("fuzzing")
def test_damaged_examples_with_right_checksums_are_refused_or_read():
    good = writer.example(GOOD)

    def views_of(data):
        offsets, lengths, matrices = read_views(writer.framed(data), "f")
        assert (offsets >= 0).all()
        assert (offsets + lengths <= len(data) + 16).all()
        assert np.isfinite(matrices).all()

    assert survives(good, views_of, 300, head=200) > 50


@pytest.mark.long("fuzzing")
def test_a_damaged_list_of_poses(tmp_path, cars):
    writer.pack(cars, tmp_path / "cars")

    def opened(data):
        (tmp_path / "cars" / "job.txt").write_bytes(data)
        shapenet_renderings.open(tmp_path).fetch(0, ["rotation"])

    survives(cars["job.txt"], opened, 40)


@pytest.mark.long("fuzzing")
@pytest.mark.parametrize("name", ["cars.zip", "cars.tar"])
def test_damaged_archives(tmp_path, name):
    writer.pack(writer.release("cars", (0, 1), 1), tmp_path / name)

    def opened(data):
        (tmp_path / name).write_bytes(data)
        shapenet_renderings.open(tmp_path).fetch(range(4))

    assert survives((tmp_path / name).read_bytes(), opened, 60) > 25


def test_the_manifest_agrees(views):
    from setsup.files import load_manifest

    manifest = load_manifest("shapenet-renderings")
    assert [factor.name for factor in manifest.factors] == list(views.factors.names)
    for described in manifest.factors:
        factor = views.factors[described.name]
        assert (described.kind, described.unit, described.period, described.within, described.role) == (
            str(factor.kind), factor.unit, factor.period, factor.within, factor.role
        )  # fmt: skip
    assert {each.name: (each.shape, each.dtype, each.color) for each in manifest.modalities} == {
        name: (each.shape, each.dtype, each.color) for name, each in views.modalities.items()
    }
    for split, limit in (("abc-cars", 0.5), ("abc-chairs", 1.3)):
        where = next(each.where for each in manifest.splits if each.name == split)
        assert float(where.split()[-1]) == pytest.approx(math.degrees(limit), abs=1e-13)
    assert json.dumps(list(manifest.wanted)) == "[]", "any of the three will do"
