"""What ``rendered.json`` says of a folder, held against the folder by numpy alone: nothing of setsup reads it here."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("embreex", reason="embreex is not installed")

import setsup
from setsup.correspondence import RenderedPairs, pair_table
from setsup.factors import Factor, Kind
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.writing import render
from setsup.scenes import Camera, Material, Placement, Scene
from setsup.scenes.meshes.primitives import box, plane
from setsup.scenes.recipes import FunctionRecipe, Room

HEIGHT, WIDTH = 48, 64
NEXT = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
"""What hides a point may end between two pixels' centres."""

pytestmark = pytest.mark.long("renderings")


def build(values: Any) -> Scene:
    """A floor at z = 0 and a box that stands on it."""
    grey, red = Material((120, 120, 120)), Material((200, 60, 40))
    block = Placement(box((1, 1, 1), material=red), translation=(0, 0, 0.5), name="block")
    return Scene((Placement(plane((6, 6), material=grey), name="floor"), block), background=None)


def look(values: Any, scene: Scene) -> Camera:
    turn = math.radians(values["azimuth"])
    eye = (4 * math.cos(turn), 4 * math.sin(turn), 2.5)
    return Camera.look_at(eye, (0, 0, 0.4), height=HEIGHT, width=WIDTH, field_of_view=0.9)


