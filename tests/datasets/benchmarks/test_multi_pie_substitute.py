"""The rendered substitute for Multi-PIE: its tree, what its images show, and that it resumes."""

import functools
import json

import numpy as np
import pytest
from PIL import Image

import setsup
from setsup.datasets.benchmarks import multi_pie
from setsup.datasets.benchmarks.multi_pie.lighting import FLASHES, relit
from setsup.datasets.benchmarks.multi_pie.traits import sitting_of, traits_of
from setsup.errors import DataError
from setsup.files.atomic import beside
from setsup.scenes import Camera, Frame
from setsup_cli.main import main
from tests.true_files.multi_pie import name

pytest.importorskip("embreex")

CAMERAS, SHOTS = ("20_0", "09_0"), (0, 1)  # 60 degrees to either side; room light, and the leftmost flash
write = functools.partial(multi_pie.write_substitute, sessions=[2], cameras=CAMERAS, shots=SHOTS)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write(tmp_path_factory.mktemp("tree") / "substitute", 2)


@pytest.fixture(scope="module")
def faces(tree):
    return setsup.load("multi-pie", root=tree)


def _content(tree):
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


@pytest.mark.long("renderings")
def test_the_tree_is_the_published_one(tree, faces):
    expected = {
        name("02", subject, "01", camera, f"{shot:02}")
        for subject in ("901", "902")
        for camera in CAMERAS
        for shot in SHOTS
    }
    assert {*faces.paths(range(len(faces)))} == expected
    assert _content(tree).keys() == expected | {"SUBSTITUTE.json"}
    assert faces.modalities["image"].shape == (480, 640, 3)
    table = faces.factors
    assert set(table.values("yaw").tolist()) == {-60, 60}
    assert set(table.values("lighting").tolist()) == {0, 1}
    assert set(table.values("expression").tolist()) == {"neutral"}
    small = setsup.load("multi-pie", root=tree, size=(128, 128))
    assert small.fetch(range(8))["image"].shape == (8, 128, 128, 3)


def test_every_file_says_that_it_is_a_substitute(tree):
    assert json.loads((tree / "SUBSTITUTE.json").read_text())["what"].startswith("Substitute for Multi-PIE")
    for path in tree.rglob("*.png"):
        with Image.open(path) as picture:
            assert picture.size == (640, 480)
            assert picture.text["Title"].startswith("Substitute for Multi-PIE")


def test_eyes_are_on_the_side_that_the_yaw_says(faces):
    for row in faces.factors.rows("shot == 0").tolist():
        image = faces.fetch(row)["image"].astype(int)
        there = (image != image[0, 0]).any(-1)
        head = there & (np.arange(480) < 300)[:, None]
        white = head & (np.ptp(image, axis=-1) < 12) & (image.min(-1) > 80)
        assert white.sum() > 50
        apart = np.nonzero(white)[1].mean() - np.nonzero(head)[1].mean()
        assert apart * faces.factors.values("yaw", row) > 0
        assert abs(apart) > 20


def test_a_flash_from_the_left_of_the_frontal_image_lights_that_cheek(faces):
    def gain(yaw):
        rows = [faces.factors.rows(f"subject == '901' and yaw == {yaw} and shot == {shot}")[0] for shot in (0, 1)]
        room, flash = faces.fetch(rows)["image"].astype(float).sum(-1)
        assert (flash >= room).all()
        return (flash - room).mean()

    # positive yaws are seen from the left of the frontal camera, where the nose then points to the right
    assert gain(60) > 4 * gain(-60)


