"""A small SVHN of cropped digits in the published MAT files: digits over patches, with neighbours."""

from pathlib import Path

import numpy as np
from scipy.io import savemat

from tests.true_files.mnist_m import blended

HELD = "digit"

COUNTS = {"train": 40, "test": 20, "extra": 10}


def content(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images, (n, 32, 32, 3), and labels, (n,) uint8, with 10 for 0."""
    number = list(COUNTS).index(part)
    digits = [(3 * row + number) % 10 for row in range(COUNTS[part])]
    images = blended(digits, number)
    images[:, :, :6] = blended([(digit + 5) % 10 for digit in digits], number)[:, :, 20:26]  # a neighbour's edge
    images[..., 2] //= 2
    return images, np.array([digit or 10 for digit in digits], np.uint8)


def write(folder: Path) -> None:
    """Write the three files."""
    for part in COUNTS:
        images, labels = content(part)
        stored = {"X": images.transpose(1, 2, 3, 0), "y": labels[:, None]}
        savemat(folder / f"{part}_32x32.mat", stored, do_compression=True)
