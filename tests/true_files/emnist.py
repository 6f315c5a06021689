"""A small part of EMNIST as it was published: four idx files in a folder ``gzip``, each image column after column."""

import gzip
from pathlib import Path

import numpy as np

from tests.true_files import mnist

HELD = "character"


def write(folder: Path, *, part: str = "balanced", classes: int = 47, first: int = 0, rows: int = 94) -> np.ndarray:
    """Write the files of one part, as many of each label; the pictures as one sees them."""
    below = folder / "gzip"
    below.mkdir(parents=True, exist_ok=True)
    labels = np.arange(2 * rows) % classes
    pictures = mnist.drawn(labels % 10)
    for split, some in (("train", slice(rows)), ("test", slice(rows, None))):
        columns = np.ascontiguousarray(pictures[some].transpose(0, 2, 1))
        for what, axes, content in (("images", 3, columns), ("labels", 1, (labels[some] + first).astype(np.uint8))):
            head = bytes([0, 0, 8, axes]) + b"".join(size.to_bytes(4, "big") for size in content.shape)
            name = f"emnist-{part}-{split}-{what}-idx{axes}-ubyte.gz"
            (below / name).write_bytes(gzip.compress(head + content.tobytes(), mtime=0))
    return pictures
