"""Dense features of encoders and runs as a benchmark: `setsup report dense`, and the evaluation of rooms.

Values are measured pair by pair of views, by name; their means, spreads over scenes and means in bins follow from them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.correspondence import Status
from setsup.errors import DataError
from setsup.evaluation.dense import (
    METRES,
    PIXELS,
    DenseMatches,
    edge_separations,
    instance_separation,
    mutual_matches,
    ratio_matches,
    recall_within,
    visible_matches,
)
from setsup.evaluation.dense_views import DenseView
from setsup.evaluation.pixels import separation
from setsup.experiments.evaluations.view_pairs import ViewPair
from setsup.random import fold, permute

__all__ = [
    "ANGLES",
    "METHOD",
    "OVERLAPS",
    "DenseSettings",
    "Maps",
    "Summary",
    "bin_values",
    "choose_pixels",
    "describe_settings",
    "measure_pairs",
    "summarise",
]

Maps = Callable[[Rows], Sequence[npt.NDArray[Any]] | npt.NDArray[Any]]
"""From two rows to the features of their views, (rows, columns, D) each."""

METHOD = 1
"""Version of the measure: results of another one are measured again."""
ANGLES = (0, 30, 60, 90, 120)
"""Ends of the bins of the angle between views, degrees: each contains its lower end."""
OVERLAPS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Ends of the bins of overlap; 1 is in the last one."""

_INSTANCES = 7  # what the key of a pair is folded with for its random pairs of pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSettings:
    """What is measured of each pair of views.

    Attributes
    ----------
    protocols : tuple of {"visible", "ratio"}
        As :mod:`setsup.evaluation.dense` describes them.
    queries : int, optional
        Visible pixels of the protocol ``visible``, and as many occluded ones, drawn by the key of the pair; all by
        default.
    matches, step : int
        Of the protocol ``ratio``: matches at most, and the distance of the points of its grid, pixels.
    pixels, metres : tuple of float
        Limits of errors.
    mutual : bool
        Whether matches of the protocol ``visible`` that are mutual nearest neighbours are measured apart.
    instances : int
        Random pairs of pixels per view.

    """

    protocols: tuple[Literal["visible", "ratio"], ...] = ("visible", "ratio")
    queries: int | None = 1024
    matches: int = 1000
    step: int = 4
    pixels: tuple[float, ...] = PIXELS
    metres: tuple[float, ...] = METRES
    mutual: bool = True
    instances: int = 10_000


def choose_pixels(where: npt.NDArray[np.bool_], most: int | None, key: int) -> Rows:
    """Numbers of at most so many of the places that are true, drawn by a key; all of them in order for None."""
    places = np.flatnonzero(where)
    if most is None:
        return places
    return np.asarray(places[permute(key, len(places), np.arange(min(most, len(places))))])


