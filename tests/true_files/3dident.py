"""A small 3DIdent as it was published: a tar a part, with images and their latents."""

import io
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from tests.true_files.pacs import encoded
from tests.true_files.toys import toy

HELD = "split"

COUNTS = {"train": 12, "test": 5}


def latents(count: int, start: int = 0) -> np.ndarray:
    """Values in −1 to 1 of every latent: shifted multiples of an irrational number."""
    rows, columns = np.arange(start, start + count)[:, None], np.arange(10)
    return (2 * ((rows + 1) * (columns + 2) * 0.6180339887 % 1) - 1).astype(np.float32)


def picture(values: np.ndarray, kind: int = 1, side: int = 224) -> Image.Image:
    """A toy as its latents tell: moved by x and y, turned by the third rotation, coloured by its hue."""
    at = np.array([1, 1]) * (side * 0.2 * values[:2]).astype(int)
    ground = np.array([130, 140, 150]) + (60 * values[9] * np.array([1, -1, 0.5])).astype(int)
    drawn = toy(
        kind, 0.25 * values[7] % 1, 90 * values[5], 25 + 20 * values[3], size=(side, side), ground=tuple(ground)
    )
    return Image.fromarray(np.roll(drawn, tuple(at), (0, 1)))


def npy(array: np.ndarray) -> bytes:
    """Bytes of a file of numpy's."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@cache
def files(part: str) -> dict[str, bytes]:
    """Content by path of a part."""
    values = latents(COUNTS[part], 40 * (part == "test"))
    digits = int(np.ceil(np.log10(len(values))))
    found = {f"images/{row:0{digits}}.png": encoded(picture(each), "PNG") for row, each in enumerate(values)}
    return {**found, "raw_latents.npy": npy(values), "latents.npy": npy(3 * values)}


def write(folder: Path) -> None:
    """Write ``3dident_train.tar`` and ``3dident_test.tar``."""
    for part in COUNTS:
        with tarfile.open(folder / f"3dident_{part}.tar", "w") as file:
            for name, content in files(part).items():
                entry = tarfile.TarInfo(f"3dident/{part}/{name}")
                entry.size = len(content)
                file.addfile(entry, io.BytesIO(content))
