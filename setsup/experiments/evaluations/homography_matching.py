"""Matching of features between photographs with homographies: MMA and estimated homographies, as on HPatches.

Published protocols detect keypoints; this one matches points on a grid, so that it measures features alone. Each image
is resized to a shorter side of 480 pixels for the encoder. Errors of matches are in pixels of the images as they are
fetched, those of homographies in pixels of the resized images.

References
----------
.. [1] M. Dusmanu et al., "D2-Net: a trainable CNN for joint description and detection of local features", CVPR 2019
   (arXiv 1905.03561), section 5.1, and its published ``hpatches_sequences``: image 1 against images 2 to 6, mutual
   nearest neighbours, MMA per pair and then over pairs.
.. [2] J. Sun, Z. Shen, Y. Wang, H. Bao, X. Zhou, "LoFTR: detector-free local feature matching with transformers", CVPR
   2021 (arXiv 2104.00680), section 4.1: shorter side 480, corner error, area under its cumulative curve.

"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.correspondence import planar
from setsup.datasets import Dataset
from setsup.errors import DataError
from setsup.evaluation.feature_neighbours import mutual_neighbours
from setsup.evaluation.feature_points import FeaturePoints, Sampling, grid_features
from setsup.evaluation.planes import corner_error, error_auc, estimate_homography, matching_accuracy
from setsup.experiments.evaluations.measured import (
    ALL,
    Encode,
    Example,
    Measured,
    describe_count,
    draw_numbers,
    fetch_rgb,
    spread_numbers,
)

__all__ = [
    "METHOD",
    "HomographyTask",
    "PlaneMatches",
    "choose",
    "content",
    "describe",
    "examples",
    "main_value",
    "match_planes",
    "measure",
    "score",
]

METHOD = 1
"""Version of the measure; results stored by another version are measured again."""

_SIDE = 480  # pixels of the shorter side, for the encoder
_THRESHOLD, _ITERATIONS, _CONFIDENCE = 3.0, 2000, 0.995  # of RANSAC; OpenCV's defaults
_MATCHES = tuple(range(1, 11))  # thresholds of errors of matches, pixels
_CORNERS = (1.0, 3.0, 5.0)  # thresholds of corner errors, pixels
_RIGHT = 3.0  # largest error of a match that a sheet shows as right, pixels
_CHANGE = "change"  # the factor that groups pairs


@dataclass(frozen=True, slots=True, eq=False)
class HomographyTask:
    """The pairs of images that are measured.

    Attributes
    ----------
    rows : (n, 2) int64
        View 1 of a scene, and another view of it; pairs of the same scene are adjacent.
    groups : sequence of str
        Group of each pair besides ``all``, such as ``"change viewpoint"``; empty where there are none.
    total : int
        Number of pairs that they were drawn from.
    step : int
        Distance of grid points, pixels of the resized images.

    """

    rows: Rows
    groups: Sequence[str]
    total: int
    step: int

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.rows)

    @property
    def about(self) -> dict[str, Any]:
        """Identify the pairs and the grid in stored results, as JSON values."""
        return {"pairs": self.rows.tolist(), "groups": list(self.groups), "step": self.step}


class PlaneMatches(NamedTuple):
    """Matches of a pair of images.

    Attributes
    ----------
    points1, points2 : (m, 2) float64
        Matched points, pixels (x, y) of the images as they are fetched.
    errors : (m,) float64
        Distance of the second point from where the true homography maps the first, in the same pixels; infinite beyond
        the horizon.
    corner : float
        Corner error of the homography that RANSAC estimates, pixels of the resized images; infinite where it fails.

    """

    points1: Reals
    points2: Reals
    errors: Reals
    corner: float


def choose(dataset: Dataset, *, most: int | None, seed: int, where: str | None = None, step: int = 4) -> HomographyTask:
    """Choose pairs of images: the first view of each scene with each of its other views.

    Parameters
    ----------
    dataset : Dataset
        Photographs with homographies.
    most : int, optional
        Draw at most so many pairs; all by default.
    seed : int
        Random seed of the draw.
    where : str, optional
        Expression over the factors; the rows of both views must satisfy it.
    step : int
        Distance of grid points, pixels of the resized images.

    Returns
    -------
    HomographyTask

    Raises
    ------
    DataError, FactorError
        When no pair is left, or the expression names no factor.

    """
    table = dataset.factors
    rows = np.arange(len(table)) if where is None else table.rows(where)
    scenes, views = (np.asarray(table.codes(name, rows), np.int64) for name in ("scene", "view"))
    order = np.lexsort((views, scenes))
    starts = np.flatnonzero(np.diff(scenes[order], prepend=-1))
    first = np.repeat(rows[order][starts], np.diff(starts, append=len(order)))
    pairs = np.stack([first, rows[order]], axis=1)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    if not len(pairs):
        raise DataError(f"no pair of views of a scene of {dataset.name} is left; choose more rows")
    total = len(pairs)
    pairs = pairs[draw_numbers(total, most, seed, "pairs of views")]
    groups = []
    if _CHANGE in table.names:
        groups = [f"{_CHANGE} {value}" for value in table.values(_CHANGE, pairs[:, 0]).tolist()]
    return HomographyTask(pairs, groups, total, step)


def content(dataset: Any, task: HomographyTask) -> Iterator[npt.ArrayLike]:
    """Return what values depend on besides the encoder: images and homographies."""
    for row in np.unique(task.rows).tolist():
        yield fetch_rgb(dataset, row)
    for rows in task.rows.tolist():
        yield dataset.homography(rows)


def describe(task: HomographyTask, features: Sampling) -> list[str]:
    """Lines of the report."""
    drawn = describe_count(len(task), task.total, "pair of images", "pairs of images")
    grid = f"every {task.step} pixels" if features == "pixels" else "the centers of cells"
    return [
        f"{drawn}, the first of each scene with another one, resized to a shorter side of {_SIDE} "
        f"pixels; matches are mutual nearest neighbours by cosine among grid points: {grid}",
        "MMA: share of a pair's matches whose error is within a number of pixels of the original images, mean over "
        "pairs; a pair without matches counts as 0",
        f"homography: by OpenCV's RANSAC (threshold {_THRESHOLD:g} px, at most {_ITERATIONS:,} iterations, "
        f"confidence {_CONFIDENCE:g}); accuracy: share of pairs whose mean error of the four "
        "corners is within a number of pixels of the resized images; AUC: area under its cumulative curve",
    ]


def match_planes(
    dataset: Any, encode: Encode, task: HomographyTask, features: Sampling
) -> Iterator[tuple[PlaneMatches, tuple[npt.NDArray[Any], npt.NDArray[Any]]]]:
    """Match the images of each pair; maps are those of the resized images.

    Parameters
    ----------
    dataset : Dataset
        Photographs with homographies.
    encode : callable
        Computes the features of an image.
    task : HomographyTask
        From :func:`choose`.
    features : {"pixels", "grid"}
        As `sampling` of :func:`setsup.evaluation.feature_points.grid_features`.

    Yields
    ------
    PlaneMatches, and (rows, columns, D) maps of both images

    """
    known: tuple[int, Any] = -1, None
    for row1, row2 in task.rows.tolist():
        if known[0] != row1:
            known = row1, _encoded(dataset, row1, encode, features, task.step)
        map1, grid1, to_small1, size1 = known[1]
        map2, grid2, to_small2, _ = _encoded(dataset, row2, encode, features, task.step)
        pairs = mutual_neighbours(grid1.directions, grid2.directions)
        small1, small2 = grid1.points[pairs[:, 0]], grid2.points[pairs[:, 1]]
        truth = dataset.homography([row1, row2])
        small = planar.compose(np.linalg.inv(to_small1), truth, to_small2)
        points1, points2 = (
            planar.carried(points, np.linalg.inv(matrix))
            for points, matrix in ((small1, to_small1), (small2, to_small2))
        )
        apart = np.linalg.norm(planar.carried(points1, truth) - points2, axis=1)
        estimated = estimate_homography(
            small1, small2, threshold=_THRESHOLD, iterations=_ITERATIONS, confidence=_CONFIDENCE
        )
        corner = corner_error(estimated, small, size1)
        yield PlaneMatches(points1, points2, np.where(np.isnan(apart), np.inf, apart), corner), (map1, map2)


def measure(
    dataset: Dataset,
    encode: Encode,
    task: HomographyTask,
    features: Sampling = "pixels",
    on_part: Callable[[], Any] | None = None,
) -> list[Measured]:
    """Measure matching accuracy and estimated homographies of features.

    Parameters
    ----------
    dataset : Dataset
        Photographs with homographies.
    encode : callable
        Computes the features of an image.
    task : HomographyTask
        From :func:`choose`.
    features : {"pixels", "grid"}
        Match every ``task.step``-th pixel, at which maps are interpolated, or the cells of the maps.
    on_part : callable, optional
        Called after each pair.

    Returns
    -------
    list of Measured
        As :func:`score` returns them.

    Raises
    ------
    DataError
        When a feature is not finite.
    LibraryError
        When OpenCV is not installed.

    """
    found = []
    for one, _ in match_planes(dataset, encode, task, features):
        found.append((one.errors, one.corner))
        if on_part is not None:
            on_part()
    return score([errors for errors, _ in found], [corner for _, corner in found], task.groups)


def score(errors: Sequence[Reals], corners: Sequence[float], groups: Sequence[str] = ()) -> list[Measured]:
    """Compute MMA [1]_, and accuracy and AUC of homographies [2]_, of all pairs and of each group.

    Parameters
    ----------
    errors : sequence of (m,) float
        Errors of the matches of each pair, pixels of the images as they are fetched.
    corners : sequence of float
        Corner error of each pair, pixels of the resized images.
    groups : sequence of str, optional
        Group of each pair.

    Returns
    -------
    list of Measured
        Values ``"MMA: 1 px"`` to ``"MMA: 10 px"``, ``"homography accuracy: 1 px"`` and ``"homography AUC: 1 px"``, 3
        and 5 px, and ``"matches: per pair"``, with the number of pairs.

    Examples
    --------
    >>> found = score([np.array([0.5, 2.0]), np.array([])], [0.8, np.inf])
    >>> [(one.value, one.number) for one in found[:2]]
    [('MMA: 1 px', 0.25), ('MMA: 2 px', 0.5)]

    """
    corner_errors, measured = np.asarray(corners, np.float64), []
    for group in (ALL, *sorted(set(groups))):
        inside = [number for number in range(len(errors)) if group == ALL or groups[number] == group]
        accuracy = matching_accuracy([errors[number] for number in inside], _MATCHES)
        values = {f"MMA: {limit} px": share for limit, share in zip(_MATCHES, accuracy.tolist(), strict=True)}
        for limit in _CORNERS:
            values[f"homography accuracy: {limit:g} px"] = float((corner_errors[inside] <= limit).mean())
        for limit, area in zip(_CORNERS, error_auc(corner_errors[inside], _CORNERS).tolist(), strict=True):
            values[f"homography AUC: {limit:g} px"] = area
        values["matches: per pair"] = float(np.mean([len(errors[number]) for number in inside]))
        measured += [Measured(value, group, number, len(inside)) for value, number in values.items()]
    return measured


def main_value(measured: Sequence[Measured]) -> str:
    """Name of the value that tables show by groups."""
    return "MMA: 3 px"


def examples(dataset: Dataset, encode: Encode, task: HomographyTask, features: Sampling, count: int) -> list[Example]:
    """Pairs for a sheet, evenly spread over the list; right: within 3 px."""
    numbers = spread_numbers(len(task), count)
    chosen = HomographyTask(task.rows[numbers], [], len(numbers), task.step)
    shown = []
    for (row1, row2), (one, maps) in zip(
        chosen.rows.tolist(), match_planes(dataset, encode, chosen, features), strict=True
    ):
        right = one.errors <= _RIGHT
        name = dataset.factors.values("scene", [row1])[0]
        views = dataset.factors.values("view", [row1, row2]).tolist()
        share = float(right.mean()) if len(right) else 0.0
        caption = (
            f"{name}, images {views[0]} and {views[1]}: {len(right):,} matches, {share:.0%} within {_RIGHT:g} px\n"
            f"corner error {one.corner:.1f} px of the image resized to {_SIDE} px"
        )
        shown.append(
            Example(
                (fetch_rgb(dataset, row1), fetch_rgb(dataset, row2)), maps, one.points1, one.points2, right, caption
            )
        )
    return shown


def _encoded(
    dataset: Any, row: int, encode: Encode, features: Sampling, step: int
) -> tuple[npt.NDArray[Any], FeaturePoints, Reals, tuple[int, int]]:
    """Map and grid of the resized image of a row, the matrix from pixels of the row to its pixels, and its size."""
    image = fetch_rgb(dataset, row)
    height, width = image.shape[:2]
    scale = _SIDE / min(height, width)
    size = round(height * scale), round(width * scale)
    features_map = np.asarray(encode(_resized(image, size)))
    grid = grid_features(features_map, size, features, step)
    return features_map, grid, planar.resize(height, width, *size), size


def _resized(image: npt.NDArray[np.uint8], size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.fromarray(image).resize((size[1], size[0]), Image.Resampling.BICUBIC))
