"""A small DIV2K in the published zips and folders: drawn scenes in high resolution, and what was made of them."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

HELD = "scene"

TRAIN, VALID = ("0001", "0002", "0003", "0004"), ("0801", "0802")
SIZES = {
    "0001": (144, 204),
    "0002": (204, 156),
    "0003": (120, 204),
    "0004": (144, 204),
    "0801": (132, 204),
    "0802": (204, 132),
}
"""Height and width in high resolution, multiples of 12 as in the release."""
LOW = {
    "LR_bicubic_X2": ("LR_bicubic/X2", 2, ("",)),
    "LR_bicubic_X4": ("LR_bicubic/X4", 4, ("",)),
    "LR_unknown_X3": ("LR_unknown/X3", 3, ("",)),
    "LR_x8": ("LR_x8", 8, ("",)),
    "LR_mild": ("LR_mild", 4, ("m",)),
    "LR_wild": ("LR_wild", 4, ("w1", "w2", "w3", "w4")),
}
"""For each archive the folder in it, the scale, and what stands behind the scale."""
UNPACKED = ("train_LR_mild", "valid_LR_bicubic_X2")
"""Archives that lie there unpacked."""


def scene(image: str) -> Image.Image:
    """A landscape with a house, whose fine bricks suffer when it is made smaller."""
    height, width = SIZES[image]
    number = int(image)
    picture = Image.new("RGB", (width, height), (130, 180 + number % 40, 235))
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, height * 0.7, width, height), fill=(70, 130 + 10 * (number % 5), 60))
    pen.ellipse((width * 0.75, 8, width * 0.75 + 26, 34), fill=(255, 230, 90))
    left, top = 24 + 6 * (number % 4), int(height * 0.4)
    pen.rectangle((left, top, left + 70, top + 54), fill=(170, 70 + 20 * (number % 4), 50))
    for row in range(0, 54, 6):
        pen.line((left, top + row, left + 70, top + row), fill=(230, 220, 200))
        for column in range(row % 12, 70, 12):
            pen.line((left + column, top + row, left + column, top + row + 6), fill=(230, 220, 200))
    pen.polygon([(left - 8, top), (left + 35, top - 32), (left + 78, top)], fill=(80, 50, 50))
    pen.text((4, 4), image, fill="black")
    return picture


def smaller(picture: Image.Image, scale: int, kind: str) -> Image.Image:
    """What a track made of a picture, roughly."""
    if kind:
        picture = picture.filter(ImageFilter.GaussianBlur(2 + ord(kind[-1]) % 4))
    found = picture.resize((picture.width // scale, picture.height // scale), Image.Resampling.BICUBIC)
    if kind:
        noise = np.random.default_rng(ord(kind[-1])).normal(0, 6, (found.height, found.width, 3))
        found = Image.fromarray((np.asarray(found) + noise).clip(0, 255).astype(np.uint8))
    return found


def archives() -> dict[str, dict[str, Image.Image]]:
    """Pictures by archive and name in it."""
    found: dict[str, dict[str, Image.Image]] = {}
    for split, images in (("train", TRAIN), ("valid", VALID)):
        found[f"{split}_HR"] = {f"DIV2K_{split}_HR/{image}.png": scene(image) for image in images}
        for archive, (folder, scale, kinds) in LOW.items():
            found[f"{split}_{archive}"] = {
                f"DIV2K_{split}_{folder}/{image}x{scale}{kind}.png": smaller(scene(image), scale, kind)
                for image in images
                for kind in kinds
            }
    return found


def encoded(picture: Image.Image) -> bytes:
    """A PNG."""
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def write(folder: Path) -> None:
    """Write ``DIV2K_*.zip``, and two of them as folders."""
    for archive, pictures in archives().items():
        if archive in UNPACKED:
            for name, picture in pictures.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(encoded(picture))
            continue
        with zipfile.ZipFile(folder / f"DIV2K_{archive}.zip", "w") as file:
            for name, picture in pictures.items():
                file.writestr(name, encoded(picture))
