"""A small NYU Depth V2 as published: a MATLAB v7.3 file of rooms with toys, its split and its maps of classes.

A level camera sees a room: walls, floor and ceiling, and a table with a toy on it, all of boxes, so that depth and
normals are known. Each kind of room has its colours and its toy, each scene its size and the place of the table, each
frame its direction.
"""

import colorsys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import scipy.io

from tests.kept import kept
from tests.true_files.toys import toy_boxes

HELD = "scene_type"

TYPES = ("dining_room", "kitchen", "office")
SCENES = tuple(f"{TYPES[n % 3]}_{n // 3 + 1:04d}" for n in range(8))
FRAMES = 3
TEST = ("dining_room_0002", "kitchen_0003", "office_0002")
FOCAL, CENTRE = (518.85790117450188, 519.46961112127485), (325.58244941119034, 253.73616633400465)
"""As published: the first pixel has the number 1."""

_TOY = {"dining_room": 2, "kitchen": 1, "office": 3}  # a plane, a house, a chair
_LABEL = {"dining_room": 1, "kitchen": 3, "office": 5}
WALL, FLOOR, CEILING, TABLE = 21, 11, 4, 19
NAMES = {1: "book", 2: "bottle", 3: "cabinet", 4: "ceiling", 5: "chair", 11: "floor", 19: "table", 21: "wall"}
COARSE = {1: 23, 3: 3, 4: 22, 5: 5, 11: 2, 19: 7, 21: 1}
NAMES40 = {1: "wall", 2: "floor", 3: "cabinet", 5: "chair", 7: "table", 22: "ceiling", 23: "books", 40: "otherprop"}
LABELS13 = (12, 5, 6, 1, 4, 9, 10, 12, 13, 6, 8, 6, 13, 10, 6, 13, 6, 7, 7, 5, 7, 3, 2, 6, 11, *(7,) * 15)
NAMES13 = "bed books ceiling chair floor furniture objects picture sofa table tv wall window".split()

Arrays = dict[str, npt.NDArray[Any]]


def rows() -> list[tuple[str, int]]:
    """Scene and number in the scene of each row, frames of a scene not one after the other."""
    return [(scene, frame) for frame in range(FRAMES) for scene in SCENES]


def frame(scene: str, number: int) -> Arrays:
    """Draw one row.

    Returns
    -------
    dict of array
        ``images`` (480, 640, 3) uint8, ``depths`` and ``rawDepths`` (480, 640) float32 in metres, ``labels`` uint16,
        ``instances`` uint8, and ``normals`` (480, 640, 3) float64 as the surfaces have them.

    """
    kind, place = scene[:-5], SCENES.index(scene)
    yaw = np.deg2rad(-18 + 18 * number + 2 * place)
    x = (np.arange(1, 641) - CENTRE[0]) / FOCAL[0]
    y = (np.arange(1, 481) - CENTRE[1]) / FOCAL[1]
    # world: x right, y down, z into the room; the parameter along a ray is the depth, whose camera z is 1
    ray = (np.cos(yaw) * x + np.sin(yaw), y, -np.sin(yaw) * x + np.cos(yaw))
    room = np.array([[-1.8 - 0.1 * place, 2.0], [-1.2, 1.4], [-1.0, 3.6 + 0.1 * place]])
    boxes, toy = [], toy_boxes(_TOY[kind])
    lowest = min(centre[2] - half[2] for centre, half, _ in toy)
    for centre, half, _ in toy:
        at = np.array([0.6 * centre[0] + 0.15 * (place - 3), 0.8 - 0.6 * (centre[2] - lowest), 2.3 + 0.6 * centre[1]])
        size = np.array([0.6 * half[0], 0.6 * half[2], 0.6 * half[1]])
        boxes.append(np.stack([at - size, at + size], axis=1))
    table = np.array([at[0], 1.1, 2.3]), np.array([0.7, 0.3, 0.6])
    boxes.append(np.stack([table[0] - table[1], table[0] + table[1]], axis=1))
    depth, surface = _seen(ray, room, boxes)
    hue = TYPES.index(kind) / 3 + 0.02 * place
    colors = [colorsys.hsv_to_rgb(hue, 0.35, value) for value in (0.62, 0.7, 0.95, 0.45, 0.75, 0.8)]
    colors += [
        colorsys.hsv_to_rgb(hue + 0.45 + offset, 0.8, value) for _, _, offset in toy for value in (0.5, 0.95, 0.7)
    ]
    colors += [colorsys.hsv_to_rgb(hue + 0.1, 0.15, value) for value in (0.3, 0.6, 0.4)]
    image = (255 * np.array(colors)).astype(np.uint8)[surface]
    labels = [WALL, WALL, CEILING, FLOOR, WALL, WALL, *[_LABEL[kind]] * (3 * len(toy)), *[TABLE] * 3]
    labels, instances = np.array(labels, np.uint16)[surface], np.array([1, 2, 1, 1, 3, 4, *[1] * 15], np.uint8)[surface]
    edge = np.zeros(surface.shape, bool)
    edge[:, 4:] = surface[:, 4:] != surface[:, :-4]
    outside = np.ones(surface.shape, bool)
    outside[8:-8, 8:-8] = False
    image[outside] = 255
    labels[outside], instances[outside] = 0, 0
    raw = np.where(edge | outside, 0, depth)
    return {
        "images": image,
        "depths": depth,
        "rawDepths": raw.astype(np.float32),
        "labels": labels,
        "instances": instances,
        "normals": _normals(surface, ray, yaw, len(boxes)),
    }


