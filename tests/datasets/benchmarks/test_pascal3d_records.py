"""Annotation files: what is read of an object, what of damaged files, and what is kept."""

import numpy as np
import pytest
import scipy.io

from setsup.datasets.benchmarks.pascal3d.objects import read_objects
from setsup.datasets.benchmarks.pascal3d.records import open_records
from setsup.errors import DataError
from setsup.files.archives.members import open_members
from tests.fuzzing import survives
from tests.true_files import pascal3d as true
from tests.true_files.pascal3d import annotated, viewpoint

EMPTY = np.zeros((0, 0))


def _objects(folder, objects, category="car", **more):
    path = true.save(folder, category, "pascal", "2008_000203", objects, **more)
    return read_objects(path, "x.mat", category)


def _one(folder, view, **changed):
    (row,) = _objects(folder, [annotated("car", [1, 2, 30, 40], view, 3.0, **changed)])
    return row


def test_a_fine_pose(tmp_path):
    row = _one(tmp_path, viewpoint(-30.0, 12.5, -3.5, 100.0, 60.0))
    fine = {"azimuth": 330.0, "elevation": 12.5, "theta": -3.5, "px": 100.0, "py": 60.0, "focal": 1.0}
    assert {name: row[name] for name in fine} == fine
    assert row["distance"] == true.DISTANCE
    assert (row["azimuth_coarse"], row["elevation_coarse"], row["viewport"]) == (315.0, 10.0, 3000.0)
    assert (row["object"], row["cad"], row["truncated"], row["occluded"], row["difficult"]) == (1, 3, 0, 0, 0)
    assert [row[side] for side in ("left", "top", "right", "bottom")] == [1, 2, 30, 40]


def test_azimuth_zero_with_a_distance_is_a_pose(tmp_path):
    row = _one(tmp_path, viewpoint(0.0, 0.0, 0.0, 100.0, 60.0))
    assert (row["azimuth"], row["elevation"], row["theta"]) == (0, 0, 0)


@pytest.mark.parametrize(
    "view",
    [
        EMPTY,
        None,
        viewpoint(0.0, 0.0, 0.0, 0.0, 0.0, distance=0.0, azimuth_coarse=90.0),
        viewpoint(0.0, 0.0, 0.0, 0.0, 0.0, distance=None),
        viewpoint(0.0, 0.0, 0.0, 0.0, 0.0, azimuth=None, elevation=None, distance=None, theta=None),
        viewpoint(0.0, 0.0, 0.0, 0.0, 0.0, azimuth=EMPTY, elevation=EMPTY, distance=0.0),
        viewpoint(0.0, 0.0, 0.0, 0.0, 0.0, azimuth=np.nan, elevation=np.nan, theta=np.nan),
    ],
)
def test_no_fine_pose_is_unknown_and_never_zero(tmp_path, view):
    row = _one(tmp_path, view)
    assert all(np.isnan(row[name]) for name in ("azimuth", "elevation", "theta"))
    coarse = view[0, 0]["azimuth_coarse"] if view is not None and view.size else np.nan
    assert np.array_equal(row["azimuth_coarse"], coarse, equal_nan=True)


def test_angles_without_a_distance_are_kept(tmp_path):
    row = _one(tmp_path, viewpoint(30.0, 5.0, 0.0, 9.0, 9.0, distance=0.0))
    assert (row["azimuth"], row["elevation"], row["theta"]) == (30, 5, 0)
    assert np.isnan(row["distance"])


def test_flags_models_and_boxes_that_are_not_there(tmp_path):
    view = viewpoint(1.0, 1.0, 1.0, 1.0, 1.0)
    row = _one(tmp_path, view, truncated=EMPTY, occluded=None, difficult=np.array([[True]]), cad_index=EMPTY)
    assert (row["truncated"], row["occluded"], row["difficult"], row["cad"]) == (-1, -1, 1, 0)
    assert _one(tmp_path, view, cad_index=0.0)["cad"] == 0
    assert _one(tmp_path, view, cad_index=np.uint8(10))["cad"] == 10
    for box in (EMPTY, None):
        assert np.isnan(_one(tmp_path, view, bbox=box)["left"])


