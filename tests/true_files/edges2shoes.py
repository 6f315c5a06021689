"""A small Edges2Shoes in its published layout: drawn shoes, each beside its lines in one picture."""

from pathlib import Path
from typing import Any

from PIL import Image

from tests.true_files.ut_zap50k import catalogue, draw

HELD = "domain"

TRAIN, VAL = 20, 4


def pair(row: dict[str, Any]) -> Image.Image:
    """Lines on the left, the photograph on the right."""
    found = Image.new("RGB", (512, 256))
    found.paste(draw(row, (256, 256), lines=True), (0, 0))
    found.paste(draw(row, (256, 256)), (256, 0))
    return found


def write(folder: Path, train: int = TRAIN, val: int = VAL) -> list[tuple[str, dict[str, Any]]]:
    """Write the release below ``edges2shoes``.

    Returns
    -------
    list of (str, dict)
        Name of each pair as the table has it, and the line of the catalogue that was drawn, in the order of the pairs.
        They take every second line, so that most pictures of a catalogue of 48 are of no pair.

    """
    lines = catalogue(2 * (train + val))[::2]
    names = [f"train/{number + 1}" for number in range(train)] + [f"val/{number + 1}" for number in range(val)]
    for name, row in zip(names, lines, strict=True):
        path = folder / "edges2shoes" / f"{name}_AB.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pair(row).save(path, quality=95)
    return list(zip(names, lines, strict=True))