def _seen(ray: Sequence[Any], room: Any, boxes: Sequence[Any]) -> tuple[Any, Any]:
    """Depth, and the number of the surface: 0 to 5 of the room, then 3 a box (its side, top or bottom, front)."""
    with np.errstate(divide="ignore"):
        leave = [np.maximum(*(room[axis][:, np.newaxis] / ray[axis])) for axis in range(3)]
        columns = np.minimum(leave[0], leave[2])
        beyond = np.where(leave[0] < leave[2], (ray[0] > 0) + 0, (ray[2] > 0) + 4)
        depth = np.minimum(leave[1][:, np.newaxis], columns)
        surface = np.where(leave[1][:, np.newaxis] < columns, ((ray[1] > 0) + 2)[:, np.newaxis], beyond)
        for number, box in enumerate(boxes):
            near = [np.minimum(*(box[axis][:, np.newaxis] / ray[axis])) for axis in range(3)]
            far = [np.maximum(*(box[axis][:, np.newaxis] / ray[axis])) for axis in range(3)]
            enter = np.maximum(near[1][:, np.newaxis], np.maximum(near[0], near[2]))
            left = np.minimum(far[1][:, np.newaxis], np.minimum(far[0], far[2]))
            side = np.where(near[0] > near[2], 0, 2)
            side = np.where(near[1][:, np.newaxis] > np.maximum(near[0], near[2]), 1, side)
            hit = (enter < left) & (enter > 0) & (enter < depth)
            depth = np.where(hit, enter, depth)
            surface = np.where(hit, 6 + 3 * number + side, surface)
    return depth.astype(np.float32), surface


def _normals(surface: Any, ray: Sequence[Any], yaw: float, boxes: int) -> Any:
    """Normals of the surfaces in the camera's frame, facing it."""
    axis = np.array([0, 0, 1, 1, 2, 2, *[0, 1, 2] * boxes])[surface]
    world = np.stack(np.broadcast_arrays(ray[0], ray[1][:, np.newaxis], ray[2]), axis=-1)
    normal = -np.sign(np.take_along_axis(world, axis[..., np.newaxis], -1)) * np.eye(3)[axis]
    x, y, z = np.moveaxis(normal, -1, 0)
    return np.stack([np.cos(yaw) * x - np.sin(yaw) * z, y, np.sin(yaw) * x + np.cos(yaw) * z], axis=-1)


