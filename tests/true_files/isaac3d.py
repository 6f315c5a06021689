"""A part of an Isaac3D of 128 × 128 pixels: some cells of its grid, numbered as the release numbers them."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

from PIL import Image

from tests.true_files.pacs import encoded, put
from tests.true_files.toys import toy

HELD = "object_shape"

WALLS = ((120, 170, 90), (190, 150, 200), (210, 210, 190), (120, 150, 190))


def number(codes: Sequence[int]) -> int:
    """Number of a cell: the strides that the README of the release gives."""
    strides = (245760, 30720, 6144, 1536, 384, 96, 16, 4, 1)
    return sum(code * stride for code, stride in zip(codes, strides, strict=True))


def cells() -> list[tuple[int, ...]]:
    """Codes of the images that are there, not in their order."""
    return [
        (shape, x, 2, 1, scale, 3, 5, color, (shape + x + color) % 4)
        for color, x, shape, scale in product(range(4), (0, 7), range(3), (1, 3))
    ]


def picture(codes: Sequence[int]) -> Image.Image:
    """A toy before a wall."""
    shape, x, _, _, scale, _, _, color, wall = codes
    small = Image.fromarray(toy(shape, 0.25 * color, 30, 20, size=(64, 64), ground=WALLS[wall]))
    side = 24 + 16 * scale
    picture = Image.new("RGB", (128, 128), WALLS[wall])
    picture.paste(small.resize((side, side)), (6 * x, 64 - side // 2))
    return picture


@cache
def files() -> dict[str, bytes]:
    """Content by path."""
    return {f"images/{number(codes):06}.png": encoded(picture(codes), "PNG") for codes in cells()}


def write(folder: Path) -> None:
    """Write the folder ``Isaac3D_down128``."""
    put(folder / "Isaac3D_down128", files())
