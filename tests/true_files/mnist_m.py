"""A small MNIST-M as it was published: digits over patches, in PNG, and a text of names and digits for each part."""

from pathlib import Path

import numpy as np
from PIL import Image

from tests.true_files.mnist import drawn
from tests.true_files.pacs import encoded

HELD = "digit"

COUNTS = {"train": 50, "test": 20}


def digits(part: str) -> list[int]:
    """Digits of a part, mixed."""
    return [(7 * number + len(part)) % 10 for number in range(COUNTS[part])]


def blended(codes: list[int], seed: int) -> np.ndarray:
    """Digits over patches, (n, 32, 32, 3) uint8: where there is ink, a patch is inverted."""
    ink = np.pad(drawn(np.array(codes), seed), ((0, 0), (2, 2), (2, 2)))[..., None]
    y, x = np.mgrid[:32, :32][..., None]
    phase, hue = np.arange(len(codes))[:, None, None, None], np.array([0.7, 1.9, 3.1])
    patch = 128 + 90 * np.sin(x / 9 + phase + hue) * np.cos(y / 7 - phase * hue)
    return np.where(ink > 127, 255 - patch, patch).astype(np.uint8)


def write(folder: Path) -> None:
    """Write ``mnist_m`` as the archive holds it."""
    root = folder / "mnist_m"
    for number, part in enumerate(COUNTS):
        (root / f"mnist_m_{part}").mkdir(parents=True)
        codes = digits(part)
        names = [f"{row:08}.png" for row in range(len(codes))]
        for name, picture in zip(names, blended(codes, number), strict=True):
            (root / f"mnist_m_{part}" / name).write_bytes(encoded(Image.fromarray(picture), "PNG"))
        lines = [f"{name} {code}\n" for name, code in zip(names, codes, strict=True)]
        (root / f"mnist_m_{part}_labels.txt").write_text("".join(lines))
