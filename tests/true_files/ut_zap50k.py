"""A small UT Zappos50K in its published layout: drawn shoes, a catalogue, and the list of paths."""

import colorsys
import csv
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from PIL import Image, ImageDraw

from tests.kept import kept

HELD = "category"

COLUMNS = ("CID", "Category", "SubCategory", "HeelHeight", "Insole", "Closure", "Gender", "Material", "ToeStyle")
KINDS = {
    "Shoes": ("Oxfords", "Loafers"),
    "Boots": ("Ankle", "Knee High"),
    "Sandals": ("Flat",),
    "Slippers": ("Slipper Flats",),
}
# as the list of paths writes them, on the disk beside the plain pictures, and beside the square ones
BRANDS = (
    ("Bostonian", "Bostonian", "Bostonian"),
    ("Neil M.", "Neil M", "Neil M%2E"),
    ("W.A.G.", "W.A.G", "W.A.G%2E"),
    ("Levi's", "Levi's&#174;", "Levi's"),
)
HUES = {"Leather": 0.08, "Suede": 0.6, "Canvas": 0.33}
OUTLINE = (30, 25, 25)


def shoe(kind: str, hue: float, number: int, size: tuple[int, int], lines: bool = False) -> Image.Image:
    """A shoe on white, its toe to the left; only its lines with `lines`.

    The number makes its length, heel and pattern.
    """
    height, width = size
    unit = min(width / 136, height / 102) * 4
    picture = Image.new("RGB", (round(136 * unit), round(102 * unit)), (255, 255, 255))
    pen = ImageDraw.Draw(picture)

    def filled(points: list[tuple[float, float]], value: float) -> None:
        color = (255, 255, 255) if lines else tuple(round(255 * c) for c in colorsys.hsv_to_rgb(hue, 0.7, value))
        flat = [(x * unit, y * unit) for x, y in points]
        pen.polygon(flat, fill=color)
        pen.line([*flat, flat[0]], fill=(0, 0, 0) if lines else OUTLINE, width=max(1, round(1.3 * unit)))

    toe, heel = 12.0 + 3 * (number % 5), 2.0 + 3.5 * (number % 4)
    sole = [(toe, 80), (118, 80 - heel), (118, 86), (104, 86), (100, 84), (toe + 4, 86)]
    if kind == "Boots":
        filled([(toe, 80), (toe + 10, 66), (70, 52), (76, 14), (112, 14), (118, 80 - heel)], 0.75)
    elif kind == "Sandals":
        filled([(toe + 16, 80), (toe + 30, 50), (toe + 44, 50), (toe + 40, 80)], 0.75)
        filled([(84, 80 - heel / 2), (98, 44), (112, 44), (106, 80 - heel)], 0.75)
    elif kind == "Slippers":
        filled([(toe, 80), (toe + 8, 60), (66, 50), (74, 80 - heel / 2)], 0.75)
    else:
        filled([(toe, 80), (toe + 10, 64), (62, 56), (74, 42), (114, 46), (118, 80 - heel)], 0.75)
        for turn in range(2 + number % 3):
            filled(
                [(56 + 6 * turn, 58 - 4 * turn), (66 + 6 * turn, 62 - 4 * turn), (66 + 6 * turn, 64 - 4 * turn)], 0.4
            )
    filled(sole, 0.35)
    fitted = picture.resize((round(picture.width / 4), round(picture.height / 4)), Image.Resampling.BOX)
    found = Image.new("RGB", (width, height), (255, 255, 255))
    found.paste(fitted, ((width - fitted.width) // 2, (height - fitted.height) // 2))
    return found


def catalogue(count: int = 48) -> list[dict[str, Any]]:
    """Lines of a catalogue, each with its brand and the number of its drawing."""
    rows = []
    kinds = [(kind, sub) for kind, subs in KINDS.items() for sub in subs]
    for number in range(count):
        kind, sub = kinds[number % len(kinds)]
        material = tuple(HUES)[number // 2 % 3]
        values = {
            "CID": f"{100627 + 31 * (count - number)}-{number % 7 + 1}",
            "Category": kind,
            "SubCategory": sub,
            "HeelHeight": ("", "1in - 1 3/4in", "Under 1in")[number % 3],
            "Insole": ("Padded", "", "Leather;Padded")[number % 3],
            "Closure": ("Lace up", "Slip-On", "Zipper;Lace up", "")[number % 4],
            "Gender": ("Men", "Women", "Boys;Girls")[number % 3],
            "Material": material if number % 2 else f"{material};Rubber",
            "ToeStyle": ("Round Toe", "", "Pointed Toe")[number // 3 % 3],
        }
        rows.append({"values": values, "brand": BRANDS[number % 4], "hue": HUES[material], "number": number})
    return rows


def draw(row: dict[str, Any], size: tuple[int, int], lines: bool = False) -> Image.Image:
    """Picture of a line of the catalogue."""
    return shoe(row["values"]["Category"], row["hue"] + row["number"] / 400, row["number"], size, lines)


def file(row: dict[str, Any], variant: int) -> str:
    """Path of a picture: as the list has it (0), or as it lies in the plain (1) or in the square folder (2)."""
    values = row["values"]
    name = values["CID"].replace("-", ".")
    return f"{values['Category']}/{values['SubCategory']}/{row['brand'][variant]}/{name}.jpg"


@kept
def write(folder: Path, count: int = 48, variants: tuple[int, ...] = (1, 2)) -> list[dict[str, Any]]:
    """Write the release, with the plain pictures (1), the square ones (2) or both.

    Returns
    -------
    list of dict
        Lines of the catalogue, as :func:`catalogue` gives them.

    """
    rows = catalogue(count)
    data = folder / "ut-zap50k-data"
    data.mkdir(parents=True)
    with (data / "meta-data.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(row["values"] for row in rows)
    paths = np.empty((len(rows), 1), object)
    paths[:, 0] = [file(row, 0) for row in rows]
    scipy.io.savemat(data / "image-path.mat", {"imagepath": paths}, do_compression=True)
    for variant in variants:
        top = folder / ("ut-zap50k-images", "ut-zap50k-images-square")[variant - 1]
        for row in rows:
            path = top / file(row, variant)
            path.parent.mkdir(parents=True, exist_ok=True)
            draw(row, ((102, 136), (136, 136))[variant - 1]).save(path, quality=95)
    return rows
