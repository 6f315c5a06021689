"""Sheets of dense features: two views, their features as colours, and which matches of features are right."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from setsup.correspondence import PixelPairs
from setsup.errors import DataError
from setsup.reports.grid import image_grid
from setsup.reports.matches import matches_drawn
from setsup.reports.pixel_features import component_images

__all__ = ["dense_sheet"]

_SPACE = 8  # pixels between two views
_RIGHT, _WRONG = (0.15, 0.75, 0.25), (0.95, 0.15, 0.15)


def dense_sheet(
    views: Sequence[tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]],
    maps: Sequence[Sequence[npt.NDArray[Any]]],
    matches: Sequence[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]],
    title: str,
    captions: Sequence[str] = (),
    *,
    shown: int = 40,
    tile: int = 256,
) -> Image.Image:
    r"""Lay out pairs of views in rows: the features of both as colours, and both views with matches, right and wrong.

    Colours are principal components of both maps of a pair: equal ones mean similar features.

    Parameters
    ----------
    views : sequence of pairs of (h, w, 3) uint8
        Both views of each pair; views of several heights are drawn at one height.
    maps : sequence of pairs of (rows, columns, D) float
        Their features.
    matches : sequence of ((n, 2) float, (n, 2) float, (n,) bool)
        Pixels of view 1, the places found in view 2, and whether they are right: these lines are green, others red.
    title : str
        Lines after ``\n`` are softer.
    captions : sequence of str
        One for each pair, in front of its row.
    shown : int
        Lines at most, evenly chosen.
    tile : int
        Width of a view, pixels.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When there are no pairs, or they differ in number.

    Examples
    --------
    >>> view, features = np.zeros((24, 32, 3), np.uint8), np.random.default_rng(0).normal(size=(24, 32, 8))
    >>> point = np.array([[3.0, 4.0]])
    >>> dense_sheet([(view, view)], [(features, features)], [(point, point + 2, np.array([True]))], "example").mode
    'RGB'

    """
    if not views or not len(views) == len(maps) == len(matches):
        raise DataError(
            f"a sheet requires at least one pair of views, and maps and matches for each, not {len(views)} pairs, "
            f"{len(maps)} pairs of maps and {len(matches)} matches"
        )
    rows: list[list[npt.NDArray[np.uint8]]] = []
    for (view1, view2), both, (points1, points2, right) in zip(views, maps, matches, strict=True):
        chosen = np.unique(np.linspace(0, len(right) - 1, min(shown, len(right))).round().astype(np.int64))
        count = len(chosen)
        nothing, visible = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=np.uint8)
        drawn = PixelPairs(points1[chosen], points2[chosen], np.zeros((count, 3)), nothing, visible)
        colors = np.where(right[chosen, None], _RIGHT, _WRONG)
        lines = np.asarray(matches_drawn(view1, view2, drawn, tile=tile, scale=2, colors=colors))
        high = len(view1)
        sizes = (high, view1.shape[1]), (high, max(1, round(view2.shape[1] * high / len(view2))))
        enlarged = [_enlarged(image, size) for image, size in zip(component_images(both), sizes, strict=True)]
        between = np.full((len(enlarged[0]), _SPACE, 3), 255, dtype=np.uint8)
        rows.append([np.concatenate([enlarged[0], between, enlarged[1]], axis=1), lines])
    heads = ["features of view 1 and view 2 as colors", "matches of features: right green, wrong red"]
    return image_grid(rows, captions, heads, title, tile=2 * tile)


def _enlarged(image: npt.NDArray[np.uint8], size: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Cells of a grid as squares, in the size of their view."""
    y, x = (np.arange(side) * cells // side for side, cells in zip(size, image.shape[:2], strict=True))
    return np.asarray(image[y[:, None], x])
