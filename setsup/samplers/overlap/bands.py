"""Arguments of samplers by overlap: bands of measures, and options that do not go together."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from setsup.arrays import Bools
from setsup.checks import check_number
from setsup.errors import SamplerError, abbreviate, advice
from setsup.samplers.overlap.table import OverlapTable
from setsup.samplers.spelling import spell, spell_name

__all__ = [
    "MEASURES",
    "Band",
    "Direction",
    "check_bands",
    "check_together",
    "describe_bands",
    "in_bands",
    "say_none",
]

Band = tuple[float, float]
"""Lower and upper end of a band; both belong to it."""

Direction = Literal["forward", "both", "either"]

MEASURES: Mapping[str, Band] = {"overlap": (0.0, 1.0), "angle": (0.0, 180.0), "scale": (0.0, 1e30)}
"""What bands are of, with all values that there are; angles in degrees."""


def check_bands(overlap: Any, angle: Any, scale: Any) -> dict[str, Band]:
    """The bands by what they are of; SamplerError for others than those of the overlap and, if given, the others."""
    bands = {"overlap": _check_band(overlap, "overlap")}
    others = {"angle": angle, "scale": scale}
    return bands | {name: _check_band(band, name) for name, band in others.items() if band is not None}


def _check_band(band: Any, name: str) -> Band:
    """The ends of a band; SamplerError for others."""
    ends = list(band) if isinstance(band, list | tuple | np.ndarray) else []
    if len(ends) != 2:
        raise SamplerError(
            f"{spell_name(name)} must be the lower and the upper end of a band, such as (0.3, 0.8), not "
            f"{abbreviate(band)}"
        )
    low = check_number(ends[0], f"the lower end of {spell_name(name)}", SamplerError, *MEASURES[name])
    high = check_number(ends[1], f"the upper end of {spell_name(name)}", SamplerError, *MEASURES[name])
    if low > high:
        raise SamplerError(
            f"{spell_name(name)} is empty, because {low:g} is above {high:g}; pass the lower end of the band first"
        )
    return low, high


def in_bands(table: OverlapTable, bands: Mapping[str, Band]) -> Bools:
    """Whether the measures of each listed pair lie in all bands, (pairs,) bool; unknown ones never do."""
    inside = np.ones(len(table), bool)
    for name, ends in bands.items():
        # values are shares and medians rounded to float32, and so are the ends: a share of 0.8 is up to 0.8
        low, high = np.array(ends, np.float32)
        measured = getattr(table, name)
        with np.errstate(invalid="ignore"):
            inside &= (measured >= low) & (measured <= high)
    return inside


def describe_bands(bands: Mapping[str, Band], direction: Direction) -> str:
    """Say in which bands pairs lie, such as ``overlap 0.3 to 0.8 in both directions``."""
    units = {"angle": " degrees"}
    texts = [f"{name} {low:g} to {high:g}{units.get(name, '')}" for name, (low, high) in bands.items()]
    return (
        " and ".join(texts)
        + {"forward": "", "both": " in both directions", "either": " in either direction"}[direction]
    )


def check_together(form: str, direction: str) -> None:
    """Refuse arguments that contradict each other."""
    if form == "clique" and direction == "forward":
        raise SamplerError(
            f"a clique has no direction, because all its views are pairs with each other; pass "
            f"{spell(direction='both')} or {spell(direction='either')}, or another {spell_name('form')}"
        )


def say_none(table: OverlapTable, bands: str, direction: Direction, untried: int, rows: Bools | None) -> str:
    """What is wrong where no pair is in the bands."""
    kept = "" if rows is None else f" of the rows that {advice('where= and weights=', '--where and --weights')} keep"
    text = f"none of the {int(table.counts[:, 2].sum()):,} measured pairs{kept} has {bands}"
    if direction == "both" and untried:
        return (
            f"{text}; {untried:,} have it in one direction, and the other was not tried; measure the overlaps with "
            f"more candidates, or pass {spell(direction='either')}"
        )
    known = np.asarray(table.overlap)[~np.isnan(table.overlap)]
    span = f"measured overlaps are from {known.min():.3g} to {known.max():.3g}" if len(known) else "none is known"
    return f"{text}; {span}; widen the bands"
