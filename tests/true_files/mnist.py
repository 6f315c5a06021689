"""A small MNIST in the published format: digits of straight strokes, each with a slant and a thickness of its own."""

import gzip
from pathlib import Path

import numpy as np

from tests.kept import kept

HELD = "digit"

# a seven-segment display, its corners at x in {-1, 1} and y in {-1, 0, 1}: both ends of each stroke
_STROKES = {
    "a": ((-1, -1), (1, -1)),
    "b": ((1, -1), (1, 0)),
    "c": ((1, 0), (1, 1)),
    "d": ((-1, 1), (1, 1)),
    "e": ((-1, 0), (-1, 1)),
    "f": ((-1, -1), (-1, 0)),
    "g": ((-1, 0), (1, 0)),
}
_DIGITS = ("abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg")


def drawn(digits: np.ndarray, seed: int = 0) -> np.ndarray:
    """Pictures of digits, (n, 28, 28) uint8: ink is 255, and fades over a pixel at the edge of a stroke."""
    slants, widths = np.random.default_rng(seed).uniform([[-0.4], [0.7]], [[0.4], [2.2]], (2, len(digits)))
    y, x = np.mgrid[:28, :28] - 13.5
    found = np.zeros((len(digits), 28, 28), np.uint8)
    for picture, digit, slant, width in zip(found, digits.tolist(), slants, widths, strict=True):
        away = np.full((28, 28), np.inf)
        points = np.stack([x + slant * y, y], -1)
        for stroke in _DIGITS[digit]:
            start, end = (np.array(corner) * (4.5, 8.0) for corner in _STROKES[stroke])
            along = ((points - start) @ (end - start) / ((end - start) ** 2).sum()).clip(0, 1)
            away = np.minimum(away, np.linalg.norm(points - start - along[..., None] * (end - start), axis=-1))
        picture[:] = 255 * (width + 0.5 - away).clip(0, 1)
    return found


@kept
def write(folder: Path, *, per_split: int = 200) -> np.ndarray:
    """Write the four files; the pictures of all rows."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = np.random.default_rng(per_split).permutation(2 * per_split) % 10
    pictures = drawn(digits)
    for name, part in (("train", slice(per_split)), ("t10k", slice(per_split, None))):
        count = per_split.to_bytes(4, "big")
        images = bytes([0, 0, 8, 3]) + count + 2 * (28).to_bytes(4, "big") + pictures[part].tobytes()
        labels = bytes([0, 0, 8, 1]) + count + digits[part].astype(np.uint8).tobytes()
        for what, content in (("images-idx3", images), ("labels-idx1", labels)):
            (folder / f"{name}-{what}-ubyte.gz").write_bytes(gzip.compress(content, mtime=0))
    return pictures
