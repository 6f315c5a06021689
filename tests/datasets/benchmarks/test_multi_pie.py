import io
import logging
import pickle
import re
import shutil
import tarfile
import threading
import zipfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks import multi_pie
from setsup.errors import DataError, RowError
from setsup.factors import Kind
from setsup.files import load_manifest
from tests.true_files.multi_pie import TAKEN, YAW, name, write


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multi-pie")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def faces(release):
    return multi_pie.open(release)


def _files(release):
    """Every image's path and what its name says, read by other means."""
    data = release / "Multi-Pie" / "data"
    found = {}
    for path in sorted(data.glob("session*/multiview/*/*/*/*.png")):
        subject, session, recording, camera, shot = re.findall(r"\d+", path.name)
        found[path.relative_to(data).as_posix()] = (subject, int(session), int(recording), camera, int(shot))
    return found


def _tiny(folder, names, size=(64, 48)):
    for place in names:
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size).save(path)


@pytest.mark.long("large or genuine files")
def test_factors_say_what_the_names_say(release, faces):
    files = _files(release)
    assert len(faces) == len(files) == sum(map(len, TAKEN.values())) * 15
    assert faces.paths(range(len(faces))) == list(files)
    table, said = faces.factors, list(files.values())
    assert table.values("subject").tolist() == [subject for subject, *_ in said]
    assert table.values("session").tolist() == [session for _, session, *_ in said]
    assert table.values("recording").tolist() == [recording for _, _, recording, *_ in said]
    assert [camera.replace("_", "") for camera in table.values("camera")] == [camera for *_, camera, _ in said]
    assert table.values("shot").tolist() == [shot for *_, shot in said]
    assert table.values("lighting").tolist() == [0 if shot in (0, 19) else shot for *_, shot in said]
    yaw = {camera.replace("_", ""): angle for camera, angle in YAW.items()}
    assert table.values("yaw").tolist() == [yaw[camera] for *_, camera, _ in said]
    assert table.values("elevated").tolist() == [camera in ("191", "081") for *_, camera, _ in said]
    expressions = {(1, 1): "neutral", (1, 2): "smile", (2, 3): "squint"}
    assert table.values("expression").tolist() == [expressions[e, r] for _, e, r, *_ in said]
    assert (table["yaw"].kind, table["yaw"].unit) == (Kind.ORDINAL, "deg")
    assert table["yaw"].levels == tuple(range(-90, 91, 15))
    assert table["shot"].role == "key"
    assert table["subject"].levels == ("001", "002", "005")
    assert table["recording"].within == "session"


def test_every_expression_and_camera(tmp_path):
    places = [name(f"0{e}", "346", f"0{r}", "05_1", "19") for e in (1, 2, 3, 4) for r in (1, 2, 3)]
    _tiny(tmp_path, places)
    table = multi_pie.open(tmp_path).factors
    assert table.values("expression").tolist() == [
        *("neutral", "smile", None),
        *("neutral", "surprise", "squint"),
        *("neutral", "smile", "disgust"),
        *("neutral", "neutral", "scream"),
    ]
    assert table["expression"].levels == ("neutral", "smile", "surprise", "squint", "disgust", "scream")
    assert set(multi_pie.CAMERAS) == set(YAW)
    assert {camera: yaw for camera, (yaw, _) in multi_pie.CAMERAS.items()} == YAW


@pytest.mark.long("large or genuine files")
def test_pictures(release, faces):
    paths = [release / "Multi-Pie" / "data" / path for path in faces.paths(range(len(faces)))]
    assert faces.modalities["image"].shape == (480, 640, 3)
    assert faces.cpu_bound
    for rows in ([[3, 179], [3, 0]], [], 7, [[]], list(range(20))):
        found = faces.fetch(rows)["image"]
        expected = [np.asarray(Image.open(paths[row])) for row in np.asarray(rows, int).reshape(-1)]
        assert found.dtype == np.uint8
        assert found.shape == (*np.shape(rows), 480, 640, 3)
        assert all(map(np.array_equal, found.reshape(-1, 480, 640, 3), expected))
    out = np.zeros((2, 480, 640, 3), np.uint8)
    faces.fetch_into([5, 5], {"image": out})
    assert np.array_equal(out, faces.fetch([5, 5])["image"])
    assert faces.fetch([1], []) == {}
    with pytest.raises(RowError):
        faces.fetch(180)