def test_light_is_that_of_lambert():
    """One pixel with known albedo and normal, against the formula written out."""
    camera = Camera.look_at((0, -2, 0), (0, 0, 0), height=1, width=2, focal_length=10)
    normal = np.array([[[0.6, -0.0, -0.8], [0, 0, 0]]], np.float32)  # x right, y down, z forward: (0.6, −0.8, 0)
    rgb = np.array([[[188, 188, 188, 255], [0, 0, 0, 0]]], np.uint8)
    index = np.array([[0, -1]], np.int32)
    frame = Frame(rgb, np.ones((1, 2), np.float32), normal, index, index)
    images = list(relit(frame, camera, range(20), 1.0, (1, 2, 3)))
    albedo = ((188 / 255 + 0.055) / 1.055) ** 2.4
    lamp = np.array([0, -np.cos(np.radians(65)), np.sin(np.radians(65))])
    for shot, image in enumerate(images):
        light = 0.30 + 0.25 * max(0.0, float(lamp @ (0.6, -0.8, 0)))
        if 1 <= shot <= 18:
            light += 0.75 * max(0.0, float(np.dot(FLASHES[shot], (0.6, -0.8, 0))))
        light *= 0.96 if shot == 19 else 1.0
        expected = 255 * (1.055 * (albedo * light) ** (1 / 2.4) - 0.055)
        assert image[0, 0].tolist() == [round(expected)] * 3, shot
        assert image[0, 1].tolist() == [1, 2, 3]
    assert all(np.linalg.norm(way) == pytest.approx(1) for way in FLASHES.values())
    assert [FLASHES[number][0] < 0 for number in (1, 6, 8, 13)] == [True, True, False, False]


def test_persons_are_unlike_and_keep_what_is_theirs():
    people = [traits_of(0, number) for number in range(20)]
    looks = np.array([[*one.skin, *one.hair, 900 * one.width, 900 * one.height, 3000 * one.nose_out] for one in people])
    apart = np.linalg.norm(looks[:, None] - looks, axis=-1) + 1e9 * np.eye(20)
    assert apart.min() > 5
    assert len({one.style for one in people}) == 9
    assert repr(traits_of(0, 3)) == repr(people[3])
    assert repr(traits_of(1, 3)) != repr(people[3])
    sittings = {repr(sitting_of(0, number, session)) for number in range(20) for session in (1, 2, 3, 4)}
    assert len(sittings) == 80


@pytest.mark.long("renderings")
def test_what_is_missing_is_rendered_again_and_alike(tree):
    before = _content(tree)
    kept = tree / name("02", "901", "01", "20_0", "00")
    stamp = kept.stat().st_mtime_ns
    lost = tree / "session02" / "multiview" / "901" / "01" / "09_0"
    lost.rename(beside(lost))  # as a killed process leaves a folder that is not whole
    write(tree, 1)
    assert _content(tree) == before
    assert kept.stat().st_mtime_ns == stamp


@pytest.mark.long("several processes")
def test_several_processes_write_the_same(tmp_path, tree):
    write(tmp_path, 2, processes=2)
    assert _content(tmp_path) == _content(tree)


def test_refusals(tmp_path, tree):
    with pytest.raises(
        DataError, match=r"SUBSTITUTE\.json: the folder was created with seed=0 instead of 1; .*choose another folder"
    ):
        write(tree, 2, seed=1)
    with pytest.raises(DataError, match="choose another folder"):
        write(tree, 2, shots=[0])
    (tmp_path / "session01").mkdir()
    with pytest.raises(DataError, match=r"contains session01, but not SUBSTITUTE\.json"):
        write(tmp_path, 2)
    with pytest.raises(DataError, match="subjects"):
        write(tmp_path, 100)
    with pytest.raises(DataError, match=r"cameras .*not '19_1'"):
        write(tmp_path, 1, cameras=["05_1", "19_1"])
    with pytest.raises(DataError, match="at least one"):
        write(tmp_path, 1, sessions=[])
    assert multi_pie.prepare(tree) == []
    with pytest.raises(DataError, match="the folder for the substitute is missing"):
        multi_pie.prepare(substitute=2)


def test_the_command_asks_for_a_folder(capsys):
    assert main(["prepare", "multi-pie", "--option", "substitute=2", "processes=2"]) == 2
    assert (
        "the folder for the substitute is missing; pass it with `setsup prepare multi-pie --root FOLDER"
        in capsys.readouterr().err
    )
