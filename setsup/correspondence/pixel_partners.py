"""Partners of the pixels of a view, as losses take them: for each pixel a place in the other view, true or random."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Bools, Rows
from setsup.checks import check_arguments, check_image_size, check_number
from setsup.correspondence import planar
from setsup.correspondence.pixel_pairs import PixelPairs, check_key, flat_pixels, one_per_pixel
from setsup.errors import DataError, SetsupError

__all__ = ["Partners", "partners"]

Size = Sequence[int]

_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
_SHARE = 1  # what a key is folded with


@dataclass(frozen=True, slots=True, eq=False)
class Partners:
    """Pixel pairs for losses: for each pixel of view 1 a pixel of view 2; (x, y) has the flat index y · width + x.

    Attributes
    ----------
    partner : (h·w,) int64
        Flat index of a pixel of view 2.
    positive : (h·w,) bool
        Whether the partner shows the same point; otherwise it is random.
    valid : (h·w,) bool
        Whether the pixel counts at all. Every positive pixel is valid.

    """

    partner: Rows
    positive: Bools
    valid: Bools

    @classmethod
    def stack(cls, pairs: Iterable["Partners"]) -> "Partners":
        """Partners of several pairs of views, (pairs, h·w) each."""
        return cls(*map(np.stack, zip(*((own.partner, own.positive, own.valid) for own in pairs), strict=True)))


def partners(
    pairs: PixelPairs,
    size1: Size,
    size2: Size,
    key: int | np.uint64,
    *,
    shown: npt.ArrayLike | None = None,
    shown2: npt.ArrayLike | None = None,
    share: float | None = None,
) -> Partners:
    """Give every pixel of view 1 a partner: that of a visible pair, or a random one.

    A pair counts for the pixels that are nearest to its two points, as :func:`numpy.rint` has it: half-way places go
    to the even pixel, in x and in y. Of several pairs on one pixel of view 1 the one nearest to its centre counts, of
    equally near ones the first. Every other pixel has a partner that is uniform over all of view 2, and may hit the
    true one: the distribution of the published generator of planar pairs (:func:`setsup.correspondence.affine_pairs`).

    Parameters
    ----------
    pairs : PixelPairs
        Only visible ones count, and only those within both images.
    size1, size2 : (height, width)
        Of the views.
    key : int or uint64
        From :func:`setsup.random.fold`; the random partner of a pixel depends on it and the pixel's number only.
    shown : (h, w) or (h·w,) bool, optional
        Pixels of view 1 that show anything of the image it was made of; all by default. Others are not valid.
    shown2 : (h, w) or (h·w,) bool, optional
        The same of view 2: random partners are drawn from these alone, or from all where there are none.
    share : float, optional
        0 … 1, for sparse pairs, which say nothing of other pixels: only pixels with a visible pair are valid, and this
        share of them is positive, ⌈share · n⌉ of n, drawn by the key. The others have random partners. With 1, there
        are none.

    Returns
    -------
    Partners

    Examples
    --------
    >>> pairs = PixelPairs([[1, 0], [2, 1]], [[0.4, 1], [0, 0]], [[0, 0, 1], [1, 0, 1]], [3, 3], [0, 1])
    >>> drawn = partners(pairs, (2, 3), (2, 2), key=7)
    >>> drawn.positive.tolist(), drawn.partner[1].item()
    ([False, True, False, False, False, False], 2)

    """
    check_arguments(partners, locals(), DataError)
    height1, width1 = check_image_size(size1, "size1", SetsupError)
    height2, width2 = check_image_size(size2, "size2", SetsupError)
    pixels, others = height1 * width1, height2 * width2
    valid = _shown(shown, "shown", height1, width1)
    shown_pixels = np.flatnonzero(_shown(shown2, "shown2", height2, width2))
    if not len(shown_pixels):
        shown_pixels = np.arange(others)
    words = random.mix(check_key(key), random.spread(np.arange(pixels, dtype=np.uint64)))
    partner = shown_pixels[((words & _LOWER) * np.uint64(len(shown_pixels)) >> _HALF).astype(np.int64)]
    both = planar.inside(pairs.points1, height1, width1) & planar.inside(pairs.points2, height2, width2)
    rows = np.flatnonzero(pairs.visible & both)
    rows = rows[one_per_pixel(pairs.points1[rows], width1)]
    flat = flat_pixels(pairs.points1[rows], width1)
    if share is not None:
        known = np.zeros(pixels, bool)
        known[flat] = True
        valid &= known
        chosen = _share(share, len(rows), key)
        rows, flat = rows[chosen], flat[chosen]
    partner[flat] = flat_pixels(pairs.points2[rows], width2)
    positive = np.zeros(pixels, bool)
    positive[flat] = True
    positive &= valid
    return Partners(partner, positive, valid)


def _share(share: float, count: int, key: int | np.uint64) -> Rows:
    """So many of `count`, rounded up; drawn by a key."""
    most = math.ceil(round(count * check_number(share, "share", SetsupError, 0, 1), 6))
    return random.permute(random.fold(int(check_key(key)), _SHARE), count, np.arange(most))


def _shown(shown: npt.ArrayLike | None, name: str, height: int, width: int) -> Bools:
    mask = np.ones(height * width, bool) if shown is None else np.array(shown, dtype=bool)
    if mask.shape not in {(height * width,), (height, width)}:
        raise SetsupError(f"{name} must be a boolean array of shape ({height}, {width}), not {mask.shape}")
    return mask.reshape(-1)
