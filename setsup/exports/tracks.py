"""Tracks of points through the frames of a rendered video, from its depth, instances, poses and cameras.

A pixel's point is carried with its object. It counts as visible where one of the four pixels around it shows the same
object, no nearer than the point by more than a thousandth of its depth. So positions are as exact as the depth, which
is float32, and visibility is decided at pixels: near outlines it may be wrong.
:meth:`setsup.correspondence.RenderedFrames.tracks` traces rays through scenes instead.
"""

from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows
from setsup.errors import DataError
from setsup.random import fold, stream_key, uniform

__all__ = ["NEEDED", "choose_queries", "follow"]

NEEDED = ("depth", "instances", "object_poses")
"""Modalities that tracks need."""

_NEARER = 1e-3  # of the depth
_ON = 1e-3  # pixels from a pixel's centre, within which that pixel alone decides: nothing moves before a still camera


def choose_queries(instances: Array, count: int, seed: int, name: str) -> tuple[Rows, Rows]:
    """Choose query points of a video: frames (n,), evenly, and pixels (n, 2) of what is seen in them, evenly.

    `instances` (t, h, w), −1 for nothing; `name` keys the choice, so that it depends on no other video.
    """
    seen = [np.flatnonzero(frame.ravel() >= 0) for frame in instances]
    frames = np.array([number for number, pixels in enumerate(seen) if len(pixels)], np.int64)
    if not len(frames):
        raise DataError(f"the video {name} shows no surface in any frame; leave out its rows")
    words = fold(stream_key(seed, f"tracks of {name}"), np.arange(count, dtype=np.uint64))[:, None]
    parts = uniform(fold(words, np.arange(2, dtype=np.uint64)))
    chosen = frames[(parts[:, 0] * len(frames)).astype(np.int64)]
    places = [
        seen[frame][int(part * len(seen[frame]))] for frame, part in zip(chosen, parts[:, 1].tolist(), strict=True)
    ]
    y, x = np.divmod(np.array(places, np.int64), instances.shape[2])
    return chosen, np.stack([x, y], axis=1)


def follow(
    frames: Rows, pixels: Rows, cameras: list[Any], depth: Array, instances: Array, poses: Reals
) -> tuple[Reals, Bools]:
    """Follow pixels (n, 2) of frames (n,) through a video of t frames.

    `depth` and `instances` (t, h, w), `poses` (t, k, 4, 4) from each object to the camera, metres. Returns points
    (n, t, 2) in pixels, NaN behind the camera, and whether each is seen (n, t).
    """
    own = instances[frames, pixels[:, 1], pixels[:, 0]]
    far = depth[frames, pixels[:, 1], pixels[:, 0]].astype(np.float64)
    lenses = np.stack([camera.k for camera in cameras])
    flat = np.concatenate([pixels, np.ones((len(pixels), 1))], axis=1)[:, :, None]
    points = far[:, None] * np.linalg.solve(lenses[frames], flat)[:, :, 0]
    to_camera = poses[frames, own]
    local = np.einsum("nji,nj->ni", to_camera[:, :3, :3], points - to_camera[:, :3, 3])
    found, shown = np.full((len(pixels), len(cameras), 2), np.nan), np.zeros((len(pixels), len(cameras)), bool)
    for time, k in enumerate(lenses):
        pose = poses[time, own]
        there = np.einsum("nij,nj->ni", pose[:, :3, :3], local) + pose[:, :3, 3]
        before: Bools = np.asarray(there[:, 2] > 0)
        found[before, time] = (there[before] @ k.T)[:, :2] / there[before, 2:]
        shown[before, time] = _seen(found[before, time], there[before, 2], own[before], depth[time], instances[time])
    found[np.arange(len(pixels)), frames] = pixels
    shown[np.arange(len(pixels)), frames] = True
    return found, shown


def _seen(places: Reals, far: Reals, own: Array, depth: Array, instances: Array) -> Bools:
    """Whether one of the pixels around each place, four at most, shows its object, no nearer than the point."""
    height, width = depth.shape
    inside: Bools = np.all((places >= -0.5) & (places <= [width - 0.5, height - 0.5]), axis=1)
    at = np.where(inside[:, None], places, 0)
    low = np.floor(at + _ON).astype(np.int64)
    beside = at - low > _ON
    seen = np.zeros(len(places), bool)
    for step in ((0, 0), (1, 0), (0, 1), (1, 1)):
        x, y = np.clip(low + step, 0, [width - 1, height - 1]).T
        near = (beside | (np.array(step) == 0)).all(axis=1)
        seen |= near & (instances[y, x] == own) & (depth[y, x] >= far * (1 - _NEARER))
    return seen & inside