class Files:
    """A folder as numpy and json read it."""

    def __init__(self, folder: Path) -> None:
        self.about = json.loads((folder / "rendered.json").read_text())
        self.names = json.loads((folder / "names.json").read_text())
        self.arrays = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}

    def __getattr__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def points(self, row: int, offset: float = 0.0) -> np.ndarray:
        """Points (h, w, 3) of the camera frame by depth along z; pixel centres at integers, or elsewhere."""
        height, width = self.depth.shape[1:]
        x, y = np.meshgrid(np.arange(width) + offset, np.arange(height) + offset)
        rays = np.stack([x, y, np.ones_like(x)], -1) @ np.linalg.inv(self.camera_k[row]).T
        return rays * self.depth[row][..., None]

    def world(self, row: int, points: np.ndarray) -> np.ndarray:
        """R X + t solved for X."""
        return (points - self.camera_translation[row]) @ self.camera_rotation[row]

    def project(self, row: int, world: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen = world @ self.camera_rotation[row].T + self.camera_translation[row]
        at = seen @ self.camera_k[row].T
        return at[..., :2] / at[..., 2:], seen[..., 2]


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Path:
    azimuths = [Factor("azimuth", Kind.CYCLIC, tuple(range(0, 360, 60)), unit="deg", period=360.0)]
    recipe = FunctionRecipe("block", azimuths, build, look, [], (HEIGHT, WIDTH))
    return render(RenderedDataset(recipe, renderer="embree"), tmp_path_factory.mktemp("block") / "block").folder


@pytest.fixture(scope="module")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = Room(rooms=2, pairs=2, size=(HEIGHT, WIDTH))
    pairs = RenderedPairs(recipe, pair_table(recipe, pairs=4), renderer="embree")
    return render(pairs, tmp_path_factory.mktemp("rooms") / "rooms").folder


def test_every_file_is_named(block: Path, rooms: Path) -> None:
    for folder in (block, rooms):
        said = Files(folder).about["files"]
        assert set(said) == {path.name for path in folder.iterdir()} - {"rendered.json", "croissant.json"} | {
            "failed.json"
        }
        assert all(said.values())
    assert {"partners.npy", "status.npy", "labels.npy"} <= set(Files(rooms).about["files"])


def test_depth_is_z_at_the_centres_of_pixels_and_cameras_go_from_the_world(block: Path) -> None:
    """The floor is where z = 0 in the world, and the block's faces are where a unit cube has them."""
    found = Files(block)
    for row in range(len(found.depth)):
        world = found.world(row, found.points(row))
        floor, solid = (found.instances[row] == number for number in (0, 1))
        assert floor.any()
        assert solid.any()
        assert np.abs(world[floor][:, 2]).max() < 1e-4
        faces = np.abs(np.abs(world[solid] - [0, 0, 0.5]).max(-1) - 0.5)
        assert faces.max() < 1e-4
        assert np.abs(found.world(row, found.points(row, 0.5))[floor][:, 2]).max() > 0.01  # centres elsewhere
        distances = np.linalg.norm(found.points(row), axis=-1)
        assert (distances[floor] > 1.01 * found.depth[row][floor]).any()  # z is not the distance
        there = found.instances[row] >= 0
        np.testing.assert_array_equal(there, found.depth[row] > 0)
        np.testing.assert_array_equal(there, found.triangles[row] >= 0)
        np.testing.assert_array_equal(there, (found.normals[row] != 0).any(-1))


def test_axes_are_those_of_opencv(block: Path) -> None:
    """What is higher in the world has a smaller y; y × z is x; the camera is where it was put, and looks along z."""
    found = Files(block)
    for row, azimuth in enumerate(range(0, 360, 60)):
        rotation = found.camera_rotation[row]
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(rotation) == pytest.approx(1)
        turn = math.radians(azimuth)
        eye = np.array([4 * math.cos(turn), 4 * math.sin(turn), 2.5])
        np.testing.assert_allclose(-rotation.T @ found.camera_translation[row], eye, atol=1e-9)
        forward = np.array([0, 0, 0.4]) - eye
        np.testing.assert_allclose(rotation[2], forward / np.linalg.norm(forward), atol=1e-9)
        (low, high), depth = found.project(row, np.array([[0.0, 0, 0], [0, 0, 1]]))
        assert high[1] < low[1]
        assert (depth > 0).all()


def test_normals_are_of_the_camera_frame_and_on_its_side(block: Path) -> None:
    found = Files(block)
    for row in range(len(found.depth)):
        there = found.depth[row] > 0
        normals, points = found.normals[row][there].astype(float), found.points(row)[there]
        np.testing.assert_allclose(np.linalg.norm(normals, axis=-1), 1, atol=1e-5)
        assert ((normals * points).sum(-1) < 0).all()
        in_world = normals @ found.camera_rotation[row]
        np.testing.assert_allclose(np.abs(in_world).max(-1), 1, atol=1e-4)  # all surfaces are along the axes
        floor = found.instances[row][there] == 0
        np.testing.assert_allclose(in_world[floor], np.broadcast_to([0, 0, 1], in_world[floor].shape), atol=1e-4)


def test_names_are_by_the_key_of_the_row(block: Path) -> None:
    found = Files(block)
    for row, key in enumerate(found.arrays["names"].tolist()):
        names = json.loads((block / "names.json").read_text())[f"{key:016x}"]
        world = found.world(row, found.points(row))
        for number, name in ((0, "floor"), (1, "block")):
            heights = world[found.instances[row] == number][:, 2]
            assert names[str(number)].startswith(name) is True
            assert (heights.max() > 0.5) is np.bool_(name == "block")


def test_partners_and_status_are_those_of_points_projected_to_the_other_view(rooms: Path) -> None:
    found = Files(rooms)
    rows, height, width = found.depth.shape
    seen = dict.fromkeys(range(4), 0)
    for row in range(rows):
        other = row ^ 1  # rows 2n and 2n + 1 are a pair
        status, partners = found.status[row], found.partners[row].astype(float)
        there = found.depth[row] > 0
        np.testing.assert_array_equal(status == 3, ~there)
        at, depth = found.project(other, found.world(row, found.points(row)))
        behind = there & (depth <= 0)
        np.testing.assert_array_equal(np.isnan(partners).any(-1), ~there | behind)
        known = there & ~behind
        near = np.abs(at - partners).max(-1) < 0.05 + 1e-3 * np.abs(partners).max(-1)
        assert near[known].all()
        inside = (partners >= -0.5).all(-1) & (partners[..., 0] < width - 0.5) & (partners[..., 1] < height - 0.5)
        np.testing.assert_array_equal(status[known] == 2, ~inside[known])
        assert (status[behind] == 2).all()
        for kind in (0, 1):
            some = status == kind
            x, y = np.rint(partners[some]).astype(int).T
            x, y = x.clip(0, width - 1), y.clip(0, height - 1)
            theirs = found.depth[other][y, x]
            nearer = theirs < 0.97 * depth[some]
            same = found.instances[other][y, x] == found.instances[row][some]
            if kind == 0 and some.any():  # the pixel there shows the same thing as far away, but at edges
                assert nearer.mean() < 0.1
                assert same.mean() > 0.9
            if kind == 1 and some.sum() > 30:
                away = (found.normals[row][some] @ found.camera_rotation[row] @ found.camera_rotation[other].T).astype(
                    float
                )
                points = found.world(row, found.points(row))[some] @ found.camera_rotation[other].T
                backs = (away * (points + found.camera_translation[other])).sum(-1) > 0  # it sees the other side
                around = [
                    found.depth[other][(y + dy).clip(0, height - 1), (x + dx).clip(0, width - 1)] for dy, dx in NEXT
                ]
                least = np.min([np.where(one > 0, one, np.inf) for one in around], axis=0)
                assert ((least < 0.99 * depth[some]) | backs).mean() > 0.97
        for kind in seen:
            seen[kind] += int((status == kind).sum())
    assert all(seen[kind] for kind in (0, 1, 2)), seen


def test_classes_are_places_in_the_list(rooms: Path) -> None:
    found = Files(rooms)
    assert found.labels.max() < len(found.about["classes"])


def test_a_folder_of_an_earlier_version_opens(block: Path) -> None:
    path = block / "rendered.json"
    text = path.read_text()
    about = json.loads(text)
    del about["files"], about["convention"]
    before = setsup.open(block).fetch([0, 3])
    try:
        path.write_text(json.dumps(about))
        earlier = setsup.open(block)
        assert len(earlier) == about["rows"]
        for name, array in earlier.fetch([0, 3]).items():
            np.testing.assert_array_equal(array, before[name])
    finally:
        path.write_text(text)
