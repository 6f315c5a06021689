"""Fourth stage: boxes of one face in the frames of a shot become a track; which tracks are kept."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Integers

__all__ = ["Track", "largest", "link", "overlap"]

Boxes = npt.NDArray[np.float64]

Track = Callable[[Sequence[Boxes]], Sequence[Integers]]
"""``track(boxes)`` gets the (n, 4) boxes of every frame of a shot, and numbers each: equal numbers, one face."""


def overlap(boxes: npt.ArrayLike, others: npt.ArrayLike) -> Boxes:
    """Intersection over union of every box with every other.

    Parameters
    ----------
    boxes : (n, 4) float, px
        Left, top, right, bottom.
    others : (m, 4) float, px
        The same.

    Returns
    -------
    (n, m) float64, 0 … 1

    Examples
    --------
    >>> overlap([[0, 0, 2, 2]], [[0, 0, 2, 2], [1, 0, 3, 2], [5, 5, 6, 6]]).round(3).tolist()
    [[1.0, 0.333, 0.0]]

    """
    a = np.asarray(boxes, np.float64).reshape(-1, 1, 4)
    b = np.asarray(others, np.float64).reshape(1, -1, 4)
    sides = np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2])
    shared = np.prod(np.maximum(sides, 0), axis=-1)
    whole = np.prod(a[..., 2:] - a[..., :2], axis=-1) + np.prod(b[..., 2:] - b[..., :2], axis=-1) - shared
    return np.asarray(shared / np.where(whole > 0, whole, 1))


def link(boxes: Sequence[Boxes], least: float = 0.4, gap: int = 5) -> list[Integers]:
    """Link boxes of a shot that overlap from frame to frame.

    Each box goes to the track whose last box it overlaps most, the pair that overlaps most first; the others begin
    tracks of their own.

    Parameters
    ----------
    boxes : sequence of (n, 4) float, px
        Boxes of every frame of the shot; a frame without faces has n = 0.
    least : float
        Overlap (intersection over union) that a link needs.
    gap : int
        Frames in a row in which a track may lack a box, where the detector missed the face.

    Returns
    -------
    list of (n,) int64
        For each frame the track of each box, numbered from 0 in the order in which they begin.

    Examples
    --------
    >>> still, moving = [0, 0, 10, 10], [[50 + 2 * t, 0, 60 + 2 * t, 10] for t in range(3)]
    >>> [numbers.tolist() for numbers in link([[still, moving[0]], [moving[1]], [moving[2], still]])]
    [[0, 1], [1], [1, 0]]

    """
    last: dict[int, tuple[int, Boxes]] = {}
    count = 0
    numbered = []
    for frame, of_frame in enumerate(boxes):
        here = np.asarray(of_frame, np.float64).reshape(-1, 4)
        last = {number: (seen, box) for number, (seen, box) in last.items() if frame - seen <= gap + 1}
        numbers = np.full(len(here), -1, np.int64)
        names = list(last)
        shared = overlap(np.array([box for _, box in last.values()]), here)
        free = dict.fromkeys(names)
        for pair in np.argsort(-shared, axis=None, kind="stable"):
            row, column = np.unravel_index(pair, shared.shape)
            if shared[row, column] < least:
                break
            if names[row] in free and numbers[column] < 0:
                numbers[column] = names[row]
                del free[names[row]]
        for column in np.flatnonzero(numbers < 0):
            numbers[column] = count
            count += 1
        last.update((int(number), (frame, box)) for number, box in zip(numbers, here, strict=True))
        numbered.append(numbers)
    return numbered


def largest(group: npt.ArrayLike, tracks: npt.ArrayLike, boxes: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Mark the faces of the largest track of each group: most faces, then largest faces, then first in order.

    Parameters
    ----------
    group : (n,) integer
        What each face belongs to: the number of its shot, or one number for a whole video.
    tracks : (n,) integer
        Track of each face, unlike in different groups.
    boxes : (n, 4) float, px
        Box of each face.

    Returns
    -------
    (n,) bool

    Examples
    --------
    >>> boxes = [[0, 0, 1, 1], [0, 0, 2, 2], [0, 0, 1, 1], [0, 0, 1, 1]]
    >>> largest([0, 0, 1, 1], [0, 1, 2, 2], boxes).tolist()
    [False, True, True, True]

    """
    groups, numbers = np.asarray(group, np.int64), np.asarray(tracks, np.int64)
    sides = np.asarray(boxes, np.float64).reshape(-1, 4)
    area = np.prod(sides[:, 2:] - sides[:, :2], axis=1)
    names, first, member, counts = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -np.bincount(member, area, len(names)), -counts, groups[first]))
    _, best = np.unique(groups[first][order], return_index=True)
    chosen: npt.NDArray[np.bool_] = np.isin(numbers, names[order[best]])
    return chosen
