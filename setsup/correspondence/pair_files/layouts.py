"""What the files of each layout contain, as published, from cameras and pairs.

Cameras are given in setsup's convention: intrinsics (n, 3, 3) with centres of pixels at integers, and poses (n, 4, 4)
from the world to the camera, x right, y down, z forward.

References
----------
.. [1] D2-Net, github.com/mihaidusmanu/d2-net: ``megadepth_utils/preprocess_scene.py`` writes a scene,
   ``lib/dataset.py`` reads it, ``lib/loss.py`` adds ½ to the number of a pixel. Files of its first release have
   ``fact_x`` and ``fact_y``.
.. [2] LoFTR, github.com/zju3dv/LoFTR: ``src/datasets/megadepth.py``, and the files in ``assets``.
.. [3] DUSt3R, github.com/naver/dust3r: ``dust3r/datasets/megadepth.py``.
.. [4] SuperGlue, github.com/magicleap/SuperGluePretrainedNetwork: ``README.md``.
.. [5] hloc, github.com/cvg/Hierarchical-Localization: ``hloc/utils/parsers.py``.

"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.correspondence.pair_files.shared_points import SharedPoints

__all__ = ["PAIRS", "d2net_scene", "dust3r_camera", "dust3r_metadata", "loftr_scene", "superglue_line"]

PAIRS = np.dtype([("scene_id", "<i8"), ("im1_id", "<i8"), ("im2_id", "<i8"), ("score", "<f8")])
"""Pairs of DUSt3R."""

_UNKNOWN = -1.0
_TOGETHER = 1 << 21  # pairs of observations at a time
_HALF = 0.5  # where COLMAP has the centre of the first pixel


def d2net_scene(
    images: Sequence[str],
    depths: Sequence[str],
    k: Reals,
    poses: Reals,
    overlaps: Reals,
    shared: SharedPoints,
    pairs: Rows,
) -> dict[str, Array]:
    """Arrays of D2-Net's ``<scene>.0.npz``.

    `images` and `depths` are paths; `overlaps` (n, n), NaN where unknown; `pairs` (m, 2) those of the shared points.
    Pixels have their centres at ½, as COLMAP's.
    """
    count = len(images)
    centred = k.copy()
    centred[:, :2, 2] += _HALF
    focal = (k[:, 0, 0] + k[:, 1, 1]) / 2
    views = np.concatenate([pairs[shared.pair, side] for side in (0, 1)])
    points = np.concatenate([shared.point, shared.point])
    order = np.lexsort((points, views))
    once = order[np.append(True, (np.diff(points[order]) != 0) | (np.diff(views[order]) != 0))[: len(order)]]
    places = np.concatenate([shared.pixels1, shared.pixels2])[once] + _HALF
    views, points = views[once], points[once]
    coarse = np.concatenate([shared.depth1, shared.depth2])[once] / focal[views]
    cuts = np.searchsorted(views, np.arange(count + 1))
    axes = poses[:, 2, :3]
    return {
        "image_paths": np.array(images),
        "depth_paths": np.array(depths),
        "points3D_id_to_2D": _dicts(points, places, cuts),
        "points3D_id_to_ndepth": _dicts(points, coarse, cuts),
        "n_points3D": np.diff(cuts),
        "intrinsics": centred,
        "poses": poses,
        "fact_x": np.ones(count),
        "fact_y": np.ones(count),
        "overlap_matrix": np.where(np.isnan(overlaps), _UNKNOWN, overlaps),
        "scale_ratio_matrix": np.where(np.isnan(overlaps), _UNKNOWN, _scale_ratios(points, views, coarse, count)),
        "angles": np.degrees(np.arccos(np.clip(axes @ axes.T, -1, 1))),
    }


def _dicts(points: Rows, values: Reals, cuts: Rows) -> Array:
    """Of each view a dict from points to values; those of the views are between the cuts."""
    return _objects(
        [dict(zip(points[a:b].tolist(), values[a:b].tolist(), strict=True)) for a, b in pairwise(cuts.tolist())]
    )


def _scale_ratios(points: Rows, views: Rows, coarse: Reals, count: int) -> Reals:
    """Smallest ratio of the sizes of a pixel at a common point of two views, from 1; −1 where there is none.

    `points`, `views` and `coarse` (n,) are observations, each once; returns (count, count).
    """
    ratios = np.full((count, count), np.inf)
    order = np.argsort(points, kind="stable")
    _, starts, sizes = np.unique(points[order], return_index=True, return_counts=True)
    for size in np.unique(sizes[sizes > 1]).tolist():
        members = order[starts[sizes == size][:, None] + np.arange(size)]
        step = max(1, _TOGETHER // size**2)
        for start in range(0, len(members), step):
            some = members[start : start + step]
            own, seen = coarse[some], views[some]
            quotients = own[:, :, None] / own[:, None]
            np.minimum.at(ratios, (seen[:, :, None], seen[:, None]), np.maximum(quotients, 1 / quotients))
    return np.where(np.isfinite(ratios), ratios, _UNKNOWN)


def _objects(values: Sequence[Any]) -> Array:
    found = np.empty(len(values), object)
    found[:] = values
    return found


def loftr_scene(
    images: Sequence[str], depths: Sequence[str], k: Reals, poses: Reals, pairs: Rows, overlaps: Reals, matches: Reals
) -> dict[str, Any]:
    """Content of LoFTR's ``<scene>_<lo>_<hi>.npz``.

    `pairs` (m, 2) positions; `overlaps` (m,); `matches` (m, 4), a common point as x, y in both. Centres of pixels are
    at integers.
    """
    infos = [(pair, overlap, match) for pair, overlap, match in zip(pairs, overlaps.tolist(), matches, strict=True)]
    return {
        "image_paths": _objects(images),
        "depth_paths": _objects(depths),
        "intrinsics": k,
        "poses": poses,
        "pair_infos": infos,
    }


def dust3r_metadata(scenes: Sequence[str], images: Sequence[str], pairs: Array) -> dict[str, Array]:
    """Arrays of DUSt3R's ``all_metadata.npz``.

    `scenes` are names of two words, `images` names without suffix of all scenes, `pairs` (n,) of the dtype `PAIRS`.
    """
    return {"scenes": np.array(scenes), "images": np.array(images), "pairs": pairs}


def dust3r_camera(k: Reals, pose: Reals) -> dict[str, Array]:
    """Arrays of the ``.npz`` of an image: `k` (3, 3), `pose` (4, 4). Centres of pixels are at integers."""
    return {"intrinsics": k.astype(np.float32), "cam2world": np.linalg.inv(pose).astype(np.float32)}


def superglue_line(names: tuple[str, str], k: tuple[Reals, Reals], poses: tuple[Reals, Reals]) -> str:
    """A line of SuperGlue's lists with ground truth: 38 columns. Centres of pixels are at integers."""
    motion = poses[1] @ np.linalg.inv(poses[0])
    motion[3] = 0, 0, 0, 1
    numbers = np.concatenate([k[0].reshape(-1), k[1].reshape(-1), motion.reshape(-1)]).tolist()
    return " ".join([*names, "0", "0", *map(repr, numbers)])