def test_only_objects_of_the_wanted_category_with_their_own_numbers(tmp_path):
    objects = [annotated(name, [1, 1, 9, 9], EMPTY, EMPTY) for name in ("bus", "car", "person", "car")]
    assert [row["object"] for row in _objects(tmp_path, objects)] == [2, 4]
    assert _objects(tmp_path, []) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"bbox": np.array([[1.0, 2.0, 3.0]])},
            r"object 1: 'bbox' has dtype float64 and shape \(1, 3\); expected four numbers",
        ),
        ({"bbox": "1 2 3 4"}, "'bbox' has dtype"),
        ({"truncated": "yes"}, "'truncated' has dtype"),
        (
            {"cad_index": np.array([[1.0, 2.0]])},
            r"'cad_index' has dtype float64 and shape \(1, 2\); expected one number",
        ),
        ({"cad_index": 11.0}, r"'cad_index' is 11; expected a model of car from 1 to 10, or 0 for none"),
        ({"cad_index": 99}, "'cad_index' is 99"),
        ({"cad_index": -1}, "'cad_index' is -1"),
        ({"cad_index": 1.5}, "'cad_index' is 1.5"),
        ({"class": 5.0}, "the field 'class' is not a string"),
        ({"class": None}, "the field 'class' is not a string"),
        ({"viewpoint": 7.0}, "'viewpoint' has dtype float64"),
        ({"viewpoint": viewpoint(1.0, 1.0, 1.0, 1.0, 1.0, azimuth="north")}, "'azimuth' has dtype"),
        ({"viewpoint": viewpoint(1.0, 1.0, 1.0, 1.0, 1.0, theta=np.array([[1 + 2j]]))}, "'theta' has dtype complex"),
    ],
)
def test_wrong_types(tmp_path, changed, sentence):
    with pytest.raises(DataError, match=sentence) as found:
        _one(tmp_path, viewpoint(1.0, 1.0, 1.0, 1.0, 1.0), **changed)
    assert str(found.value).startswith("x.mat")


@pytest.mark.parametrize("record", [5.0, true.struct(filename="a.jpg"), true.struct(objects="none")])
def test_what_is_no_annotation(tmp_path, record):
    scipy.io.savemat(tmp_path / "x.mat", {"record": record})
    with pytest.raises(DataError, match=r"x\.mat"):
        read_objects(tmp_path / "x.mat", "x.mat", "car")


@pytest.mark.long("fuzzing")
def test_damage(tmp_path):
    objects = [annotated("car", [1, 2, 30, 40], viewpoint(10.0, 5.0, 1.0, 20.0, 20.0)) for _ in range(2)]
    healthy = true.save(tmp_path, "car", "pascal", "2008_000203", objects).read_bytes()
    assert survives(healthy, lambda content: read_objects(content, "x.mat", "car"), rounds=150) > 75
    scipy.io.savemat(tmp_path / "plain.mat", true.record("2008_000203", "car_pascal", objects))
    plain = (tmp_path / "plain.mat").read_bytes()
    survives(plain, lambda content: read_objects(content, "x.mat", "car"), rounds=150, head=len(plain))


# -- a whole release ---------------------------------------------------------------------------------------------------


@pytest.mark.long("large or genuine files")
def test_columns_agree_with_what_was_written(tmp_path):
    rows = sorted(true.write(tmp_path), key=lambda row: (row["category"], row["source"], row["image"], row["object"]))
    table = open_records(open_members(tmp_path))
    assert len(table) == len(rows)
    assert table.values("photo").tolist() == [row["image"] for row in rows]
    for name in ("category", "source", "object", "cad", "truncated", "occluded", "difficult"):
        assert table.values(name).tolist() == [row[name] for row in rows], name
    for name in ("azimuth", "elevation", "theta", "distance"):
        wanted = np.array([np.nan if row[name] is None else row[name] for row in rows], np.float32)
        assert np.array_equal(table.column(name), wanted, equal_nan=True), name
    boxes = np.stack([table.column(side) for side in ("left", "top", "right", "bottom")], axis=1)
    assert np.array_equal(boxes, np.array([row["box"] for row in rows], np.float32))