def measure_pairs(
    pairs: Sequence[ViewPair] | Callable[[int], ViewPair],
    rows: Rows,
    maps: Maps,
    settings: DenseSettings,
    key: int,
    on_pair: Callable[[int], None] | None = None,
) -> dict[str, list[float]]:
    """Measure the features of pairs of views.

    Parameters
    ----------
    pairs : sequence of ViewPair, or function of the number of a pair
        What is true of them.
    rows : (n, 2) int64
        Their rows.
    maps : callable
        Features of both views of a pair.
    settings : DenseSettings
        What is measured.
    key : int
        Pixels of pair n are drawn with ``fold(key, n)``.
    on_pair : callable, optional
        Called with the number of each pair that was measured.

    Returns
    -------
    dict of str to list of float
        By name, a value for each pair; NaN where it is undefined. ``visible: within 1 px`` is a share of matches, so is
        ``visible, mutual: within 1 px``, of those that are mutual; ``visible: mutual`` is the share of these, and
        ``visible: near ties`` that of matches whose two least distances differ by less than 10⁻⁵ of the larger one.
        ``rejection``, ``instances`` and ``edges`` are areas under ROC curves: of telling occluded from visible pixels
        by the distance of the nearest feature; pixels of two instances from those of one by the distance of their
        features; and pixels within 2 px of an edge by one channel, the best one over all pairs, whichever its sign.

    Raises
    ------
    DataError
        When a map is not (rows, columns, D), or its numbers are not finite.

    Examples
    --------
    >>> from setsup.experiments.evaluations.view_pairs import draw_view_pairs, view_pair
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(24, 32)))
    >>> rows = draw_view_pairs(shapes, 2, seed=0)
    >>> pairs = [view_pair(shapes, *two) for two in rows.tolist()]
    >>> features = np.random.default_rng(0).normal(size=(2, 24, 32, 8))
    >>> values = measure_pairs(pairs, rows, lambda two: features, DenseSettings(), key=0)
    >>> len(values["visible: within 5 px"]), max(values["visible: within 1 px"]) < 0.1
    (2, True)

    """
    values: dict[str, list[float]] = {}
    channels: list[Reals] = []
    for number, two in enumerate(np.asarray(rows)):
        pair = pairs(number) if callable(pairs) else pairs[number]
        measured, edges = _measured(pair, maps(two), settings, fold(key, number))
        for name, value in measured.items():
            values.setdefault(name, []).append(value)
        channels.append(edges)
        if on_pair is not None:
            on_pair(number)
    values["edges"] = _best_channel(channels)
    return values


def _measured(
    pair: ViewPair, maps: Sequence[npt.NDArray[Any]] | npt.NDArray[Any], settings: DenseSettings, key: Any
) -> tuple[dict[str, float], Reals]:
    """Values of one pair by name, and how well each channel tells edges."""
    view1, view2 = (DenseView(np.asarray(one), size) for one, size in zip(maps, pair.sizes, strict=True))
    view2 = DenseView(view2.features, view2.size, pair.xyz2, pair.surface2)
    values: dict[str, float] = {}
    if "visible" in settings.protocols:
        seen, hidden = (
            choose_pixels(pair.pairs.status == status, settings.queries, int(fold(key, int(status))))
            for status in (Status.VISIBLE, Status.OCCLUDED)
        )
        every = visible_matches(pair.pairs.select(np.concatenate([seen, hidden])), view1, view2)
        found = every.select(slice(len(seen)))  # of occluded pixels, only the distances mean something
        values |= _recalls("visible", found, settings, strict=False)
        if settings.mutual:
            back = mutual_matches(found, view1, view2) if len(found) else np.zeros(0, dtype=np.bool_)
            values["visible: mutual"] = float(back.mean()) if len(found) else math.nan
            values |= _shares("visible, mutual", found.pixels[back], found.metres[back], settings, strict=False)
        values["rejection"] = separation(every.nearest.distances, np.arange(len(every)) >= len(seen))
    if "ratio" in settings.protocols:
        best = None
        if view2.has_surface(view2.grid(settings.step)).any():
            best = ratio_matches(pair.pairs, view1, view2, count=settings.matches, step=settings.step)
        values |= _recalls("ratio", best, settings, strict=True)
    edges = np.full(view1.features.shape[2], np.nan)
    values["instances"] = math.nan
    if pair.instances is not None:
        dice = int(fold(key, _INSTANCES))
        values["instances"] = instance_separation(view1, pair.instances, settings.instances, dice)
    if pair.edges is not None:
        edges = edge_separations(view1, pair.edges)
    return values, edges


def _recalls(protocol: str, found: DenseMatches | None, settings: DenseSettings, *, strict: bool) -> dict[str, float]:
    """Recall, the number of matches, and the share of near ties; None where nothing can be matched."""
    pixels, metres, ties = np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.bool_)
    if found is not None:
        pixels, metres, ties = found.pixels, found.metres, found.nearest.near_ties
    about = {f"{protocol}: matches": float(len(pixels))}
    about[f"{protocol}: near ties"] = float(ties.mean()) if len(ties) else math.nan
    return _shares(protocol, pixels, metres, settings, strict=strict) | about


