"""Factors of a dataset that can be measured on an encoder, and the standard evaluations of them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.errors import FactorError, SetsupError, did_you_mean
from setsup.experiments.evaluation import Evaluation
from setsup.experiments.evaluations import Components, FactorInformation, Probes, Retrieval
from setsup.factors import FactorTable

__all__ = ["standard_evaluations", "suitable_factors"]

_ROWS = 5
"""Rows per level, on average, below which a probe has nothing to learn from."""


def suitable_factors(
    table: FactorTable, rows: npt.NDArray[np.int64], factors: Sequence[str] = ()
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Factors to measure on some rows, and why others are left out.

    Parameters
    ----------
    table : FactorTable
        Of the dataset.
    rows : (n,) int64
        Number of rows to embed.
    factors : sequence of str
        Those that are wanted; by default all that vary and have at least five rows per level on average.

    Returns
    -------
    tuple of str, dict of str to str
        Names, and reasons by the names of others.

    Raises
    ------
    FactorError, SetsupError
        When the factor is unknown, a wanted one cannot be measured, or none is left.

    Examples
    --------
    >>> table = FactorTable.from_values({"shape": ["ball", "cube"] * 50, "size": [1] * 100, "take": range(100)})
    >>> suitable_factors(table, np.arange(100))
    (('shape',), {'size': 'it does not vary', 'take': '100 levels of 100 rows, fewer than 5 rows per level'})

    """
    for name in factors:
        if name not in table:
            raise FactorError(f"unknown factor {name!r}{did_you_mean(name, table.names)}")
    kept, others = [], {}
    for name in factors or table.names:
        reason = _reason(table, name, rows, chosen=bool(factors))
        if not reason:
            kept.append(name)
        elif factors:
            raise SetsupError(
                f"factor {name!r} cannot be measured on {len(rows):,} rows: {reason}; choose another factor"
            )
        else:
            others[name] = reason
    if not kept:
        listed = "; ".join(f"{name}: {reason}" for name, reason in others.items())
        raise SetsupError(
            f"none of the factors can be measured on {len(rows):,} rows ({listed}); embed more rows, or choose other "
            "factors"
        )
    return tuple(dict.fromkeys(kept)), others


def _reason(table: FactorTable, name: str, rows: npt.NDArray[np.int64], chosen: bool) -> str:
    if table[name].role == "split" and not chosen:
        return "it defines the split"
    codes = table.codes(name, rows)
    continuous = table[name].continuous
    known = codes[np.isfinite(codes) if continuous else codes >= 0]
    levels = len(np.unique(known))
    if levels < 2:
        return "it does not vary" if len(known) else "its levels are unknown"
    if not (continuous or chosen) and len(known) < _ROWS * levels:
        return f"{levels:,} levels of {len(known):,} rows, fewer than {_ROWS} rows per level"
    return ""


def standard_evaluations(table: FactorTable, factors: Sequence[str], samples: int = 10_000) -> dict[str, Evaluation]:
    """Probes, principal components, retrieval and information for factors of a dataset, as settings.

    Retrieval and information are of the factors with levels; the latter by held-out probes.
    """
    names = tuple(factors)
    levels = tuple(name for name in names if not table[name].continuous)
    evaluations: dict[str, Evaluation] = {
        "probes": Probes(factors=names, samples=samples),
        "components": Components(factors=names, samples=samples),
    }
    if levels:
        evaluations["retrieval"] = Retrieval(factors=levels)
        evaluations["information"] = FactorInformation(factors=levels, samples=samples, estimator="probe")
    return evaluations
