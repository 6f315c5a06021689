"""What a killed and resumed run trained on, beside what it should have."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.resume.data import ROWS, Item
from benchmarks.resume.plan import DRAWS, PASSES, Cell

__all__ = ["Seen", "compare", "compare_passes", "evened", "read_logs", "read_passes"]

Seen = tuple[int, Sequence[Item]]
"""A pass, and a batch of it."""


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


def compare_passes(seen: Sequence[Seen], whole: Sequence[Seen] | None) -> dict[str, int]:
    """Count against every row once in each pass, in any order.

    Batches of later passes, which an endless stream begins, do not count. ``whole`` is what a run that nothing
    interrupted saw: images differ from those of the same row and pass.
    """
    wanted = Counter((number, row) for number in range(PASSES) for row in range(ROWS))
    items = Counter(_of_passes(seen))
    found: Counter[tuple[int, int]] = Counter()
    for (number, row, _), times in items.items():
        found[number, row] += times
    counts = {"lost": sum((wanted - found).values()), "twice": sum((found - wanted).values())}
    if whole is None:
        return counts
    expected = Counter(_of_passes(whole))
    common: Counter[tuple[int, int]] = Counter()
    for (number, row, _), times in expected.items():
        common[number, row] += times
    return {**counts, "differ": sum((common & found).values()) - sum((expected & items).values())}


def read_logs(folder: Path, cell: Cell) -> list[list[Item]]:
    """Batches that were trained on: those up to the checkpoint, and those of the resumed run."""
    return [list(items) for _, items in read_passes(folder, cell)]


def read_passes(folder: Path, cell: Cell, whole: int = 0) -> list[Seen]:
    """The same batches with their passes; or with ``whole`` those of the run of so many ranks without a kill."""
    seen = []
    parts = ((2, whole),) if whole else ((0, cell.ranks), (1, cell.to_ranks))
    for part, ranks in parts:
        for rank in range(ranks):
            log = folder / f"saw-{part}-{rank}.jsonl"
            lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []  # it trained on nothing
            for line in lines:
                number, items, *of_pass = json.loads(line)
                if part or number <= cell.stop:
                    seen.append((of_pass[0] if of_pass else 0, [(row, digest) for row, digest in items]))
    return seen


def _of_passes(seen: Sequence[Seen]) -> list[tuple[int, int, str]]:
    return [(number, row, digest) for number, items in seen for row, digest in items if number < PASSES]


def _rows(batches: Sequence[Sequence[Item]]) -> list[int]:
    return [row for batch in batches for row, _ in batch]


def _items(batches: Sequence[Sequence[Item]]) -> list[Item]:
    return [item for batch in batches for item in batch]
