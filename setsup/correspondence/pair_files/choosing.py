"""Which pairs of an overlap table are written: those in bands of overlap, angle and scale."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from setsup.arrays import Bools, Rows
from setsup.samplers.overlap.bands import Band, in_bands
from setsup.samplers.overlap.table import OverlapTable

__all__ = ["Direction", "ScenePairs", "choose_pairs"]

Direction = Literal["either", "both"]


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
    table: OverlapTable, bands: Mapping[str, Band], direction: Direction, kept: Bools | None, *, once: bool, zeros: bool
) -> list[ScenePairs]:
    """Pairs of each scene that has one.

    `bands` by what they are of; `kept` (rows,) bool, the views that may be in a pair, all if None. With `once`, of the
    two directions of a pair that fit only the one of the larger overlap is returned, of equal ones that whose first row
    is smaller. Without `zeros`, pairs with an overlap of 0 are left out then.
    """
    first, second = np.asarray(table.first), np.asarray(table.second)
    fits = in_bands(table, bands)
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
