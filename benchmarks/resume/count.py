"""What a killed and resumed run trained on, beside what it should have."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.resume.data import ROWS, Item
from benchmarks.resume.plan import DRAWS, PASSES, Cell

__all__ = ["Seen", "announced_copies", "compare", "compare_passes", "read_logs"]

Seen = tuple[int | None, Sequence[Item]]
"""A batch, and its pass where the loop counts passes."""
Rows = tuple[int, ...]


def announced_copies(cell: Cell, truth: Sequence[Sequence[Item]]) -> list[Sequence[Item]]:
    """Copies of the last draw of a pass that give all ranks equally many batches, as the docstring announces them.

    Only the pass that was interrupted needs them: all numbers of ranks divide the draws of a whole pass.
    """
    left = -cell.draw % DRAWS
    return [truth[cell.draw + left - 1]] * (-left % cell.to_ranks)


def compare(
    truth: Sequence[Sequence[Item]], logs: Sequence[Sequence[Seen]], copies: Sequence[Sequence[Item]]
) -> dict[str, int]:
    """Count what the logs of all ranks have otherwise than the draws of a run of one process.

    Batches are compared whole. ``lost``, ``twice`` and ``evened`` are the rows of batches that are missing, that are
    there more often or are no draw, and that are announced copies; ``differ`` are the rows whose images differ.
    ``moved`` are batches of a rank that come later or earlier than in the stream, or in another pass.
    """
    seen = [items for log in logs for _, items in log]
    wanted, found = Counter(map(_rows, truth)), Counter(map(_rows, seen))
    extra, repeats = found - wanted, Counter(map(_rows, copies))
    images = {_rows(items): items for items in truth}
    return {
        "lost": _size(wanted - found),
        "twice": _size(extra - repeats),
        "evened": _size(extra & repeats),
        "differ": sum(a != b for items in seen for a, b in zip(items, images.get(_rows(items), items), strict=True)),
        "moved": sum(_moved(truth, log) for log in logs),
    }


def _moved(truth: Sequence[Sequence[Item]], log: Sequence[Seen]) -> int:
    draws: dict[Rows, int] = {_rows(items): draw for draw, items in enumerate(truth)}
    moved, last = 0, -1
    for number, items in log:
        draw = draws.get(_rows(items))
        if draw is not None:  # what is no draw counts as twice
            moved += draw <= last or number not in (None, draw // DRAWS)
            last = draw
    return moved


def compare_passes(seen: Iterable[Seen], whole: Iterable[Seen] | None) -> dict[str, int]:
    """Count against every row once in each pass, in any order.

    Batches of later passes, which an endless stream begins, do not count. ``whole`` is what a run that nothing
    interrupted saw: images differ from those of the same row and pass.
    """
    wanted = Counter((number, row) for number in range(PASSES) for row in range(ROWS))
    items = Counter(_of_passes(seen))
    found: Counter[tuple[int, int]] = Counter()
    for (number, row, _), times in items.items():
        found[number, row] += times
    counts = {"lost": (wanted - found).total(), "twice": (found - wanted).total()}
    if whole is None:
        return counts
    expected = Counter(_of_passes(whole))
    common: Counter[tuple[int, int]] = Counter()
    for (number, row, _), times in expected.items():
        common[number, row] += times
    return {**counts, "differ": (common & found).total() - (expected & items).total()}


def read_logs(folder: Path, cell: Cell, whole: int = 0) -> list[list[Seen]]:
    """What each rank trained on up to the checkpoint, and then each rank of the resumed run.

    With ``whole``, what each of so many ranks saw of a run without a kill.
    """
    parts = ((2, whole),) if whole else ((0, cell.ranks), (1, cell.to_ranks))
    return [_read(folder / f"saw-{part}-{rank}.jsonl", part, cell) for part, ranks in parts for rank in range(ranks)]


def _read(path: Path, part: int, cell: Cell) -> list[Seen]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []  # it trained on nothing
    return [
        (of_pass, [(row, digest) for row, digest in items])
        for number, items, of_pass in map(json.loads, lines)
        if part or number <= cell.stop
    ]


def _of_passes(seen: Iterable[Seen]) -> list[tuple[int, int, str]]:
    return [
        (number, row, digest)
        for number, items in seen
        for row, digest in items
        if number is not None and number < PASSES
    ]


def _rows(batch: Sequence[Item]) -> Rows:
    return tuple(row for row, _ in batch)


def _size(batches: Counter[Rows]) -> int:
    return sum(len(rows) * times for rows, times in batches.items())
