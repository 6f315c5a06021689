"""Partners of the pixels of many pairs of views at once, in the two forms that learners take.

Single-pixel contrast wants one pixel of view 2 for every pixel of view 1 ([1]_): :func:`view_pairs`. Learners of dense
descriptors want so many matches, and for each of them places that do not match ([2]_): :func:`descriptor_pairs`.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), section on losses and second experiment.
.. [2] P. Florence, L. Manuelli, R. Tedrake, "Dense Object Nets: learning dense visual object descriptors by and for
   robotic manipulation", CoRL 2018 (arXiv 1806.08756), section 3.

"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Rows, Words
from setsup.checks import check_arguments, check_image_size, check_integer
from setsup.correspondence.matching import Match, Window, match_share, matched, view_size
from setsup.correspondence.pixel_pairs import PixelPairs, check_key, flat_pixels, one_per_pixel
from setsup.correspondence.pixel_partners import Partners, partners
from setsup.correspondence.planar import inside
from setsup.errors import DataError, SetsupError
from setsup.samplers.overlap.forms import Form
from setsup.samplers.overlap.set_pairs import pair_positions

__all__ = ["DescriptorPairs", "descriptor_pairs", "view_pairs"]


_PIXELS, _PARTNERS = 0, 1  # what a pair's key is folded with
_MATCHES, _SAME, _OTHER, _BACKGROUND = range(4)


def view_pairs(
    dataset: Any,
    rows: npt.ArrayLike,
    keys: Words,
    *,
    fraction: float = 0.125,
    windows: npt.ArrayLike | None = None,
    size: Sequence[int] | None = None,
    match: Match = matched,
    form: Form = "chain",
) -> Partners:
    """Partners of the pixels of view 1 in view 2, for n pairs of rows, or for the pairs of n sets.

    A keyed share of the pixels of view 1 is traced; those that view 2 shows as well are positive, and have the pixel
    nearest to their place there as partner. Every other pixel has a partner that is uniform over view 2.

    With the tracks of a COLMAP model, only pixels at points that both views observe are valid. The share of these is
    positive, and the others have random partners: pixels about which the model is silent are never negative. So it is
    with the keypoints of a dataset.

    Parameters
    ----------
    dataset : Dataset
        Whose rows they are: a rendered one; a capture or another dataset with depth, poses and intrinsics, or with a
        COLMAP model; or one with ``pixel_pairs(rows, pixels)`` or ``keypoint_pairs(rows)``.
    rows : (n, 2) or (n, size) int
        View 1 and view 2, from a :class:`setsup.correspondence.PixelPairSampler` or a :class:`setsup.OverlapSampler`;
        or sets of views of the latter, without negatives.
    keys : (n,) uint64
        One per pair or set, from :func:`setsup.random.fold`: what is drawn for it depends on its key alone.
    fraction : float
        0 … 1: share of the pixels that is traced; 1/8 as published.
    windows : (pairs, 2, 2) int, optional
        (left, top) of a window in view 1 and one in view 2, which lie in the views: partners are those of the windows.
    size : (height, width), optional
        Of the windows; with ``windows`` only.
    match : callable
        What finds pairs; by default in the way that the dataset has them. Where its pairs are ``sparse``, only their
        pixels are valid.
    form : {"chain", "star", "clique"}
        The form of sets of more than two views; :func:`setsup.correspondence.pair_positions` gives their pairs.

    Returns
    -------
    Partners
        With arrays (pairs, h·w), set after set; ``valid`` is all true except with tracks, for an image has no pixel
        outside itself.

    Raises
    ------
    SetsupError
        When two rows do not share a scene, a window does not lie in its view, or shapes do not fit.

    """
    check_arguments(view_pairs, locals())
    index, words = _checked(rows, keys, form)
    corners = _checked_windows(windows, size, len(index))
    drawn = []
    for pair, (row1, row2) in enumerate(index.tolist()):
        wholes = [Window(0, 0, *view_size(dataset, row)) for row in (row1, row2)]
        view1, view2 = wholes
        if corners is not None and size is not None:
            view1, view2 = (
                _window(whole, left, top, size)
                for whole, (left, top) in zip(wholes, corners[pair].tolist(), strict=True)
            )
        sizes = [(window.height, window.width) for window in (view1, view2)]
        pixel_key, partner_key = (int(random.fold(words[pair], word)) for word in (_PIXELS, _PARTNERS))
        pairs, share = match_share(match, dataset, (row1, row2), (view1, view2), fraction, pixel_key)
        drawn.append(partners(pairs, sizes[0], sizes[1], partner_key, share=share))
    return Partners.stack(drawn)


def _window(whole: Window, left: int, top: int, size: Sequence[int]) -> Window:
    height, width = size
    if not (0 <= left <= whole.width - width and 0 <= top <= whole.height - height):
        raise SetsupError(
            f"a window of {height} × {width} pixels at ({left}, {top}) lies outside the view of {whole.height} × "
            f"{whole.width} pixels"
        )
    return Window(left, top, height, width)


def _checked(rows: npt.ArrayLike, keys: npt.ArrayLike, form: Form) -> tuple[Rows, list[int]]:
    """Rows of pairs, (pairs, 2), and a key for each."""
    sets, words = np.asarray(rows), np.asarray(keys)
    if sets.ndim != 2 or sets.shape[1] < 2 or not len(sets) or sets.dtype.kind not in "iu":
        raise SetsupError(
            f"rows of view pairs must be an integer array of shape (n, 2), or (n, size) for sets of views, not "
            f"{sets.dtype} of shape {sets.shape}"
        )
    if words.shape != (len(sets),):
        raise SetsupError(f"keys must have shape ({len(sets)},), one key for each view pair or set, not {words.shape}")
    positions = pair_positions(sets.shape[1], form)
    checked = [int(check_key(word)) for word in words]
    if len(positions) > 1:
        checked = [int(random.fold(word, number)) for word in checked for number in range(len(positions))]
    return sets[:, positions].reshape(-1, 2), checked


def _checked_windows(windows: npt.ArrayLike | None, size: Sequence[int] | None, pairs: int) -> Rows | None:
    if (windows is None) != (size is None):
        raise SetsupError("windows= and size= (the size of the windows) must be passed together")
    if windows is None:
        return None
    check_image_size(size, "size", SetsupError)
    corners = np.asarray(windows)
    if corners.shape != (pairs, 2, 2) or corners.dtype.kind not in "iu":
        raise SetsupError(
            f"windows of {pairs} view pairs must be an integer array of shape ({pairs}, 2, 2), not {corners.dtype} of "
            f"shape {corners.shape}"
        )
    return corners


@dataclass(frozen=True, slots=True, eq=False)
class DescriptorPairs:
    """Matches and non-matches of two views; pixel (x, y) has the flat index y · width + x, and −1 stands for none.

    Attributes
    ----------
    first : (n,) int64
        Pixels of view 1 on objects that view 2 shows as well.
    match : (n,) int64
        Pixel of view 2 nearest to the same point.
    same : (n,) int64
        Another pixel of view 2 on the same object.
    other : (n,) int64
        A pixel of view 2 on another object.
    background : (n,) int64
        A pixel of view 2 on no object.

    """

    first: Rows
    match: Rows
    same: Rows
    other: Rows
    background: Rows


def descriptor_pairs(
    pairs: PixelPairs,
    instances2: npt.ArrayLike,
    size1: Sequence[int],
    count: int,
    key: int | np.uint64,
    *,
    background: Collection[int] = (),
) -> DescriptorPairs:
    """Draw matches of two views and for each three places that do not match.

    Matches are drawn without repeats from the visible pairs on objects; of several pairs on one pixel of view 1 the one
    nearest to its centre counts. Where there are fewer than ``count``, −1 stands for the rest. A non-match is uniform
    over the pixels of view 2 of its kind, the true partner left out, or −1 where there is none.

    Parameters
    ----------
    pairs : PixelPairs
        Of view 1 and view 2, as :func:`setsup.correspondence.spatial` gives them: dense ones have most to draw from.
        Only visible ones count, and only those within both images.
    instances2 : (h, w) int
        Instance image of view 2; −1 is background. What is less shows nothing, and no place is drawn there.
    size1 : (height, width)
        Of view 1.
    count : int
        n.
    key : int or uint64
        From :func:`setsup.random.fold`.
    background : collection of int
        Instances that are not objects either, such as walls and floor.

    Examples
    --------
    >>> points = [[0, 0], [1, 0], [2, 0]]
    >>> pairs = PixelPairs(points, points, np.zeros((3, 3)), [7, 7, 9], [0, 0, 0])
    >>> drawn = descriptor_pairs(pairs, [[7, 7, 9, -1]], (1, 4), 3, key=0)
    >>> order = np.argsort(drawn.first)
    >>> [getattr(drawn, name)[order].tolist() for name in ("match", "same", "background")]
    [[0, 1, 2], [1, 0, -1], [3, 3, 3]]

    """
    check_arguments(descriptor_pairs, locals(), DataError)
    check_integer(count, "the number of matches", SetsupError, 1)
    seen = np.asarray(instances2)
    if seen.ndim != 2 or seen.dtype.kind not in "iu":
        raise SetsupError(
            f"instances2 must be an integer array of shape (h, w), not {seen.dtype} of shape {seen.shape}"
        )
    seen = seen.astype(np.int64)
    ground = [-1, *background]
    on_object = pairs.visible & (pairs.instance >= 0) & ~np.isin(pairs.instance, ground)
    bounds1 = check_image_size(size1, "size1", SetsupError)
    on_object &= inside(pairs.points1, *bounds1) & inside(pairs.points2, *seen.shape)
    rows, word = np.flatnonzero(on_object), int(check_key(key))
    rows = rows[one_per_pixel(pairs.points1[rows], size1[1])]
    most = min(int(count), len(rows))
    chosen = rows[random.permute(random.fold(word, _MATCHES), len(rows), np.arange(most))]
    first, match = flat_pixels(pairs.points1[chosen], size1[1]), flat_pixels(pairs.points2[chosen], seen.shape[1])
    words = random.fold(
        random.fold(word, np.arange(_SAME, _BACKGROUND + 1, dtype=np.uint64))[:, None],
        np.arange(most, dtype=np.uint64),
    )
    own = pairs.instance[chosen].astype(np.int64)
    flat = np.where(np.isin(seen, ground), -1, seen).ravel()
    order = np.argsort(flat, kind="stable")
    start, end = np.searchsorted(flat[order], own), np.searchsorted(flat[order], own, side="right")
    ground_from, objects = np.searchsorted(flat[order], [-1, 0]).tolist()
    taken = np.empty_like(order)
    taken[order] = np.arange(len(order))
    itself = np.where(flat[match] == own, taken[match], -1)  # a place on an edge may round to a neighbour
    same = _drawn(order, words[0], start, end, itself)
    # objects are order[objects:], of which order[start:end] is the own one: what lies beyond it is moved up
    others = len(order) - objects - (end - start)
    position = objects + random.randint_below(words[1], np.maximum(others, 1))
    other = np.where(
        others > 0, order[np.minimum(position + np.where(position >= start, end - start, 0), len(order) - 1)], -1
    )
    on_ground = objects - ground_from
    behind = (
        order[ground_from + random.randint_below(words[2], on_ground)] if on_ground else np.full(most, -1, np.int64)
    )
    rest = np.full(int(count) - most, -1, np.int64)
    return DescriptorPairs(*(np.concatenate([part, rest]) for part in (first, match, same, other, behind)))


def _drawn(order: Rows, words: Words, start: Rows, end: Rows, without: Rows) -> Rows:
    """Uniform over ``order[start:end]``, one place of it left out where ``without`` is not −1."""
    left = end - start - (without >= 0)
    position = start + random.randint_below(words, np.maximum(left, 1))
    position += (without >= 0) & (position >= without)
    return np.where(left > 0, order[np.minimum(position, len(order) - 1)], -1)
