"""A small STL-10 in the published binary files: drawn things, and folds of some of them."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HELD = "category"

CATEGORIES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
TRAIN, TEST, UNLABELED = 8, 6, 25
"""Pictures a category in the first two, and of all in the last."""
FOLD = 16


def drawn(category: int, number: int) -> Image.Image:
    """A picture that is neither symmetric nor grey, so that a turned or swapped one is seen."""
    picture = Image.new("RGB", (96, 96), (120 + 9 * (number % 8), 190, 225))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 78, 95, 95), fill=(90, 150 - 4 * category, 60))
    x, y = 8 + number % 5, 26 + number % 4
    body = (40 + 20 * category, 60, 230 - 20 * category)
    if category in (2, 9):
        pen.rectangle((x, y + 14, x + 70, y + 42), fill=body)
        pen.rectangle((x + 44, y, x + 66, y + 16), fill=(30, 30, 60))
        for wheel in (8, 48):
            pen.ellipse((x + wheel, y + 36, x + wheel + 16, y + 52), fill="black")
    elif category == 0:
        pen.polygon([(x, y + 24), (x + 70, y + 16), (x + 70, y + 30)], fill=body)
        pen.polygon([(x + 24, y + 22), (x + 46, y + 20), (x + 10, y + 52)], fill=(230, 230, 240))
    elif category == 8:
        pen.polygon([(x, y + 30), (x + 76, y + 30), (x + 62, y + 52), (x + 14, y + 52)], fill=body)
        pen.polygon([(x + 34, y + 28), (x + 34, y - 10), (x + 62, y + 28)], fill="white")
    else:
        pen.ellipse((x, y + 12, x + 54, y + 42), fill=body)
        pen.ellipse((x + 44, y - 4, x + 70, y + 22), fill=body)
        pen.ellipse((x + 58, y + 4, x + 63, y + 9), fill="white")
        for leg in range(6, 50, 14):
            pen.rectangle((x + leg, y + 36, x + leg + 4, y + 54), fill=body)
    pen.text((2, 82), f"{CATEGORIES[category]} {number}", fill="white")
    return picture


def stored(pictures: list[Image.Image]) -> bytes:
    """Red, green, blue; each column after column."""
    return b"".join(
        bytes(channel.transpose(Image.Transpose.TRANSPOSE).tobytes()) for each in pictures for channel in each.split()
    )


def labels(count: int) -> np.ndarray:
    """Labels from 0, mixed as in the published files."""
    return np.random.default_rng(7).permutation(np.repeat(np.arange(10), count))


def folds() -> list[list[int]]:
    """Training pictures of each fold, of which every fold has some that others have."""
    dice = np.random.default_rng(8)
    return [sorted(dice.choice(10 * TRAIN, FOLD, replace=False).tolist()) for _ in range(10)]


def write(folder: Path) -> None:
    """Write ``stl10_binary/*``, as the archive holds it."""
    root = folder / "stl10_binary"
    root.mkdir(parents=True)
    for split, count in (("train", TRAIN), ("test", TEST)):
        found = labels(count)
        (root / f"{split}_X.bin").write_bytes(stored([drawn(each, at) for at, each in enumerate(found.tolist())]))
        (root / f"{split}_y.bin").write_bytes((found + 1).astype(np.uint8).tobytes())
    others = [drawn(3 * number % 10, 100 + number) for number in range(UNLABELED)]
    (root / "unlabeled_X.bin").write_bytes(stored(others))
    (root / "class_names.txt").write_text("".join(f"{name}\n" for name in CATEGORIES))
    (root / "fold_indices.txt").write_text("".join(" ".join(map(str, fold)) + " \n" for fold in folds()))
