"""Stages of the recipe one by one, and what can be wrong with a folder of orbits."""

import csv
import math
import pickle
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup.files import data_places, load_manifest
from setsup_papers.orbits.datasets import video_orbits
from setsup_papers.orbits.datasets.video_orbits import (
    Cascades,
    Faces,
    YuNet,
    confirmed,
    largest,
    least_yaw,
    link,
    overlap,
    yaw_of_points,
)
from tests.fuzzing import survives
from tests.true_files import video_orbits as true_files

EMPTY = np.zeros((8, 8, 3), np.uint8)
edges = st.integers(0, 30)
boxes = st.lists(
    st.tuples(edges, edges, st.integers(1, 20), st.integers(1, 20)).map(
        lambda at: (at[0], at[1], at[0] + at[2], at[1] + at[3])
    ),
    max_size=5,
)


# -- tracks ------------------------------------------------------------------------------------------------------------


@given(boxes, boxes)
def test_overlap_counts_pixels(one, two):
    """Boxes with whole edges: their pixels, counted one by one."""

    def pixels(box):
        return {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}

    found = overlap(one, two)
    assert found.shape == (len(one), len(two))
    for row, first in enumerate(one):
        for column, second in enumerate(two):
            both, either = pixels(first) & pixels(second), pixels(first) | pixels(second)
            assert found[row, column] == pytest.approx(len(both) / len(either))


@pytest.mark.long("videos")
@given(st.lists(boxes, max_size=6))
def test_links_join_boxes_that_overlap_in_following_frames(shot):
    numbers = link(shot, least=0.5, gap=0)
    assert [len(each) for each in numbers] == [len(each) for each in shot]
    begun = -1
    for frame, each in enumerate(numbers):
        assert len(set(each.tolist())) == len(each)
        for box, number in zip(shot[frame], each.tolist(), strict=True):
            if number > begun:
                assert number == begun + 1
                begun = number
            else:
                before = numbers[frame - 1].tolist()
                assert overlap([shot[frame - 1][before.index(number)]], [box])[0, 0] >= 0.5
    # no box that could have gone on with a track that ended began another
    for frame in range(1, len(shot)):
        ended = [n for n in numbers[frame - 1].tolist() if n not in numbers[frame].tolist()]
        fresh = [n for n in numbers[frame].tolist() if n not in numbers[frame - 1].tolist()]
        for one in ended:
            for other in fresh:
                last = shot[frame - 1][numbers[frame - 1].tolist().index(one)]
                here = shot[frame][numbers[frame].tolist().index(other)]
                assert overlap([last], [here])[0, 0] < 0.5


def test_a_missed_face_does_not_end_its_track():
    face = [(0, 0, 10, 10)]
    missed = [face, [], [], face, face]
    assert [each.tolist() for each in link(missed, gap=2)] == [[0], [], [], [0], [0]]
    assert [each.tolist() for each in link(missed, gap=1)] == [[0], [], [], [1], [1]]


def test_of_two_boxes_the_nearer_goes_on():
    last, near, far = (0, 0, 10, 10), (1, 0, 11, 10), (4, 0, 14, 10)
    assert [each.tolist() for each in link([[last], [far, near]])] == [[0], [1, 0]]


@pytest.mark.long("videos")
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(1, 5)), max_size=20))
def test_the_largest_track_of_each_group(faces):
    group = [each[0] for each in faces]
    track = [each[0] * 10 + each[1] for each in faces]
    sides = [(0, 0, each[2], each[2]) for each in faces]
    best = {}
    for at, number in enumerate(dict.fromkeys(track)):
        members = [place for place, each in enumerate(track) if each == number]
        size = (len(members), sum(faces[place][2] ** 2 for place in members), -at)
        best[number // 10] = max(best.get(number // 10, ((-1,), None)), (size, number))
    kept = {number for _, number in best.values()}
    assert largest(group, track, sides).tolist() == [number in kept for number in track]


# -- yaw and the canonical face ----------------------------------------------------------------------------------------


@given(st.floats(-70, 70), st.floats(-40, 40), st.floats(5, 200), st.tuples(st.floats(-99, 99), st.floats(-99, 99)))
def test_yaw_of_a_head_seen_from_far(turn, tilt, scale, move):
    """Points of a head whose nose stands out by half the distance of its eyes, projected in parallel."""
    head = np.array([(-0.5, 0, 0), (0.5, 0, 0), (0, 0.5, 0.5), (-0.4, 1, 0.1), (0.4, 1, 0.1)])
    sin, cos = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    turned = head @ np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]]).T
    sin, cos = math.sin(math.radians(tilt)), math.cos(math.radians(tilt))
    seen = turned[:, :2] @ np.array([[cos, -sin], [sin, cos]]).T * scale + move
    assert yaw_of_points(EMPTY, Faces([[0, 0, 1, 1]], [1], [seen]))[0] == pytest.approx(turn, abs=1e-6)


