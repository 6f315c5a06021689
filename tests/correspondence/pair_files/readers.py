"""Readers of the layouts, written from the names of fields and the formulas that each project published.

Each gives pairs of views: their names, the overlap where the layout has it, and where a pixel of the first view is in
the second, computed as the project computes it.
"""

import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

os.environ["OPENCV_IO_ENABLE_OPENEXR"] = "1"  # before OpenCV reads the first such file

import cv2


@dataclass
class Pair:
    """A pair; ``move`` maps whole pixels (n, 2) of the first view, (column, row), to places in the second."""

    names: tuple[str, str]
    overlap: float | None
    move: Callable[[np.ndarray], np.ndarray]


def homogeneous(points):
    return np.concatenate([points, np.ones((len(points), 1))], axis=1)


def pinhole(k, pose, pixels, depth):
    """World points of pixels, by a pose from the world to the camera."""
    rays = homogeneous(pixels) @ np.linalg.inv(k).T
    return (homogeneous(rays * depth[:, None]) @ np.linalg.inv(pose).T)[:, :3]


def projected(k, pose, xyz):
    seen = (homogeneous(xyz) @ pose.T)[:, :3] @ k.T
    return seen[:, :2] / seen[:, 2:]


def depth_h5(file):
    with h5py.File(file, "r") as content:
        return np.array(content["/depth"])


def at(depth, pixels):
    return depth[pixels[:, 1], pixels[:, 0]].astype(np.float64)


# -- D2-Net ------------------------------------------------------------------------------------------------------------


def d2net(folder):
    """Ordered pairs with a known overlap, as its data loader takes them from a list of scenes."""
    for scene in (folder / "scenes.txt").read_text().splitlines():
        info = np.load(folder / "scene_info" / f"{scene}.npz", allow_pickle=True)
        for one, two in np.argwhere(info["overlap_matrix"] >= 0):
            yield d2net_pair(folder, info, one, two)


def d2net_pair(folder, info, one, two):
    depth = depth_h5(folder / info["depth_paths"][one])
    image = cv2.imread(str(folder / info["image_paths"][one]))
    assert image.shape[:2] == depth.shape
    assert depth.min() >= 0
    k, poses = info["intrinsics"], info["poses"]

    def move(pixels):
        # a pixel's number plus ½ is its coordinate, as in COLMAP
        xyz = pinhole(k[one], poses[one], pixels + 0.5, at(depth, pixels))
        return projected(k[two], poses[two], xyz) - 0.5

    names = tuple(Path(str(info["image_paths"][view])).stem for view in (one, two))
    return Pair(names, float(info["overlap_matrix"][one, two]), move)


# -- LoFTR -------------------------------------------------------------------------------------------------------------


class OnlyArrays(pickle.Unpickler):
    """Loads what a list of pairs needs: calls of ``numpy.array``."""

    def find_class(self, module, name):
        assert (module, name) == ("numpy", "array")
        return np.array


def loftr(folder, least=0.0):
    for scene in (folder / "scenes.txt").read_text().split():
        file = folder / "scene_info" / f"{scene}.npz"
        with file.open("rb") as content:
            OnlyArrays(content).load()
        info = np.load(file, allow_pickle=True)
        infos = info["pair_infos"].copy()
        del info["pair_infos"]
        assert set(info) == {"image_paths", "depth_paths", "intrinsics", "poses"}
        for (one, two), overlap, match in infos:
            if overlap > least:
                yield loftr_pair(folder, info, one, two, overlap), match


def loftr_pair(folder, info, one, two, overlap):
    depth = depth_h5(folder / info["depth_paths"][one])
    k0, k1 = (info["intrinsics"][view].copy().reshape(3, 3) for view in (one, two))
    motion = np.matmul(info["poses"][two], np.linalg.inv(info["poses"][one]))[:4, :4]

    def move(pixels):
        seen = np.linalg.inv(k0) @ (homogeneous(pixels) * at(depth, pixels)[:, None]).T
        there = k1 @ (motion[:3, :3] @ seen + motion[:3, [3]])
        return (there[:2] / there[2]).T

    return Pair(tuple(Path(info["image_paths"][view]).stem for view in (one, two)), overlap, move)


# -- DUSt3R ------------------------------------------------------------------------------------------------------------


def dust3r(folder):
    with np.load(folder / "all_metadata.npz") as data:
        scenes, images, pairs = (data[name] for name in ("scenes", "images", "pairs"))
    for pair in pairs:
        scene_id, im1_id, im2_id, score = pair
        assert [scene_id, im1_id, im2_id] == [pair[name] for name in ("scene_id", "im1_id", "im2_id")]
        scene, subscene = scenes[scene_id].split()
        views = [dust3r_view(os.path.join(folder, scene, subscene, images[view])) for view in (im1_id, im2_id)]

        def move(pixels, views=views):
            (depth, k, pose), (_, k1, pose1) = views
            z = at(depth, pixels)
            # columns and rows are counted from 0
            camera = np.stack([(pixels[:, axis] - k[axis, 2]) * z / k[axis, axis] for axis in (0, 1)] + [z], axis=1)
            xyz = camera @ pose[:3, :3].T + pose[:3, 3]
            return projected(k1, np.linalg.inv(pose1), xyz)

        yield Pair((str(images[im1_id]), str(images[im2_id])), float(score), move)


def dust3r_view(path):
    image = cv2.imread(path + ".jpg", cv2.IMREAD_COLOR)
    depth = cv2.imread(path + ".exr", cv2.IMREAD_ANYDEPTH)
    camera = np.load(path + ".npz")
    assert image.shape[:2] == depth.shape
    assert np.isfinite(depth).all()
    k, pose = np.float32(camera["intrinsics"]), np.float32(camera["cam2world"])
    assert k[0, 1] == k[1, 0] == 0
    return depth, k.astype(float), pose.astype(float)


# -- SuperGlue and hloc ------------------------------------------------------------------------------------------------


def superglue(folder, depth_of):
    """`depth_of` gives the depth of an image by its name, which these lists do not have."""
    for line in (folder / "pairs.txt").read_text().splitlines():
        words = line.split()
        assert len(words) == 38
        assert words[2:4] == ["0", "0"]
        for name in words[:2]:
            assert cv2.imread(str(folder / "images" / name)) is not None
        k0, k1 = (np.array(words[start : start + 9]).astype(float).reshape(3, 3) for start in (4, 13))
        motion = np.array(words[22:]).astype(float).reshape(4, 4)
        names = tuple(Path(name).stem for name in words[:2])

        def move(pixels, k0=k0, k1=k1, motion=motion, name=names[0]):
            rays = (pixels - k0[[0, 1], [2, 2]]) / k0[[0, 1], [0, 1]]
            seen = homogeneous(rays) * at(depth_of(name), pixels)[:, None]
            there = (homogeneous(seen) @ motion.T)[:, :3]
            return there[:, :2] / there[:, 2:] * k1[[0, 1], [0, 1]] + k1[[0, 1], [2, 2]]

        yield Pair(names, None, move)


def hloc(file):
    """Names by the first name."""
    found = {}
    for line in file.read_text().rstrip("\n").split("\n"):
        one, two = line.split()
        found.setdefault(one, []).append(two)
    return found
