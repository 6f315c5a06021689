"""Which pairs of an overlap table are written: those in bands of overlap, angle and scale."""

from typing import Literal, NamedTuple

import numpy as np

from setsup.arrays import Array, Bools, Rows
from setsup.samplers.partners.overlap_table import OverlapTable

__all__ = ["Bands", "Direction", "ScenePairs", "choose_pairs"]

Band = tuple[float, float]
Direction = Literal["either", "both"]


class Bands(NamedTuple):
    """Closed intervals; None where all values count, known or not."""

    overlap: Band
    angle: Band | None = None
    scale: Band | None = None


class ScenePairs(NamedTuple):
    """Pairs of one scene.

    Attributes
    ----------
    scene : int
        Number of the scene in the table.
    views : (n,) int64
        Rows of the views that are in a pair, ascending.
    pairs : (m, 2) int64
        Positions of the two views among these.
    places : (m,) int64
        Indices of the pairs in the table.

    """

    scene: int
    views: Rows
    pairs: Rows
    places: Rows


def choose_pairs(
    table: OverlapTable, bands: Bands, direction: Direction, kept: Bools | None, *, once: bool, zeros: bool
) -> list[ScenePairs]:
    """Pairs of each scene that has one.

    `kept` (rows,) bool, the views that may be in a pair, all if None. With `once`, of the two directions of a pair that
    fit only the one of the larger overlap is returned, of equal ones that whose first row is smaller. Without `zeros`,
    pairs with an overlap of 0 are left out then.
    """
    first, second = np.asarray(table.first), np.asarray(table.second)
    fits = np.ones(len(table), bool)
    for name, band in bands._asdict().items():
        if band is not None:
            fits &= _within(np.asarray(getattr(table, name)), band)
    if kept is not None:
        fits &= kept[first] & kept[second]
    back = table.find(second, first)
    mutual = fits & (back >= 0) & fits[back]
    if direction == "both":
        fits = mutual
    own = np.asarray(table.overlap)
    if once:
        other = own[back]
        fits = fits & ~(mutual & ((other > own) | ((other == own) & (second < first))))
    if not zeros:
        fits = fits & (own > 0)
    places = np.flatnonzero(fits)
    scene_of = np.zeros(int(table.about["rows"]), np.int64)
    scene_of[table.views] = np.repeat(np.arange(len(table.starts) - 1), np.diff(table.starts))
    scenes = scene_of[first[places]]
    found = []
    for scene in np.unique(scenes).tolist():
        some = places[scenes == scene]
        rows = np.stack([first[some], second[some]], axis=1)
        views, positions = np.unique(rows, return_inverse=True)
        found.append(ScenePairs(scene, views, positions.reshape(-1, 2), some))
    return found


def _within(values: Array, band: Band) -> Bools:
    """Whether values are in a band, whose ends are rounded as the values are; NaN never is."""
    low, high = (values.dtype.type(end) for end in band)
    with np.errstate(invalid="ignore"):
        return np.asarray((values >= low) & (values <= high))
