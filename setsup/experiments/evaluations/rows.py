"""Rows that an evaluation embeds, and what is known of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets import Dataset
from setsup.errors import SetsupError
from setsup.experiments.result_cache import digest_rows
from setsup.experiments.trained_run import TrainedRun
from setsup.experiments.training_rows import find_origin

__all__ = ["SMOKE_ROWS", "Sample", "draw_rows", "draw_sample", "shared_rows"]

SMOKE_ROWS = 288
"""A batch of the estimators, and what they hold out."""


@dataclass
class Sample:
    """Rows of a dataset with their factors; embedded when they are first needed, which parts that are kept do not.

    Attributes
    ----------
    trained : TrainedRun
        Whose embeddings they are.
    dataset : Dataset
        Of the rows.
    rows : (n,) int64
        Row numbers.
    columns : dict of str to (n,)
        Codes of each factor, -1 where unknown; or the numbers of a continuous one, NaN where unknown.
    embedding : str, optional
        Which of several embeddings.

    """

    trained: TrainedRun
    dataset: Dataset
    rows: npt.NDArray[np.int64]
    columns: dict[str, npt.NDArray[Any]]
    embedding: str | None = None

    @cached_property
    def embedded(self) -> npt.NDArray[np.float32]:
        """Embeddings (n, d)."""
        return self.trained.embed_vectors(self.dataset, self.rows, self.embedding)

    @property
    def about(self) -> dict[str, Any]:
        """What embeddings and columns depend on, besides what all parts do."""
        table = self.dataset.factors
        return {
            "dataset": self.dataset.name,
            "table": table.fingerprint,
            "rows": digest_rows(self.rows),
            "embedding": self.embedding,
        }

    def parts(
        self,
        name: str,
        settings: Mapping[str, Any],
        factors: Sequence[str],
        compute: Callable[[Sequence[str]], Mapping[str, Any]],
        *,
        together: bool = False,
    ) -> dict[str, Any]:
        """Results by factor, each a part; those that are not kept are computed one by one, or together."""
        settings = {**self.about, **settings}
        results: dict[str, Any] = {}
        for some in [list(factors)] if together else [[factor] for factor in factors]:
            results |= self.trained.parts(name, settings, some, compute)
        return results


def draw_sample(
    trained: TrainedRun,
    factors: Sequence[str],
    samples: int,
    of_levels: str = "",
    *,
    embedding: str | None = None,
    dataset: Dataset | None = None,
    without: Dataset | None = None,
) -> Sample:
    """Rows of a dataset, by default the training data; levels only, where something is named that needs them.

    Rows that are also in the dataset `without`, such as a split of one that was trained on as a whole, are left out.
    """
    if not factors:
        raise SetsupError("factors must contain at least one factor")
    dataset = trained.dataset if dataset is None else dataset
    table = dataset.factors
    rows = draw_rows(trained, dataset, samples, without=without)
    for name in factors:
        if of_levels and table[name].continuous:
            raise SetsupError(
                f"{of_levels} requires factors with levels, but {name!r} is continuous; bin the factor, or omit it"
            )
    return Sample(trained, dataset, rows, {name: table.codes(name, rows) for name in factors}, embedding)


def draw_rows(
    trained: TrainedRun, dataset: Dataset, samples: int | None = None, *, without: Dataset | None = None
) -> npt.NDArray[np.int64]:
    """Rows of a dataset in an order of the run's seed, all or the first `samples`, without those of another dataset."""
    if without is None or not (shared := shared_rows(dataset, without)).any():
        return trained.sample(len(dataset) if samples is None else samples, dataset.factors)
    rows = trained.sample(len(dataset), dataset.factors)
    rows = rows[~shared[rows]][:samples]
    if not len(rows):
        raise SetsupError(
            f"training used all rows of {dataset.name}, so no rows are left to test on; choose another split"
        )
    return rows


def shared_rows(dataset: Dataset, other: Dataset) -> npt.NDArray[np.bool_]:
    """Whether each row of a dataset is also in another, if both are selections of the same one, or it itself."""
    (source, rows), (whole, others) = find_origin(dataset), find_origin(other)
    if source.name != whole.name or source.factors.fingerprint != whole.factors.fingerprint:
        return np.zeros(len(dataset), dtype=np.bool_)
    return np.isin(rows, others)
