"""How many batches of a run break a promise: one function for each promise, on row numbers alone."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from benchmarks.audit.tasks import Task

__all__ = [
    "Drawn",
    "classes_once",
    "distinct_rows",
    "distinct_values",
    "drawn_once",
    "exclusive_to_rank",
    "full_size",
    "no_weightless_rows",
    "once_per_rank",
    "pairs_of_labels",
    "per_class",
    "per_class_distinct",
    "per_class_of_small",
    "per_class_replaced",
    "several_labels",
    "tree",
    "tree_distinct",
]


class Drawn(NamedTuple):
    """Batches of all ranks.

    ``rows`` are the rows of all batches, one batch after the other, and ``batch`` the number of the batch of each;
    ``epoch``, ``rank`` and ``step`` are those of each batch; ``step`` counts the batches of a rank in an epoch. Ranks
    that draw on their own have epochs of their own.
    """

    rows: np.ndarray
    batch: np.ndarray
    epoch: np.ndarray
    rank: np.ndarray
    step: np.ndarray

    @classmethod
    def of(cls, batches: Iterable[tuple[int, int, Sequence[int]]]) -> Self:
        """Gather epoch, rank and rows of each batch, those of a rank in their order."""
        epochs, ranks, steps, rows = [], [], [], []
        seen: dict[tuple[int, int], int] = {}
        for epoch, rank, batch in batches:
            epochs.append(epoch)
            ranks.append(rank)
            steps.append(seen.get((epoch, rank), 0))
            seen[epoch, rank] = steps[-1] + 1
            rows.append(np.asarray(batch, dtype=np.int64))
        sizes = [len(batch) for batch in rows]
        return cls(
            np.concatenate([*rows, np.zeros(0, np.int64)]),
            np.repeat(np.arange(len(rows)), sizes),
            *(np.asarray(values, dtype=np.int64) for values in (epochs, ranks, steps)),
        )

    def __len__(self) -> int:
        """Number of batches."""
        return len(self.epoch)

    @property
    def sizes(self) -> np.ndarray:
        """Rows of each batch, copies included."""
        return np.bincount(self.batch, minlength=len(self))

    @property
    def copies(self) -> np.ndarray:
        """Whether a batch has a row more than once, (batches,) bool."""
        return _batches(self, _repeated(self.batch, self.rows))


def _key(*columns: np.ndarray) -> np.ndarray:
    """One number for the values of several columns at a place, (places,) int64."""
    key = columns[0]
    for column in columns[1:]:
        key = key * (int(column.max(initial=0)) + 1) + column
    return key


def _repeated(*columns: np.ndarray) -> np.ndarray:
    """Whether the same values occur in more than one place, (places,) bool."""
    _, group, counts = np.unique(_key(*columns), return_inverse=True, return_counts=True)
    return counts[group] > 1


def _first(*columns: np.ndarray) -> np.ndarray:
    """One place for all that have the same values, (values,) int64."""
    return np.unique(_key(*columns), return_index=True)[1]


def _batches(drawn: Drawn, places: np.ndarray) -> np.ndarray:
    """Whether a batch has any of the places, (batches,) bool."""
    return np.bincount(drawn.batch[places], minlength=len(drawn)) > 0


def _counted(drawn: Drawn, values: np.ndarray, *, distinct: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Batch, value and rows of every value in a batch; values are of the rows of the table."""
    batch, rows = drawn.batch, drawn.rows
    if distinct:
        places = _first(batch, rows)
        batch, rows = batch[places], rows[places]
    width = int(values.max()) + 1
    keys, counts = np.unique(batch * width + values[rows], return_counts=True)
    return keys // width, keys % width, counts


def _unlike(drawn: Drawn, task: Task, wanted: np.ndarray, *, distinct: bool) -> np.ndarray:
    """Whether a batch has other than P classes, or other than the wanted number of rows of one, (batches,) bool."""
    batch, label, counts = _counted(drawn, task.labels, distinct=distinct)
    broken = np.bincount(batch, minlength=len(drawn)) != task.ways
    broken[batch[counts != wanted[label]]] = True
    return broken


def per_class(drawn: Drawn, task: Task) -> int:
    """P classes with K rows of each, copies counted."""
    return int(_unlike(drawn, task, np.full(task.cell.classes, task.per_class), distinct=False).sum())


def per_class_distinct(drawn: Drawn, task: Task) -> int:
    """P classes with K rows of each, and no row twice."""
    broken = _unlike(drawn, task, np.full(task.cell.classes, task.per_class), distinct=True)
    return int((broken | drawn.copies).sum())


