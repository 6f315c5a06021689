"""Recorded frames: depth and camera of a row, from whatever modalities and methods a dataset has for them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.correspondence.from_depth import recorded_camera
from setsup.errors import DataError, SetsupError, advice
from setsup.scenes.camera import Camera

__all__ = [
    "RECORDED",
    "fetch_depth",
    "has_depth",
    "has_tracks",
    "lacking",
    "moving_factors",
    "read_frame",
    "row_camera",
]

RECORDED = ("depth", "pose", "intrinsics")
"""Modalities of recorded frames; a method ``camera(row)`` replaces the last two."""


def lacking(dataset: Any) -> list[str]:
    """Modalities of recorded frames that a dataset lacks."""
    known = set(dataset.modalities) | ({"pose", "intrinsics"} if hasattr(dataset, "camera") else set())
    return sorted(set(RECORDED) - known)


def has_depth(dataset: Any) -> bool:
    """Whether the rows of a dataset have depth and cameras."""
    return not lacking(dataset)


def moving_factors(dataset: Any) -> tuple[str, ...]:
    """Factors with which things move in a scene, so that depth does not tell where points of other rows are.

    Shards of rendered frames do not name them, but have flow.
    """
    flow = "exact_flow" in dataset.modalities and "frame" in dataset.factors.names
    named: tuple[str, ...] = getattr(dataset, "moving", ("frame",) if flow else ())
    return named


def has_tracks(dataset: Any) -> bool:
    """Whether the rows of a dataset observe points of a COLMAP model."""
    return hasattr(dataset, "observed") and hasattr(dataset, "points")


def row_camera(
    dataset: Any,
    row: int,
    size: tuple[int, int],
    found: Mapping[str, Any] | None = None,
    *,
    pinhole: bool = True,
    option: str = "rows=",
) -> Camera:
    """The camera of a row: its method ``camera(row)``, else of the modalities ``pose`` and ``intrinsics``.

    `size` (height, width) is that of the row's image; `found` are modalities of the row that were fetched before.
    DataError where the pose is unknown, or where images are distorted unless `pinhole` is False; it names the `option`
    by which the caller's rows are chosen.
    """
    known = dict(found or {})
    asked = ["distortion"] if pinhole else []
    asked += [] if hasattr(dataset, "camera") else ["pose", "intrinsics"]
    known |= dataset.fetch(row, [name for name in asked if name in dataset.modalities and name not in known])
    if hasattr(dataset, "camera"):
        camera: Camera = dataset.camera(row)
    else:
        try:
            camera = recorded_camera(known["pose"], known["intrinsics"], *size)
        except SetsupError as error:
            left = advice(option, "--where")
            raise DataError(f"row {row} of {dataset.name}: {error}; leave the row out with {left}") from error
    if pinhole and np.any(known.get("distortion", 0)):
        raise DataError(
            f"the images of {dataset.name} have lens distortion, but pinhole cameras are required here; open the "
            f"dataset without {advice('undistort=False', '--option undistort=no')}"
        )
    return camera


def read_frame(dataset: Any, row: int) -> tuple[npt.NDArray[Any], Camera]:
    """Depth (h, w) and camera of a row; SetsupError where they do not fit together."""
    found = _fetch(dataset, row, RECORDED)
    return found["depth"], _camera(dataset, row, found)


def fetch_depth(dataset: Any, row: int) -> npt.NDArray[Any]:
    """Depth (h, w) of a row."""
    return _fetch(dataset, row, ("depth",))["depth"]


def _fetch(dataset: Any, row: int, names: tuple[str, ...]) -> dict[str, Array]:
    asked = [name for name in names if name in dataset.modalities]
    found = dataset.fetch(row, asked)
    image = np.asarray(found["depth"])
    if image.ndim != 2 or image.dtype.kind not in "fiu":
        raise SetsupError(
            f"the depth of row {row} of {dataset.name} must be a numeric array of shape (h, w), not {image.dtype} of "
            f"shape {image.shape}"
        )
    return {**found, "depth": image}


def _camera(dataset: Any, row: int, found: Mapping[str, Array]) -> Camera:
    height, width = found["depth"].shape
    where = f"row {row} of {dataset.name}"
    camera = row_camera(dataset, row, (height, width), found)
    if (camera.height, camera.width) != (height, width):
        raise SetsupError(
            f"the depth of {where} has {height} × {width} pixels, but its camera has {camera.height} × "
            f"{camera.width}; resize the depth or the camera to one size"
        )
    if hasattr(dataset, "camera"):
        return camera
    shown = dataset.modalities.get("image")
    other = shown is not None and None not in shown.shape[:2] and tuple(shown.shape[:2]) != (height, width)
    if other or not (0 < camera.k[0, 2] < width - 1 and 0 < camera.k[1, 2] < height - 1):
        of_image = f", and its images have {shown.shape[0]} × {shown.shape[1]}" if other and shown else ""
        raise SetsupError(
            f"the intrinsics of {where}, with the principal point ({camera.k[0, 2]:g}, {camera.k[1, 2]:g}), do not fit "
            f"its depth of {height} × {width} pixels{of_image}; open the dataset so that intrinsics, images and depth "
            "have one size"
        )
    return camera
