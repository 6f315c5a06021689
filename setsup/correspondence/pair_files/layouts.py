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
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals, Rows
from setsup.correspondence.pair_files.shared_points import SharedPoints

__all__ = ["PAIRS", "d2net_scene", "dust3r_camera", "dust3r_metadata", "loftr_scene", "superglue_line"]

PAIRS = np.dtype([("scene_id", "<i8"), ("im1_id", "<i8"), ("im2_id", "<i8"), ("score", "<f8")])
"""Pairs of DUSt3R."""

_UNKNOWN = -1.0
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
    places: list[dict[int, list[float]]] = [{} for _ in range(count)]
    coarse: list[dict[int, float]] = [{} for _ in range(count)]
    for side, pixels, depth in ((0, shared.pixels1, shared.depth1), (1, shared.pixels2, shared.depth2)):
        views = pairs[shared.pair, side]
        columns = (views, shared.point, pixels + _HALF, depth / focal[views])
        for view, point, place, size in zip(*(column.tolist() for column in columns), strict=True):
            places[view][point], coarse[view][point] = place, size
    axes = poses[:, 2, :3]
    return {
        "image_paths": np.array(images),
        "depth_paths": np.array(depths),
        "points3D_id_to_2D": _objects(places),
        "points3D_id_to_ndepth": _objects(coarse),
        "n_points3D": np.array([len(own) for own in places]),
        "intrinsics": centred,
        "poses": poses,
        "fact_x": np.ones(count),
        "fact_y": np.ones(count),
        "overlap_matrix": np.where(np.isnan(overlaps), _UNKNOWN, overlaps),
        "scale_ratio_matrix": _scale_ratios(coarse, overlaps),
        "angles": np.degrees(np.arccos(np.clip(axes @ axes.T, -1, 1))),
    }


def _scale_ratios(coarse: Sequence[dict[int, float]], overlaps: Reals) -> Reals:
    """Smallest ratio of the sizes of a pixel at a common point, from 1; −1 where there is none."""
    ratios = np.full(overlaps.shape, _UNKNOWN)
    for one, two in np.argwhere(~np.isnan(overlaps)).tolist():
        both = coarse[one].keys() & coarse[two].keys()
        if both:
            quotients = (coarse[one][point] / coarse[two][point] for point in both)
            ratios[one, two] = min(max(ratio, 1 / ratio) for ratio in quotients)
    return ratios


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
