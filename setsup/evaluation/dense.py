"""How well features of pixels match two views: places that are found beside the true ones, by two protocols.

``visible``
    Each visible pixel of view 1 is matched to the pixel of view 2 with the nearest feature, by Euclidean distance,
    among all pixels of view 2. An error counts as within a limit if it is at most the limit.
``ratio``
    As in probe3d ([1]_): all surface pixels of a grid over view 1 are matched to surface pixels of a grid over view 2,
    by cosine distance, whether or not view 2 shows their points. The matches with the least ratio of the distance of
    the nearest to that of the second nearest feature are kept. An error counts as within a limit if it is below it.

Errors are distances in view 2, in pixels, between the projection of the point and the pixel found; and distances in
space, in metres, between the points that both pixels show. probe3d reports recall within 5, 25 and 50 px and 1, 2 and
5 cm; 1 and 3 px are additions.

References
----------
.. [1] M. El Banani et al., "Probing the 3D awareness of visual foundation models", CVPR 2024 (arXiv 2404.08636), and
   its code, https://github.com/mbanani/probe3d, configuration ``navi_correspondence``.

"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.checks import check_integer
from setsup.correspondence.pixel_pairs import PixelPairs, Status
from setsup.errors import DataError
from setsup.evaluation.dense_views import DenseView
from setsup.evaluation.feature_neighbours import NearestFeatures, nearest_features
from setsup.evaluation.feature_points import directions
from setsup.evaluation.pixels import separation, separations

__all__ = [
    "METRES",
    "PIXELS",
    "DenseMatches",
    "edge_separations",
    "instance_separation",
    "mutual_matches",
    "ratio_matches",
    "recall_within",
    "visible_matches",
]

PIXELS = (1, 3, 5, 25, 50)
"""Limits of errors in view 2, pixels."""
METRES = (0.01, 0.02, 0.05)
"""Limits of errors in space, metres."""

_EDGE = 2  # pixels from an edge within which a pixel belongs to it


@dataclass(frozen=True, slots=True, eq=False)
class DenseMatches:
    """Pixels of view 1, the places in view 2 that features find for them, and how far these are from the true ones.

    Attributes
    ----------
    points1, points2 : (n, 2) float64
        Pixels (x, y) of view 1, and places found in view 2.
    cells2 : (n,) int64
        Numbers of the cells of view 2 that are found.
    pixels : (n,) float64
        Errors in view 2, pixels; infinite where the point is behind camera 2.
    metres : (n,) float64
        Errors in space; NaN where points are unknown, infinite where the pixel found shows no surface.
    nearest : NearestFeatures
        Distances of features; ``rows`` are numbers of candidates.

    """

    points1: Reals
    points2: Reals
    cells2: Rows
    pixels: Reals
    metres: Reals
    nearest: NearestFeatures

    def __len__(self) -> int:
        """Count the matches."""
        return len(self.cells2)

    def select(self, rows: slice | Rows | Bools) -> "DenseMatches":
        """Take some of the matches."""
        nearest = NearestFeatures(self.nearest.rows[rows], self.nearest.distances[rows], self.nearest.second[rows])
        places = self.points1[rows], self.points2[rows], self.cells2[rows]
        return DenseMatches(*places, self.pixels[rows], self.metres[rows], nearest)


def visible_matches(pairs: PixelPairs, view1: DenseView, view2: DenseView) -> DenseMatches:
    """Match pixels of view 1 to the nearest features of all cells of view 2: the protocol ``visible``.

    Parameters
    ----------
    pairs : PixelPairs
        Pixels of view 1 that view 2 shows, with their true places.
    view1, view2 : DenseView
        Features of the views.

    Returns
    -------
    DenseMatches
        One for each pair. Of several equally near cells the first counts, row after row.

    Raises
    ------
    DataError
        When features differ in size, or are not finite.

    Examples
    --------
    >>> features = np.random.default_rng(0).normal(size=(6, 8, 4))
    >>> pairs = PixelPairs([[1, 2], [5, 3]], [[2, 2], [6.5, 3]], np.zeros((2, 3)), [0, 0], [0, 0])
    >>> found = visible_matches(pairs, DenseView(features, (6, 8)), DenseView(np.roll(features, 1, 1), (6, 8)))
    >>> found.points2.tolist(), found.pixels.tolist()
    ([[2.0, 2.0], [6.0, 3.0]], [0.0, 0.5])

    """
    found = nearest_features(view1.flat[view1.cells(pairs.points1)], view2.flat)
    return _matches(pairs, view2, found.rows, found)


def ratio_matches(
    pairs: PixelPairs, view1: DenseView, view2: DenseView, *, count: int = 1000, step: int = 4
) -> DenseMatches:
    """Match a grid of pixels, and keep the matches with the least ratio of distances: the protocol ``ratio``.

    The cosine distance of two features is half the squared Euclidean distance of their directions; a feature of zeros
    has none, and stays zero. Distances below 10⁻⁹ count as 10⁻⁹.

    Parameters
    ----------
    pairs : PixelPairs
        Pixels of view 1, visible in view 2 or not; those without a surface are left out, and of those at the same cell
        the nearest to its centre counts. Without ``sparse``, only pixels on the grid are used.
    view1, view2 : DenseView
        Features of the views.
    count : int
        Number of matches at most; all queries if these are fewer.
    step : int
        Every so many pixels, in x and in y, one is on the grid; patches are all used.

    Returns
    -------
    DenseMatches
        By ascending ratio; of equal ratios, the first pair comes first.

    Raises
    ------
    DataError
        When features differ in size or are not finite, view 2 has no surface, or a number is out of range.

    Examples
    --------
    >>> features = np.random.default_rng(0).normal(size=(6, 8, 4))
    >>> y, x = np.mgrid[:6, :8].reshape(2, -1)
    >>> pairs = PixelPairs(np.stack([x, y], 1), np.stack([x + 1, y], 1), np.zeros((48, 3)), [0] * 48, [0] * 48)
    >>> view1, view2 = DenseView(features, (6, 8)), DenseView(np.roll(features, 1, 1), (6, 8))
    >>> found = ratio_matches(pairs, view1, view2, count=10, step=1)
    >>> len(found), float(found.pixels.max())
    (10, 0.0)

    """
    check_integer(count, "count, the number of matches,", DataError, 1)
    check_integer(step, "step, the distance of grid points in pixels,", DataError, 1)
    chosen = pairs.select(_on_grid(pairs, view1, step))
    candidates = view2.grid(step)
    candidates = candidates[view2.has_surface(candidates)]
    if not len(candidates):
        raise DataError("view 2 shows no surface on the grid, so nothing can be matched; leave out the pair of views")
    found = nearest_features(directions(view1.flat[view1.cells(chosen.points1)]), directions(view2.flat[candidates]))
    nearest, second = (np.maximum(np.square(apart) / 2, 1e-9) for apart in (found.distances, found.second))
    best = np.argsort(nearest / second, kind="stable")[:count]
    kept = NearestFeatures(found.rows[best], found.distances[best], found.second[best])
    return _matches(chosen.select(best), view2, candidates[kept.rows], kept)


def mutual_matches(matches: DenseMatches, view1: DenseView, view2: DenseView) -> Bools:
    """Whether the nearest feature of view 1, among all of its cells, leads from a match back to the cell it is of.

    Parameters
    ----------
    matches : DenseMatches
        From :func:`visible_matches`.
    view1, view2 : DenseView
        Features of the views.

    Returns
    -------
    (n,) bool

    Examples
    --------
    >>> pairs = PixelPairs([[0, 0], [1, 0]], [[0, 0], [1, 0]], np.zeros((2, 3)), [0, 0], [0, 0])
    >>> view1, view2 = (DenseView([values], (1, 2)) for values in ([[1.0], [3.0]], [[0.0], [9.0]]))
    >>> mutual_matches(visible_matches(pairs, view1, view2), view1, view2).tolist()
    [True, False]

    """
    cells, back = np.unique(matches.cells2, return_inverse=True)
    again = nearest_features(view2.flat[cells], view1.flat).rows
    return np.asarray(again[back] == view1.cells(matches.points1))


def recall_within(errors: npt.ArrayLike, limits: Sequence[float], *, strict: bool = False) -> Reals:
    """Share of errors within each limit.

    Parameters
    ----------
    errors : (n,) float
        Infinite ones are within no limit; NaN are left out.
    limits : (k,) float
        In the unit of the errors.
    strict : bool
        Whether an error equal to the limit is outside.

    Returns
    -------
    (k,) float64
        NaN without known errors.

    Examples
    --------
    >>> recall_within([0.5, 1.0, 7.0, np.inf], [1, 5, 25]).tolist()
    [0.5, 0.5, 0.75]
    >>> recall_within([0.5, 1.0], [1], strict=True).tolist()
    [0.5]

    """
    numbers, most = np.asarray(errors, dtype=np.float64), np.asarray(limits, dtype=np.float64)
    if numbers.ndim != 1 or most.ndim != 1:
        raise DataError(f"errors and limits must be 1-D, not of the shapes {numbers.shape} and {most.shape}")
    known = numbers[~np.isnan(numbers)][:, None]
    if not len(known):
        return np.full(len(most), np.nan)
    return np.asarray((known < most if strict else known <= most).mean(axis=0))


def instance_separation(view: DenseView, instances: npt.ArrayLike, count: int, key: int) -> float:
    """How well distances of features tell pixels of two instances from those of one, for random pairs of pixels.

    Parameters
    ----------
    view : DenseView
        Features.
    instances : (height, width) integers
        What is seen at each pixel.
    count : int
        Pairs of pixels, drawn with replacement.
    key : int
        From :func:`setsup.random.fold`.

    Returns
    -------
    float
        Area under the ROC curve; NaN where all pairs are of one kind.

    """
    numbers = np.asarray(instances)
    if numbers.shape != view.size:
        raise DataError(f"instances must have the shape {view.size} of the view, not {numbers.shape}")
    first, second = np.random.default_rng(key).integers(0, numbers.size, (2, count))  # as published values drew them
    flat, cells = view.flat, view.every_pixel()
    apart = np.linalg.norm(flat[cells[first]].astype(np.float64) - flat[cells[second]].astype(np.float64), axis=1)
    each = numbers.reshape(-1)
    return separation(apart, each[first] != each[second])


def edge_separations(view: DenseView, edges: npt.ArrayLike) -> Reals:
    """For each channel how well it tells pixels within 2 px of an edge.

    Parameters
    ----------
    view : DenseView
        Features, D channels.
    edges : (height, width) bool
        From :func:`edge_pixels`.

    Returns
    -------
    (D,) float64
        Areas under ROC curves; NaN where no pixel is near an edge, or all are.

    """
    from scipy import ndimage

    at = np.asarray(edges, dtype=np.bool_)
    if at.shape != view.size:
        raise DataError(f"edges must have the shape {view.size} of the view, not {at.shape}")
    near = ndimage.distance_transform_edt(~at) <= _EDGE if at.any() else at
    return separations(view.flat[view.every_pixel()], near.reshape(-1))


def _on_grid(pairs: PixelPairs, view: DenseView, step: int) -> Rows:
    """Numbers of the pairs that a grid of cells uses, at most one per cell."""
    cells = view.cells(pairs.points1)
    used = pairs.status != Status.NO_SURFACE
    if not pairs.sparse:
        used &= np.isin(cells, view.grid(step))
    rows = np.flatnonzero(used)
    away = np.square(pairs.points1[rows] - view.centres(cells[rows])).sum(axis=1)
    order = np.lexsort((away, cells[rows]))  # stable: of equally near ones the first stays first
    _, first = np.unique(cells[rows][order], return_index=True)
    return np.sort(rows[order[first]])


def _matches(pairs: PixelPairs, view2: DenseView, cells2: Rows, found: NearestFeatures) -> DenseMatches:
    """Matches of pairs with cells of view 2, and their errors."""
    places = view2.centres(cells2)
    pixels = np.hypot(*(places - pairs.points2).T)
    metres = np.linalg.norm(view2.points(cells2) - pairs.xyz, axis=1)
    if view2.xyz is not None:
        metres[np.isnan(metres) & np.isfinite(pairs.xyz).all(axis=1)] = np.inf
    return DenseMatches(pairs.points1, places, cells2, np.where(np.isnan(pixels), np.inf, pixels), metres, found)
