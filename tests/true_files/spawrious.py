"""Spawrious: all folders with two images each, and a zip of what one challenge needs, whole.

A folder that lacks images is refused, so that the zip has 3,168 in each; most of them are one grey image.
"""

import zipfile
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from tests.kept import kept
from tests.true_files.pacs import encoded, put
from tests.true_files.toys import toy

HELD = "location"

BREEDS = ("bulldog", "corgi", "dachshund", "labrador")
PLACES = {
    "snow": (235, 240, 248),
    "jungle": (60, 110, 50),
    "desert": (226, 190, 120),
    "dirt": (130, 100, 80),
    "mountain": (120, 130, 150),
    "beach": (240, 225, 180),
}
EACH = 2
WHOLE = 3168


def name(copy: int, place: str, breed: str, number: int) -> str:
    """Name of a file."""
    return f"{copy}/{place}/{breed}/{place}_{breed}_{number}.png"


@cache
def images() -> dict[str, bytes]:
    """Content by path: a toy a breed, on a ground of the place's colour, moved by copy and number."""
    found = {}
    for place, ground in PLACES.items():
        for kind, breed in enumerate(BREEDS):
            picture = toy(kind, 0.1 + 0.2 * kind, 40.0, 25, size=(224, 224), ground=ground)
            for copy in (0, 1):
                for number in range(EACH):
                    moved = np.roll(picture, (30 * copy - 15, 40 * number - 20), axis=(0, 1))
                    found[name(copy, place, breed, number)] = encoded(Image.fromarray(moved), "PNG")
    return found


@kept
def write(folder: Path) -> None:
    """Write ``spawrious224.zip`` with the 16 folders of the easy challenge of many to many."""
    content, grey = images(), encoded(Image.new("RGB", (224, 224), (128, 128, 128)), "PNG")
    with zipfile.ZipFile(folder / "spawrious224.zip", "w") as file:
        for place in ("desert", "mountain", "dirt", "jungle"):
            for breed in BREEDS:
                for number in range(WHOLE):
                    path = name(0, place, breed, number)
                    file.writestr(f"spawrious224/{path}", content.get(path, grey))


def write_few(folder: Path) -> None:
    """Write the folder ``spawrious224`` with all images of :func:`images`."""
    put(folder / "spawrious224", images())
