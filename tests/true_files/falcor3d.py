"""A part of a Falcor3D of 128 × 128 pixels: some cells of its grid, numbered as the release numbers them."""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

from PIL import Image

from tests.true_files.pacs import encoded, put
from tests.true_files.toys import toy

HELD = "lighting_intensity"


def number(codes: Sequence[int]) -> int:
    """Number of a cell, by the formula of the release's README."""
    strides = (46656, 7776, 1296, 216, 36, 6, 1)
    return sum(code * stride for code, stride in zip(codes, strides, strict=True))


def cells() -> list[tuple[int, ...]]:
    """Codes of the images that are there, not in their order."""
    return [(level, x, 1, 4, at, 5, 2) for x, level, at in product((0, 5), range(5), (0, 2, 4))]


def picture(codes: Sequence[int]) -> Image.Image:
    """A chair in a room."""
    level, x, *_, at = codes[:5]
    bright = 0.4 + 0.15 * level
    ground = (round(200 * bright), round(185 * bright), round((150 + 8 * x) * bright))
    return Image.fromarray(toy(3, 0.08, 20 + 25 * at, 15, size=(128, 128), light=bright, ground=ground))


@cache
def files() -> dict[str, bytes]:
    """Content by path."""
    return {f"images/{number(codes):06}.png": encoded(picture(codes), "PNG") for codes in cells()}


def write(folder: Path) -> None:
    """Write the folder ``Falcor3D_down128``."""
    put(folder / "Falcor3D_down128", files())
