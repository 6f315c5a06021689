"""Sources of pixel pairs between two rows.

A method of the dataset, its keypoints, ray tracing of its scenes, partners or depth on disk, or the tracks of a COLMAP
model.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from setsup import random
from setsup.arrays import Bools, Matrices
from setsup.checks import check_number
from setsup.correspondence import planar
from setsup.correspondence.from_depth import from_depth
from setsup.correspondence.from_tracks import from_tracks
from setsup.correspondence.homographies import HOMOGRAPHIES
from setsup.correspondence.pixel_pairs import PixelPairs, Status, check_key
from setsup.correspondence.recorded_frames import has_depth, has_tracks, moving_factors, read_frame
from setsup.correspondence.rendered_pairs import OWN, PAIR, VIEW
from setsup.correspondence.spatial import drawn_pixels, spatial
from setsup.datasets.images import several_sizes
from setsup.errors import SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.motion import same_placements

__all__ = [
    "Match",
    "Window",
    "find_match",
    "followed",
    "given",
    "keypoints",
    "match_share",
    "matched",
    "recorded",
    "stored",
    "traced",
    "tracked",
    "view_size",
]

_EDGE = 1e-6  # pixels: a pixel this near to an edge is within it


class Window(NamedTuple):
    """A window of a view: its first column and row, and its size in pixels."""

    left: int
    top: int
    height: int
    width: int

    def camera(self, dataset: Any, row: int) -> Camera:
        """The camera of this part of a row's view."""
        if not hasattr(dataset, "camera"):
            raise SetsupError(
                f"the cameras of {dataset.name} are unknown; pass a RenderedDataset, a folder written by `setsup "
                "render`, shards of a rendered dataset, or a selection of rows from any of these"
            )
        whole: Camera = dataset.camera(row)
        return whole.windowed(self.left, self.top, self.height, self.width)


Match = Callable[[Any, int, int, Window, Window, float, int], PixelPairs]
"""Function of a dataset, two rows, a window of either's view, a share of the pixels of the first, and a key.

The pixels of pairs are those of the windows. Of pairs that are `sparse`, the share is one of the known pixels.
"""


def matched(
    dataset: Any, row1: int, row2: int, window1: Window, window2: Window, fraction: float, key: int
) -> PixelPairs:
    """Pairs of two rows, in the way that the dataset has them.

    The first of these: its method ``pixel_pairs``; its method ``keypoint_pairs``; traced in its scenes; the partners
    that it stores, if the rows are one of its pairs; compared by depth; the tracks of a COLMAP model.
    """
    match = find_match(dataset)
    if match is stored and has_depth(dataset) and not _are_pair(dataset, row1, row2):
        match = recorded
    return match(dataset, row1, row2, window1, window2, fraction, key)


def find_match(dataset: Any) -> Match:
    """Find how a dataset provides pixel pairs; SetsupError if it does not."""
    if hasattr(dataset, "pixel_pairs"):
        return given
    if hasattr(dataset, "keypoint_pairs"):
        return keypoints
    if hasattr(dataset, "scene"):
        return traced
    if hasattr(dataset, "camera") and _stores(dataset):
        return stored
    if has_depth(dataset):
        return recorded
    if has_tracks(dataset):
        return tracked
    raise SetsupError(
        f"{dataset.name} has no pixel correspondences; pass a folder of `setsup render --matches`, another rendered "
        "dataset, a dataset with depth, pose and intrinsics, a capture with a COLMAP model, a dataset with a method "
        f"pixel_pairs(rows, pixels) or keypoint_pairs(rows), or a folder of photographs with {HOMOGRAPHIES}"
    )


def match_share(
    match: Match, dataset: Any, rows: Sequence[int], windows: Sequence[Window], fraction: float, key: int
) -> tuple[PixelPairs, float | None]:
    """Pairs of two rows, and `share` of :func:`setsup.correspondence.partners`: `fraction` of sparse pairs.

    Sparse pairs are all returned: what `match` leaves out would look like a pixel without a pair.
    """
    (row1, row2), (window1, window2) = rows, windows
    asked = 1.0 if (find_match(dataset) if match is matched else match) in (tracked, keypoints) else fraction
    pairs = match(dataset, row1, row2, window1, window2, asked, key)
    if not pairs.sparse:
        return pairs, None
    if asked < 1:  # by a function that calls `tracked`, which shows only in what it returns
        pairs = match(dataset, row1, row2, window1, window2, 1.0, key)
    return pairs, fraction


