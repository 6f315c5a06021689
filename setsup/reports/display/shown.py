"""What a sheet shows: draws or bare rows, checked, as a block of draws with the table that describes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_array
from setsup.datasets import Dataset
from setsup.errors import DataError
from setsup.factors.column_storage import check_rows
from setsup.factors.table import FactorTable
from setsup.random import fold, permute
from setsup.samplers.draw import Draw
from setsup.samplers.neighbours import NeighbourSampler
from setsup.samplers.sampler import Sampler

__all__ = ["Shown", "find_shown"]

_ROWS = 24  # of a dataset of which no rows are named
_NOUNS = {
    "DomainSampler": "domain",
    "EpisodeSampler": "class",
    "FactorPairSampler": "pair",
    "NeighbourSampler": "pair",
    "OrbitSampler": "orbit",
    "OverlapSampler": "pair",
    "SequencePairSampler": "pair",
    "TripletSampler": "triplet",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown: a block of draws, and where it comes from."""

    dataset: Dataset
    table: FactorTable
    draws: Draw
    sampler: Sampler | None
    bare: bool = False
    """Whether these are row numbers of the caller rather than a draw."""
    rows: str = ""
    """What a single set of bare rows is called."""
    single: bool = False
    """Whether this is one step whose number is not known."""

    @property
    def noun(self) -> str:
        """What the units of the draws are called."""
        if self.sampler is None:
            return "set" if self.draws.canonical is None else "orbit"
        noun = _NOUNS.get(type(self.sampler).__name__, "set")
        if noun == "pair" and (size := self.draws.indices.shape[-1]) > 2:
            return "triplet" if size == 3 and isinstance(self.sampler, NeighbourSampler) else "set"
        return noun

    @property
    def nouns(self) -> str:
        """What several of the units are called."""
        return self.noun + ("es" if self.noun.endswith("s") else "s")

    @property
    def support(self) -> int:
        """Rows of each set that are the support of an episode, its first ones; 0 where there is none."""
        return int(self.argument("shots")) if self.noun == "class" else 0

    @property
    def counter(self) -> str:
        """What a step is called: the steps of a block that does not start with step 0 have other numbers."""
        if self.sampler is None or self.sampler.first_step:
            return "draw"
        return "step" if np.array_equal(self.sampler[0].indices, self.draws.indices[0]) else "draw"

    def argument(self, name: str) -> Any:
        """An argument of the sampler, None where it is not known."""
        return None if self.sampler is None else self.sampler.arguments.get(name)


def find_shown(dataset: Dataset, draws: Any, sampler: Sampler | None) -> Shown:
    """Check what `show` was given; DataError, RowError where it is nothing to show."""
    table = dataset.factors if sampler is None else sampler.table
    if isinstance(draws, Draw):
        single = draws.indices.ndim == 2
        block = _block(draws) if single else draws
        _check_draw(dataset, table, block)
        return Shown(dataset, table, block, sampler, single=single)
    if draws is None:
        count = min(_ROWS, len(dataset))
        rows = np.sort(permute(fold(0, 0), len(dataset), np.arange(count)))
        counted = f"{count:,} of {len(dataset):,} rows" if count < len(dataset) else f"{count:,} rows"
    else:
        if isinstance(draws, Sampler) or hasattr(draws, "indices"):
            raise DataError(
                f"draws of show must be a draw or row numbers, not a {type(draws).__name__}; pass one step, for "
                "example sampler[0]"
            )
        rows = np.atleast_1d(check_rows(check_array(draws, "draws of show", DataError), len(dataset)))
        counted = f"{rows.size:,} rows" if rows.size != 1 else f"row {rows.item():,}"
    if rows.ndim > 3 or not rows.size:
        raise DataError(
            "draws of show must be a non-empty array of row numbers of shape (n,), (sets, size) or (steps, sets, "
            f"size), not {rows.shape}"
        )
    single = rows.ndim < 3
    stacked = rows.reshape((1,) * (3 - rows.ndim) + rows.shape)
    draw = Draw(stacked, _equal(dataset.factors, stacked))
    return Shown(dataset, dataset.factors, draw, None, True, "" if rows.ndim > 1 else counted, single)


def _equal(table: FactorTable, rows: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """Codes of the factors that are equal within sets, as those that a draw fixes."""
    equal_codes = {}
    for factor in table.factors:
        if factor.role in ("variation", "part"):
            codes = table.codes(factor.name, rows)
            equal = (codes == codes[..., :1]).all(axis=-1)
            if equal.any():
                equal_codes[factor.name] = np.where(equal, codes[..., 0], np.nan if factor.levels is None else -1)
    return equal_codes


def _block(draw: Draw) -> Draw:
    """A block of one step."""
    return Draw(
        draw.indices[None],
        {name: np.asarray(codes)[None] for name, codes in draw.inactive.items()},
        None if draw.mask is None else draw.mask[None],
        None if draw.canonical is None else draw.canonical[None],
        {name: labels[None] for name, labels in draw.pair_labels.items()},
    )


def _check_draw(dataset: Dataset, table: FactorTable, draws: Draw) -> None:
    """Refuse the draw of another table, before a caption says something wrong."""
    if draws.indices.ndim != 3 or not draws.indices.size:
        raise DataError(f"a draw must have the shape (sets, size) to be shown, not {draws.indices.shape}")
    check_rows(draws.indices, len(dataset))
    for name, codes in draws.inactive.items():
        if name not in table.names:
            raise DataError(
                f"the draw fixes {name!r}, which is not a factor of {dataset.name}; pass the dataset that the "
                "draw was made from, or its sampler, as in show(dataset, draw, sampler)"
            )
        levels = table[name].levels
        if levels is not None and len(levels) <= np.max(codes, initial=-1):
            raise DataError(
                f"the draw fixes {name} at level {np.max(codes)}, but {dataset.name} has {len(levels):,} levels; "
                "pass the dataset that the draw was made from"
            )
