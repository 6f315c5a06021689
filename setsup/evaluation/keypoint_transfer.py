"""Transfer of keypoints from one image to another by the most similar feature.

References
----------
.. [1] L. Tang, M. Jia, Q. Wang, C. P. Phoo, B. Hariharan, "Emergent correspondence from image diffusion", NeurIPS 2023
   (arXiv 2306.03881), section 5.1, and its published ``eval_spair.py``: features interpolated to all pixels.
.. [2] J. Zhang et al., "A tale of two features: Stable Diffusion complements DINO for zero-shot semantic
   correspondence", NeurIPS 2023 (arXiv 2305.15347), and its published ``pck_spair_pascal.py``: patches.

"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.checks import check_image_size
from setsup.errors import DataError
from setsup.evaluation.feature_points import Sampling, axis_cells, cell_features, directions, interpolate

__all__ = ["TransferredKeypoints", "transfer_keypoints"]

_CELLS = 1 << 21  # channels of features converted to float64 at a time
_EQUAL = 1e-9  # difference of cosines that rounding may cause
_BLOCK = 1 << 18  # cosines of pixels at a time: few enough to stay in the cache of a core
_NOTHING = 1e-24  # squared length, relative to the largest one, below which a feature counts as zero


class TransferredKeypoints(NamedTuple):
    """Where :func:`transfer_keypoints` finds keypoints.

    Attributes
    ----------
    points : (n, 2) float64
        Positions (x, y) in pixels of the target.
    cosines : (n,) float64
        Cosines of the features at these positions with those at the keypoints of the source.

    """

    points: Reals
    cosines: Reals


def transfer_keypoints(
    source: npt.NDArray[Any],
    target: npt.NDArray[Any],
    points: npt.ArrayLike,
    source_size: Sequence[int],
    target_size: Sequence[int],
    *,
    features: Sampling = "pixels",
) -> TransferredKeypoints:
    """Find keypoints of a source image in a target image, by the largest cosine of features.

    The cells of a map divide its image evenly; there may be any number of them, as for patches, pixels, or the pixels
    of a resized image. With ``pixels`` [1]_, maps are interpolated bilinearly to the keypoints and to all pixels of the
    target. With ``grid`` [2]_, a keypoint has the feature of its cell, and is found at the centre of a cell. Of equal
    cosines, the first one in the order of rows counts; a feature of zeros has the cosine 0.

    Parameters
    ----------
    source, target : (rows, columns, D) float
        Maps of both images.
    points : (n, 2) float
        Keypoints (x, y), pixels of the source; those outside are moved to the nearest pixel of the border.
    source_size, target_size : (height, width)
        Of the images, pixels.
    features : {"pixels", "grid"}
        How maps are sampled, as above.

    Returns
    -------
    TransferredKeypoints

    Raises
    ------
    DataError
        When shapes do not fit, or a feature or keypoint is not finite.

    Notes
    -----
    Scalar products with interpolated features equal interpolated scalar products, so features are never interpolated to
    all pixels: for 375 × 500 pixels with 768 channels, they would take 1.2 GB in float64. Sums are float64, in blocks
    of at most 16 MiB.

    Examples
    --------
    >>> maps = np.random.default_rng(0).normal(size=(6, 8, 16))
    >>> found = transfer_keypoints(maps, np.roll(maps, 1, axis=1), [[2, 3], [5, 0]], (6, 8), (6, 8))
    >>> found.points.tolist(), found.cosines.round(6).tolist()
    ([[3.0, 3.0], [6.0, 0.0]], [1.0, 1.0])

    """
    first, second = _map(source, "source"), _map(target, "target")
    if first.shape[2] != second.shape[2]:
        raise DataError(f"features of the source have {first.shape[2]} numbers, of the target {second.shape[2]}")
    places = np.asarray(points, np.float64).reshape(-1, 2)
    if not np.isfinite(places).all():
        raise DataError("keypoints must be finite; leave out those that an image does not have")
    size1 = check_image_size(source_size, "source_size", DataError)
    size2 = check_image_size(target_size, "target_size", DataError)
    if not len(places):
        return TransferredKeypoints(np.zeros((0, 2)), np.zeros(0))
    queries = directions(
        interpolate(first, places, size1) if features == "pixels" else cell_features(first, places, size1)
    )
    if features == "grid":
        rows, columns = second.shape[:2]
        best, cosines = _best(_cell_cosines(second, queries), len(queries), columns)
        centres = (2 * best + 1) * (np.array(size2[::-1]) / [2 * columns, 2 * rows]) - 0.5
        return TransferredKeypoints(centres, cosines)
    whole = second.shape[:2] == size2
    blocks = _cell_cosines(second, queries) if whole else _pixel_cosines(second, queries, size2)
    best, cosines = _best(blocks, len(queries), size2[1])
    return TransferredKeypoints(best.astype(np.float64), cosines)


def _map(features: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    array = np.asarray(features)
    if array.ndim != 3 or not array.size or array.dtype.kind != "f":
        raise DataError(
            f"the map of the {name} must be a float array (rows, columns, D), not {array.dtype} of shape {array.shape}"
        )
    if not np.isfinite(array).all():
        raise DataError(f"features of the {name} are not finite; check the network that computed them")
    return array


def _rows(features: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Starts and stops of blocks of rows of a map."""
    step = max(1, _CELLS // (features.shape[1] * features.shape[2]))
    for start in range(0, len(features), step):
        yield start, min(start + step, len(features))


def _products(part: Reals, queries: Reals) -> Reals:
    """Products (rows, columns, n) of features (rows, columns, D) with directions (n, D), in one matrix product."""
    return np.asarray((part.reshape(-1, part.shape[2]) @ queries.T).reshape(*part.shape[:2], len(queries)))


def _cosines(products: Reals, squares: Reals, most: float) -> Reals:
    """Cosines from products (…, n) with directions and squared lengths (…)."""
    return np.asarray(
        products / np.sqrt(np.maximum(squares, max(most * _NOTHING, np.finfo(np.float64).tiny)))[..., None]
    )


def _cell_cosines(features: npt.NDArray[Any], queries: Reals) -> Iterator[Reals]:
    """Cosines (rows, columns, n) of the cells of a map with directions (n, D), in blocks of rows."""
    for start, stop in _rows(features):
        part = features[start:stop].astype(np.float64)
        squares = np.einsum("ijd,ijd->ij", part, part)
        yield _cosines(_products(part, queries), squares, float(squares.max()))


def _pixel_cosines(features: npt.NDArray[Any], queries: Reals, size: tuple[int, int]) -> Iterator[Reals]:
    """Cosines (rows, width, n) of a map interpolated to pixels with directions (n, D), in blocks of rows."""
    rows, columns = features.shape[:2]
    products, squares = np.empty((rows, columns, len(queries))), np.empty((5, rows, columns))
    after = np.minimum(np.arange(columns) + 1, columns - 1)
    for start, stop in _rows(features):
        part = features[start:stop].astype(np.float64)
        below = features[np.minimum(np.arange(start, stop) + 1, rows - 1)].astype(np.float64)
        products[start:stop] = _products(part, queries)
        # of a cell with itself, the next one in its row, below, across, and of the next one with that below
        pairs = (part, part), (part, part[:, after]), (part, below), (part, below[:, after]), (part[:, after], below)
        for number, (one, two) in enumerate(pairs):
            squares[number, start:stop] = np.einsum("ijd,ijd->ij", one, two)
    most = float(squares[0].max())
    left, right, across = axis_cells(np.arange(size[1], dtype=np.float64), columns, size[1])
    upper, lower, down = axis_cells(np.arange(size[0], dtype=np.float64), rows, size[0])
    step = max(1, _BLOCK // (size[1] * len(queries)))
    for start in range(0, size[0], step):
        top, bottom, share = upper[start : start + step], lower[start : start + step], down[start : start + step]
        weight = share[:, None, None]
        mixed = products[top] * (1 - weight) + products[bottom] * weight
        mixed = mixed[:, left] * (1 - across[:, None]) + mixed[:, right] * across[:, None]
        share = share[:, None]
        own, beside, under, cross, counter = squares[:, top]
        # squared lengths of the cells mixed from two rows, and their products with the next one in the row
        lengths = (1 - share) ** 2 * own + share**2 * squares[0, bottom] + 2 * share * (1 - share) * under
        nexts = (1 - share) ** 2 * beside + share**2 * squares[1, bottom] + share * (1 - share) * (cross + counter)
        whole = (1 - across) ** 2 * lengths[:, left] + across**2 * lengths[:, right]
        yield _cosines(mixed, whole + 2 * across * (1 - across) * nexts[:, left], most)


def _best(blocks: Iterator[Reals], count: int, width: int) -> tuple[Rows, Reals]:
    """Columns and rows (n, 2) of the largest cosines, the first of equal ones, and these cosines (n,)."""
    best, cosines = np.zeros((count, 2), np.int64), np.full(count, -np.inf)
    largest, above = cosines.copy(), 0
    for block in blocks:
        flat = block.reshape(-1, count)
        largest = np.maximum(largest, flat.max(axis=0))
        places = (flat >= largest - _EQUAL).argmax(axis=0)
        better = cosines < largest - _EQUAL  # then the block has the largest one
        row, column = np.divmod(places, width)
        best[better] = np.stack([column, row + above], axis=1)[better]
        cosines[better] = flat[places, np.arange(count)][better]
        above += len(block)
    return best, cosines
