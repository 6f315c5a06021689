"""CO3D: frames equal to their annotations, with cameras that show known points where they are."""

import gzip
import json

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from tests.true_files import co3d
from tests.true_files.rings import found_at_marks, marks

SAID = co3d.annotations()


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("co3d")
    co3d.write(folder)
    return folder


@pytest.fixture(scope="module")
def frames(release):
    return setsup.load("co3d", release)


def test_frames(release, frames):
    table = frames.factors
    assert table.values("category").tolist() == [category for category, _ in SAID]
    assert table.values("sequence").tolist() == [said["sequence_name"] for _, said in SAID]
    assert table.values("frame").tolist() == [said["frame_number"] for _, said in SAID]
    assert table.values("time").tolist() == [said["frame_timestamp"] for _, said in SAID]
    numbers = [list(co3d.SEQUENCES[category]).index(said["sequence_name"]) for category, said in SAID]
    assert table.values("viewpoint_quality").tolist() == [1.5 + number for number in numbers]
    assert table.values("cloud_quality").tolist() == [0.5] * len(SAID)
    for row, (_, said) in enumerate(SAID):
        found = frames.fetch(row)
        assert np.array_equal(found["image"], np.asarray(Image.open(release / said["image"]["path"])))
        assert np.array_equal(found["object_mask"], np.asarray(Image.open(release / said["mask"]["path"])))
        expected = co3d.depth(tuple(said["image"]["size"]), said["frame_number"]).astype(np.float32) * co3d.SCALE
        expected[0, 0] = 0
        assert np.array_equal(found["depth"], expected)


def test_cameras(frames):
    """Known points are where their discs are drawn, as PyTorch3D's formulas and as ours project them."""
    for row, (category, said) in enumerate(SAID):
        found = frames.fetch(row, ["image", "pose", "intrinsics"])
        if said["viewpoint"] is None:
            assert np.isnan(found["pose"]).all()
            assert np.isnan(found["intrinsics"]).all()
            continue
        number = list(co3d.SEQUENCES[category]).index(said["sequence_name"])
        pose, k = co3d.camera(number, said["frame_number"], said["image"]["size"])
        assert np.allclose(found["pose"], pose, atol=1e-6)
        assert np.allclose(found["intrinsics"], k, atol=1e-4)
        assert found_at_marks(found["image"], found["pose"], found["intrinsics"])
        # PyTorch3D: rows times R, x to the left and y up; the shorter side, or each, is −1 … 1
        view, (height, width) = said["viewpoint"], said["image"]["size"]
        seen = marks() @ np.array(view["R"]) + view["T"]
        normal = seen[:, :2] / seen[:, 2:] * view["focal_length"] + view["principal_point"]
        unit = min(height, width) if category == "apple" else np.array([width, height])
        edges = (np.array([width, height]) - normal * unit) / 2
        ours = (marks() - found["pose"][:3, 3]) @ found["pose"][:3, :3] @ found["intrinsics"].T
        assert np.allclose(ours[:, :2] / ours[:, 2:], edges - 0.5, atol=1e-3)


def test_angles_of_cameras(frames):
    table = frames.factors
    for row, (category, said) in enumerate(SAID):
        number = list(co3d.SEQUENCES[category]).index(said["sequence_name"])
        if said["viewpoint"] is None:
            assert np.isnan(table.values("azimuth")[row])
            continue
        angles = co3d.azimuths(number)
        expected = (angles[said["frame_number"]] - angles[0]) % 360
        assert abs((table.values("azimuth")[row] - expected + 180) % 360 - 180) < 1e-3
        assert abs(table.values("elevation")[row] - (20 + 5 * number)) < 1e-3
        assert abs(table.values("distance")[row] - 3) < 1e-4


def test_one_size(release, frames):
    found = setsup.load("co3d", release, size=(48, 60))
    whole = found.fetch(range(len(found)))
    assert whole["image"].shape == (24, 48, 60, 3)
    assert whole["object_mask"].shape == whole["depth"].shape == (24, 48, 60)
    for row, (_, said) in enumerate(SAID):
        if said["viewpoint"] is not None:
            assert found_at_marks(whole["image"][row], whole["pose"][row], whole["intrinsics"][row])
    with pytest.raises(DataError, match=r"different sizes cannot be stacked.*open the dataset with size"):
        frames.fetch([0, 6], ["object_mask"])


def test_sets(release, frames):
    parts = frames.factors.values("fewview_dev").tolist()
    for (category, said), part in zip(SAID, parts, strict=True):
        expected = {co3d.FRAMES - 1: "test", co3d.FRAMES - 2: "val"}.get(said["frame_number"], "train")
        assert part == (expected if category == "apple" else None)
    assert len(setsup.load("co3d", release, split="fewview_dev-test")) == 2
    orbits = setsup.OrbitSampler(frames.factors, "sequence", sets=2, size=3, seed=0)
    rows = orbits[0].indices
    assert (frames.factors.codes("category", rows) == frames.factors.codes("category", rows)[:, :1]).all()


def test_parts_of_a_release(tmp_path, caplog):
    co3d.write(tmp_path)
    lost = tmp_path / SAID[0][1]["image"]["path"]
    lost.unlink()
    (tmp_path / SAID[1][1]["mask"]["path"]).unlink()
    (tmp_path / "toybus" / "sequence_annotations.jgz").unlink()
    listed = co3d.set_list("apple")
    listed["train"] += listed["test"]
    (tmp_path / "apple/set_lists/set_lists_fewview_dev.json").write_text(json.dumps(listed))
    found = setsup.load("co3d", tmp_path)
    assert f"1 of the 24 listed images are missing ({SAID[0][1]['image']['path']})" in caplog.text
    assert len(found) == 23
    with pytest.raises(DataError, match=r"row 0 \(apple/.*frame000011.jpg\) has no object_mask"):
        found.fetch(0, ["object_mask"])
    assert np.isnan(found.factors.values("viewpoint_quality")[11:]).all()
    assert found.factors.values("fewview_dev").tolist().count("test") == 2, "what is also for the test is no training"


def test_damaged_annotations(tmp_path):
    co3d.write(tmp_path)
    place = tmp_path / "apple" / "frame_annotations.jgz"
    healthy = SAID[0][1]
    wrong = {**healthy["viewpoint"], "R": (2 * np.eye(3)).tolist()}
    other = {**healthy["viewpoint"], "intrinsics_format": "pixels"}
    for content, words in (
        (b"[]", "could not be read as gzip"),
        (gzip.compress(b"[]"), "not a list of annotations"),
        (place.read_bytes()[:-20], "is truncated"),
        (gzip.compress(json.dumps([{**healthy, "image": {}}]).encode()), "frame 0 .*'size' is missing"),
        (gzip.compress(json.dumps([{**healthy, "viewpoint": wrong}]).encode()), "R of frame 0 is not a rotation"),
        (gzip.compress(json.dumps([healthy, {**healthy, "viewpoint": other}]).encode()), "frame 1 .*format 'pixels'"),
    ):
        place.write_bytes(content)
        with pytest.raises(DataError, match=words):
            setsup.load("co3d", tmp_path)
    co3d.write(tmp_path)
    (tmp_path / "apple/set_lists/set_lists_fewview_dev.json").write_text('{"train": [["110"]]}')
    with pytest.raises(DataError, match="is not a set list"):
        setsup.load("co3d", tmp_path)
