"""Recorded frames: depth and camera of a row, from whatever modalities and methods a dataset has for them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.correspondence.from_depth import recorded_camera
from setsup.errors import SetsupError, advice
from setsup.scenes.camera import Camera

__all__ = ["RECORDED", "fetch_depth", "has_depth", "has_tracks", "lacking", "read_frame"]

RECORDED = ("depth", "pose", "intrinsics")
"""Modalities of recorded frames; a method ``camera(row)`` replaces the last two."""


def lacking(dataset: Any) -> list[str]:
    """Modalities of recorded frames that a dataset lacks."""
    known = set(dataset.modalities) | ({"pose", "intrinsics"} if hasattr(dataset, "camera") else set())
    return sorted(set(RECORDED) - known)


def has_depth(dataset: Any) -> bool:
    """Whether the rows of a dataset have depth and cameras."""
    return not lacking(dataset)


def has_tracks(dataset: Any) -> bool:
    """Whether the rows of a dataset observe points of a COLMAP model."""
    return hasattr(dataset, "observed") and hasattr(dataset, "points")


def read_frame(dataset: Any, row: int) -> tuple[npt.NDArray[Any], Camera]:
    """Depth (h, w) and camera of a row; SetsupError where they do not fit together."""
    image, pose, intrinsics = _fetch(dataset, row, RECORDED)
    return image, _camera(dataset, row, image, pose, intrinsics)


def fetch_depth(dataset: Any, row: int) -> npt.NDArray[Any]:
    """Depth (h, w) of a row."""
    image: npt.NDArray[Any] = _fetch(dataset, row, ("depth",))[0]
    return image


def _fetch(dataset: Any, row: int, names: tuple[str, ...]) -> list[Any]:
    asked = [name for name in names if name in dataset.modalities]
    found = dataset.fetch(row, asked)
    image = np.asarray(found["depth"])
    if image.ndim != 2 or image.dtype.kind not in "fiu":
        raise SetsupError(
            f"the depth of row {row} of {dataset.name} must be a numeric array of shape (h, w), not {image.dtype} of "
            f"shape {image.shape}"
        )
    return [image, *(found.get(name) for name in names[1:])]


def _camera(dataset: Any, row: int, image: npt.NDArray[Any], pose: Any, intrinsics: Any) -> Camera:
    height, width = image.shape
    where = f"row {row} of {dataset.name}"
    if hasattr(dataset, "camera"):
        camera: Camera = dataset.camera(row)
        if (camera.height, camera.width) != image.shape:
            raise SetsupError(
                f"the depth of {where} has {height} × {width} pixels, but its camera has {camera.height} × "
                f"{camera.width}; resize the depth or the camera to one size"
            )
        return camera
    if "distortion" in dataset.modalities and np.any(dataset.fetch(row, ["distortion"])["distortion"]):
        raise SetsupError(
            f"the images of {dataset.name} have lens distortion, which depth is not compared with; open the dataset "
            f"without {advice('undistort=False', '--option undistort=no')}"
        )
    try:
        camera = recorded_camera(pose, intrinsics, height, width)
    except SetsupError as error:
        raise SetsupError(f"{where}: {error}; leave the row out with {advice('rows=', '--where')}") from error
    shown = dataset.modalities.get("image")
    other = shown is not None and None not in shown.shape[:2] and tuple(shown.shape[:2]) != image.shape
    if other or not (0 < camera.k[0, 2] < width - 1 and 0 < camera.k[1, 2] < height - 1):
        of_image = f", and its images have {shown.shape[0]} × {shown.shape[1]}" if other and shown else ""
        raise SetsupError(
            f"the intrinsics of {where}, with the principal point ({camera.k[0, 2]:g}, {camera.k[1, 2]:g}), do not fit "
            f"its depth of {height} × {width} pixels{of_image}; open the dataset so that intrinsics, images and depth "
            "have one size"
        )
    return camera