def traced(
    dataset: Any, row1: int, row2: int, window1: Window, window2: Window, fraction: float, key: int
) -> PixelPairs:
    """Pairs of two rows of a rendered dataset, which show one scene; things in it may have moved between them."""
    if not hasattr(dataset, "scene"):
        raise SetsupError(f"{dataset.name} has no scenes to trace; omit match= to use its stored partners")
    scene, other = dataset.scene(row1), dataset.scene(row2)
    if other.digest == scene.digest:
        other = None
    elif not same_placements(scene, other):
        raise SetsupError(
            f"rows {row1} and {row2} of {dataset.name} show different scenes; draw them with a PixelPairSampler "
            "or an OverlapSampler"
        )
    camera1, camera2 = (window.camera(dataset, row) for row, window in ((row1, window1), (row2, window2)))
    return spatial(scene, camera1, camera2, fraction=fraction, key=key, scene2=other)


def given(
    dataset: Any, row1: int, row2: int, window1: Window, window2: Window, fraction: float, key: int
) -> PixelPairs:
    """Pairs of two rows of a dataset that has them: ``pixel_pairs(rows, pixels)`` with (2,) rows, (n, 2) pixels."""
    pixels = drawn_pixels(window1.height, window1.width, fraction, key) + window1[:2]
    pairs: PixelPairs = dataset.pixel_pairs([row1, row2], pixels)
    return _within(pairs, window1, window2)


def stored(
    dataset: Any, row1: int, row2: int, window1: Window, window2: Window, fraction: float, key: int
) -> PixelPairs:
    """Pairs of rows of a dataset that stores partners: the ``match`` of rendered pairs on disk."""
    if not _stores(dataset):
        raise SetsupError(
            f"{dataset.name} does not store the modalities {' and '.join(OWN)} of pairs; render the dataset as "
            "RenderedPairs with both modalities"
        )
    if not _are_pair(dataset, row1, row2):
        raise SetsupError(
            f"rows {row1} and {row2} of {dataset.name} are not the two views of a pair; draw them with a "
            "PixelPairSampler, or render the modality depth, by which other pairs are compared"
        )
    known = [name for name in ("partners", "status", "depth", "instances") if name in dataset.modalities]
    maps = dataset.fetch(row1, known)
    at = drawn_pixels(window1.height, window1.width, fraction, key)
    x, y = at.astype(int).T + np.array([[window1.left], [window1.top]])
    points2 = maps["partners"][y, x].astype(np.float64) - window2[:2]
    status = maps["status"][y, x].copy()
    gone = (status != Status.NO_SURFACE) & ~planar.inside(points2, window2.height, window2.width)
    status[gone] = Status.OUTSIDE
    instance = maps["instances"][y, x] if "instances" in maps else np.full(len(at), -1)
    depth = maps["depth"][y, x].astype(np.float64) if "depth" in maps else np.full(len(at), np.nan)
    camera = window1.camera(dataset, row1)
    xyz = camera.centre + depth[:, None] * camera.rays(at)
    xyz[status == Status.NO_SURFACE] = np.nan
    return PixelPairs(at, points2, xyz, instance, status)


def _stores(dataset: Any) -> bool:
    """Whether a dataset stores partners of pairs."""
    return set(OWN) <= set(dataset.modalities) and {PAIR, VIEW} <= set(dataset.factors.names)


def _are_pair(dataset: Any, row1: int, row2: int) -> bool:
    """Whether rows of a dataset that stores partners are the two views of a pair."""
    (pair1, pair2), (view1, view2) = (dataset.factors.codes(name, [row1, row2]) for name in (PAIR, VIEW))
    return bool(pair1 == pair2 and view1 != view2)


def recorded(
    dataset: Any,
    row1: int,
    row2: int,
    window1: Window,
    window2: Window,
    fraction: float,
    key: int,
    *,
    tolerance: float = 0.01,
    absolute: float = 0.0,
) -> PixelPairs:
    """Pairs of two rows with depth and cameras, by :func:`setsup.correspondence.from_depth`.

    For other tolerances, pass ``match=functools.partial(recorded, tolerance=0.02)``.
    """
    _check_still(dataset, row1, row2)
    (depth1, camera1), (depth2, camera2) = (read_frame(dataset, row) for row in (row1, row2))
    pixels = drawn_pixels(window1.height, window1.width, fraction, key) + window1[:2]
    instances: Any = dataset.fetch(row1, ["instances"])["instances"] if "instances" in dataset.modalities else None
    pairs = from_depth(
        depth1, depth2, camera1, camera2, pixels, tolerance=tolerance, absolute=absolute, instances1=instances
    )
    return _within(pairs, window1, window2)


def _check_still(dataset: Any, row1: int, row2: int) -> None:
    """Refuse rows of two times: depth does not tell what has moved."""
    for name in moving_factors(dataset):
        one, two = dataset.factors.codes(name, [row1, row2])
        if one != two:
            raise SetsupError(
                f"things move between rows {row1} and {row2} of {dataset.name}, which differ in {name!r}, so depth "
                "does not tell where their points are; render pairs of views with `setsup render --matches`, or pass a "
                "RenderedDataset of the recipe"
            )


