"""What a sampler of the audit draws from: labels of a number of classes and a skew, and the batches asked of it."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

__all__ = ["CELLS", "ROWS", "SHRUNK", "Cell", "Task", "labels_of"]

ROWS = 10_007
"""Rows of a table: a prime, so that neither batch sizes nor numbers of ranks divide it."""
MOST = 1_000
"""Batches of a run, over all ranks, of a sampler without epochs."""
CLASSES, SKEWS, BATCHES, RANKS = (2, 5, 10, 100, 1_000), ("uniform", "zipf", "single"), (4, 8, 32, 128), (1, 2, 8)


class Cell(NamedTuple):
    """A number of classes, a skew of their sizes, a batch size and a number of ranks."""

    classes: int
    skew: str
    batch: int
    ranks: int

    def __str__(self) -> str:
        """The key of the cell in the file of results."""
        return " ".join(map(str, self))


CELLS = tuple(Cell(*values) for values in product(CLASSES, SKEWS, BATCHES, RANKS))
SHRUNK = (Cell(2, "single", 8, 2), Cell(10, "zipf", 8, 2))
"""Cells that show that the audit runs."""


def labels_of(classes: int, skew: str, rows: int, seed: int) -> np.ndarray:
    """Label of every row, shuffled; class 0 is the largest, and the last class the smallest.

    ``uniform``: classes of equal size, up to one row; ``zipf``: the k-th class has a size in proportion to 1/k, at
    least one row; ``single``: the last class has one row, the others are equal.
    """
    if skew == "single":
        sizes = np.append(_shared(np.ones(classes - 1), rows - 1), 1)
    else:
        sizes = _shared(1 / np.arange(1, classes + 1) if skew == "zipf" else np.ones(classes), rows)
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(classes), sizes))


def _shared(shares: np.ndarray, rows: int) -> np.ndarray:
    """Whole numbers in proportion to shares, at least one each, that sum to the rows."""
    sizes = np.maximum(np.floor(rows * shares / shares.sum()).astype(int), 1)
    left = rows - sizes.sum()
    if left >= 0:
        sizes[: left % len(sizes)] += 1
        sizes += left // len(sizes)
    else:
        sizes[0] += left
    return np.sort(sizes)[::-1]


@dataclass(frozen=True)
class Task:
    """Labels, and the batches that are asked for, of one cell and seed."""

    cell: Cell
    seed: int
    rows: int = ROWS

    @cached_property
    def labels(self) -> np.ndarray:
        """Label of every row."""
        return labels_of(self.cell.classes, self.cell.skew, self.rows, self.seed)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Rows of every class."""
        return np.bincount(self.labels, minlength=self.cell.classes)

    @property
    def size(self) -> int:
        """Rows of a batch."""
        return self.cell.batch

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.cell.ranks

    @property
    def ways(self) -> int:
        """Classes of a batch, P: a power of two, at most the number of classes."""
        return min({4: 2, 8: 2, 32: 4, 128: 8}[self.size], 1 << (self.cell.classes.bit_length() - 1))

    @property
    def per_class(self) -> int:
        """Rows of each class of a batch, K."""
        return self.size // self.ways

    @cached_property
    def outer(self) -> np.ndarray:
        """Super class of every row: two where there are few classes, else ten."""
        return self.labels % self.outer_count

    @property
    def outer_count(self) -> int:
        """Number of super classes."""
        return 2 if self.cell.classes < 20 else 10

    @property
    def tree(self) -> tuple[int, int, int]:
        """Super classes of a batch, classes in each, rows of each of these."""
        each = {4: 2, 8: 2, 32: 4, 128: 8}[self.size]
        return 2, self.size // 2 // each, each

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of every row: classes weigh the same, but the first, whose rows weigh nothing."""
        weights = 1 / self.sizes[self.labels]
        weights[self.labels == 0] = 0
        return weights

    @property
    def steps(self) -> int:
        """Batches of each rank, of a sampler without epochs: as many as the rows fill, and a thousand at most."""
        return max(1, min(self.rows // (self.size * self.ranks), MOST // self.ranks))