@pytest.mark.long("large or genuine files")
def test_resized(release, faces):
    small = multi_pie.open(release, size=(48, 64))
    assert small.modalities["image"].shape == (48, 64, 3)
    picture = Image.fromarray(faces.fetch(100)["image"]).resize((64, 48), Image.Resampling.BICUBIC)
    assert np.array_equal(small.fetch([100])["image"][0], np.asarray(picture))


def test_orbits_of_views_with_the_frontal_one_as_canonical(faces):
    orbit = ["subject", "session", "recording", "shot"]
    views = setsup.OrbitSampler(faces.factors, orbit, canonical={"camera": "05_1"}, where="elevated == False", sets=4)
    draw = views[0]
    assert draw.indices.shape == (4, 13)
    assert draw.mask is None
    table = faces.factors
    assert table.values("camera", draw.canonical).tolist() == ["05_1"] * 4
    for members, canonical in zip(draw.indices, draw.canonical, strict=True):
        assert sorted(table.values("yaw", members)) == list(range(-90, 91, 15))
        for factor in orbit:
            assert len({*table.values(factor, members), table.values(factor, [canonical])[0]}) == 1


def test_orbits_of_the_subjects_of_all_sessions(tmp_path):
    """Neutral faces at head height under 20 shots, as the orbit papers have them: 13 views of each orbit."""
    came = {"001": (1, 2, 3, 4), "002": (1, 2), "003": (1, 2, 3, 4), "007": (2, 3, 4), "020": (4,)}
    content = io.BytesIO()
    Image.new("RGB", (64, 48)).save(content, "PNG")
    with zipfile.ZipFile(tmp_path / "multi-pie.zip", "w") as file:
        for subject, sessions in came.items():
            for session, camera, shot in product(sessions, YAW, range(20)):
                # recording 2 is neutral too in session 4, and is no part
                for recording in ("01", "02") if session == 4 and shot == 0 else ("01",):
                    place = name(f"0{session}", subject, recording, camera, f"{shot:02}")
                    file.writestr(place, content.getvalue())
    table = multi_pie.open(tmp_path).factors
    assert dict(zip(table.values("subject").tolist(), table.values("sessions").tolist(), strict=True)) == {
        subject: len(sessions) for subject, sessions in came.items()
    }
    for sessions, orbits in ((4, 2 * 20 * 4), (3, 20 * 3)):
        where = f"sessions == {sessions} and recording == 1 and elevated == False"
        views = setsup.OrbitSampler(
            table, ["subject", "session", "shot"], orbits, canonical={"camera": "05_1"}, where=where
        )
        draw = views[0]
        assert draw.indices.shape == (orbits, 13)  # all different, so that these are all orbits there are
        assert draw.mask is None
        assert len(np.unique(draw.indices)) == 13 * orbits
        assert set(table.values("subject", draw.indices[:, 0])) == ({"001", "003"} if sessions == 4 else {"007"})
        assert set(table.values("expression", draw.indices).ravel()) == {"neutral"}
        assert set(table.values("camera", draw.canonical)) == {"05_1"}
        with pytest.raises(setsup.SetsupError, match=f"{orbits} drawable orbits"):
            setsup.OrbitSampler(table, ["subject", "session", "shot"], orbits + 1, where=where)


