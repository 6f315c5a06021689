"""Colours of points by a factor: at most 256 of them, told apart also by who sees few colours, and their legend.

Names have the ten colours of [1]_, which were chosen under simulated colour vision deficiencies; the most frequent
levels get them where there are more. Orders and numbers run from dark blue to light yellow, cycles through orange and
back: their lightness differs, too. On light ground all are darker than that, and on dark ground lighter, so that each
has a contrast of 3:1 at least, as WCAG 2.2 asks of graphics in criterion 1.4.11.

References
----------
.. [1] M. A. Petroff, "Accessible color sequences for data visualization", arXiv:2107.02270 (2021), table 1.

"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.factors import FactorTable
from setsup.factors.factor import Factor, Kind
from setsup.reports.palette import oklab_to_srgb, rgb, srgb_to_oklab

__all__ = ["GROUNDS", "NAMES", "Colours", "colours_of", "cycle", "on_grounds", "ramp"]

NAMES = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)
"""Colours of levels that have no order."""

GROUNDS = ("#ffffff", "#1c232b")
"""Light and dark ground of the page."""

_DARKER = 0.78  # share of OKLab's coordinates on light ground: towards black, where every colour stays one of sRGB
_LIGHTER = 0.11  # of OKLab's lightness, on dark ground
_REST = "#7b8794"  # other levels, and what is unknown: as it is on both grounds
_SMOOTH = 200  # colours of a scale
_LISTED = 24  # levels of an order that the legend lists; more are a scale


Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Colours:
    """Colours of rows by a factor.

    Attributes
    ----------
    codes : (n,) uint8
        Of each row, its colour.
    colours : tuple of (str, str)
        ``#rrggbb`` on light and on dark ground, at most 256.
    legend : tuple of (str, int, int)
        Name, colour and number of rows, of each level or what else has a colour of its own.
    scale : (float, float), optional
        The numbers, or places of levels, of the first and of the last colour of a scale.

    """

    codes: npt.NDArray[np.uint8]
    colours: tuple[Pair, ...]
    legend: tuple[tuple[str, int, int], ...]
    scale: tuple[float, float] | None = None


def colours_of(table: FactorTable, name: str, rows: Rows) -> Colours:
    """Colour rows of a table by one of its factors.

    Examples
    --------
    >>> table = FactorTable.from_values({"species": ["cat", "dog", "cat"]})
    >>> found = colours_of(table, "species", np.arange(3))
    >>> found.codes.tolist(), found.legend
    ([0, 1, 0], (('cat', 0, 2), ('dog', 1, 1)))

    """
    factor, codes = table[name], table.codes(name, rows)
    if factor.levels is None:
        return _numbers(codes.astype(np.float64), factor.period)
    if factor.kind is Kind.NOMINAL:
        return _names(codes.astype(np.int64), factor)
    return _order(codes.astype(np.int64), factor)


def _names(codes: Rows, factor: Factor) -> Colours:
    levels = factor.levels or ()
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    named = np.flatnonzero(counts) if len(levels) > len(NAMES) else np.arange(len(levels))
    if len(named) > len(NAMES):  # the most frequent, in the order of levels
        named = np.sort(np.argsort(-counts, kind="stable")[: len(NAMES) - 1])
    shown = np.full(len(levels) + 1, len(named) + 1)  # the last for what is unknown, which has the code -1
    shown[:-1] = len(named)
    shown[named] = np.arange(len(named))
    legend = [(str(levels[level]), place, int(counts[level])) for place, level in enumerate(named.tolist())]
    rest = int(np.count_nonzero(counts)) - int(np.count_nonzero(counts[named]))
    if rest:
        legend.append((f"{rest:,} others", len(named), int(counts.sum() - counts[named].sum())))
    if unknown := len(codes) - int(counts.sum()):
        legend.append(("unknown", len(named) + 1, unknown))
    return Colours(shown[codes].astype(np.uint8), (*_NAMED[: len(named)], _UNSEEN, _UNSEEN), tuple(legend))


def _order(codes: Rows, factor: Factor) -> Colours:
    levels = factor.levels or ()
    cyclic = factor.kind is Kind.CYCLIC
    if len(levels) > _LISTED:
        places = np.where(codes < 0, np.nan, codes.astype(np.float64))
        return _numbers(places, float(len(levels)) if cyclic else None, (0.0, len(levels) - 1.0))
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    steps = np.arange(len(levels))
    colours = on_grounds(cycle(steps / len(levels)) if cyclic else ramp(steps / max(1, len(levels) - 1)))
    legend = [(str(level), place, int(counts[place])) for place, level in enumerate(levels)]
    if unknown := len(codes) - int(counts.sum()):
        legend.append(("unknown", len(levels), unknown))
    return Colours(np.where(codes < 0, len(levels), codes).astype(np.uint8), (*colours, _UNSEEN), tuple(legend))


def _numbers(numbers: Reals, period: float | None, ends: tuple[float, float] | None = None) -> Colours:
    known = np.isfinite(numbers)
    if period is not None:
        low, high, share = 0.0, period, np.where(known, numbers / period % 1, 0)
        colours = on_grounds(cycle(np.arange(_SMOOTH) / _SMOOTH))
    else:
        low, high = ends or ((float(numbers[known].min()), float(numbers[known].max())) if known.any() else (0.0, 0.0))
        share = (np.where(known, numbers, low) - low) / (high - low or 1)
        colours = on_grounds(ramp(np.arange(_SMOOTH) / (_SMOOTH - 1)))
    codes = np.where(known, np.minimum(share * _SMOOTH, _SMOOTH - 1), _SMOOTH).astype(np.uint8)
    unknown = len(numbers) - int(known.sum())
    return Colours(codes, (*colours, _UNSEEN), (("unknown", _SMOOTH, unknown),) if unknown else (), (low, high))


def ramp(shares: npt.ArrayLike) -> Reals:
    """Colours (n, 3) float64 sRGB of shares from 0 to 1: dark blue, green, light yellow, ever lighter."""
    share = np.asarray(shares, dtype=np.float64)
    anchors = _polar(np.array([0.44, 0.63, 0.84]), np.array([0.16, 0.1, 0.15]), np.array([285.0, 190.0, 95.0]))
    lab = np.stack([np.interp(share, [0, 0.5, 1], anchors[:, axis]) for axis in range(3)], axis=-1)
    return oklab_to_srgb(lab)


def cycle(turns: npt.ArrayLike) -> Reals:
    """Colours (n, 3) float64 sRGB of turns: light, orange, dark, blue; opposite ones differ in lightness or hue."""
    angle = 2 * np.pi * np.asarray(turns, dtype=np.float64)
    warm = np.sin(angle)  # along the line from blue to orange, which most people tell apart
    ends = _polar(np.zeros(2), np.array([0.16, 0.16]), np.array([65.0, 265.0]))
    lab = np.maximum(warm, 0)[..., None] * ends[0] + np.maximum(-warm, 0)[..., None] * ends[1]
    lab[..., 0] = 0.63 + 0.2 * np.cos(angle)
    return oklab_to_srgb(lab)


def _polar(lightness: Reals, chroma: Reals, degrees: Reals) -> Reals:
    angle = np.radians(degrees)
    return np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)], axis=-1)


def on_grounds(colours: npt.ArrayLike) -> tuple[Pair, ...]:
    """Colours (n, 3) sRGB as they are drawn on each of the grounds, light enough or dark enough to be seen."""
    lab = srgb_to_oklab(np.asarray(colours, dtype=np.float64))
    light, dark = _DARKER * lab, lab + np.array([_LIGHTER, 0, 0])
    return tuple(zip(_hex(oklab_to_srgb(light)), _hex(oklab_to_srgb(dark)), strict=True))


def _hex(colours: Reals) -> list[str]:
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in np.rint(colours * 255).astype(np.uint8).tolist()]


_NAMED, _UNSEEN = on_grounds([rgb(name) for name in NAMES]), (_REST, _REST)
