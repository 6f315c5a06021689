"""Which pairs of many views are worth measuring: their frustums meet, and some of them stand close together.

A frustum is the part of a view between two depths. Two of them are apart where one lies beyond a side of the other,
which is certain; where neither does they count as meeting.

A pair is measured in both directions, or in the one that is not excluded: two overlaps tell a close-up from the whole,
and that of one direction alone says little about the other.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from setsup import random
from setsup.arrays import Bools, Reals, Rows
from setsup.correspondence.overlaps.views import View, focal_length
from setsup.samplers.overlap.table import LEAST

__all__ = ["Candidates", "Pose", "all_pairs", "candidate_pairs", "choose_candidates", "excluded_pairs", "pose_of"]

_TURN = 60.0  # degrees between two axes that count as a distance of the median depth
_MARGIN = 1e-6  # of the size of the scene: what is closer than this to a side does not lie beyond it
_BLOCK = 1 << 23  # products at a time


class Pose(NamedTuple):
    """What is known of a view before it is compared.

    Attributes
    ----------
    centre, axis : (3,) float64
        Where the camera stands (metres), and where it looks.
    depth : float, metres
        Median of the depths of its sample pixels; NaN without any.
    rays : (4, 3) float64
        Through the corners of its images, of length 1 along the axis.
    span : (2,) float64, metres
        Between which depths all lies that it shows.
    closed : bool
        Whether it certainly shows nothing beyond.
    sampled : int
        Number of its sample pixels.

    """

    centre: Reals
    axis: Reals
    depth: float
    rays: Reals
    span: Reals
    closed: bool
    sampled: int


class Candidates(NamedTuple):
    """Pairs to measure, and pairs that certainly do not overlap.

    Attributes
    ----------
    pairs : (n, 2) int64
        Places of views, by the second, then the first.
    excluded : (views, views) bool
        Whether the second view certainly shows nothing of the first.

    """

    pairs: Rows
    excluded: Bools


def pose_of(view: View) -> Pose:
    """What of a view decides with which others it is compared."""
    camera = view.camera
    right, below = camera.width - 0.5, camera.height - 0.5
    rays = camera.rays([[-0.5, -0.5], [right, -0.5], [right, below], [-0.5, below]])
    depth = float(np.median(view.points[:, 3]) * focal_length(camera)) if len(view.points) else np.nan
    return Pose(camera.centre, camera.rotation[2], depth, rays, view.span, view.closed, len(view.points))


def all_pairs(count: int) -> Rows:
    """All ordered pairs of so many views, (n, 2), by the second, then the first."""
    second, first = np.divmod(np.arange(count * count), max(count, 1))
    apart = np.flatnonzero(first != second)
    return np.stack([first[apart], second[apart]], axis=1)


def candidate_pairs(poses: Sequence[Pose], rows: Rows, key: int, most: int) -> Candidates:
    """Pairs of many views that :func:`choose_candidates` chooses.

    `rows` (views,) of the views, and a `key` that theirs are folded into.
    """
    excluded = excluded_pairs(poses)
    return Candidates(choose_candidates(poses, ~excluded, rows, key, most), excluded)


def excluded_pairs(poses: Sequence[Pose]) -> Bools:
    """Whether each second view certainly shows nothing of each first one; (views, views) bool.

    A first view counts with the depths that it shows. A second view counts up to its far end where it is closed, and
    without end otherwise: it may show what it did not measure.
    """
    count = len(poses)
    centres, axes, rays, spans = (
        np.stack([getattr(pose, name) for pose in poses]) for name in ("centre", "axis", "rays", "span")
    )
    centres -= centres.mean(axis=0)
    # of each first view: the corners of its frustum, the nearer ones first
    corners = (centres[:, None, None] + rays[:, None] * spans[:, :, None, None]).reshape(count, 8, 3)
    # from the middle of the centres to the farthest corner or centre: a camera may be far from all that it shows
    size = float(np.sqrt(max((corners**2).sum(axis=2).max(), (centres**2).sum(axis=1).max())))
    # of each second view: its pyramid, one without end cut where all that others show lies before
    ends = np.where([pose.closed for pose in poses], spans[:, 1], 4 * size)
    tips = np.concatenate([centres[:, None], centres[:, None] + rays * ends[:, None, None]], axis=1)
    sides, fronts = _sides(centres, rays), _planes(axes, centres + axes * spans[:, :1])
    body, whole = (
        np.concatenate([sides, _planes(-axes, centres + axes * far[:, None])[:, None]], axis=1)
        for far in (spans[:, 1], ends)
    )
    body = np.concatenate([body, fronts[:, None]], axis=1)
    margin = _MARGIN * size
    excluded = np.empty((count, count), bool)
    step = max(1, _BLOCK // (count * max(whole.shape[1] * corners.shape[1], body.shape[1] * tips.shape[1])))
    for start in range(0, count, step):
        some = slice(start, start + step)
        excluded[some] = _beyond(whole, corners[some], margin).T | _beyond(body[some], tips, margin)
    # what is unknown is certain of nothing
    excluded[[pose.sampled < LEAST for pose in poses]] = False
    np.fill_diagonal(excluded, False)
    return excluded


def _sides(centres: Reals, rays: Reals) -> Reals:
    """Planes through the sides of pyramids, positive within; (n, 4, 4)."""
    normals = np.cross(rays, np.roll(rays, -1, axis=1))
    inwards = np.einsum("ikj,ij->ik", normals, rays.mean(axis=1))
    normals *= np.sign(inwards)[..., None]
    normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-300)
    return np.concatenate([normals, -np.einsum("ikj,ij->ik", normals, centres)[..., None]], axis=-1)


def _planes(normals: Reals, points: Reals) -> Reals:
    return np.concatenate([normals, -np.einsum("ij,ij->i", normals, points)[:, None]], axis=1)


def _beyond(planes: Reals, points: Reals, margin: float) -> Bools:
    """Whether all points (m, p, 3) of a body lie beyond one of the planes (n, s, 4) of another; (n, m) bool."""
    sides, corners = planes.shape[1], points.shape[1]
    heights = planes[..., :3].reshape(-1, 3) @ points.reshape(-1, 3).T + planes[..., 3].reshape(-1, 1)
    beyond = heights.reshape(len(planes), sides, len(points), corners) < -margin
    outside: Bools = np.asarray(beyond.all(axis=3))
    return np.asarray(outside.any(axis=1))


def choose_candidates(poses: Sequence[Pose], meet: Bools, rows: Rows, key: int, most: int) -> Rows:
    """Pairs that one of their views chooses: each at most so many others, half the nearest by pose, half at random.

    The distance of poses is that of the centres over the median depth of the view that chooses, plus the angle of the
    axes over 60°; of equally near ones the first counts. Of the others those with the smallest random words are chosen:
    every subset of them is equally likely. Both views of a pair see the same word, so that most of these choices are
    mutual, and measuring pairs in both directions adds few.

    `meet` (views, views) bool: pairs to choose from; returns (n, 2) int64, by the second view, then the first: all
    ordered pairs of views that meet and of which one chose the other.
    """
    count = len(poses)
    centres, axes = (np.stack([getattr(pose, name) for pose in poses]) for name in ("centre", "axis"))
    depths = np.array([pose.depth for pose in poses])
    usual = float(np.nanmedian(depths)) if np.isfinite(depths).any() else 1.0
    chosen = np.zeros((count, count), bool)
    for view, depth in enumerate(np.where(np.isfinite(depths), depths, usual).tolist()):
        others = np.flatnonzero(meet[view])
        others = others[others != view]
        if len(others) > most:
            apart = np.linalg.norm(centres[others] - centres[view], axis=1) / depth
            turned = np.degrees(np.arccos(np.clip((axes[others] * axes[view]).sum(axis=1), -1, 1)))
            order = np.argsort(apart + turned / _TURN, kind="stable")
            near, rest = others[order[: most // 2]], np.sort(others[order[most // 2 :]])
            low, high = np.minimum(rows[view], rows[rest]), np.maximum(rows[view], rows[rest])
            words = random.fold(random.fold(key, low.astype(np.uint64)), high.astype(np.uint64))
            others = np.concatenate([near, rest[np.argsort(words, kind="stable")[: most - most // 2]]])
        chosen[view, others] = True
    chosen |= chosen.T
    second, first = np.nonzero((chosen & meet).T)
    return np.stack([first, second], axis=1)
