"""Cells of the matrix: a way to train, ranks and workers before the kill, and after it."""

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["DRAWS", "LINES", "PASSES", "PEER_STEPS", "RANKS", "WORKERS", "Cell", "cells", "peer_cells"]

DRAWS, PASSES = 24, 2
"""Draws of all ranks in a pass, and passes of a run."""
RANKS, WORKERS = (1, 2, 3, 8), (0, 2, 5)
PEER_STEPS = 8
"""Steps of a pass of other libraries: batches of all ranks have 24 rows, a number that all numbers of ranks divide."""
LINES = ("changed", "same")
"""What becomes of the numbers of ranks and workers of other libraries: others, as for all ways, or the same again."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run that is killed and resumed.

    Attributes
    ----------
    way : str
        The training loop.
    line : {"rows", "bytes", "changed", "same"}
        What feeds it: ``setsup.batch_sampler``, of which rows are compared, or ``setsup.loader`` with augmentations, of
        which the bytes of images are compared too. Other libraries have ``LINES``.
    ranks, workers : int
        Processes, and workers of each, before the kill.
    to_ranks, to_workers : int
        The same after it.
    stop : int
        Steps that each rank has trained when the run is killed; the next batch has arrived.

    """

    way: str
    line: str
    ranks: int
    workers: int
    to_ranks: int
    to_workers: int
    stop: int

    @property
    def name(self) -> str:
        """The key of its result."""
        return f"{self.way}/{self.line}/{self.ranks}x{self.workers}"

    @property
    def draw(self) -> int:
        """Draws of all ranks that are trained when the run is killed."""
        return self.stop * self.ranks

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        return asdict(self)


def cells(ways: Sequence[tuple[str, str]]) -> list[Cell]:
    """Every way and line with all ranks and workers; each ordered pair of two numbers of ranks occurs once for each."""
    found = []
    for way, line in ways:
        for i, ranks in enumerate(RANKS):
            others = [*RANKS[i + 1 :], *RANKS[:i]]
            for j, workers in enumerate(WORKERS):
                key = zlib.crc32(f"{way}/{line}/{ranks}x{workers}".encode())
                stop = 1 + key % (PASSES * DRAWS // ranks - 1)
                found.append(Cell(way, line, ranks, workers, others[j], WORKERS[(j + 1 + (i == 1)) % 3], stop))
    return found


def peer_cells(name: str) -> list[Cell]:
    """Cells of another library: those of a way, and as many whose ranks and workers stay the same."""
    found = []
    for line in LINES:
        for cell in cells([(name, line)]):
            stop = 1 + zlib.crc32(cell.name.encode()) % (PASSES * PEER_STEPS - 1)
            to = (cell.to_ranks, cell.to_workers) if line == "changed" else (cell.ranks, cell.workers)
            found.append(Cell(name, line, cell.ranks, cell.workers, *to, stop))
    return found
