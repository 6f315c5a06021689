"""A small CompCars in its published layout: toy cars in pictures, with labels, names, attributes and lists."""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from PIL import Image, ImageDraw

from tests.true_files.toys import toy

HELD = "model"

MAKES = ("Audi ", "BMW", "", "Peugeot", "Volkswagen")  # by number from 1; some end with a space
MODELS = ("Audi A4", "", "BMW X1", "coupe", "Golf", "coupe", "Polo", "never seen")
# make, model, and its attributes: km/h, litres, doors, seats, type
CARS = (
    (1, 1, (235, 1.8, 4, 5, 3)),
    (2, 3, (0, 2.0, 5, 5, 2)),
    (2, 4, (250, 0.0, 0, 0, 0)),
    (4, 6, (210, 1.6, 2, 4, 10)),
    (5, 5, (202, 1.4, 5, 5, 4)),
    (5, 7, None),  # not in the file
)
TYPES = (
    *("MPV", "SUV", "sedan", "hatchback", "minibus", "fastback", "estate", "pickup", "hardtop convertible", "sports"),
    *("crossover", "convertible"),
)
# azimuth of the toy, which shows its front at 0, by number of the viewpoint
AZIMUTHS = {1: 0, 2: 180, 3: 90, 4: 40, 5: 140, -1: 70}
GONE = "4/6/2012/0000000000dead.jpg"  # listed, but not there
PICTURES = 8  # of each model


def cells(texts: tuple[str, ...], axis: int) -> np.ndarray:
    """A cell array of texts along an axis; empty ones are empty arrays, as MATLAB stores them."""
    found = np.empty((len(texts), 1), object)
    for row, text in enumerate(texts):
        found[row, 0] = text or np.zeros((0, 0))
    return found if axis == 0 else found.T


def write(folder: Path, lists: bool = True) -> list[dict[str, Any]]:
    """Write the release into ``data``.

    Returns
    -------
    list of dict
        Path, make, model, year, viewpoint, box and parts of each picture, in the order of the paths.

    """
    data, rows = folder / "data", []
    for turn, (make, model, _) in enumerate(CARS):
        for number in range(PICTURES):
            year = ("2009", "2013", "unknown")[number % 3]
            view = (1, 2, 3, 4, 5, -1)[(turn + number) % 6]
            path = f"{make}/{model}/{year}/{turn:07x}{number * 7919:07x}"
            picture, box = _drawn(turn, number, view)
            for top in ("image", "label"):
                (data / top / path).parent.mkdir(parents=True, exist_ok=True)
            picture.save(data / "image" / f"{path}.jpg", quality=92)
            (data / "label" / f"{path}.txt").write_text(f"{view}\n1\n{' '.join(map(str, box))}\n")
            row = {"path": f"{path}.jpg", "make": make, "model": model, "year": year, "viewpoint": view, "box": box}
            part = ("train", "test")[number % 2] if turn < 4 and number < 6 else None
            rows.append(row | {"split": part, "verification": ("train", "train", None, None, "test", "test")[turn]})
    _write_misc(data / "misc")
    rows.sort(key=lambda row: row["path"].encode())
    if lists:
        _write_lists(data / "train_test_split", rows)
    return rows


def _drawn(turn: int, number: int, view: int) -> tuple[Image.Image, list[int]]:
    height, width = 160 + 10 * (number % 3), 260 + 20 * (turn % 3)
    picture = Image.new("RGB", (width, height), (200, 215, 190))
    ImageDraw.Draw(picture).rectangle((0, height * 6 // 10, width, height), fill=(140, 130, 120))
    alpha = Image.fromarray(toy(0, turn / 6, AZIMUTHS[view] + number, 12.0, size=(120, 120), alpha=True))
    corner = (10 + 17 * number % (width - 130), height - 130)
    picture.paste(alpha, corner, alpha)
    left, top, right, bottom = alpha.getchannel("A").getbbox()
    return picture, [left + corner[0] + 1, top + corner[1] + 1, right + corner[0], bottom + corner[1]]


def _write_misc(misc: Path) -> None:
    misc.mkdir()
    names = {"make_names": cells(MAKES, 0), "model_names": cells(MODELS, 0)}
    scipy.io.savemat(misc / "make_model_name.mat", names, do_compression=True)
    scipy.io.savemat(misc / "car_type.mat", {"types": cells(TYPES, 1)}, do_compression=True)
    lines = ["model_id maximum_speed displacement door_number seat_number type"]
    for _, model, told in CARS:
        if told:
            lines.append(f"{model} {told[0]} {told[1]:.1f} {told[2]} {told[3]} {told[4]}")
    (misc / "attributes.txt").write_text("\n".join(lines) + "\n")


def _write_lists(folder: Path, rows: list[dict[str, Any]]) -> None:
    for name in ("classification", "verification"):
        (folder / name).mkdir(parents=True)
    for part in ("train", "test"):
        paths = [row["path"] for row in rows if row["split"] == part] + ([GONE] if part == "test" else [])
        (folder / "classification" / f"{part}.txt").write_text("".join(f"{path}\n" for path in paths))
    paths = [row["path"] for row in rows if row["verification"] == "train"]
    (folder / "verification" / "verification_train.txt").write_text("".join(f"{path}\n" for path in paths))
    pairs = [row for row in rows if row["verification"] == "test"]
    for at, kind in enumerate(("easy", "medium", "hard")):
        lines = [
            f"{a['path']} {b['path']} {int(a['model'] == b['model'])}\n"
            for a, b in zip(pairs[at::3], pairs[-1 - at :: -3], strict=False)
        ]
        (folder / "verification" / f"verification_pairs_{kind}.txt").write_text("".join(lines))
