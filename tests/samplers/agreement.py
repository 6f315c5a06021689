"""What samplers draw, compared with chances that were computed from the definition alone."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chisquare


def assert_agrees(drawn: npt.NDArray[np.int64], chances: Mapping[Any, float]) -> None:
    """Nothing is drawn that has no chance, and the rest as often as it should be.

    `drawn` (…, rows) int64; `chances` of every rows that can be drawn together.
    """
    counts = Counter(map(tuple, drawn.reshape(-1, drawn.shape[-1]).tolist()))
    assert set(counts) <= set(chances)
    expected = np.array(list(chances.values())) * counts.total()
    assert expected.min() > 5
    assert chisquare([counts[rows] for rows in chances], expected).pvalue > 1e-4
