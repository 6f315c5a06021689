"""What a killed and resumed run trained on, beside what it should have."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.resume.data import Item
from benchmarks.resume.plan import DRAWS, PASSES, Cell

__all__ = ["compare", "evened", "read_logs"]


def evened(cell: Cell, truth: Sequence[Sequence[Item]], fill: str = "last") -> list[Sequence[Item]]:
    """Copies of draws that give all ranks equally many batches, as the documentation announces them.

    ``last``: setsup repeats the last draw of the pass; ``first``: accelerate begins again with the first ones that it
    was given.
    """
    left = -cell.draw % DRAWS  # draws of the pass that was interrupted
    copies: list[Sequence[Item]] = []
    for begin, count in ((cell.draw, left), *((p * DRAWS, DRAWS) for p in range((cell.draw + left) // DRAWS, PASSES))):
        for number in range(-count % cell.to_ranks):
            copies.append(truth[begin + count - 1] if fill == "last" else truth[begin + number % count])
    return copies


def compare(
    truth: Sequence[Sequence[Item]], seen: Sequence[Sequence[Item]], copies: Sequence[Sequence[Item]]
) -> dict[str, int]:
    """Rows lost, rows twice, and rows whose images differ; ``evened`` counts the rows of announced copies."""
    wanted, found = Counter(_rows(truth)), Counter(_rows(seen))
    extra, repeats = found - wanted, Counter(_rows(copies))
    whole, part = Counter(_items(truth)) + Counter(_items(copies)), Counter(_items(seen))
    same = sum((whole & part).values())
    return {
        "lost": sum((wanted - found).values()),
        "twice": sum((extra - repeats).values()),
        "evened": sum((extra & repeats).values()),
        "differ": sum(((wanted + repeats) & found).values()) - same,
    }


def read_logs(folder: Path, cell: Cell) -> list[list[Item]]:
    """Batches that were trained on: those up to the checkpoint, and those of the resumed run."""
    seen = []
    for part, ranks in ((0, cell.ranks), (1, cell.to_ranks)):
        for rank in range(ranks):
            for line in (folder / f"saw-{part}-{rank}.jsonl").read_text(encoding="utf-8").splitlines():
                number, items = json.loads(line)
                if part or number <= cell.stop:
                    seen.append([(row, digest) for row, digest in items])
    return seen


def _rows(batches: Sequence[Sequence[Item]]) -> list[int]:
    return [row for batch in batches for row, _ in batch]


def _items(batches: Sequence[Sequence[Item]]) -> list[Item]:
    return [item for batch in batches for item in batch]
