"""Colors of values: palettes, and the color of each value of a factor in charts and on pages.

Names have distinct colors, orders run from dark to light, cycles go round. Where names outnumber the colors, the most
frequent have them.

Charts have one ground, white, and 20 colors of names. Points on a page have at most 256 colors, told apart also by who
sees few: names have the ten of [1]_, which were chosen under simulated color vision deficiencies; orders and numbers
run from dark blue to light yellow, cycles through orange and back, so that their lightness differs, too. On light
ground all are darker than that, and on dark ground lighter, so that each has a contrast of 3:1 at least, as WCAG 2.2
asks of graphics in criterion 1.4.11.

References
----------
.. [1] M. A. Petroff, "Accessible color sequences for data visualization", arXiv:2107.02270 (2021), table 1.
.. [2] B. Ottosson, "A perceptual color space for image processing", 2020: OKLab.

"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Codes, Counts, Reals, Rows
from setsup.factors import FactorTable
from setsup.factors.factor import Factor, Kind, Level
from setsup.reports.charts import number, shorten
from setsup.reports.describe import number_words
from setsup.scenes.color import encode, linear

__all__ = [
    "ACCESSIBLE",
    "DISTINCT",
    "GROUNDS",
    "OTHERS",
    "UNKNOWN",
    "Names",
    "PointColors",
    "Ramp",
    "RowColors",
    "accessible_cycle",
    "accessible_ramp",
    "color_points",
    "color_rows",
    "cyclic_colors",
    "on_grounds",
    "rgb",
    "sequential_colors",
]

DISTINCT = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf", "#3c4800"),
    *("#6c0048", "#00786c", "#90783c", "#3c00fc", "#fcb4a8", "#00d8a8", "#543000", "#cc186c", "#54486c", "#fcb40c"),
)
"""Colors of names: nine that are usual, and each next one the farthest (CIEDE2000) from those before it and white."""

UNKNOWN, OTHERS = "#ccd2d8", "#87929e"

ACCESSIBLE = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"),
)
"""Colors of names on a page."""

GROUNDS = ("#ffffff", "#1c232b")
"""Light and dark ground of the page."""

# of a chart
_RAMP = 256  # colors of a scale
_LABELLED = 9  # levels named beside a ramp
_NAME = 12  # letters of a level there

# of a page
_DARKER = 0.78  # share of OKLab's coordinates on light ground: towards black, where every color stays one of sRGB
_LIGHTER = 0.11  # of OKLab's lightness, on dark ground
_UNSEEN = ("#7b8794", "#7b8794")  # other levels, and what is unknown: as it is on both grounds
_SCALE = 200  # colors of a scale
_LISTED = 24  # levels of an order that the legend lists; more are a scale

# OKLab to linear sRGB [2]
_CONES = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]]
)
_LINEAR = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)

Pair = tuple[str, str]
"""A color on light and on dark ground."""


def rgb(color: str) -> Reals:
    """Color (3,) float64, sRGB from 0 to 1, of its ``#rrggbb``."""
    return np.frombuffer(bytes.fromhex(color[1:]), np.uint8) / 255


def _hex(colors: Reals) -> list[str]:
    """Colors (n, 3), sRGB from 0 to 1, as ``#rrggbb``."""
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in np.rint(colors * 255).astype(np.uint8).tolist()]


def _oklab_to_srgb(lab: Reals) -> Reals:
    """Colors (n, 3) float64, sRGB from 0 to 1, of OKLab (n, 3); clipped where there is none."""
    return encode((lab @ _CONES.T) ** 3 @ _LINEAR.T)


def _srgb_to_oklab(colors: Reals) -> Reals:
    """OKLab (n, 3) float64 of colors (n, 3), sRGB from 0 to 1."""
    return np.asarray(np.cbrt(linear(colors) @ np.linalg.inv(_LINEAR.T)) @ np.linalg.inv(_CONES.T))


