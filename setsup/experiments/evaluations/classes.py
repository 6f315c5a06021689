"""Rows that probes are fitted to and tested on, with classes that may be combinations of factors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets import Dataset
from setsup.errors import DataError, SetsupError
from setsup.experiments.evaluations.rows import Sample, draw_rows
from setsup.experiments.trained_run import TrainedRun
from setsup.factors import FactorTable
from setsup.factors import split as divide
from setsup.factors.counting import with_outer

__all__ = ["FitRows", "number_classes", "rows_of", "split_attribute"]

Array = npt.NDArray[Any]

_JOINT = "+"


def split_attribute(attribute: str, table: FactorTable | None = None) -> tuple[str, ...]:
    """Factors of an attribute, of which several are joined by ``+``: ``"elevation+azimuth"`` is a pose.

    A factor of a given table whose own name has a ``+`` is one.
    """
    if table is not None and attribute in table.names:
        return (attribute,)
    return tuple(attribute.split(_JOINT))


def number_classes(table: FactorTable, names: Sequence[str], rows: Array) -> npt.NDArray[np.int64]:
    """Classes (n,) of rows: combinations of levels, -1 where a factor is unknown."""
    names = with_outer(table, names)
    endless = [name for name in names if not table[name].levels]
    if endless:
        raise SetsupError(
            f"classes require factors with levels, but {endless[0]!r} is continuous; bin the factor, or omit it"
        )
    classes = np.zeros(len(rows), np.int64)
    known = np.ones(len(rows), np.bool_)
    if math.prod(len(table[name]) for name in names) >= 2**62:
        raise SetsupError(
            f"{', '.join(names)} have more than 2⁶² combinations, the maximum that is supported; choose fewer factors"
        )
    for name in names:
        codes = np.asarray(table.codes(name, rows), np.int64)
        known &= codes >= 0
        classes = classes * len(table[name]) + codes
    return np.where(known, classes, -1)


@dataclass(frozen=True)
class FitRows:
    """Two samples of rows: of the fit, and of the test."""

    fit: Sample
    test: Sample

    @property
    def about(self) -> dict[str, Any]:
        """What results depend on."""
        return {"fit": self.fit.about, "test": self.test.about}

    @property
    def gallery(self) -> Array:
        """Embeddings of the rows of the fit, then of those of the test."""
        return np.concatenate([self.fit.embedded, self.test.embedded])

    def classes(self, names: Sequence[str]) -> tuple[Array, Array]:
        """Classes of the rows of either sample."""
        fit, test = self.fit.dataset.factors, self.test.dataset.factors
        for name in names:
            if fit[name].levels != test[name].levels:
                raise DataError(
                    f"the levels of the factor {name!r} differ between {self.test.dataset.name} and "
                    f"{self.fit.dataset.name}; use the same levels in both"
                )
        return number_classes(fit, names, self.fit.rows), number_classes(test, names, self.test.rows)


def rows_of(
    trained: TrainedRun,
    dataset: str | None,
    split: str | None,
    *,
    samples: int | None = None,
    embedding: str | None = None,
    resplit: Sequence[str] | None = None,
) -> FitRows:
    """All rows of the training data, or `samples` of them, and those of the test.

    The test is one of the preset's datasets, or another split of it; without either it is a tenth of the rows of the
    training data. With `resplit` both are of the test, or without one of the training data: 70 % and 30 % of each
    combination of these factors.
    """
    own = dataset is None and split is None
    test = trained.dataset if own else trained.open(dataset, split=split)
    if own or resplit is not None:
        shares = (0.9, 0.1) if resplit is None else (0.7, 0.3)
        return _divide(trained, test, samples, embedding, shares, resplit)
    rows = draw_rows(trained, trained.dataset, samples, without=test)
    return FitRows(
        Sample(trained, trained.dataset, rows, {}, embedding),
        Sample(trained, test, draw_rows(trained, test, samples), {}, embedding),
    )


def _divide(
    trained: TrainedRun,
    dataset: Dataset,
    samples: int | None,
    embedding: str | None,
    shares: tuple[float, float],
    stratify: Sequence[str] | None,
) -> FitRows:
    """Both parts of one dataset, whose rows are divided at random, as functions of seed 0."""
    name = "fit or test"
    parts = dict(zip(("fit", "test"), shares, strict=True))
    codes = divide(dataset.factors, parts, 0, name=name, stratify=stratify, rounding="table").codes(name)
    rows = draw_rows(trained, dataset, samples)
    fit, test = (Sample(trained, dataset, rows[codes[rows] == part], {}, embedding) for part in (0, 1))
    return FitRows(fit, test)
