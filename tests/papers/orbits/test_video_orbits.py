"""The recipe on clips of drawn heads, whose boxes, turns and cuts are known."""

import csv
import functools
import importlib
import json
import logging
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.errors import DataError
from setsup_cli.main import main
from setsup_papers.orbits.datasets import video_orbits
from setsup_papers.orbits.datasets.video_orbits import Cascades, ContentCuts, Faces, extract, no_cuts
from tests.true_files.video_orbits import face_box, head, pasted, points

av = pytest.importorskip("av")
pytest.importorskip("cv2")
pytest.importorskip("scenedetect")

WIDTH, HEIGHT, SIDE = 320, 240, 120
RATE = 25

# a film is a list of shots, a shot its ground and for each frame the people in it: who, left, top, yaw
YAWS = (-40, -30, -20, -10, 0, 10, 20, 30)


@functools.cache
def ground(seed):
    """An image without faces: blurred noise with a colour of its own."""
    dice = np.random.default_rng(seed)
    coarse = dice.integers(0, 256, (HEIGHT // 40, WIDTH // 40, 3), dtype=np.uint8)
    picture = np.asarray(Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)).astype(int)
    tint = np.array([[30, 60, 110], [110, 70, 30], [40, 110, 60], [120, 120, 120]][seed % 4])
    return np.clip(picture // 4 + tint, 0, 255).astype(np.uint8)


def monday():
    """Three shots of 24, 20 and 30 frames: ann turns; bob beside ann, both still; bob walks and turns."""
    return [
        (1, [[("ann", 40 + 2 * t, 50, YAWS[t // 3])] for t in range(24)]),
        (2, [[("bob", 20, 60, 10), ("ann", 180, 40 + t % 2, -10)] for t in range(20)]),
        (3, [[("bob", 150 - 3 * t, 70, YAWS[7 - t // 4])] for t in range(30)]),
    ]


def film(path, shots, codec="libx264rgb", pix_fmt="bgr24"):
    """Write a video, by default without loss and fast to decode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as file:
        options = {"qp": "0", "preset": "ultrafast"} if codec == "libx264rgb" else {}
        stream = file.add_stream(codec, rate=RATE, width=WIDTH, height=HEIGHT, pix_fmt=pix_fmt, options=options)
        for seed, frames in shots:
            for people in frames:
                picture = ground(seed).copy()
                for who, left, top, yaw in people:
                    pasted(picture, head(who, yaw, SIDE), left, top)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode())


def truth(shots):
    """Of every frame: number of its shot, and of each person name, box and turn."""
    found = []
    for shot, (_, frames) in enumerate(shots):
        for people in frames:
            boxes = {who: face_box(SIDE) + np.array([left, top, left, top]) for who, left, top, _ in people}
            found.append((shot, boxes, {who: yaw for who, _, _, yaw in people}))
    return found


def iou(one, two):
    width = min(one[2], two[2]) - max(one[0], two[0])
    height = min(one[3], two[3]) - max(one[1], two[1])
    if width <= 0 or height <= 0:
        return 0.0
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, two)]
    return width * height / (sum(area) - width * height)


def table(out):
    with (out / "orbits.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def box(row):
    return [float(row[side]) for side in ("left", "top", "right", "bottom")]


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Known:
    """A detector that knows where the heads of a film stand, by the digest of each frame."""

    def __init__(self, *films, score=0.9):
        self.by_picture = {}
        for shots in films:
            for seed, frames in shots:
                for people in frames:
                    picture = ground(seed).copy()
                    for who, left, top, yaw in people:
                        pasted(picture, head(who, yaw, SIDE), left, top)
                    self.by_picture[picture.tobytes()] = people
        self.score = score

    def __call__(self, frame):
        people = self.by_picture[frame.tobytes()]
        corners = np.array([(left, top, left, top) for _, left, top, _ in people], float).reshape(-1, 4)
        five = np.array([points(yaw, SIDE) + np.array([left, top]) for _, left, top, yaw in people]).reshape(-1, 5, 2)
        scores = [self.score(frame) if callable(self.score) else self.score] * len(people)
        return Faces(corners + face_box(SIDE), scores, five)


@pytest.fixture(scope="module")
def videos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")
    film(folder / "late" / "monday.mkv", monday())
    return folder


@pytest.fixture(scope="module")
def found(videos, tmp_path_factory):
    """The recipe with cascades as both stages, which need no file."""
    out = tmp_path_factory.mktemp("orbits")
    extract(videos, out, detect=Cascades(), confirm=Cascades(("frontalface_alt",), smallest=0.2), keep="all")
    return table(out)


@pytest.mark.long("videos")
@pytest.mark.parametrize(("codec", "pix_fmt", "end"), [("ffv1", "bgr0", "mkv"), ("mpeg4", "yuv420p", "avi")])
def test_cuts_are_found_exactly(tmp_path, codec, pix_fmt, end):
    path = tmp_path / f"monday.{end}"
    film(path, monday(), codec, pix_fmt)
    video = importlib.import_module("setsup.datasets.formats.video.frames").VideoFile(path)
    assert ContentCuts()(video) == [24, 44]
    assert no_cuts(video) == []
    # what is told to be no shorter than a second hides the second cut
    assert ContentCuts(shortest=0.9)(video) == [24]


@pytest.mark.long("videos")
def test_a_walk_is_no_cut(tmp_path):
    shots = [(1, [[("ann", 20 + 5 * t, 50, 0)] for t in range(36)])]
    film(tmp_path / "walk.mkv", shots)
    video = importlib.import_module("setsup.datasets.formats.video.frames").VideoFile(tmp_path / "walk.mkv")
    assert ContentCuts()(video) == []


@pytest.mark.long("videos")
def test_faces_are_where_they_were_drawn(found):
    """Detection against the known boxes: nothing but heads, and none missed that is turned by 20° or less."""
    known = truth(monday())
    hits, every = set(), []
    for row in found:
        _, boxes, turns = known[int(row["frame"])]
        overlaps = {who: iou(box(row), there) for who, there in boxes.items()}
        who = max(overlaps, key=overlaps.get)
        # cascades look at the features, which a turn moves out of the middle of the skull
        assert overlaps[who] > (0.55 if abs(turns[who]) <= 20 else 0.4), row
        hits.add((int(row["frame"]), who))
        every.append(overlaps[who])
    assert len(hits) == len(every)
    assert np.mean(every) > 0.65
    facing = {(at, who) for at, (_, _, turns) in enumerate(known) for who in turns if abs(turns[who]) <= 20}
    assert len(facing) == 75
    assert facing <= hits


@pytest.mark.long("videos")
def test_tracks_follow_one_head_within_its_shot(found):
    known = truth(monday())
    people, lengths = {}, {}
    for row in found:
        shot, boxes, _ = known[int(row["frame"])]
        assert int(row["shot"]) == shot
        assert row["track"].startswith(f"late/monday.mkv/{shot:04}-")
        who = max(boxes, key=lambda each: iou(box(row), boxes[each]))
        people.setdefault(row["track"], set()).add((shot, who))
        lengths[row["track"]] = lengths.get(row["track"], 0) + 1
    assert all(len(each) == 1 for each in people.values())
    # one track a head and shot: none is broken
    assert sorted(who for each in people.values() for who in each) == [(0, "ann"), (1, "ann"), (1, "bob"), (2, "bob")]
    assert all(float(row["time"]) == pytest.approx(int(row["frame"]) / RATE, abs=2e-3) for row in found)


@pytest.mark.long("videos")
def test_the_largest_track_of_a_video_is_kept_and_its_least_turned_face_is_canonical(videos, tmp_path):
    shots = monday()
    out = tmp_path / "orbits"
    assert extract(videos, out, detect=Known(shots), confirm=None) == out / "orbits.csv"
    rows = table(out)
    assert [int(row["frame"]) for row in rows] == list(range(44, 74))
    assert {row["track"] for row in rows} == {"late/monday.mkv/0002-00"}
    turns = [truth(shots)[int(row["frame"])][2]["bob"] for row in rows]
    # frontal in frames 12 to 15 of the shot, which tie; their scores too, so that it is the first of them
    assert turns.index(0) == 12
    assert [row["canonical"] == "true" for row in rows] == [at == 12 for at in range(30)]
    # estimates keep the order and the side of the turns
    estimates = [float(row["yaw"]) for row in rows]
    assert np.corrcoef(np.argsort(np.argsort(turns)), np.argsort(np.argsort(estimates)))[0, 1] > 0.99
    assert all(abs(np.sign(turn) - np.sign(round(yaw, 3))) == 0 for turn, yaw in zip(turns, estimates, strict=True))
    assert max(abs(turn - yaw) for turn, yaw in zip(turns, estimates, strict=True)) < 15


@pytest.mark.long("videos")
def test_ties_are_decided_by_the_score(videos, tmp_path):
    shots = monday()
    favoured = ground(3).copy()
    pasted(favoured, head("bob", 0, SIDE), 150 - 3 * 14, 70)

    def score(frame):
        return 0.99 if np.array_equal(frame, favoured) else 0.5

    extract(videos, tmp_path / "orbits", detect=Known(shots, score=score), confirm=None)
    assert [int(row["frame"]) for row in table(tmp_path / "orbits") if row["canonical"] == "true"] == [44 + 14]


@pytest.mark.long("videos")
@pytest.mark.parametrize(("keep", "kept"), [("shot", [24, 20, 30]), ("all", [24, 20, 20, 30])])
def test_other_tracks_on_demand(videos, tmp_path, keep, kept):
    extract(videos, tmp_path / "orbits", detect=Known(monday()), confirm=None, keep=keep)
    rows = table(tmp_path / "orbits")
    tracks = dict.fromkeys(row["track"] for row in rows)
    assert [sum(row["track"] == track for row in rows) for track in tracks] == kept
    assert sum(row["canonical"] == "true" for row in rows) == len(kept)
    if keep == "shot":
        # bob and ann are both there for 20 frames and as large: the first is taken
        assert float(next(row["left"] for row in rows if row["shot"] == "1")) < 100


@pytest.mark.long("videos")
def test_crops_show_what_the_box_says(videos, tmp_path):
    shots = monday()
    extract(videos, tmp_path / "orbits", detect=Known(shots), confirm=None, size=80, margin=0.1)
    for row in table(tmp_path / "orbits")[::7]:
        seed, frames = shots[2]
        picture = ground(seed).copy()
        (who, left, top, yaw) = frames[int(row["frame"]) - 44][0]
        pasted(picture, head(who, yaw, SIDE), left, top)
        near, upper, far, lower = box(row)
        half = (0.5 + 0.1) * max(far - near, lower - upper)
        x, y = (near + far) / 2, (upper + lower) / 2
        where = (x - half, y - half, x + half, y + half)
        wide = Image.fromarray(np.pad(picture, ((99, 99), (99, 99), (0, 0)), "edge"))
        expected = wide.resize((80, 80), Image.Resampling.BICUBIC, box=tuple(edge + 99 for edge in where))
        crop = np.asarray(Image.open(tmp_path / "orbits" / row["file"])).astype(int)
        assert np.abs(crop - np.asarray(expected)).max() <= 1  # the box is written to a hundredth of a pixel


@pytest.mark.long("videos")
def test_every_stage_can_be_replaced(videos, tmp_path):
    asked = []

    def cuts(video):
        asked.append(video.frames)
        return [10, 50]

    def track(boxes):
        return [np.arange(len(each)) + 7 for each in boxes]

    def confirm(frame):
        height, width = frame.shape[:2]
        middle = [0.3 * width, 0.3 * height, 0.7 * width, 0.7 * height]
        return Faces([middle, [0, 0, 2, 2]], [0.25, 0.99])

    def yaw(frame, faces):
        return [float(frame.shape[1])] * len(faces)

    def canonical(yaws, scores):
        return len(yaws) - 1

    extract(
        *(videos, tmp_path / "orbits"),
        **{"cuts": cuts, "detect": Known(monday()), "confirm": confirm, "track": track, "yaw": yaw},
        canonical=canonical,
        keep="shot",
    )
    rows = table(tmp_path / "orbits")
    assert asked == [74]
    assert [int(row["frame"]) for row in rows] == list(range(74))
    assert [int(row["shot"]) for row in rows] == [0] * 10 + [1] * 40 + [2] * 24
    # the box that overlaps the proposal, not the surer one beside it
    assert {row["score"] for row in rows} == {"0.250000"}
    assert {row["yaw"] for row in rows} == {"320.0000"}
    assert [int(row["frame"]) for row in rows if row["canonical"] == "true"] == [9, 49, 73]


@pytest.mark.long("videos")
@pytest.mark.parametrize(
    ("stage", "replacement", "says"),
    [
        ("cuts", lambda video: [0, 10], "cuts"),
        ("cuts", lambda video: [10, 74], "cuts"),
        ("cuts", lambda video: [30, 20], "cuts"),
        ("detect", lambda frame: [[1, 2, 3, 4]], "must return Faces"),
        ("detect", lambda frame: Faces([[5, 5, 5, 9]], [1]), "finite boxes"),
        ("detect", lambda frame: Faces([[5, 5, 8, 9]], [1, 2]), "2 scores"),
        ("detect", lambda frame: Faces([[5, 5, 8, 9]], [np.nan]), "finite scores"),
        ("yaw", lambda frame, faces: 0.0, "yaws"),
        ("track", lambda boxes: [[0]], "number to every box"),
        ("canonical", lambda yaw, score: 99, "the position 99"),
        ("keep", "none", "keep must be one of video, shot, all"),
        ("size", 0, "size must be"),
    ],
)
def test_stages_that_give_what_they_should_not(videos, tmp_path, stage, replacement, says):
    stages = {"cuts": no_cuts, "detect": Known(monday()), "confirm": None, stage: replacement}
    with pytest.raises(DataError, match=says) as error:
        extract(videos, tmp_path / "orbits", **stages)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "orbits" / "orbits.csv").exists()


# -- a folder of several videos ----------------------------------------------------------------------------------------


def short(who, count, yaws=(30, 10, -10), seed=1):
    return [(seed, [[(who, 60 + t, 50, yaws[t * len(yaws) // count])] for t in range(count)])]


FILMS = {"a/1.mkv": short("ann", 12), "a/2.mkv": short("bob", 7, seed=2), "b.mkv": short("cem", 9, seed=3)}


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    folder = tmp_path_factory.mktemp("several")
    for name, shots in FILMS.items():
        film(folder / name, shots)
    (folder / "readme.txt").write_text("not a video")
    return folder


def recipe(several, out, **stages):
    return extract(several, out, **{"cuts": no_cuts, "detect": Known(*FILMS.values()), "confirm": None, **stages})


@pytest.mark.long("videos")
def test_ragged_orbits_are_drawn_with_their_canonical_member(several, tmp_path):
    recipe(several, tmp_path / "orbits")
    faces = setsup.load("video-orbits", tmp_path / "orbits")
    rows = table(tmp_path / "orbits")
    assert len(faces) == 28
    assert faces.factors["track"].levels == ("a/1.mkv/0000-00", "a/2.mkv/0000-00", "b.mkv/0000-00")
    assert faces.factors["track"].within == "video"
    for name, column in (("video", str), ("track", str), ("shot", int), ("frame", int)):
        assert faces.factors.values(name).tolist() == [column(row[name]) for row in rows]
    for name in ("time", "score", "yaw"):
        assert np.array_equal(faces.factors.column(name), np.array([row[name] for row in rows], np.float32))
    sampler = setsup.OrbitSampler(faces.factors, "track", sets=2, canonical={"canonical": True})
    assert sampler.size == 12
    lengths = {"a/1.mkv": 12, "a/2.mkv": 7, "b.mkv": 9}
    seen = set()
    for step in range(20):
        draw = sampler[step]
        assert draw.indices.shape == (2, 12)
        for number, members in enumerate(draw.indices):
            mask = np.ones(12, bool) if draw.mask is None else draw.mask[number]
            (video,) = {rows[row]["video"] for row in members}
            assert sorted(members[mask]) == [at for at, row in enumerate(rows) if row["video"] == video]
            assert mask.sum() == lengths[video]
            turns = [abs(float(rows[row]["yaw"])) for row in members]
            assert abs(float(rows[draw.canonical[number]]["yaw"])) < min(turns) + 5
            assert rows[draw.canonical[number]]["canonical"] == "true"
            seen.add(video)
        images = faces.fetch(draw.indices)["image"]
        assert images.shape == (2, 12, 96, 96, 3)
        first = np.asarray(Image.open(tmp_path / "orbits" / rows[draw.indices[1, 3]]["file"]))
        assert np.array_equal(images[1, 3], first)
    assert seen == set(lengths)


@pytest.mark.long("kills and interruptions")
def test_the_same_bytes_again_and_after_an_interruption(several, tmp_path, monkeypatch):
    recipe(several, tmp_path / "whole")
    known, looked = Known(*FILMS.values()), []

    def detect(frame):
        looked.append(1)
        if len(looked) == 15:  # in the second video
            raise KeyboardInterrupt
        return known(frame)

    with pytest.raises(KeyboardInterrupt):
        recipe(several, tmp_path / "cut", detect=detect)
    assert not (tmp_path / "cut" / "orbits.csv").exists()
    with pytest.raises(DataError, match="was interrupted"):
        video_orbits.open(tmp_path / "cut")
    recipe(several, tmp_path / "cut", detect=detect)
    assert len(looked) == 15 + 7 + 9  # the first video was not looked at again
    one, two = (content(tmp_path / name) for name in ("whole", "cut"))
    named = {name for name in one if not name.endswith((".json", ".lock"))}
    assert named == {name for name in two if not name.endswith((".json", ".lock"))}
    assert all(one[name] == two[name] for name in named)
    assert not [name for name in two if ".tmp" in name]
    # what changes in the recipe or in a video is done anew, and only that
    before = len(looked)
    recipe(several, tmp_path / "cut", detect=detect)
    assert len(looked) == before
    recipe(several, tmp_path / "cut", detect=detect, size=64)
    assert len(looked) == before + 28
    assert video_orbits.open(tmp_path / "cut").modalities["image"].shape == (64, 64, 3)


@pytest.mark.long("kills and interruptions")
def test_killed_and_started_again(several, tmp_path):
    """The process is killed as soon as the first video is done."""
    script = tmp_path / "run.py"
    script.write_text(
        "import os, signal, sys\n"
        "from setsup_papers.orbits.datasets.video_orbits import Faces, extract, no_cuts\n"
        "seen = []\n"
        "def detect(frame):\n"
        "    seen.append(1)\n"
        "    if len(seen) == int(sys.argv[3]):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return Faces([[90, 80, 150, 140]], [0.5])\n"
        "extract(sys.argv[1], sys.argv[2], cuts=no_cuts, detect=detect, confirm=None)\n"
        "print(len(seen))\n"
    )
    words = [sys.executable, str(script), str(several)]
    killed = subprocess.run([*words, str(tmp_path / "cut"), "21"], check=False)
    assert killed.returncode == -signal.SIGKILL
    again = subprocess.run([*words, str(tmp_path / "cut"), "0"], check=True, capture_output=True, text=True)
    assert again.stdout.split() == ["9"]  # the frames of the third video
    subprocess.run([*words, str(tmp_path / "whole"), "0"], check=True, capture_output=True)
    one, two = (content(tmp_path / name) for name in ("whole", "cut"))
    assert {name: data for name, data in one.items() if "tmp" not in name} == {
        name: data for name, data in two.items() if "tmp" not in name
    }


@pytest.mark.long("videos")
def test_videos_without_a_face(several, tmp_path, caplog):
    folder = tmp_path / "videos"
    shutil.copytree(several, folder)
    empty = [(4, [[] for _ in range(8)])]
    film(folder / "nobody.mkv", empty)
    known = Known(*FILMS.values(), empty)
    with caplog.at_level(logging.WARNING, "setsup"):
        recipe(folder, tmp_path / "orbits", detect=known)
    assert "no face was found in 1 of 4 videos: nobody.mkv" in caplog.text
    assert {row["video"] for row in table(tmp_path / "orbits")} == set(FILMS)
    (tmp_path / "alone").mkdir()
    shutil.move(folder / "nobody.mkv", tmp_path / "alone")
    with pytest.raises(DataError, match="no face was found in any of the"):
        extract(tmp_path / "alone", tmp_path / "none", detect=Cascades(), confirm=None)


@pytest.mark.long("fuzzing")
def test_a_damaged_video_is_named_once_the_others_are_done(several, tmp_path):
    folder = tmp_path / "videos"
    shutil.copytree(several, folder)
    healthy = (folder / "a" / "2.mkv").read_bytes()
    (folder / "a" / "2.mkv").write_bytes(healthy[:900])
    with pytest.raises(DataError, match=r"2\.mkv.*the other videos \(2\) are finished") as error:
        recipe(folder, tmp_path / "orbits")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "orbits" / "orbits.csv").exists()
    assert (tmp_path / "orbits" / "tracks" / "b.mkv" / "faces.csv").exists()
    (folder / "a" / "2.mkv").write_bytes(healthy)
    recipe(folder, tmp_path / "orbits")
    recipe(several, tmp_path / "whole")
    assert (tmp_path / "orbits" / "orbits.csv").read_bytes() == (tmp_path / "whole" / "orbits.csv").read_bytes()


@pytest.mark.long("videos")
def test_videos_in_an_archive(several, tmp_path):
    with zipfile.ZipFile(tmp_path / "videos.zip", "w") as file:
        for name in FILMS:
            file.write(several / name, name)
    recipe(tmp_path / "videos.zip", tmp_path / "packed")
    recipe(several, tmp_path / "plain")
    assert content(tmp_path / "packed") == content(tmp_path / "plain")


def test_nothing_to_find_orbits_in(tmp_path):
    (tmp_path / "notes.txt").write_text("no video")
    with pytest.raises(DataError, match="neither videos"):
        extract(tmp_path, tmp_path / "orbits")


# -- frames that are cropped already -----------------------------------------------------------------------------------


def crops(folder):
    """Folders of heads, one of them inside of another."""
    turns = {"ann": (40, 20, 0), "ann/evening": (30, -10), "bob": (-20, 0, 10, 30)}
    for track, yaws in turns.items():
        for at, yaw in enumerate(yaws):
            picture = np.full((80 + at, 80, 3), 90, np.uint8)
            pasted(picture, head(track[:3], yaw, 80), 0, 0)
            (folder / track).mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(folder / track / f"frame{at}.png")
    return turns


def test_cropped_frames_open_as_they_are(tmp_path):
    turns = crops(tmp_path)
    faces = video_orbits.open(tmp_path, size=(64, 64))
    assert faces.factors.names == ("track", "frame")
    assert faces.factors.values("track").tolist() == [track for track, yaws in turns.items() for _ in yaws]
    assert faces.factors.values("frame").tolist() == [at for yaws in turns.values() for at in range(len(yaws))]
    picture = Image.open(tmp_path / "ann" / "evening" / "frame0.png")
    assert np.array_equal(faces.fetch(3)["image"], np.asarray(picture.resize((64, 64), Image.Resampling.BICUBIC)))
    orbits = setsup.OrbitSampler(faces.factors, "track", sets=3, canonical="first")
    assert sorted(orbits[0].canonical.tolist()) == [0, 3, 5]


def test_cropped_frames_get_yaw_score_and_a_canonical_member(tmp_path):
    turns = crops(tmp_path / "crops")

    def confirm(frame):
        if len(frame) == 83:  # one frame of bob in which nothing is seen
            return Faces([], [])
        for yaw in (40, 30, 20, 10, 0, -10, -20):
            for who in ("ann", "bob"):
                picture = np.full_like(frame, 90)
                pasted(picture, head(who, yaw, 80), 0, 0)
                if np.array_equal(picture, frame):
                    return Faces([[5, 5, 50, 50], [5, 5, 70, 70]], [0.1, 0.8], [points(-60, 80), points(yaw, 80)])
        raise AssertionError

    extract(tmp_path / "crops", tmp_path / "crops" / "orbits", confirm=confirm, size=80)
    # again, with the orbits inside of the folder, which are no crops to begin with
    extract(tmp_path / "crops", tmp_path / "crops" / "orbits", confirm=confirm, size=80)
    rows = table(tmp_path / "crops" / "orbits")
    assert [row["track"] for row in rows] == [track for track, yaws in turns.items() for _ in yaws]
    best = {row["track"]: int(row["frame"]) for row in rows if row["canonical"] == "true"}
    assert best == {track: int(np.argmin(np.abs(yaws))) for track, yaws in turns.items()}
    assert (rows[-1]["yaw"], rows[-1]["score"]) == ("", "")
    faces = setsup.load("video-orbits", tmp_path / "crops")
    assert faces.factors.names == ("track", "yaw", "frame", "score", "canonical")
    assert np.isnan(faces.factors.column("yaw")[-1])
    assert np.array_equal(faces.fetch(0)["image"], np.asarray(Image.open(tmp_path / "crops" / "ann" / "frame0.png")))


# -- the command -------------------------------------------------------------------------------------------------------


def test_the_command_says_what_it_needs(several, tmp_path, capsys):
    folder = tmp_path / "videos"
    shutil.copytree(several, folder)
    assert main(["prepare", "video-orbits", "--root", str(folder)]) == 2
    said = capsys.readouterr().err
    assert "setsup fetch video-orbits" in said
    assert "confirm=None" in said


@pytest.mark.long("videos")
def test_the_command_finds_orbits(several, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "videos"
    shutil.copytree(several, folder)
    defaults = {"cuts": no_cuts, "detect": Known(*FILMS.values()), "confirm": None}
    monkeypatch.setattr(video_orbits, "extract", functools.partial(extract, **defaults))
    assert main(["prepare", "video-orbits", "--root", str(folder)]) == 0
    assert capsys.readouterr().out.split() == [str(folder / "orbits")]
    assert len(setsup.load("video-orbits", folder)) == 28
    assert main(["prepare", "video-orbits"]) == 2
    assert "--root" in capsys.readouterr().err


@pytest.mark.long("videos")
def test_the_record_names_the_stages(several, tmp_path):
    recipe(several, tmp_path / "orbits", cuts=ContentCuts(shortest=0.4), track=_track)
    said = json.loads((tmp_path / "orbits" / "recipe.json").read_text())
    assert said["cuts"]["shortest"] == 0.4
    assert said["track"].endswith("_track")
    assert said["confirm"] is None
    assert (said["size"], said["margin"], said["keep"]) == (96, 0.2, "video")


def _track(boxes):
    return [np.zeros(len(each), int) for each in boxes]


@pytest.mark.long("videos")
def test_missing_libraries_are_named(several, tmp_path, monkeypatch):
    for name in ("cv2", "scenedetect"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(DataError, match=rf"{name} is required but not installed: .*\[video\]"):
                extract(several, Path(tmp_path / "orbits"), detect=Cascades(), confirm=None)