@pytest.mark.long("large or genuine files")
def test_it_agrees_with_scipy(tmp_path):
    true.write(tmp_path)
    table = open_records(open_members(tmp_path))
    for row in range(0, len(table), 7):
        known = table.row(row)
        path = tmp_path / "Annotations" / f"{known['category']}_{known['source']}" / f"{known['photo']}.mat"
        record = scipy.io.loadmat(path, squeeze_me=True, struct_as_record=False)["record"]
        found = np.atleast_1d(record.objects)[known["object"] - 1]
        assert getattr(found, "class") == known["category"]
        assert found.cad_index == known["cad"]
        if found.viewpoint.distance:
            assert np.float32(found.viewpoint.azimuth) == np.float32(known["azimuth"])
            assert np.float32(found.viewpoint.px) == np.float32(known["px"])
        else:
            assert known["azimuth"] is None
            assert known["azimuth_coarse"] == found.viewpoint.azimuth_coarse


@pytest.mark.long("large or genuine files")
def test_the_columns_are_kept_and_made_anew_when_the_release_changes(tmp_path, own_cache, monkeypatch):
    true.write(tmp_path)
    first = open_records(open_members(tmp_path))
    monkeypatch.setattr("setsup.datasets.benchmarks.pascal3d.records._read", lambda *_: pytest.fail("read once more"))
    assert open_records(open_members(tmp_path)).fingerprint == first.fingerprint
    monkeypatch.undo()
    monkeypatch.setenv("SETSUP_CACHE", str(own_cache))
    true.save(tmp_path, "car", "pascal", "2011_000001", [annotated("car", [1, 1, 20, 20], EMPTY)])
    assert len(open_records(open_members(tmp_path))) == len(first) + 1


@pytest.mark.long("fuzzing")
def test_a_damaged_index_is_made_anew(tmp_path, own_cache):
    true.write(tmp_path)
    first = open_records(open_members(tmp_path))
    path = first.path
    assert path.is_relative_to(own_cache)
    path.write_bytes(path.read_bytes()[:-100])
    again = open_records(open_members(tmp_path))
    assert again.path == path
    assert again.fingerprint == first.fingerprint


@pytest.mark.long("large or genuine files")
def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    true.write(tmp_path / "release")
    expected = open_records(open_members(tmp_path / "release"))
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("SETSUP_CACHE", str(tmp_path / "file" / "cache"))
    found = open_records(open_members(tmp_path / "release"))
    assert found.path is None
    assert found.fingerprint == expected.fingerprint


def test_damaged_files_are_counted_and_named(tmp_path):
    true.write(tmp_path)
    paths = sorted((tmp_path / "Annotations").rglob("*.mat"))
    for path in paths[3:10]:
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="7 of 36 annotation files could not be read") as found:
        open_records(open_members(tmp_path))
    assert all(path.name in str(found.value) for path in paths[3:6])
    assert paths[6].name not in str(found.value)
    assert "and 4 more" in str(found.value)
    assert "\n" not in str(found.value)


def test_boxes_outside_their_picture(tmp_path, caplog):
    rows = true.write(tmp_path)
    view = viewpoint(10.0, 5.0, 1.0, 20.0, 20.0)
    boxes = ([-4.0, -5.0, 999.0, 999.0], [300.0, 10.0, 400.0, 90.0], [10.0, 10.0, 9.0, 50.0])
    image = next(row["image"] for row in rows if row["category"] == "car")
    true.save(tmp_path, "car", "imagenet", image, [annotated("car", box, view) for box in boxes])
    table = open_records(open_members(tmp_path))
    kept = table.rows("category == 'car'")
    kept = [row for row in kept if table.row(row)["photo"] == image]
    assert len(kept) == 1
    assert [table.row(kept[0])[side] for side in ("left", "top", "right", "bottom")] == [1, 1, 260, 180]
    assert f"2 of {len(rows) + 2} objects are left out" in caplog.text
    assert f"{image}.mat" in caplog.text


def test_no_annotations(tmp_path):
    (tmp_path / "Images").mkdir()
    (tmp_path / "Images" / "a.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="contains no annotations"):
        open_records(open_members(tmp_path))
    true.save(tmp_path, "car", "pascal", "2011_000001", [annotated("bus", [1, 1, 20, 20], EMPTY)])
    with pytest.raises(
        DataError, match="none of its 1 annotations contains an object of the class that its folder is named after"
    ):
        open_records(open_members(tmp_path))