def cyclic_colors(turns: npt.ArrayLike) -> Reals:
    """Colors of a circle of hues, red at 0; equal steps look about equal, and none is close to white.

    `turns` (n,) numbers; returns (n, 3) float64, sRGB from 0 to 1.
    """
    angle = np.radians(29 + 360 * np.asarray(turns, dtype=np.float64))
    lightness = 0.66 + 0.14 * np.cos(angle - np.radians(105))  # yellow lighter than blue, as eyes expect
    lab = np.stack([lightness, 0.15 * np.cos(angle), 0.15 * np.sin(angle)], axis=-1)
    return _oklab_to_srgb(lab)


def sequential_colors(count: int) -> Reals:
    """Colors from dark to light, (count, 3) float64 sRGB: viridis without its palest, which are lost on white."""
    from matplotlib import colormaps

    return np.asarray(colormaps["viridis"](np.linspace(0, 0.94, count)), dtype=np.float64)[:, :3]


def accessible_ramp(shares: npt.ArrayLike) -> Reals:
    """Colors (n, 3) float64 sRGB of shares from 0 to 1: dark blue, green, light yellow, ever lighter."""
    share = np.asarray(shares, dtype=np.float64)
    anchors = _polar(np.array([0.44, 0.63, 0.84]), np.array([0.16, 0.1, 0.15]), np.array([285.0, 190.0, 95.0]))
    lab = np.stack([np.interp(share, [0, 0.5, 1], anchors[:, axis]) for axis in range(3)], axis=-1)
    return _oklab_to_srgb(lab)


def accessible_cycle(turns: npt.ArrayLike) -> Reals:
    """Colors (n, 3) float64 sRGB of turns: light, orange, dark, blue; opposite ones differ in lightness or hue."""
    angle = 2 * np.pi * np.asarray(turns, dtype=np.float64)
    warm = np.sin(angle)  # along the line from blue to orange, which most people tell apart
    ends = _polar(np.zeros(2), np.array([0.16, 0.16]), np.array([65.0, 265.0]))
    lab = np.maximum(warm, 0)[..., None] * ends[0] + np.maximum(-warm, 0)[..., None] * ends[1]
    lab[..., 0] = 0.63 + 0.2 * np.cos(angle)
    return _oklab_to_srgb(lab)


def _polar(lightness: Reals, chroma: Reals, degrees: Reals) -> Reals:
    angle = np.radians(degrees)
    return np.stack([lightness, chroma * np.cos(angle), chroma * np.sin(angle)], axis=-1)


def on_grounds(colors: npt.ArrayLike) -> tuple[Pair, ...]:
    """Colors (n, 3) sRGB as they are drawn on each of the grounds, light enough or dark enough to be seen."""
    lab = _srgb_to_oklab(np.asarray(colors, dtype=np.float64))
    light, dark = _DARKER * lab, lab + np.array([_LIGHTER, 0, 0])
    return tuple(zip(_hex(_oklab_to_srgb(light)), _hex(_oklab_to_srgb(dark)), strict=True))


def _named_levels(counts: Counts, most: int) -> Rows:
    """Levels that get one of `most` colors, in their order: all; else those that occur; else the most frequent.

    `counts` (levels,). Of the most frequent there is one less, for those that share the color of the others.
    """
    if len(counts) <= most:
        return np.arange(len(counts))
    present = np.flatnonzero(counts)
    return present if len(present) <= most else np.sort(np.argsort(-counts, kind="stable")[: most - 1])


@dataclass(frozen=True, slots=True)
class Names:
    """A key of names: (name, color) of levels, and of what has no name."""

    levels: list[tuple[str, str]]
    rest: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Ramp:
    """A key that is a bar of colors (k, 3) from ``low`` to ``high``, with (place, label) ticks or ticks of its own."""

    colors: Reals
    low: float
    high: float
    ticks: list[tuple[float, str]] | None


