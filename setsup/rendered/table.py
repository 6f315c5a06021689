"""Rows for recipes beside the full grid of their factors: drawn at random, with continuous factors where wanted."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_integer
from setsup.errors import FactorError, advice, did_you_mean, spell_name
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable
from setsup.random import fold, randint_below, stream_key, uniform
from setsup.scenes import Recipe

__all__ = ["sampled"]


def sampled(
    recipe: Recipe, rows: int, *, ranges: Mapping[str, tuple[float, float]] | None = None, seed: int = 0
) -> FactorTable:
    """Draw rows for a recipe: each factor by itself, uniform over its levels or over a range of numbers.

    The values of a row depend on the seed, the name of the factor and the row's number alone: more rows begin with the
    same ones.

    Parameters
    ----------
    recipe : Recipe
        Whose factors are drawn.
    rows : int
        How many.
    ranges : mapping of str to (low, high), optional
        Factors that become continuous, uniform in low ≤ value < high, in the factor's unit.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    FactorTable
        The recipe's factors, in its order.

    Raises
    ------
    FactorError
        When a range is none or of no factor, or a continuous factor has none.

    Examples
    --------
    >>> from setsup.factors import Factor, Kind
    >>> from setsup.scenes.recipes import FunctionRecipe
    >>> factors = [Factor("model", Kind.NOMINAL, ("cup", "car")), Factor("azimuth", Kind.CYCLIC, (0, 90), "deg", 360.0)]
    >>> recipe = FunctionRecipe("turned", factors, build=print, look=print, version="1")
    >>> table = sampled(recipe, 1000, ranges={"azimuth": (0, 360)})
    >>> table, bool(table.column("azimuth").max() < 360), table.counts("model").sum().item()
    (FactorTable(1,000 rows: model 2, azimuth ~), True, 1000)

    """
    check_integer(rows, "the number of rows", FactorError, 1)
    known = {factor.name for factor in recipe.factors}
    spans = {name: _range(name, span, known) for name, span in (ranges or {}).items()}
    factors: list[Factor] = []
    columns: dict[str, npt.NDArray[Any]] = {}
    for factor in recipe.factors:
        bits = fold(stream_key(seed, f"sampled {factor.name}"), np.arange(rows, dtype=np.uint64))
        if factor.name in spans:
            low, high = spans[factor.name]
            numbers = (low + uniform(bits) * (high - low)).astype(np.float32)
            # to the nearest float32 a number may have been rounded up to the end, which is not in the range
            columns[factor.name] = np.clip(numbers, low, np.nextafter(np.float32(high), np.float32(low)))
            factors.append(Factor(factor.name, Kind.CONTINUOUS, unit=factor.unit, period=factor.period))
        elif factor.continuous:
            span = advice(f"ranges={{{factor.name!r}: (low, high)}}", f"--ranges {factor.name}=LOW:HIGH")
            raise FactorError(f"factor {factor.name!r} is continuous; pass its range as {span}")
        else:
            columns[factor.name] = randint_below(bits, len(factor))
            factors.append(factor)
    return FactorTable(factors, columns)


def _range(name: str, span: Any, known: Iterable[str]) -> tuple[np.float32, np.float32]:
    if name not in known:
        raise FactorError(f"{spell_name('ranges')} contains {name!r}, which is not a factor{did_you_mean(name, known)}")
    try:
        low, high = (np.float32(end) for end in span)
    except (TypeError, ValueError):
        low = high = np.float32(np.nan)
    if not low < high or not np.isfinite([low, high]).all():
        raise FactorError(f"the range of {name!r} must be (low, high), finite numbers with low < high, not {span!r}")
    return low, high
