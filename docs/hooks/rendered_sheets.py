"""Sheets of the recipes that are rendered, and of matches between views: drawn by rays, which need no driver."""

from collections.abc import Callable

import numpy as np
from PIL import Image

from setsup.reports import contact_sheet, match_sheet, track_sheet

WIDTH = 900
SEED = 1


def shapes3d() -> Image.Image:
    from setsup.rendered.dataset import RenderedDataset
    from setsup.samplers import SetSampler
    from setsup.scenes.recipes import Shapes3D

    shapes = RenderedDataset(Shapes3D(size=(96, 96)), renderer="embree")
    draw = SetSampler(shapes.factors, inactive=["wall_hue"], size=8, sets=2, seed=0)[0]
    images = shapes.fetch(draw.indices, ["image"])["image"]
    hues = [shapes.factors.row(int(row))["wall_hue"] for row in draw.indices[:, 0]]
    captions = [f"wall_hue = {hue:g}" for hue in hues]
    return contact_sheet(list(images), captions, "RenderedDataset(Shapes3D(size=(96, 96)))", width=WIDTH)


def models() -> Image.Image:
    from setsup.rendered.dataset import RenderedDataset
    from setsup.scenes.recipes import ObjectView
    from setsup.scenes.recipes.room.solids import default_objects

    named = default_objects()
    some = {name: named[name] for name in ("stool 1", "stairs 2")}
    views = RenderedDataset(ObjectView(some, size=(96, 96), up="z"), renderer="embree")
    table = views.factors
    rows = [table.rows(f"model == {name!r} and elevation == {table['elevation'].levels[1]!r}") for name in some]
    picked = [found[:: max(1, len(found) // 8)][:8] for found in rows]
    images = [views.fetch(index, ["image"])["image"] for index in picked]
    captions = [f"model = {name}\nazimuths at one elevation" for name in some]
    return contact_sheet(images, captions, "RenderedDataset(ObjectView(models))", width=WIDTH)


def rooms() -> Image.Image:
    dataset = _rooms()
    outputs = ("image", "depth", "normals", "instances")
    images, captions = [], []
    for room in range(3):
        rows = dataset.factors.rows(f"room == {room} and pair == 0")
        found = dataset.fetch(rows, outputs)
        images.append([picture(name, found[name][side]) for side in range(2) for name in outputs])
        captions.append(f"room = {room}, pair = 0\nsides 0 and 1: image, depth, normals, instances")
    return contact_sheet(images, captions, "RenderedDataset(Room())", width=WIDTH)


def matches() -> Image.Image:
    from setsup.correspondence import spatial

    dataset = _rooms()
    views, pairs, captions = [], [], []
    for room in range(3):
        one, two = dataset.factors.rows(f"room == {room} and pair == 0").tolist()
        images = dataset.fetch([one, two], ["image"])["image"]
        views.append((images[0], images[1]))
        pairs.append(spatial(dataset.scene(one), dataset.camera(one), dataset.camera(two)))
        captions.append(f"room {room}")
    return match_sheet(views, pairs, captions, "spatial(scene, camera1, camera2)")


def tracks() -> Image.Image:
    from setsup.correspondence import RenderedFrames
    from setsup.scenes.recipes import RoomFrames

    recipe = RoomFrames(rooms=100, frames=24, size=(144, 192))
    frames = RenderedFrames(recipe, renderer="embree", modalities=["image"])
    shown = [0, 5, 10, 15, 20]
    y, x = np.mgrid[10:144:20, 10:192:20]
    videos, points, status = [], [], []
    for room in (52, 86):
        rows = frames.factors.rows(f"room == {room}")
        places, states = frames.tracks(int(rows[0]), np.stack([x.ravel(), y.ravel()], axis=1))
        videos.append(list(frames.fetch(rows[shown], ["image"])["image"]))
        points.append(places[:, shown])
        status.append(states[:, shown])
    columns = [f"frame {number}" for number in shown]
    title = "RenderedFrames(RoomFrames()).tracks(row, pixels)\na ring: hidden or outside of the image"
    return track_sheet(videos, points, status, ["room 52", "room 86"], columns, title, tile=160)


def picture(name: str, array: np.ndarray) -> np.ndarray:
    """An output as bytes to look at."""
    if name == "depth":
        near, far = array[array > 0].min(), array.max()
        return np.where(array > 0, 255 - 225 * (array - near) / max(far - near, 1e-6), 0).astype(np.uint8)[..., None]
    if name == "normals":
        return ((array * (1, -1, -1) + 1) * 127.5).astype(np.uint8)
    if name == "instances":
        colors = np.random.default_rng(3).integers(40, 255, (256, 3), np.uint8)
        return np.where(array[..., None] >= 0, colors[array % 256], 0).astype(np.uint8)
    return array


def _rooms():
    from setsup.rendered.dataset import RenderedDataset
    from setsup.scenes.recipes import Room

    return RenderedDataset(Room(rooms=3, pairs=1, size=(120, 160), seed=SEED), renderer="embree")


SHEETS: dict[str, Callable[[], Image.Image]] = {
    "rendered-shapes3d": shapes3d,
    "rendered-object": models,
    "rendered-room": rooms,
    "matches": matches,
    "tracks": tracks,
}
"""What makes the sheet of each name."""
