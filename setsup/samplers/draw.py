"""What a sampler returns for a step: row numbers with their fixed factors, masks and labels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.html import block, counted, facts, never_raises, table

__all__ = ["Draw", "by_factor"]

_SHOWN = 8  # sets, fixed factors and rows in a notebook


@dataclass(frozen=True, init=False)
class Draw:
    """Sets of rows of one step, or of a block of steps, in which every array has one more leading axis.

    Attributes
    ----------
    indices : (sets, size) int64
        Row numbers of the sampler's table.
    inactive : mapping of str to (sets,) int64 or float32
        Code of the level that each set fixes, -1 if a set does not fix the factor; for a factor fixed within a
        tolerance, the anchor's value, or NaN.
    mask : (sets, size) bool, optional
        False at padding; None if there is no padding. A single step without padding therefore has None, also where the
        mask of a block with other, padded steps is True at all its positions. ``mask`` of a loader's batch is never
        None.
    canonical : (sets,) int64, optional
        Row of each set's canonical member.
    pair_labels : mapping of str to (sets,) bool
        Labels of each set by factor. For pairs: whether the factor was changed, or whether the first row has at least
        the level of the second.

    """

    indices: npt.NDArray[np.int64]
    inactive: Mapping[str, Array] = field(default_factory=dict)
    mask: npt.NDArray[np.bool_] | None = None
    canonical: npt.NDArray[np.int64] | None = None
    pair_labels: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    def __init__(
        self,
        indices: npt.NDArray[np.int64],
        inactive: Mapping[str, Array] | None = None,
        mask: npt.NDArray[np.bool_] | None = None,
        canonical: npt.NDArray[np.int64] | None = None,
        pair_labels: Mapping[str, npt.NDArray[np.bool_]] | None = None,
    ) -> None:
        # at less than half of what the initialiser of a frozen dataclass costs, which matters for one small draw
        values = self.__dict__
        values["indices"], values["mask"], values["canonical"] = indices, mask, canonical
        values["inactive"] = {} if inactive is None else inactive
        values["pair_labels"] = {} if pair_labels is None else pair_labels

    def __iter__(self) -> Iterator[int]:
        """Rows as integers, set after set, without padding: torch's DataLoader takes a draw for a batch of rows."""
        return iter((self.indices if self.mask is None else self.indices[self.mask]).reshape(-1).tolist())

    @never_raises
    def _repr_html_(self) -> str:
        """Show the fixed codes and first rows of the first sets in a notebook."""
        *steps, sets, size = self.indices.shape
        title = f"{counted(sets, 'set')} of {counted(size, 'row')}"
        title = f"Draw of {counted(steps[0], 'step')}, each {title}" if steps else f"Draw of {title}"
        parts = [f"padding: {counted(int((~self.mask).sum()), 'position')}"] if self.mask is not None else []
        parts += ["each with a canonical member"] if self.canonical is not None else []
        first = self.at(0) if steps else self
        names = list(first.inactive)[:_SHOWN]
        rows = [
            [number, *(_code(first.inactive[name][number]) for name in names), _first(first.indices[number])]
            for number in range(min(sets, _SHOWN))
        ]
        heads = ["set of step 0" if steps else "set", *(f"{name}, level" for name in names), "rows"]
        return block(title, facts(parts), table(heads, rows, sets - _SHOWN, "sets"))

    def at(self, step: int) -> "Draw":
        """Return one step of a block."""
        mask = None if self.mask is None or self.mask[step].all() else self.mask[step]
        return Draw(
            self.indices[step],
            {name: codes[step] for name, codes in self.inactive.items()},
            mask,
            None if self.canonical is None else self.canonical[step],
            {name: labels[step] for name, labels in self.pair_labels.items()},
        )


def by_factor(names: Sequence[str], columns: Array) -> dict[str, Array]:
    """Codes (..., factors), or labels, by the names of these factors."""
    return {name: columns[..., index] for index, name in enumerate(names)}


def _code(code: Any) -> str:
    """A fixed level's code, or the anchor's value of a continuous factor."""
    return "not fixed" if code != code or code == -1 else f"{code:.4g}" if isinstance(code, np.floating) else str(code)


def _first(rows: npt.NDArray[np.int64]) -> str:
    return ", ".join(map(str, rows[:_SHOWN].tolist())) + (", …" if len(rows) > _SHOWN else "")