@pytest.mark.parametrize(
    "packing", ["data", "folders above", "zip", "tar", "zip in a folder", "own folder", "one session"]
)
def test_copies(tmp_path, release, faces, packing):
    data, root = release / "Multi-Pie" / "data", release / "Multi-Pie" / "data"
    if packing == "folders above":
        root = tmp_path
        shutil.copytree(data, tmp_path / "CMU Multi PIE #1 é" / "some" / "Multi-Pie" / "data")
    elif packing in ("zip", "zip in a folder"):
        root = tmp_path / "multi-pie.zip"
        with zipfile.ZipFile(root, "w") as file:
            for path in data.rglob("*.png"):
                file.write(path, Path("Multi-Pie/data") / path.relative_to(data))
        root = root if packing == "zip" else tmp_path
    elif packing == "tar":
        root = tmp_path / "faces.tar"
        with tarfile.open(root, "w") as file:
            file.add(release / "Multi-Pie", "Multi-Pie")
    elif packing == "own folder":
        root = tmp_path
        shutil.copytree(data, tmp_path / "multi-pie")
    elif packing == "one session":
        root = tmp_path
        shutil.copytree(data / "session02", tmp_path / "session02")
    found = setsup.load("multi-pie", root)
    rows = np.arange(len(faces))
    if packing == "one session":
        rows = faces.factors.rows("session == 2")
        assert found.factors["session"].levels == (1, 2, 3, 4)
        assert found.factors["subject"].levels == ("001",)
    assert found.paths(range(len(found))) == faces.paths(rows)
    assert np.array_equal(found.fetch([0, len(found) - 1])["image"], faces.fetch(rows[[0, -1]])["image"])
    assert len(pickle.dumps(found)) < 100_000
    assert np.array_equal(pickle.loads(pickle.dumps(found)).fetch(3)["image"], faces.fetch(rows[3])["image"])


