"""Weights of rows that make two independent factors of a grid correlated.

References
----------
.. [1] F. Träuble, E. Creager, N. Kilbertus, F. Locatello, A. Dittadi, A. Goyal, B. Schölkopf, S. Bauer, "On
   Disentangled Representations Learned from Correlated Data", ICML 2021 (arXiv 2006.07886), section 3.

"""

import numpy as np
import numpy.typing as npt

from setsup.checks import check_number
from setsup.errors import FactorError
from setsup.factors.table import FactorTable

__all__ = ["correlated_weights"]


def correlated_weights(table: FactorTable, first: str, second: str, width: float) -> npt.NDArray[np.float64]:
    r"""Weigh rows so that two factors are correlated along a line.

    The weight of a row is :math:`\exp(-(c_1 - c_2)^2 / 2\sigma^2)`, where :math:`c` counts the levels of a factor from
    0 to 1, and :math:`\sigma` is `width`. That is the paper's :math:`p(c_1, c_2) \propto \exp(-(c_1 - \alpha c_2)^2 /
    2\sigma^2)` with :math:`\alpha` the ratio of the largest values, both in units of the first factor's range
    (that :math:`\sigma` has this unit is inferred from its figures, [unclear]).

    Parameters
    ----------
    table : FactorTable
        Grid or columns.
    first, second : str
        Discrete factors with at least two levels, whose order counts.
    width : float
        σ > 0, in units of the range of levels; 0.2, 0.4 and 0.7 in the paper. 10 is nearly independent.

    Returns
    -------
    (rows,) float64
        Weights from 0 to 1; 0 where a factor is unknown, or the exponential is below the smallest double. Pass them to
        samplers as ``weights=``.

    Raises
    ------
    FactorError
        If a factor is not in the table, is continuous or nested or has one level, or both are the same.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural").factors
    >>> weights = setsup.factors.correlated_weights(shapes, "scale", "orientation", 0.2)
    >>> low, high = (shapes.rows(f"scale == 0.75 and orientation == {turn}")[0] for turn in (-30, 30))
    >>> weights[[low, high]].round(8).tolist()
    [1.0, 3.73e-06]

    """
    sigma = check_number(width, "width", FactorError, 0)
    if sigma == 0:
        raise FactorError("width must be above 0, not 0; the paper uses 0.2, 0.4 and 0.7")
    if first == second:
        raise FactorError(f"{first!r} cannot be correlated with itself; choose two different factors")
    x, y = (_positions(table, name) for name in (first, second))
    with np.errstate(over="ignore"):
        weights = np.exp(-(((x - y) / sigma) ** 2) / 2)  # the square of a small width would be 0
    return np.nan_to_num(weights, nan=0.0)


def _positions(table: FactorTable, name: str) -> npt.NDArray[np.float64]:
    """Level of each row between the first, 0, and the last, 1; NaN where it is unknown."""
    levels = table[name].levels
    if levels is None or table[name].within:
        raise FactorError(
            f"{name!r} must be a discrete factor that is not nested in another; bin it, or choose another factor"
        )
    if len(levels) < 2:
        raise FactorError(
            f"{name!r} has only one level, so it cannot be correlated with another factor; choose another factor"
        )
    codes = table.codes(name).astype(np.float64)
    return np.where(codes < 0, np.nan, codes / (len(levels) - 1))