def test_yaw_is_unknown_without_points():
    assert np.isnan(yaw_of_points(EMPTY, Faces([[0, 0, 1, 1]], [1]))).all()
    same = np.full((1, 5, 2), 3.0)
    assert np.isnan(yaw_of_points(EMPTY, Faces([[0, 0, 1, 1]], [1], same))).all()
    assert yaw_of_points(EMPTY, Faces([], [])).shape == (0,)


known = st.one_of(st.none(), st.integers(-90, 90))


@given(st.lists(st.tuples(known, st.one_of(st.none(), st.integers(0, 3))), min_size=1, max_size=8))
def test_the_canonical_face(faces):
    yaw = [math.nan if turn is None else float(turn) for turn, _ in faces]
    score = [math.nan if sure is None else float(sure) for _, sure in faces]

    def order(place):
        turn, sure = faces[place]
        return (99 if turn is None else abs(turn) // 5, -1 * (-9 if sure is None else sure), place)

    assert least_yaw(yaw, score) == min(range(len(faces)), key=order)


# -- detectors ---------------------------------------------------------------------------------------------------------


def test_confirmed_looks_around_every_proposal():
    frame = np.zeros((100, 200, 3), np.uint8)
    frame[..., 0] = np.arange(200)
    asked = []

    def second(part):
        asked.append((part.shape, int(part[0, 0, 0])))
        return Faces([[10, 10, 30, 30], [0, 0, 4, 4]], [0.5, 0.9], np.arange(20.0).reshape(2, 5, 2))

    # the first two propose one face twice; around the last, at the edge, the second detector sees nothing near
    proposed = Faces([[40, 40, 60, 60], [41, 40, 61, 60], [180, 80, 200, 100]], [1, 2, 3])
    found = confirmed(frame, proposed, second)
    assert asked == [((40, 40, 3), 30), ((40, 40, 3), 31), ((30, 30, 3), 170)]
    assert found.boxes.tolist() == [[40, 40, 60, 60], [180, 80, 200, 100]]
    assert found.scores.tolist() == [0.5, 0.5]
    assert found.points[0, 1].tolist() == [32, 33]
    assert len(confirmed(frame, Faces([], []), second)) == 0
    assert len(confirmed(frame, proposed, lambda part: Faces([], []))) == 0


@pytest.mark.long("videos")
def test_a_genuine_face_is_found_and_tracked():
    """A photograph of an astronaut, whose eyes stand near (202, 103) and (247, 104)."""
    pytest.importorskip("cv2")
    data = pytest.importorskip("skimage.data")
    picture = data.astronaut()[:256, 64:384]
    for names in (("frontalface_alt2", "profileface"), ("frontalface_default",)):
        faces = Cascades(names)(picture)
        best = faces.boxes[0]
        for x, y in ((202 - 64, 103), (247 - 64, 104)):
            assert best[0] < x < best[2]
            assert best[1] < y < (best[1] + best[3]) / 2
        assert 80 < best[2] - best[0] < 115
    two = confirmed(picture, Cascades()(picture), Cascades(("frontalface_alt",), smallest=0.2))
    assert len(two) == 1
    assert overlap(two.boxes, Cascades()(picture).boxes[:1])[0, 0] > 0.6
    shot = [Cascades()(np.roll(picture, 3 * t, 1)).boxes[:1] for t in range(5)]
    assert [each.tolist() for each in link(shot)] == [[0]] * 5
    assert shot[4][0, 0] - shot[0][0, 0] == pytest.approx(12, abs=6)


def test_a_profile_is_found_on_either_side():
    pytest.importorskip("cv2")
    picture = np.full((160, 160, 3), 90, np.uint8)
    true_files.pasted(picture, true_files.head("ann", -60, 120), 20, 20)
    profile = Cascades(("profileface",))
    one, other = profile(picture), profile(picture[:, ::-1].copy())
    assert len(one) == len(other) == 1
    mirrored = [160 - one.boxes[0, 2], one.boxes[0, 1], 160 - one.boxes[0, 0], one.boxes[0, 3]]
    assert other.boxes[0].tolist() == mirrored


def test_cascades_say_what_is_wrong(monkeypatch):
    cv2 = pytest.importorskip("cv2")
    with pytest.raises(DataError, match=r"no cascade named 'frontal'.*frontalface_default"):
        Cascades(("frontal",))(EMPTY)
    monkeypatch.delattr(cv2, "CascadeClassifier")
    with pytest.raises(DataError, match="below 5"):
        Cascades()(EMPTY)


def test_yunet_gives_boxes_and_points_in_pixels_of_the_frame(tmp_path, monkeypatch):
    """OpenCV tells 15 numbers a face: left, top, width, height, five points from the right eye on, score."""
    cv2 = pytest.importorskip("cv2")
    (tmp_path / "net.onnx").write_bytes(b"weights")
    sizes = []

    class Net:
        def setInputSize(self, size):
            sizes.append(size)

        def detect(self, picture):
            assert picture.shape[1::-1] == sizes[-1]
            assert picture[0, 0].tolist() == [30, 20, 10]  # blue, green, red
            rows = [[10, 20, 30, 40, *range(50, 60), 0.7], [60, 20, 30, 40, *range(50, 60), 0.8]]
            return 1, np.array(rows, np.float32)

    def create(path, config, size, least):
        assert (path, config, least) == (str(tmp_path / "net.onnx"), "", 0.5)
        return Net()

    monkeypatch.setattr(cv2, "FaceDetectorYN", types.SimpleNamespace(create=create))
    net = YuNet(tmp_path / "net.onnx", least=0.5)
    frame = np.full((240, 640, 3), (10, 20, 30), np.uint8)
    found = net(frame)
    assert sizes == [(320, 120)]
    assert found.boxes.tolist() == [[120, 40, 180, 120], [20, 40, 80, 120]]
    assert found.points[0, 2].tolist() == [108, 110]
    assert np.allclose(found.scores, [0.8, 0.7])
    assert net(frame[:100, :160]).boxes[1].tolist() == [10, 20, 40, 60]


def test_yunet_without_weights_or_with_damaged_ones(tmp_path, monkeypatch):
    pytest.importorskip("cv2")
    monkeypatch.setenv("SETSUP_DATA", str(tmp_path))
    with pytest.raises(DataError, match="setsup fetch video-orbits") as error:
        YuNet()(EMPTY)
    assert str(tmp_path / "video-orbits" / "face_detection_yunet_2023mar.onnx") in str(error.value)
    (tmp_path / "video-orbits").mkdir()
    (tmp_path / "video-orbits" / "face_detection_yunet_2023mar.onnx").write_bytes(b"no network" * 99)
    with pytest.raises(DataError, match="remove it and run `setsup fetch video-orbits`"):
        YuNet()(EMPTY)
    (file,) = load_manifest("video-orbits").files
    assert file.path == "face_detection_yunet_2023mar.onnx"


def test_yunet_itself(monkeypatch):
    """ForLevels where its weights lie in the usual place of this machine."""
    pytest.importorskip("cv2")
    data = pytest.importorskip("skimage.data")
    monkeypatch.delenv("SETSUP_CACHE")
    if not any((place / "face_detection_yunet_2023mar.onnx").is_file() for place in data_places("video-orbits")):
        pytest.skip("YuNet's weights are not here; `setsup fetch video-orbits` gets them")
    picture = data.astronaut()[:256, 64:384]
    found = confirmed(picture, Cascades()(picture), YuNet())
    assert len(found) == 1
    assert np.abs(found.points[0, :2] - [(202 - 64, 103), (247 - 64, 104)]).max() < 8
    assert abs(yaw_of_points(picture, found)[0]) < 40


# -- the data set ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orbits")
    true_files.write(folder)
    return folder


@pytest.mark.long("videos")
def test_factors_say_what_the_table_says(release):
    faces = setsup.load("video-orbits", release)
    with (release / "orbits.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = faces.factors
    assert table.names == ("video", "track", "yaw", "shot", "frame", "time", "score", "canonical")
    assert table.values("video").tolist() == [row["video"] for row in rows]
    assert table.values("track").tolist() == [row["track"] for row in rows]
    assert table.values("shot").tolist() == [int(row["shot"]) for row in rows]
    assert table.values("frame").tolist() == [int(row["frame"]) for row in rows]
    assert table.values("canonical").tolist() == [row["canonical"] == "true" for row in rows]
    assert np.array_equal(table.column("yaw"), np.array([row["yaw"] for row in rows], np.float32))
    images = faces.fetch(range(len(rows)))["image"]
    for row, image in zip(rows, images, strict=True):
        assert np.array_equal(image, np.asarray(Image.open(release / row["file"])))
    again = pickle.loads(pickle.dumps(faces))
    assert np.array_equal(again.fetch(3)["image"], images[3])


def test_whole_orbits_and_their_canonical_member(release):
    faces = setsup.load("video-orbits", release)
    draw = setsup.OrbitSampler(faces.factors, "track", sets=3, canonical={"canonical": True})[0]
    assert draw.indices.shape == (3, 7)
    assert sorted(draw.mask.sum(1).tolist()) == [4, 5, 7]
    assert sorted(faces.factors.values("yaw", draw.canonical).tolist()) == [1, 2, 4]


def copied(release, folder, change=lambda lines: lines):
    for path in release.rglob("*.png"):
        target = folder / path.relative_to(release)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    lines = (release / "orbits.csv").read_text().splitlines()
    (folder / "orbits.csv").write_text("\n".join(change(lines)) + "\n")
    return folder


def test_columns_that_are_not_there(release, tmp_path):
    folder = copied(release, tmp_path, lambda lines: [",".join(line.split(",")[::3][:2]) for line in lines])
    faces = video_orbits.open(folder)  # file and track are left
    assert faces.factors.names == ("track",)
    assert faces.factors["track"].within is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda lines: lines[:1], "no rows"),
        (lambda lines: [lines[0].replace("track", "orbit"), *lines[1:]], "'track'"),
        (lambda lines: [lines[0].replace("shot", "track"), *lines[1:]], "'track'"),
        (lambda lines: [lines[0].replace("time", "yaw"), *lines[1:]], "two columns 'yaw'"),
        (
            lambda lines: [*lines, lines[1].replace("tracks/", "nowhere/", 1)],
            "1 of 17 files of .* are missing: nowhere/late",
        ),
        (lambda lines: [*lines, lines[1].replace("late/monday.mp4,", "other.mp4,")], "two videos"),
        (lambda lines: [*lines, lines[1].replace("-40.0000", "inf")], "not finite"),
        (lambda lines: [*lines, lines[1].replace("-40.0000", "left")], "not a table of orbits"),
        (lambda lines: [*lines, lines[1].replace("false", "maybe")], "not a table of orbits"),
        (lambda lines: [*lines, "a,b"], "not a table of orbits"),
        (lambda lines: [*lines, "," + lines[1].partition(",")[2]], "'file'"),
    ],
)
def test_tables_that_are_wrong(release, tmp_path, change, says):
    with pytest.raises(DataError, match=says) as error:
        video_orbits.open(copied(release, tmp_path, change))
    assert "orbits.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_damaged_crop(release, tmp_path):
    folder = copied(release, tmp_path)
    path = folder / "tracks" / "tuesday.mkv" / "0001-00" / "000041.png"
    path.write_bytes(path.read_bytes()[:500])
    faces = video_orbits.open(folder)
    row = faces.factors.rows("frame == 41")
    with pytest.raises(DataError, match=r"000041\.png"):
        faces.fetch(row)


@pytest.mark.long("fuzzing")
def test_fuzzed_tables(release, tmp_path):
    folder = copied(release, tmp_path)
    path = folder / "orbits.csv"

    def read(content):
        path.write_bytes(content)
        faces = video_orbits.open(folder)
        assert len(faces) == len(faces.factors)

    refused = survives(path.read_bytes(), read, rounds=75, head=300)
    assert refused > 10


def test_an_empty_place(tmp_path):
    with pytest.raises(DataError, match="setsup fetch video-orbits"):
        video_orbits.open(tmp_path)
    with pytest.raises(DataError, match=r"orbits\.csv"):
        video_orbits.open(Path(tmp_path / "nowhere"))


def test_importing_needs_no_video_library(monkeypatch):
    for name in ("cv2", "scenedetect", "av"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in [each for each in sys.modules if each.startswith("setsup_papers.orbits.datasets.video_orbits")]:
        monkeypatch.delitem(sys.modules, name)
    import setsup_papers.orbits.datasets.video_orbits as fresh

    assert fresh.open is not video_orbits.open
