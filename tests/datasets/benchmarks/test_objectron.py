"""Objectron: frames equal to their annotations, and cameras that see boxes where they were annotated."""

import numpy as np
import pytest

import setsup
from setsup.errors import DataError
from tests.true_files import objectron as true
from tests.true_files.rings import project

ROWS = [
    (category, name, number, frame)
    for category, names in true.SEQUENCES.items()
    for number, name in enumerate(names)
    for frame in range(true.FRAMES)
]


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("objectron")
    true.write(folder)
    return folder


def test_frames(release):
    found = setsup.load("objectron", release)
    table = found.factors
    assert table.values("category").tolist() == [category for category, *_ in ROWS]
    assert table.values("sequence").tolist() == [name for _, name, *_ in ROWS]
    assert table.values("frame").tolist() == [3 * frame for *_, frame in ROWS]
    assert np.allclose(table.values("time"), [0.1 * frame for *_, frame in ROWS])
    assert table.values("objects").tolist() == [1 + number % 2 for *_, number, _ in ROWS]
    splits = ["test" if f"{category}/{name}" in true.TEST else "train" for category, name, *_ in ROWS]
    assert table.values("split").tolist() == splits
    for row, (*_, number, frame) in enumerate(ROWS):
        angle = table.values("azimuth")[row] - true.azimuths(number)[frame]
        assert abs((angle + 180) % 360 - 180) < 1e-3
        assert abs(table.values("elevation")[row] - 25 - 5 * number) < 1e-3
        assert abs(table.values("distance")[row] - 2.5) < 1e-5
    assert len(setsup.load("objectron", release, split="test")) == 10


def test_cameras_and_boxes(release):
    found = setsup.load("objectron", release)
    whole = found.fetch(range(len(found)))
    assert whole["points"].shape == (20, 2, 9, 3)
    for row, (*_, number, frame) in enumerate(ROWS):
        points, pixels = true.corners(number, frame)
        count = len(points)
        assert np.allclose(whole["pose"][row], true.pose(number, frame), atol=1e-5)
        assert np.allclose(whole["intrinsics"][row], true.intrinsics())
        assert np.allclose(whole["points"][row, :count], points, atol=1e-5)
        assert np.allclose(whole["pixels"][row, :count], pixels - 0.5, atol=1e-2)
        assert np.isnan(whole["points"][row, count:]).all()
        assert np.isnan(whole["pixels"][row, count:]).all()
        # the pose and the intrinsics take the objects of the world to the annotated pixels
        for (rotation, place, size), seen in zip(true.objects(number), whole["pixels"][row], strict=False):
            world = true.UNIT * size @ rotation.T + place
            camera, k = whole["pose"][row].astype(float), whole["intrinsics"][row].astype(float)
            assert np.allclose(project(world, camera, k), seen + 0.5, atol=0.05)
        # as the published notebook has it, in the phone's frame: z turned about, then x and y exchanged
        x, y, z = (points @ true.UPRIGHT[:3, :3])[0].T
        k = true.intrinsics()
        sideways = np.stack([k[1, 1] * x / -z + k[1, 2], k[0, 0] * y / -z + k[0, 2]])
        assert np.allclose(sideways[::-1].T, whole["pixels"][row, 0] + 0.5, atol=1e-2)


def test_parts_of_a_release(tmp_path, caplog):
    true.write(tmp_path)
    (tmp_path / "annotations" / "bike" / "batch-2" / "9.pbdata").unlink()
    assert len(setsup.load("objectron", tmp_path)) == 15
    assert "1 of the 4 listed sequences are missing (annotations/bike/batch-2/9.pbdata)" in caplog.text
    for place in (tmp_path / "index").iterdir():
        place.unlink()
    assert "split" not in setsup.load("objectron", tmp_path).factors


def test_damaged_files(tmp_path):
    true.write(tmp_path)
    place = tmp_path / "annotations" / "bike" / "batch-2" / "9.pbdata"
    healthy = place.read_bytes()
    frame = true.frame_message(0, 0)
    scaled = frame.replace(np.float32(true.intrinsics()[1, 1]).tobytes(), np.float32("nan").tobytes())
    start = healthy[: healthy.index(frame[:40]) - 3]
    for content, words in (
        (healthy[:-5], "9.pbdata could not be parsed as an Objectron annotation"),
        (b"", "has 0 objects and 0 frames"),
        (b"\x0b" * 9, "wire type 3"),
        (start + true.field(2, true.integer(1, 4)), "the view matrix of a frame has 0 numbers; expected 16"),
        (
            start + true.field(2, scaled),
            "the intrinsics of a frame contains a value that is not finite; expected 9 finite numbers",
        ),
    ):
        place.write_bytes(content)
        with pytest.raises(DataError, match=words) as found:
            setsup.load("objectron", tmp_path)
        assert "\n" not in str(found.value)
    place.write_bytes(healthy)
    (tmp_path / "index" / "bike_annotations_test").write_text("bike/1/20\n")
    with pytest.raises(DataError, match="contains the line 'bike/1/20'"):
        setsup.load("objectron", tmp_path)
