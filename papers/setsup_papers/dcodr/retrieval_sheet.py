"""Images of what is retrieved for some queries: figures 2 and 3 of DCoDR."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.experiments.data import image_modality
from setsup.experiments.evaluations.classes import FitRows
from setsup.random import permute, stream_key

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["retrieval_sheet"]

Rows = npt.NDArray[np.int64]

_QUERIES, _NEIGHBOURS = 4, 5
_TITLE = "Nearest images of training and test\nBy distance between embeddings of length 1; without the query itself"


def retrieval_sheet(rows: FitRows, attributes: Sequence[str], seed: int) -> "Image":
    """A row for each of some queries of the test: the query, then its nearest images of training and test.

    Beside a query stand its attributes; above each neighbour its rank.
    """
    from setsup.reports import image_grid

    fit, test = rows.fit, rows.test
    count = min(_QUERIES, len(test.rows))
    chosen: Rows = permute(stream_key(seed, "retrieval sheet"), len(test.rows), np.arange(count))
    own = len(fit.rows) + chosen
    near = evaluation.nearest(test.embedded[chosen], rows.gallery, _NEIGHBOURS, metric="cosine", own=own)[0]

    def image(at: int) -> npt.NDArray[np.uint8]:
        sample, position = (fit, at) if at < len(fit.rows) else (test, at - len(fit.rows))
        name = image_modality(sample.dataset)
        return np.asarray(sample.dataset.fetch(int(sample.rows[position]), [name])[name])

    table = test.dataset.factors
    labels = [
        ", ".join(f"{name} {table.values(name, row)}" for name in attributes) for row in test.rows[chosen].tolist()
    ]
    neighbours = [[image(at) for at in line] for line in near.tolist()]
    ranks = [f"{rank + 1}" for rank in range(near.shape[1])]
    return image_grid(neighbours, labels, ranks, _TITLE, queries=[image(at) for at in own.tolist()])
