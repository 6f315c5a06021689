"""Images of what is retrieved for some queries: figures 2 and 3 of DCoDR."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.experiments.data import image_modality
from setsup.experiments.dcodr.rows import FitRows
from setsup.random import permute, stream_key

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["draw_retrieval"]

Rows = npt.NDArray[np.int64]

_QUERIES, _NEIGHBOURS = 4, 5


def draw_retrieval(
    rows: FitRows, attributes: Sequence[str], *, queries: int = _QUERIES, neighbours: int = _NEIGHBOURS, seed: int = 0
) -> "Image":
    """A row for each of some queries of the test: the query, then its nearest images of training and test.

    Beside a query stand its attributes; above each neighbour its rank.
    """
    from setsup.reports import image_grid

    fit, test = rows.fit, rows.test
    count = min(queries, len(test.rows))
    chosen: Rows = permute(stream_key(seed, "retrieval sheet"), len(test.rows), np.arange(count))
    gallery = np.concatenate([fit.embedded, test.embedded])
    own = len(fit.rows) + chosen
    near = evaluation.nearest(test.embedded[chosen], gallery, neighbours, metric="cosine", own=own)[0]

    def image(sample: object, row: int) -> npt.NDArray[np.uint8]:
        dataset = sample.dataset  # type: ignore[attr-defined]
        name = image_modality(dataset)
        return np.asarray(dataset.fetch(row, [name])[name])

    found = [
        [
            image(fit, int(fit.rows[at])) if at < len(fit.rows) else image(test, int(test.rows[at - len(fit.rows)]))
            for at in line.tolist()
        ]
        for line in near
    ]
    table = test.dataset.factors
    labels = [
        ", ".join(f"{name} {table.values(name, int(test.rows[at]))}" for name in attributes) for at in chosen.tolist()
    ]
    asked = [image(test, int(test.rows[at])) for at in chosen.tolist()]
    title = "Nearest images of training and test\nBy distance between embeddings of length 1; without the query itself"
    return image_grid(found, labels, [f"{rank + 1}" for rank in range(near.shape[1])], title, queries=asked)
