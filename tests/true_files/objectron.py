"""A small Objectron as its bucket and repository have it: annotations of videos, and the lists of its split."""

import struct
from functools import cache
from pathlib import Path

import numpy as np

from tests.true_files.pacs import put
from tests.true_files.rings import ring
from tests.true_files.shapenet_renderings import field, varint

HELD = "sequence"

SEQUENCES = {"bike": ("batch-2/9", "batch-10/3"), "shoe": ("batch-0/1", "batch-0/12")}
TEST = ("bike/batch-10/3", "shoe/batch-0/1")
FRAMES = 5
SIZE = (1920, 1440)
UNIT = np.array([[0, 0, 0], *[[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]])
# from the phone's frame (x right, y up, z backward, held sideways) to that of the upright image
UPRIGHT = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1.0]])
TO_Y_UP = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0.0]])  # the front of ring's world, +x, is +z here


def azimuths(sequence: int) -> list[float]:
    """Degrees of a sequence's frames about its first object."""
    return [(330.0 + 20 * sequence + 17 * frame) % 360 for frame in range(FRAMES)]


def objects(sequence: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rotation, place and size of each object of a sequence: one or two."""
    turn = 0.4 + sequence
    about_y = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    first = (about_y, np.array([0.3, -0.2, 1.0 + sequence]), np.array([0.5, 0.3, 0.8]))
    second = (np.eye(3), first[1] + [0.9, 0, 0.2], np.array([0.3, 0.5, 0.3]))
    return [first, second][: 1 + sequence % 2]


def pose(sequence: int, frame: int) -> np.ndarray:
    """Camera to world, x right, y down, z forward of the upright image."""
    rotation, place, _ = objects(sequence)[0]
    found = ring([azimuths(sequence)[frame]], 25 + 5 * sequence, 2.5)[0]
    axes = rotation @ TO_Y_UP
    found[:3, :3], found[:3, 3] = axes @ found[:3, :3], axes @ found[:3, 3] + place
    return found


def intrinsics() -> np.ndarray:
    """Of the upright image."""
    return np.array([[1500.0, 0, 722], [0, 1510, 955], [0, 0, 1]])


def corners(sequence: int, frame: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of each object in the upright camera's frame, and their places in the image, from its corner."""
    camera, points, pixels = pose(sequence, frame), [], []
    for rotation, place, size in objects(sequence):
        world = UNIT * size @ rotation.T + place
        points.append((world - camera[:3, 3]) @ camera[:3, :3])
        flat = points[-1] @ intrinsics().T
        pixels.append(flat[:, :2] / flat[:, 2:])
    return np.array(points), np.array(pixels)


def floats(number: int, values: np.ndarray) -> bytes:
    """A packed field of floats."""
    return field(number, np.asarray(values, "<f4").tobytes())


def single(number: int, value: float) -> bytes:
    """A field of one float; proto3 leaves out 0."""
    return varint(number << 3 | 5) + struct.pack("<f", value) if value else b""


def integer(number: int, value: int) -> bytes:
    """A field of an integer."""
    return varint(number << 3) + varint(value) if value else b""


def frame_message(sequence: int, frame: int) -> bytes:
    """A ``FrameAnnotation``."""
    view = UPRIGHT.T @ np.linalg.inv(pose(sequence, frame))
    k = intrinsics()
    sideways = np.array([[k[1, 1], 0, k[1, 2]], [0, k[0, 0], k[0, 2]], [0, 0, 1]])
    camera = integer(1, 3) + floats(3, np.linalg.inv(view).ravel()) + integer(5, SIZE[0]) + integer(6, SIZE[1])
    camera += floats(7, sideways.ravel()) + floats(8, np.eye(4).ravel()) + floats(9, view.ravel())
    body = integer(1, 3 * frame)
    for number, (points, pixels) in enumerate(zip(*corners(sequence, frame), strict=True)):
        published = points @ UPRIGHT[:3, :3]
        annotation = integer(1, number)
        for key, (point, pixel) in enumerate(zip(published, pixels, strict=True)):
            place = b"".join(single(axis + 1, value) for axis, value in enumerate(point))
            shown = (pixel[0] / SIZE[1], pixel[1] / SIZE[0], -point[2])
            shown = b"".join(single(axis + 1, value) for axis, value in enumerate(shown))
            annotation += field(2, integer(1, key) + field(2, place) + field(3, shown))
        body += field(2, annotation + single(3, 1.0))
    body += field(3, camera) + varint(4 << 3 | 1) + struct.pack("<d", 0.1 * frame)
    return body + floats(5, np.zeros(3)) + floats(6, np.array([0, 1, 0]))


def message(category: str, sequence: int) -> bytes:
    """A ``Sequence``."""
    found = b""
    for number, (rotation, place, size) in enumerate(objects(sequence)):
        found += field(
            1,
            integer(1, number) + field(2, category.encode()) + integer(3, 1) + floats(4, rotation.ravel())
            + floats(5, place) + floats(6, size),
        )  # fmt: skip
    return found + b"".join(field(2, frame_message(sequence, frame)) for frame in range(FRAMES))


@cache
def release() -> dict[str, bytes]:
    """Content by path."""
    files = {
        f"annotations/{category}/{name}.pbdata": message(category, number)
        for category, names in SEQUENCES.items()
        for number, name in enumerate(names)
    }
    for category, names in SEQUENCES.items():
        listed = [f"{category}/{name}" for name in names]
        files[f"index/{category}_annotations"] = "".join(f"{name}\n" for name in listed).encode()
        for part in ("train", "test"):
            own = [name for name in listed if (name in TEST) == (part == "test")]
            files[f"index/{category}_annotations_{part}"] = "".join(f"{name}\n" for name in own).encode()
    return files


def write(folder: Path) -> None:
    """Write ``annotations`` and ``index``."""
    put(folder, release())
