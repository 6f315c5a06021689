"""Two views of one image, and for each pixel of the first a pixel of the second: the pairs of single-pixel contrast.

The first view is the image warped about a random point, the second is cut out near that point. A pixel of the first
is *positive* where its partner shows the same place; any other has a random partner. The distribution is that of the
published generator of planar pairs [1]_.

Convention
----------
Pixels are (x, y), x to the right and y down, with centres at integers, as in :mod:`setsup.correspondence.planar`.
Pixel (x, y) of a view of h × w pixels has the flat index y · w + x. With c the pixel (⌊w/2⌋, ⌊h/2⌋) of both views,
(x, y) the centre drawn in the image, and (dx, dy) the shift:

- q of the image is B · (q − (x, y)) + c of view 1, and q − (x, y) − (dx, dy) + c of view 2;
- so p of view 1 is B⁻¹ · (p − c) + c − (dx, dy) of view 2. Its partner is the pixel nearest to that.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), first experiment, and its published code.

"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from setsup import random
from setsup.arrays import Bools, Reals, Rows, Words
from setsup.checks import check_array, check_image_size, check_integer, check_number
from setsup.correspondence import planar
from setsup.errors import DataError, SetsupError

__all__ = ["AffinePairs", "affine_pairs"]

Size = tuple[int, int]

_NOISE = 0.1  # standard deviation of each entry of the warp about a rotation
_ANGLE, _ENTRIES, _CENTRE, _SHIFT, _PIXELS = 0, slice(1, 5), slice(5, 7), slice(7, 9), 9  # parameters of an image's key
_MOST_SHIFT = 1 << 31
_CHUNK = 1 << 14  # pixels at a time, so that what lies between two operations stays in the cache
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class AffinePairs:
    """The result of :func:`affine_pairs` for n images.

    Attributes
    ----------
    source : (height, width)
        Pixels to which images are resized before anything else; those of the image where it is large enough.
    warp : (n, 2, 2) float64
        B, from the source to view 1.
    centre : (n, 2) int64
        (x, y), pixels of the source.
    shift : (n, 2) int64
        (dx, dy), pixels.
    to_view_1, to_view_2 : (n, 3, 3) float64
        From pixels of the source, as resized, to those of the views.
    partner : (n, h·w) int64
        For each pixel of view 1 the flat index of a pixel of view 2.
    positive : (n, h·w) bool
        Whether the partner shows the same place.
    valid : (n, h·w) bool
        False where a pixel of view 1 lies outside the source. Every positive pixel is valid.

    """

    source: Size
    warp: Reals
    centre: Rows
    shift: Rows
    to_view_1: Reals
    to_view_2: Reals
    partner: Rows
    positive: Bools
    valid: Bools


def affine_pairs(keys: Words, image: Size, size: Size, *, shift: int | None = None, keep: float = 0.125) -> AffinePairs:
    """Draw two views of each image, and partners of the pixels of the first.

    1. With s the largest shift, an image that is not both wider than w + 2s and higher than h + 2s is first resized to
       max(width, w + 2s + 1) × max(height, h + 2s + 1) pixels.
    2. The centre is a whole pixel, uniform where every shifted crop of h × w about it lies in the image. The shift
       is uniform over the integers −s … s, in x and in y.
    3. B = R(α) + E, with R(α) a rotation, α uniform in 0 … 2π, and four independent entries of E, normal with standard
       deviation 0.1. All scaling and shearing comes from E.
    4. A pixel is positive with probability ``keep`` if the pixel nearest to its place in view 2 is one of 1 … w − 1
       and 1 … h − 1: *strictly inside*, as published. Row 0 and column 0 are partners by chance only.
    5. Any other pixel has a partner that is uniform over all of view 2, and may hit the true one.

    Parameters
    ----------
    keys : (n,) uint64
        One per image; what is drawn for it depends on its key and the other arguments only.
    image : (height, width)
        Pixels of the images.
    size : (h, w)
        Pixels of both views.
    shift : int, optional
        s, pixels; ⌊h/4⌋ by default.
    keep : float
        0 … 1, a multiple of 2⁻³² after rounding. Published are 0.125, and 0.25 for Coloured MNIST, where about 0.18 of
        all pixels are then positive.

    Returns
    -------
    AffinePairs

    Raises
    ------
    SetsupError
        When a size is not two integers of at least 1, the shift none from 0 on, or ``keep`` not in 0 … 1.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = affine_pairs(np.arange(4, dtype=np.uint64), image=(32, 32), size=(32, 32))
    >>> pairs.source, pairs.partner.shape
    ((49, 49), (4, 1024))

    """
    check_array(keys, "keys", DataError)
    _check(image, size, shift, keep)
    most = size[0] // 4 if shift is None else shift
    if np.ndim(keys) != 1 or np.asarray(keys).dtype.kind not in "iu":
        raise DataError(
            "keys must be a 1-D array of unsigned integers, such as setsup.random.fold returns, not "
            f"{np.asarray(keys).dtype} of shape {np.shape(keys)}"
        )
    words = random.fold(np.asarray(keys, dtype=np.uint64)[:, None], np.arange(_PIXELS + 1, dtype=np.uint64))
    source = _source(image, size, most)
    middle = np.array([size[1] // 2, size[0] // 2])
    room = np.array([source[1] - size[1], source[0] - size[0]]) - 2 * most + 1
    centre = most + middle + random.randint_below(words[:, _CENTRE], room)
    moved = random.randint_below(words[:, _SHIFT], 2 * most + 1) - most
    warp = _warps(words)
    (x, y), (cx, cy), (dx, dy) = centre.T, middle, moved.T
    maps = _maps(words[:, _PIXELS], warp, centre, moved, source, size, keep)
    to_view_1 = planar.compose(planar.crop(x, y), _linear(warp), planar.translate(cx, cy))
    to_view_2 = planar.crop(x + dx - cx, y + dy - cy)
    return AffinePairs(source, warp, centre, moved, to_view_1, to_view_2, *maps)


def _check(image: Any, size: Any, shift: Any, keep: Any) -> None:
    check_image_size(image, "image", SetsupError)
    check_image_size(size, "size", SetsupError)
    if shift is not None:
        check_integer(shift, "shift", SetsupError, 0, _MOST_SHIFT - 1)
    check_number(keep, "keep", SetsupError, 0, 1)


def _source(image: Size, size: Size, shift: int) -> Size:
    """Height and width of images that have room for both views."""
    room = (size[0] + 2 * shift, size[1] + 2 * shift)
    if image[0] > room[0] and image[1] > room[1]:
        return image
    return max(image[0], room[0] + 1), max(image[1], room[1] + 1)


def _warps(words: Words) -> Reals:
    """Rotations with noise on every entry, (n, 2, 2)."""
    angle = 2 * np.pi * random.uniform(words[:, _ANGLE])
    cos, sin = np.cos(angle), np.sin(angle)
    turns = np.stack([cos, -sin, sin, cos], axis=-1)
    # the middles of 2⁵² steps: with one bit more the last would round to 1, whose quantile is infinite
    noise = ndtri(((words[:, _ENTRIES] >> np.uint64(12)) + 0.5) * 2.0**-52)
    return np.asarray(turns + _NOISE * noise).reshape(-1, 2, 2)


def _linear(warp: Reals) -> Reals:
    """Matrices (n, 3, 3) of linear maps (n, 2, 2)."""
    matrices = np.zeros((len(warp), 3, 3))
    matrices[:, :2, :2], matrices[:, 2, 2] = warp, 1
    return matrices


def _maps(
    keys: Words, warp: Reals, centre: Rows, shift: Rows, source: Size, size: Size, keep: float
) -> tuple[Rows, Bools, Bools]:
    """Partner, positive and valid, each (n, h·w)."""
    (height, width), pixels = size, size[0] * size[1]
    spread = random.spread(np.arange(pixels, dtype=np.uint64))
    partner = np.empty((len(keys), pixels), dtype=np.int64)
    positive, valid = np.empty(partner.shape, dtype=bool), np.empty(partner.shape, dtype=bool)
    step = max(1, _CHUNK // pixels)
    for start in range(0, len(keys), step):
        some = slice(start, start + step)
        x, y = _offsets(warp[some], size)
        (left, top), (dx, dy) = centre[some].T[..., None, None], shift[some].T[..., None, None]
        on_source = _from(x, -left - 0.5, source[1]) & _from(y, -top - 0.5, source[0])
        column, row = np.rint(x, out=x), np.rint(y, out=y)
        column += width // 2 - dx
        row += height // 2 - dy
        strictly = (column > 0) & (column < width) & (row > 0) & (row < height)
        words = random.mix(keys[some, None], spread)  # the upper half decides, the lower half picks
        valid[some] = on_source.reshape(-1, pixels)
        positive[some] = strictly.reshape(-1, pixels) & (words >> _HALF < round(keep * 2**32))
        same = (row * width + column).reshape(-1, pixels)
        partner[some] = (words & _LOWER) * np.uint64(pixels) >> _HALF
        np.copyto(partner[some], same, where=positive[some], casting="unsafe")
    return partner, positive, valid


def _offsets(warp: Reals, size: Size) -> tuple[Reals, Reals]:
    """Where pixels of view 1 come from, relative to the centre: B⁻¹ · (p − c) as x and y, each (n, h, w)."""
    across, down = np.arange(size[1]) - size[1] // 2, (np.arange(size[0]) - size[0] // 2)[:, None]
    (a, b), (c, d) = warp.transpose(1, 2, 0)[..., None, None]
    scale = a * d - b * c
    return (d / scale) * across - (b / scale) * down, (a / scale) * down - (c / scale) * across


def _from(values: Reals, low: Reals, length: int) -> Bools:
    """Whether low ≤ values < low + length."""
    return np.asarray((values >= low) & (values < low + length))