def test_threads(faces):
    expected = faces.fetch(range(12))["image"]
    same = []
    threads = [
        threading.Thread(target=lambda: same.append(np.array_equal(faces.fetch(range(12))["image"], expected)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 4


@pytest.mark.long("large or genuine files")
def test_settings(tmp_path):
    """Train are the first 100 subjects of session 1 by id, and the first 200 with neutral faces of any session."""
    ids = [f"{number:03}" for number in range(1, 250) if number != 57]
    places = [name("01", subject, "01", "05_1", "00") for subject in ids[:150]]
    places += [name("01", subject, "02", "05_1", "00") for subject in ids[:150]]
    places += [name("03", subject, recording, "05_1", "00") for subject in ids[140:] for recording in ("01", "03")]
    _tiny(tmp_path, places, (8, 6))
    train = setsup.load("multi-pie", tmp_path, split="setting1-train")
    test = setsup.load("multi-pie", tmp_path, split="setting1-test")
    assert sorted(set(train.factors.values("subject").tolist())) == ids[:100]
    assert sorted(set(test.factors.values("subject").tolist())) == ids[100:150]
    assert set(train.factors.values("session").tolist()) == {1}
    both = setsup.load("multi-pie", tmp_path, split="setting2")
    assert set(both.factors.values("expression").tolist()) == {"neutral"}
    subjects = both.where("split == 'train'").factors.values("subject").tolist()
    assert sorted(set(subjects)) == ids[:200]
    assert len(both) == 150 + len(ids[140:])


def test_other_files_are_no_part(tmp_path, release, faces):
    shutil.copytree(release / "Multi-Pie" / "data" / "session01", tmp_path / "session01")
    camera = tmp_path / "session01" / "multiview" / "001" / "01" / "05_1"
    for stray in ("Thumbs.db", "001_01_01_051_00.png.txt", "001_01_01_051_00 copy.png", ".001_01_01_051_00.png"):
        (camera / stray).write_bytes(b"")
    assert multi_pie.open(tmp_path).paths(range(150)) == faces.paths(faces.factors.rows("session == 1"))


@pytest.mark.parametrize(
    "wrong",
    [
        "session01/multiview/001/01/05_1/002_01_01_051_00.png",
        "session01/multiview/001/01/05_1/001_02_01_051_00.png",
        "session01/multiview/001/01/05_1/001_01_02_051_00.png",
        "session01/multiview/001/01/05_1/001_01_01_050_00.png",
        "session01/multiview/001/01/07_1/001_01_01_071_00.png",
        "session01/multiview/001/01/05_1/001_01_01_051_20.png",
        "session01/multiview/001/04/05_1/001_01_04_051_00.png",
        "session05/multiview/001/01/05_1/001_05_01_051_00.png",
    ],
)
def test_contradictions_are_left_out_and_counted(tmp_path, caplog, wrong):
    healthy = "session01/multiview/001/01/05_1/001_01_01_051_07.png"
    _tiny(tmp_path, [healthy, wrong])
    with caplog.at_level(logging.WARNING, "setsup"):
        assert multi_pie.open(tmp_path).paths([0]) == [healthy]
    assert re.search(r"1 of 2 files, such as .*" + re.escape(wrong), caplog.text)
    (tmp_path / healthy).unlink()
    if wrong.startswith("session01"):
        with pytest.raises(DataError, match="as it was published"):
            multi_pie.open(tmp_path)


@pytest.mark.parametrize("content", ["nothing", "other files", "no names"])
def test_no_release(tmp_path, content):
    if content == "other files":
        (tmp_path / "photo.png").write_bytes(b"")
    elif content == "no names":
        _tiny(tmp_path, ["session01/multiview/001/01/05_1/a.png"])
    with pytest.raises(DataError, match=r"multi-pie|as it was published") as caught:
        multi_pie.open(tmp_path)
    assert "\n" not in str(caught.value)


def test_damaged_pictures(tmp_path):
    places = [name("01", "001", "01", "05_1", f"{shot:02}") for shot in range(20)]
    _tiny(tmp_path, places)
    healthy = (tmp_path / places[7]).read_bytes()
    (tmp_path / places[7]).write_bytes(healthy[:-20])
    faces = multi_pie.open(tmp_path)
    with pytest.raises(DataError, match=r"001_01_01_051_07\.png .*could not be decoded"):
        faces.fetch(range(20))
    (tmp_path / places[7]).unlink()
    with pytest.raises(DataError, match=r"001_01_01_051_07\.png"):
        faces.fetch([7])
    (tmp_path / places[0]).write_bytes(b"no image")
    with pytest.raises(DataError, match=r"001_01_01_051_00\.png"):
        multi_pie.open(tmp_path)


def test_pictures_of_several_sizes(tmp_path):
    places = [name("01", "001", "01", "05_1", f"{shot:02}") for shot in range(4)]
    _tiny(tmp_path, places[:2])
    _tiny(tmp_path, places[2:], (32, 24))
    faces = multi_pie.open(tmp_path)
    assert faces.modalities["image"].shape == (None, None, 3)
    assert faces.fetch([2, 3])["image"].shape == (2, 24, 32, 3)
    with pytest.raises(DataError, match=r"size=\(height, width\)"):
        faces.fetch([1, 2])
    assert multi_pie.open(tmp_path, size=(24, 32)).fetch(range(4))["image"].shape == (4, 24, 32, 3)


def test_the_manifest_says_how_to_get_it(faces):
    manifest = load_manifest("multi-pie")
    assert manifest.licence.sign
    assert len(manifest.steps) == 3
    assert "private persons" in manifest.licence.note
    assert not any(file.urls for file in manifest.files)
    assert tuple(factor.name for factor in manifest.factors) == faces.factors.names


@pytest.mark.usefixtures("parts_are_told")
def test_images_that_recordings_lack_are_counted(tmp_path, caplog):
    """A recording is 20 shots by 15 cameras; sessions and recordings that are not there are no loss."""
    cameras, shots = sorted(YAW), [f"{shot:02}" for shot in range(20)]
    taken = [("01", "001", "01"), ("01", "001", "02"), ("03", "005", "02")]
    places = [name(*one, camera, shot) for one in taken for camera, shot in product(cameras, shots)]
    first = tmp_path / "one.png"
    Image.new("RGB", (640, 480)).save(first)
    for place in places:
        path = tmp_path / "release" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.hardlink_to(first)
    assert len(setsup.load("multi-pie", tmp_path / "release")) == 900
    assert "published samples" not in caplog.text
    for place in places[::3]:
        (tmp_path / "release" / place).unlink()
    assert len(setsup.load("multi-pie", tmp_path / "release")) == 600
    assert "600 of the 900 published samples are present" in caplog.text
