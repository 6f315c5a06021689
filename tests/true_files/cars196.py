"""A small Cars196 in both published layouts: toy cars in pictures, with boxes and classes in MAT files."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from PIL import Image, ImageDraw

from tests.true_files.toys import toy

HELD = "make"

# what is on both sides of the split of metric learning, names of two words and names without a body
CLASSES = (
    *("AM General Hummer SUV 2000", "Acura RL Sedan 2012", "Acura TL Type-S 2008", "Aston Martin Virage Coupe 2012"),
    *(f"Filler Number{number} Sedan 2012" for number in range(94)),
    *("Ford Ranger SuperCab 2011", "Land Rover LR2 SUV 2012", "Ram C/V Cargo Van Minivan 2012", "Volvo 240 Sedan 1993"),
)
DRAWN = (0, 1, 2, 3, 98, 99, 100, 101)  # classes that have pictures
TRAIN, TEST = 4, 2  # pictures of each
SIDES = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")


def smallest(number: int) -> np.ndarray:
    """A number as MATLAB's smallest unsigned type stores it."""
    return np.array([[number]], np.uint8 if number < 256 else np.uint16)


def structs(rows: list[dict[str, Any]]) -> np.ndarray:
    """A 1 × n struct array."""
    found = np.empty((1, len(rows)), [(name, object) for name in rows[0]])
    for turn, row in enumerate(rows):
        for name, value in row.items():
            found[0, turn][name] = value if isinstance(value, str) else smallest(int(value))
    return found


def cells(texts: list[str] | tuple[str, ...]) -> np.ndarray:
    """A 1 × n cell array of texts."""
    found = np.empty((1, len(texts)), object)
    found[0, :] = texts
    return found


def car(number: int, code: int) -> tuple[Image.Image, list[int]]:
    """A picture of a toy car on a road, and the box of its drawn pixels, from 1 and inclusive."""
    height, width = 150 + 10 * (number % 3), 300 - 20 * (number % 4)
    picture = Image.new("RGB", (width, height), (150, 190, 225))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, height * 6 // 10, width, height), fill=(120, 120, 115))
    alpha = Image.fromarray(toy(0, code / 11, 35.0 + 50 * number, 15.0, size=(110, 110), alpha=True))
    corner = (20 + 23 * number % (width - 130), height - 122)
    picture.paste(alpha, corner, alpha)
    left, top, right, bottom = alpha.getchannel("A").getbbox()
    return picture, [left + corner[0] + 1, top + corner[1] + 1, right + corner[0], bottom + corner[1]]


def write(folder: Path, layout: str = "parts", labels: bool = True) -> list[dict[str, Any]]:
    """Write the release as ``parts`` (cars_train, cars_test, devkit) or as ``one`` (car_ims, cars_annos.mat).

    Returns
    -------
    list of dict
        File, box, class from 1 and part of each picture, in the order of the rows.

    """
    rows = []
    for part, count in (("train", TRAIN), ("test", TEST)):
        # classes take turns, as in the release
        for turn, code in enumerate(code for _ in range(count) for code in DRAWN):
            name = f"cars_{part}/{turn + 1:05d}.jpg" if layout == "parts" else f"car_ims/{len(rows) + 1:06d}.jpg"
            picture, box = car(len(rows) // len(DRAWN), code)
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            picture.save(folder / name, quality=92)
            rows.append({"file": name, "box": box, "class": code + 1, "part": part})
    if layout == "one":
        annotations = [
            {"relative_im_path": row["file"], **dict(zip(SIDES, row["box"], strict=True))}
            | {"class": row["class"], "test": row["part"] == "test"}
            for row in rows
        ]
        content = {"annotations": structs(annotations), "class_names": cells(CLASSES)}
        scipy.io.savemat(folder / "cars_annos.mat", content, do_compression=True)
        return rows
    devkit = folder / "devkit"
    devkit.mkdir()
    scipy.io.savemat(devkit / "cars_meta.mat", {"class_names": cells(CLASSES)}, do_compression=True)
    save(devkit / "cars_train_annos.mat", [row for row in rows if row["part"] == "train"])
    test = [row for row in rows if row["part"] == "test"]
    save(devkit / "cars_test_annos.mat", test, classes=False)
    if labels:
        save(folder / "cars_test_annos_withlabels.mat", test)
    return rows


def save(path: Path, rows: list[dict[str, Any]], classes: bool = True) -> None:
    """Write a file of the devkit."""
    annotations = [
        dict(zip(SIDES, row["box"], strict=True))
        | ({"class": row["class"]} if classes else {})
        | {"fname": row["file"].rpartition("/")[2]}
        for row in rows
    ]
    scipy.io.savemat(path, {"annotations": structs(annotations)}, do_compression=True)