@kept
def write(folder: Path, chunks: int = 1) -> None:
    """Write the four files."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [frame(*row) for row in rows()]
    arrays = {key: np.stack([one[key] for one in drawn]) for key in drawn[0] if key != "normals"}
    cells = {
        "scenes": [scene for scene, _ in rows()],
        "sceneTypes": [scene[:-5] for scene, _ in rows()],
        "rawRgbFilenames": [f"{scene}/r-12945{n}.{n:06d}-{n}17.ppm" for n, (scene, _) in enumerate(rows())],
        "rawDepthFilenames": [f"{scene}/d-12945{n}.{n:06d}-{n}17.pgm" for n, (scene, _) in enumerate(rows())],
        "names": [NAMES.get(n, f"thing {n}") for n in range(1, 895)],
    }
    write_mat(folder / "nyu_depth_v2_labeled.mat", arrays, cells, chunks)
    test = [n for n, (scene, _) in enumerate(rows(), 1) if scene in TEST]
    write_split(folder / "splits.mat", [n for n in range(1, len(rows()) + 1) if n not in test], test)
    write_classes(folder)


def write_mat(path: Path, arrays: Mapping[str, Any], cells: Mapping[str, Sequence[str]], chunks: int = 1) -> None:
    """Write a v7.3 file as MATLAB does: axes reversed, deflated chunks of so many rows, cells as references."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for key, array in arrays.items():
            stored = array.transpose(0, *range(array.ndim - 1, 0, -1))
            size = (min(chunks, len(stored)), *(1,) * (stored.ndim - 3), 160, 480)
            found = file.create_dataset(key, data=stored, chunks=size, compression=3)
            found.attrs["MATLAB_class"] = np.bytes_("single" if array.dtype.kind == "f" else array.dtype.name)
        accelerometer = file.create_dataset("accelData", data=np.zeros((4, len(arrays["images"])), np.float32))
        accelerometer.attrs["MATLAB_class"] = np.bytes_("single")
        for key, texts in cells.items():
            write_cells(file, key, texts)
        opaque = file.create_dataset("namesToIds", data=np.array([[0xDD000000, 2, 1, 1, 1, 1]], np.uint32))
        opaque.attrs["MATLAB_class"] = np.bytes_("containers.Map")
        opaque.attrs["MATLAB_object_decode"] = np.int32(3)
    _write_header(path)


def write_cells(file: h5py.File, key: str, texts: Sequence[str]) -> None:
    """Write a cell array, N × 1 in MATLAB, of texts."""
    refs = file.require_group("#refs#")
    made = []
    for text in texts:
        codes = np.frombuffer(text.encode("utf-16-le"), np.uint16).reshape(-1, 1)
        cell = refs.create_dataset(f"r{len(refs)}", data=codes if text else np.zeros(2, np.uint64))
        cell.attrs["MATLAB_class"] = np.bytes_("char")
        if text:
            cell.attrs["MATLAB_int_decode"] = np.int32(2)
        else:
            cell.attrs["MATLAB_empty"] = np.uint8(1)
        made.append(cell.ref)
    found = file.create_dataset(key, (1, len(made)), h5py.ref_dtype)
    found[0] = made
    found.attrs["MATLAB_class"] = np.bytes_("cell")


def _write_header(path: Path) -> None:
    text = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Mon Mar  4 12:00:00 2013 HDF5 schema 1.00 ."
    with path.open("r+b") as file:
        file.write(text.ljust(116) + bytes(8) + b"\x00\x02IM")


def write_split(path: Path, train: Sequence[int], test: Sequence[int]) -> None:
    """Write ``splits.mat``; numbers count from 1."""
    lists = {"trainNdxs": train, "testNdxs": test}
    scipy.io.savemat(path, {key: np.array(found, np.uint16)[:, None] for key, found in lists.items()})


def write_classes(folder: Path) -> None:
    """Write the maps to 40 and to 13 classes."""
    coarse = np.array([[COARSE.get(n, 40) for n in range(1, 895)]], np.uint8)
    scipy.io.savemat(
        folder / "classMapping40.mat",
        {"className": _cells(NAMES40.get(n, f"group {n}") for n in range(1, 41)), "mapClass": coarse},
        do_compression=True,
    )
    struct = {"labels13": np.array([LABELS13], np.uint8), "classNames": _cells(NAMES13)}
    scipy.io.savemat(folder / "class13Mapping.mat", {"classMapping13": struct}, do_compression=True)


def _cells(texts: Any) -> npt.NDArray[np.object_]:
    found = list(texts)
    cells = np.empty((1, len(found)), object)
    cells[0] = found
    return cells