@dataclass(frozen=True, slots=True)
class PointColors:
    """Colors (n, 3) float64 of a chart's points, which of them (n,) bool are known, the key, and what it is called."""

    colors: Reals
    known: npt.NDArray[np.bool_]
    key: Names | Ramp
    name: str


def color_points(values: npt.NDArray[np.generic], factor: Factor) -> PointColors:
    """Color points of a chart by a factor: (n,) codes of its levels, -1 where unknown, or numbers, NaN where unknown.

    Names have distinct colors, orders run from dark to light, cycles around a circle of hues.
    """
    title = factor.name.replace("_", " ")
    name = f"{title} ({factor.unit})" if factor.unit else title
    if factor.levels is None:
        return _numbered_points(values.astype(np.float64), factor.period, name)
    codes = values.astype(np.int64)
    if factor.kind is Kind.NOMINAL:
        return _named_points(codes, factor.levels, name)
    steps = np.arange(len(factor))
    cyclic = factor.kind is Kind.CYCLIC
    level_colors = cyclic_colors(steps / len(factor)) if cyclic else sequential_colors(len(factor))
    every = -(-len(factor) // _LABELLED)
    ticks = [(code + 0.5, shorten(_level_name(factor.levels[code]), _NAME)) for code in steps[::every].tolist()]
    return PointColors(level_colors[codes], codes >= 0, Ramp(level_colors, 0.0, len(factor), ticks), name)


def _numbered_points(numbers: Reals, period: float | None, name: str) -> PointColors:
    known = ~np.isnan(numbers)
    shown = np.where(known, numbers, 0.0)
    if period is not None:
        ticks = [(period * part, number(period * part)) for part in (0, 0.25, 0.5, 0.75, 1)]
        ramp = Ramp(cyclic_colors(np.linspace(0, 1, _RAMP)), 0.0, period, ticks)
        return PointColors(cyclic_colors(shown / period), known, ramp, name)
    low, high = (float(numbers[known].min()), float(numbers[known].max())) if known.any() else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    colors = sequential_colors(_RAMP)
    steps = np.clip((shown - low) / (high - low) * _RAMP, 0, _RAMP - 1).astype(np.int64)
    return PointColors(colors[steps], known, Ramp(colors, low, high, None), name)


def _named_points(codes: Codes, levels: tuple[Level, ...], name: str) -> PointColors:
    known = codes >= 0
    counts = np.bincount(codes[known], minlength=len(levels))
    named, present = _named_levels(counts, len(DISTINCT)), np.flatnonzero(counts)
    level_colors = np.tile(rgb(OTHERS), (len(levels), 1))
    level_colors[named] = np.array([rgb(color) for color in DISTINCT[: len(named)]]).reshape(-1, 3)
    listed = named[counts[named] > 0]
    legend = [(_level_name(levels[code]), _hex(level_colors[code : code + 1])[0]) for code in listed.tolist()]
    others = [(f"{len(present) - len(listed):,} others", OTHERS)] if len(listed) < len(present) else []
    unknown = [] if known.all() else [("unknown", UNKNOWN)]
    return PointColors(level_colors[codes], known, Names(legend, others + unknown), name)


def _level_name(level: Level) -> str:
    name = number_words(level)
    return name if isinstance(level, str) else name.replace("-", "−")


@dataclass(frozen=True, slots=True)
class RowColors:
    """Colors of rows on a page.

    Attributes
    ----------
    codes : (n,) uint8
        Of each row, its color.
    colors : tuple of (str, str)
        ``#rrggbb`` on light and on dark ground, at most 256.
    legend : tuple of (str, int, int)
        Name, color and number of rows, of each level or what else has a color of its own.
    scale : (float, float), optional
        The numbers, or places of levels, of the first and of the last color of a scale.

    """

    codes: npt.NDArray[np.uint8]
    colors: tuple[Pair, ...]
    legend: tuple[tuple[str, int, int], ...]
    scale: tuple[float, float] | None = None


def color_rows(table: FactorTable, name: str, rows: Rows) -> RowColors:
    """Color rows of a table by one of its factors, for a page.

    Examples
    --------
    >>> table = FactorTable.from_values({"species": ["cat", "dog", "cat"]})
    >>> colored = color_rows(table, "species", np.arange(3))
    >>> colored.codes.tolist(), colored.legend
    ([0, 1, 0], (('cat', 0, 2), ('dog', 1, 1)))

    """
    factor, codes = table[name], table.codes(name, rows)
    if factor.levels is None:
        return _numbered_rows(codes.astype(np.float64), factor.period)
    if factor.kind is Kind.NOMINAL:
        return _named_rows(codes.astype(np.int64), factor.levels)
    return _ordered_rows(codes.astype(np.int64), factor.levels, cyclic=factor.kind is Kind.CYCLIC)


def _named_rows(codes: Codes, levels: tuple[Level, ...]) -> RowColors:
    counts = np.bincount(codes[codes >= 0], minlength=len(levels))
    named = _named_levels(counts, len(ACCESSIBLE))
    shown = np.full(len(levels) + 1, len(named) + 1)  # the last for what is unknown, which has the code -1
    shown[:-1] = len(named)
    shown[named] = np.arange(len(named))
    legend = [(str(levels[level]), index, int(counts[level])) for index, level in enumerate(named.tolist())]
    others = int(np.count_nonzero(counts)) - int(np.count_nonzero(counts[named]))
    if others:
        legend.append((f"{others:,} others", len(named), int(counts.sum() - counts[named].sum())))
    colors = on_grounds([rgb(color) for color in ACCESSIBLE])[: len(named)]
    legend += _unknown_rows(codes >= 0, len(named) + 1)
    return RowColors(shown[codes].astype(np.uint8), (*colors, _UNSEEN, _UNSEEN), tuple(legend))


def _ordered_rows(codes: Codes, levels: tuple[Level, ...], cyclic: bool) -> RowColors:
    known = codes >= 0
    if len(levels) > _LISTED:
        ranks = np.where(known, codes.astype(np.float64), np.nan)
        return _numbered_rows(ranks, float(len(levels)) if cyclic else None, (0.0, len(levels) - 1.0))
    counts = np.bincount(codes[known], minlength=len(levels))
    steps = np.arange(len(levels))
    colors = accessible_cycle(steps / len(levels)) if cyclic else accessible_ramp(steps / max(1, len(levels) - 1))
    legend = [(str(level), index, int(counts[index])) for index, level in enumerate(levels)]
    legend += _unknown_rows(known, len(levels))
    shown = np.where(known, codes, len(levels)).astype(np.uint8)
    return RowColors(shown, (*on_grounds(colors), _UNSEEN), tuple(legend))


def _numbered_rows(numbers: Reals, period: float | None, ends: tuple[float, float] | None = None) -> RowColors:
    known = np.isfinite(numbers)
    if period is not None:
        low, high, share = 0.0, period, np.where(known, numbers / period % 1, 0)
        colors = accessible_cycle(np.arange(_SCALE) / _SCALE)
    else:
        low, high = ends or ((float(numbers[known].min()), float(numbers[known].max())) if known.any() else (0.0, 0.0))
        share = (np.where(known, numbers, low) - low) / (high - low or 1)
        colors = accessible_ramp(np.arange(_SCALE) / (_SCALE - 1))
    codes = np.where(known, np.minimum(share * _SCALE, _SCALE - 1), _SCALE).astype(np.uint8)
    return RowColors(codes, (*on_grounds(colors), _UNSEEN), tuple(_unknown_rows(known, _SCALE)), (low, high))


def _unknown_rows(known: npt.NDArray[np.bool_], index: int) -> list[tuple[str, int, int]]:
    """The legend's entry of rows that are unknown, where there are any."""
    count = len(known) - int(known.sum())
    return [("unknown", index, count)] if count else []
