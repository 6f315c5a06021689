"""MPI3D's grid of the challenge, 460,800 pictures, in an ``.npz`` that is not packed and mostly a hole in the disk.

Drawn are the pictures with both axes of the arm at 0 or 20; the others are black, and take no room.
"""

import struct
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

HELD = "object_color"

CHALLENGE = (4, 4, 2, 3, 3, 40, 40)
RELEASE = (6, 6, 2, 3, 3, 40, 40)
COLORS = ("green", "red", "blue", "saddlebrown")
GROUNDS = ("purple", "seagreen", "salmon")
_SIDES = (3, 4, 6, 40)  # corners of what stands for a shape
_WIDE = 0xFFFFFFFF


def row(levels: Sequence[int], sizes: Sequence[int] = CHALLENGE) -> int:
    """Number of the picture of some levels, by the formula that the page of the data gives."""
    found = 0
    for level, size in zip(levels, sizes, strict=True):
        found = found * size + level
    return found


def picture(levels: Sequence[int]) -> npt.NDArray[np.uint8]:
    """The arm with an object at its end before a stripe of the ground's colour."""
    color, shape, size, height, ground, across, up = levels
    drawn = Image.new("RGB", (64, 64), (40, 40, 40))
    pen = ImageDraw.Draw(drawn)
    top = 22 + 6 * height
    pen.rectangle((0, top, 63, top + 16), fill=GROUNDS[ground])
    x, y = 16 + 0.8 * across, 48 - 0.6 * up
    pen.line((32, 63, x, y), fill="gray", width=3)
    pen.regular_polygon((x, y, 5 + 4 * size), _SIDES[shape], fill=COLORS[color])
    return np.asarray(drawn)


def drawn() -> Iterable[tuple[int, ...]]:
    """Levels of the pictures that are drawn."""
    return product(range(4), range(4), range(2), range(3), range(3), (0, 20), (0, 20))


def write_stored(
    path: Path, sizes: Sequence[int], pictures: dict[int, npt.NDArray[np.uint8]], *, axes: bool = False
) -> None:
    """Write an ``.npz`` as ``np.savez`` does, of more than 4 GiB, with holes where there is no picture.

    The checksum of the content is left 0: nothing compares it where a file is mapped. With `axes` each of `sizes` is an
    axis of the array, else all are one.
    """
    shape = (*(sizes if axes else [int(np.prod(sizes))]), 64, 64, 3)
    text = str({"descr": "|u1", "fortran_order": False, "shape": shape}).encode()
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + text.ljust(117) + b"\n"
    size = len(head) + int(np.prod(shape))
    name, flags = b"images.npy", (45, 0, 0, 0, 33, 0)  # version, flags, method (stored), time, date, checksum
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", *flags, _WIDE, _WIDE, len(name), 20) + name
    local += struct.pack("<2H2Q", 1, 16, size, size)
    entry = struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 45, *flags, _WIDE, _WIDE, len(name), 20, 0, 0, 0, 0, 0) + name
    entry += struct.pack("<2H2Q", 1, 16, size, size)
    start = len(local) + size
    end = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, len(entry), start)
    end += struct.pack("<4sIQI", b"PK\x06\x07", 0, start + len(entry), 1)
    end += struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), _WIDE, 0)
    with path.open("wb") as file:
        file.write(local + head)
        for number, pixels in sorted(pictures.items()):
            file.seek(len(local) + len(head) + number * 12288)
            file.write(pixels.tobytes())
        file.seek(start)
        file.write(entry + end)


def write(folder: Path) -> None:
    """Write ``mpi3d_toy.npz``."""
    write_stored(folder / "mpi3d_toy.npz", CHALLENGE, {row(levels): picture(levels) for levels in drawn()})