def tracked(
    dataset: Any, row1: int, row2: int, window1: Window, window2: Window, fraction: float, key: int
) -> PixelPairs:
    """Pairs of two images of a COLMAP model, by :func:`setsup.correspondence.from_tracks`.

    They are sparse: `fraction` is a share of the keypoints of image 1, not of its pixels.
    """
    return _thinned(_within(from_tracks(dataset, row1, row2), window1, window2), fraction, key)


def keypoints(
    dataset: Any, row1: int, row2: int, window1: Window, window2: Window, fraction: float, key: int
) -> PixelPairs:
    """Pairs of two rows of a dataset with keypoints: ``keypoint_pairs(rows)`` with (2,) rows.

    They are sparse: `fraction` is a share of the keypoints, not of the pixels of image 1.
    """
    known = dataset.keypoint_pairs([row1, row2])
    nothing = np.full((len(known), 3), np.nan), np.full(len(known), -1, np.int32)
    pairs = PixelPairs(known.points1, known.points2, *nothing, known.status, sparse=True)
    return _thinned(_within(pairs, window1, window2), fraction, key)


def _thinned(pairs: PixelPairs, fraction: float, key: int) -> PixelPairs:
    """A share of sparse pairs, drawn by a key."""
    count = math.floor(round(len(pairs) * check_number(fraction, "fraction", SetsupError, 0, 1), 6))
    if count == len(pairs):
        return pairs
    return pairs.select(np.sort(random.permute(check_key(key), len(pairs), np.arange(count))))


def _within(pairs: PixelPairs, window1: Window, window2: Window) -> PixelPairs:
    """Pairs of whole views as those of windows."""
    move1, move2 = (planar.crop(window.left, window.top) for window in (window1, window2))
    return pairs.carried(move1, move2, (window1.height, window1.width), (window2.height, window2.width))


def followed(
    dataset: Any,
    views: Sequence[int],
    matrices: Matrices,
    size: tuple[int, int],
    match: Match,
    fraction: float,
    key: int,
) -> tuple[PixelPairs, float | None, list[Bools]]:
    """Pairs and share of :func:`match_share`, carried by a matrix each, and which pixels of the results show a view.

    Only the part of a view that its result may show is matched.

    `views` (2,), rows; `matrices` (2, 3, 3) float64, from pixels of the views to those of the results; `size` (h, w) of
    both results; returns pairs of pixels of the results, and (h, w) bool for each.
    """
    height, width = size
    windows, moves, shown = [], [], []
    rim = [[-0.5, -0.5], [width - 0.5, -0.5], [-0.5, height - 0.5], [width - 0.5, height - 0.5]]
    for row, matrix in zip(views, matrices, strict=True):
        whole = view_size(dataset, row)
        back = np.linalg.inv(matrix)
        corners = planar.carried(rim, back)  # NaN beyond a horizon, where the whole view counts
        most = np.array(whole[::-1]) - 1
        low, high = np.nan_to_num(corners.min(axis=0), nan=0.0), np.nan_to_num(corners.max(axis=0), nan=most.max())
        first = np.floor(low + (0.5 + _EDGE)).clip(0, most).astype(int)
        last = np.ceil(high - (0.5 + _EDGE)).clip(first, most).astype(int)
        left, top = first.tolist()
        columns, rows = (last - first + 1).tolist()
        windows.append(Window(left, top, rows, columns))
        moves.append(planar.compose(planar.translate(left, top), matrix))
        if ((corners >= -0.5 - _EDGE) & (corners <= most + 0.5 + _EDGE)).all():
            shown.append(np.ones(size, dtype=bool))
        else:
            y, x = np.mgrid[:height, :width]
            at = planar.carried(np.stack([x, y], axis=-1).reshape(-1, 2), back)
            shown.append(planar.inside(at, *whole).reshape(size))
    pairs, share = match_share(match, dataset, views, windows, fraction, key)
    return pairs.carried(moves[0], moves[1], size, size), share, shown


def view_size(dataset: Any, row: int, name: str = "image") -> tuple[int, int]:
    """Height and width of a row's view: by its camera, the method ``image_size``, or the shape of a modality."""
    if hasattr(dataset, "camera"):
        camera = dataset.camera(row)
        return camera.height, camera.width
    if hasattr(dataset, "image_size"):
        known: tuple[int, int] = dataset.image_size(row)
        return known
    modality = dataset.modalities.get(name)
    height, width = (None, None) if modality is None else modality.shape[:2]
    if modality is not None and modality.color and (height is None or width is None):
        raise several_sizes(f"the images of {dataset.name} have several sizes")
    if height is None or width is None:
        raise SetsupError(
            f"the size of the views of {dataset.name} is unknown; pass a RenderedDataset, a folder written by `setsup "
            "render`, shards of a rendered dataset, a selection of rows from any of these, or a dataset whose images "
            "all have the same size"
        )
    return height, width
