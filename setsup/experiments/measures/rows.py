"""Rows that a measurement embeds, and what is known of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SetsupError
from setsup.experiments.trained import TrainedRun

__all__ = ["SMOKE_ROWS", "Columns", "embed_rows"]

Columns = list[npt.NDArray[Any]]
"""Codes (n,) of each factor, -1 where unknown; or the numbers of a continuous one, NaN where unknown."""

SMOKE_ROWS = 288
"""A batch of the estimators, and what they hold out."""


def embed_rows(
    trained: TrainedRun, factors: Sequence[str], samples: int, of_levels: str = "", *, embedding: str | None = None
) -> tuple[npt.NDArray[np.float32], Columns]:
    """Embeddings of rows (n, d), and their codes or numbers; levels only, where something is named that needs them."""
    if not factors:
        raise SetsupError("nothing can be measured of no factor: name one or more")
    rows, table = trained.sample(samples), trained.dataset.factors
    for name in factors:
        if of_levels and table[name].continuous:
            raise SetsupError(f"{of_levels} needs levels, and the factor {name!r} has none: bin it, or leave it out")
    columns = [table.codes(name, rows) for name in factors]  # first: names are checked before all is embedded
    return trained.embed_vectors(rows=rows, name=embedding), columns