def per_class_replaced(drawn: Drawn, task: Task) -> int:
    """P classes with K rows of each, copies counted; no row twice of a class of K rows or more."""
    broken = _unlike(drawn, task, np.full(task.cell.classes, task.per_class), distinct=False)
    large = task.sizes[task.labels[drawn.rows]] >= task.per_class
    return int((broken | _batches(drawn, _repeated(drawn.batch, drawn.rows) & large)).sum())


def per_class_of_small(drawn: Drawn, task: Task) -> int:
    """P classes with K rows of each, or all rows of a class that has fewer; no row twice."""
    broken = _unlike(drawn, task, np.minimum(task.sizes, task.per_class), distinct=True)
    return int((broken | drawn.copies).sum())


def several_labels(drawn: Drawn, task: Task) -> int:
    """Two labels or more, and two rows or more of each; copies of a row count once."""
    batch, _, counts = _counted(drawn, task.labels, distinct=True)
    broken = np.bincount(batch, minlength=len(drawn)) < 2
    broken[batch[counts < 2]] = True
    return int(broken.sum())


def pairs_of_labels(drawn: Drawn, task: Task) -> int:
    """Two rows or more of each label that a batch has; copies of a row count once."""
    batch, _, counts = _counted(drawn, task.labels, distinct=True)
    return len(np.unique(batch[counts < 2]))


def full_size(drawn: Drawn, task: Task) -> int:
    """The batch size, but for the last batch of a rank in an epoch."""
    last = np.zeros(len(drawn), dtype=bool)
    ends: dict[tuple[int, int], int] = {}
    for number, place in enumerate(zip(drawn.epoch.tolist(), drawn.rank.tolist(), strict=True)):
        ends[place] = number
    last[list(ends.values())] = True
    return int(((drawn.sizes != task.size) & ~last).sum())


def classes_once(drawn: Drawn, task: Task) -> int:
    """No class that an earlier batch of the same epoch had."""
    batch, label, _ = _counted(drawn, task.labels)
    group = _key(drawn.epoch[batch], label)
    order = np.lexsort((drawn.rank[batch], drawn.step[batch], group))
    later = np.append(False, np.diff(group[order]) == 0)
    return int((np.bincount(batch[order[later]], minlength=len(drawn)) > 0).sum())


def exclusive_to_rank(drawn: Drawn, task: Task) -> int:
    """No row that another rank has in the same epoch."""
    epoch, rank = drawn.epoch[drawn.batch], drawn.rank[drawn.batch]
    row = epoch * task.rows + drawn.rows
    found = row[_first(epoch, drawn.rows, rank)]
    return int(_batches(drawn, np.isin(row, found[_repeated(found)])).sum())


def once_per_rank(drawn: Drawn, task: Task) -> int:
    """No row that the same rank has twice in an epoch."""
    places = _repeated(drawn.epoch[drawn.batch], drawn.rank[drawn.batch], drawn.rows)
    return int(_batches(drawn, places).sum())


def drawn_once(drawn: Drawn, task: Task) -> int:
    """No row of another batch of the epoch; copies within a batch are allowed."""
    places = _first(drawn.batch, drawn.rows)
    places = places[_repeated(drawn.epoch[drawn.batch[places]], drawn.rows[places])]
    return int(_batches(drawn, places).sum())


def no_weightless_rows(drawn: Drawn, task: Task) -> int:
    """No row of weight 0."""
    return int(_batches(drawn, task.weights[drawn.rows] == 0).sum())


def tree(drawn: Drawn, task: Task) -> int:
    """X super classes, Z classes in each, and Y rows of each of these, copies counted."""
    return int(_unlike_tree(drawn, task, distinct=False).sum())


def tree_distinct(drawn: Drawn, task: Task) -> int:
    """X super classes, Z classes in each, and Y rows of each of these, none of them twice."""
    return int((_unlike_tree(drawn, task, distinct=True) | drawn.copies).sum())


def _unlike_tree(drawn: Drawn, task: Task, *, distinct: bool) -> np.ndarray:
    outer_wanted, inner_wanted, each = task.tree
    batch, label, counts = _counted(drawn, task.labels, distinct=distinct)
    keys, inner = np.unique(batch * task.outer_count + label % task.outer_count, return_counts=True)
    broken = np.bincount(keys // task.outer_count, minlength=len(drawn)) != outer_wanted
    broken[keys[inner != inner_wanted] // task.outer_count] = True
    broken[batch[counts != each]] = True
    return broken


def distinct_rows(drawn: Drawn, task: Task) -> int:
    """No row twice in a batch."""
    return int(drawn.copies.sum())


def distinct_values(drawn: Drawn, task: Task) -> int:
    """No value of a column twice: each label at most once, since a row's text is that of its label."""
    batch, _, counts = _counted(drawn, task.labels)
    return len(np.unique(batch[counts > 1]))
