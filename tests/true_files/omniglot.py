"""A small Omniglot as it was published: a zip a part, with strokes in black on white."""

import zipfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from tests.true_files.pacs import encoded

HELD = "character"

ALPHABETS = {"images_background": ("Balinese", "Greek"), "images_evaluation": ("Angelic",)}
CHARACTERS, DRAWERS = 3, 6


def drawing(character: int, drawer: int) -> Image.Image:
    """A character by a drawer, 105 × 105 of one bit."""
    picture = Image.new("1", (105, 105), 1)
    corners = np.random.default_rng(character).integers(20, 86, (4, 2))
    shaken = corners + np.random.default_rng(100 * character + drawer).integers(-6, 7, (4, 2))
    ImageDraw.Draw(picture).line([tuple(point) for point in shaken.tolist()], fill=0, width=3)
    return picture


def files() -> dict[str, bytes]:
    """Content by path, in an order that is not that of the names."""
    found, number = {}, 100
    for part, alphabets in ALPHABETS.items():
        for alphabet in alphabets:
            for character in range(1, CHARACTERS + 1):
                number += 1
                for drawer in reversed(range(1, DRAWERS + 1)):
                    name = f"{part}/{alphabet}/character{character:02}/{number:04}_{drawer:02}.png"
                    found[name] = encoded(drawing(number, drawer), "PNG")
    return found


def write(folder: Path) -> None:
    """Write both zips."""
    for part in ALPHABETS:
        with zipfile.ZipFile(folder / f"{part}.zip", "w") as file:
            for name, content in files().items():
                if name.startswith(f"{part}/"):
                    file.writestr(name, content)
            file.writestr(f"__MACOSX/{part}/._Greek", b"\0")
