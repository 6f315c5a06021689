"""The result of a score: its value, the values it averages, and the number of rows left out."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Score"]


@dataclass(frozen=True, slots=True)
class Score:
    """A disentanglement score.

    Attributes
    ----------
    value : float
        The score; 1 is best.
    parts : (m,) float64
        One number a factor (MIG, SAP, FactorVAE) or a code (modularity), whose mean is the score; for FactorVAE the
        mean weighted by how often each factor was drawn.
    left_out : (k,) int64
        Rows where each factor is unknown.
    learner : str
        By which it was taken, where there is a choice.

    """

    value: float
    parts: npt.NDArray[np.float64]
    left_out: npt.NDArray[np.int64]
    learner: str = ""