def _shares(name: str, pixels: Reals, metres: Reals, settings: DenseSettings, *, strict: bool) -> dict[str, float]:
    near = dict(zip(settings.pixels, recall_within(pixels, settings.pixels, strict=strict).tolist(), strict=True))
    close = dict(zip(settings.metres, recall_within(metres, settings.metres, strict=strict).tolist(), strict=True))
    values = {f"{name}: within {limit:g} px": share for limit, share in near.items()}
    return values | {f"{name}: within {100 * limit:g} cm": share for limit, share in close.items()}


def _best_channel(channels: Sequence[Reals]) -> list[float]:
    """The areas of the channel that tells edges best over all pairs, by larger or by smaller values."""
    areas = np.array(channels, dtype=np.float64)
    known = ~np.isnan(areas).all(axis=1)
    if not known.any():
        return [math.nan] * len(areas)
    means = areas[known].mean(axis=0)
    best = int(np.argmax(np.maximum(means, 1 - means)))
    chosen = areas[:, best] if means[best] >= 0.5 else 1 - areas[:, best]
    return [float(area) for area in chosen]


@dataclass(frozen=True, slots=True)
class Summary:
    """A value over pairs of views.

    Attributes
    ----------
    mean : float
        Over the pairs that have it; NaN if none has.
    spread : float
        Standard deviation of the means of scenes, with n − 1; NaN for fewer than two scenes.
    pairs, scenes : int
        How many have it.

    """

    mean: float
    spread: float
    pairs: int
    scenes: int


def summarise(values: npt.ArrayLike, scenes: npt.ArrayLike) -> Summary:
    """Summarise the values (n,) of pairs of views, whose scenes are numbers (n,).

    Examples
    --------
    >>> found = summarise([0.2, 0.4, 0.9, np.nan], [0, 0, 1, 2])
    >>> found.mean, round(found.spread, 3), found.pairs, found.scenes
    (0.5, 0.424, 3, 2)

    """
    numbers, of_scene = np.asarray(values, dtype=np.float64), np.asarray(scenes)
    if numbers.ndim != 1 or numbers.shape != of_scene.shape:
        raise DataError(f"values and scenes must be 1-D and as many, not of {numbers.shape} and {of_scene.shape}")
    known = ~np.isnan(numbers)
    if not known.any():
        return Summary(math.nan, math.nan, 0, 0)
    _, group, sizes = np.unique(of_scene[known], return_inverse=True, return_counts=True)
    means = np.bincount(group, numbers[known]) / sizes
    spread = float(means.std(ddof=1)) if len(means) > 1 else math.nan
    return Summary(float(numbers[known].mean()), spread, int(known.sum()), len(means))


def bin_values(values: npt.ArrayLike, scenes: npt.ArrayLike, by: npt.ArrayLike, ends: Sequence[float]) -> list[Summary]:
    """Summaries of the values of pairs in each bin of what they are binned `by`: low ≤ x < high, 1 in a bin up to 1.

    Examples
    --------
    >>> [round(found.mean, 3) for found in bin_values([0.2, 0.4, 0.9], [0, 1, 2], [0, 29.9, 30], (0, 30, 60))]
    [0.3, 0.9]

    """
    numbers, of_scene, at = np.asarray(values, np.float64), np.asarray(scenes), np.asarray(by, np.float64)
    found = []
    for low, high in pairwise(ends):
        inside = (at >= low) & ((at < high) | ((at == high) & (high == 1)))
        found.append(summarise(numbers[inside], of_scene[inside]))
    return found


def describe_settings(settings: DenseSettings) -> Mapping[str, Any]:
    """Settings as JSON values."""
    return {name: getattr(settings, name) for name in DenseSettings.__dataclass_fields__}
