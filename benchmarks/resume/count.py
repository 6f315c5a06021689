"""What a killed and resumed run trained on, beside what it should have."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.resume.data import Item
from benchmarks.resume.plan import DRAWS, PASSES, Cell

__all__ = ["compare", "evened", "read_logs"]


def evened(cell: Cell, truth: Sequence[Sequence[Item]]) -> list[Sequence[Item]]:
    """Copies of the last draw of a pass that give all ranks equally many batches, as the docstring announces them."""
    left = -cell.draw % DRAWS  # draws of the pass that was interrupted
    copies = [truth[cell.draw + left - 1]] * (-left % cell.to_ranks)
    for end in range(cell.draw + left + DRAWS, PASSES * DRAWS + 1, DRAWS):
        copies += [truth[end - 1]] * (-DRAWS % cell.to_ranks)
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
            log = folder / f"saw-{part}-{rank}.jsonl"
            lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []  # it trained on nothing
            for line in lines:
                number, items = json.loads(line)
                if part or number <= cell.stop:
                    seen.append([(row, digest) for row, digest in items])
    return seen


def _rows(batches: Sequence[Sequence[Item]]) -> list[int]:
    return [row for batch in batches for row, _ in batch]


def _items(batches: Sequence[Sequence[Item]]) -> list[Item]:
    return [item for batch in batches for item in batch]
