"""Modalities of a rendered row that follow from its camera."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from setsup.arrays import Array, Reals
from setsup.scenes import Camera, Frame, Scene

__all__ = ["OF_ROW", "pixel_outputs"]


def pixel_outputs(scene: Scene, camera: Camera, frame: Frame, names: Iterable[str]) -> dict[str, Array]:
    """Modalities of a rendered row, by name."""
    return {name: OF_ROW[name](camera) for name in names}


def _pose(camera: Camera) -> Reals:
    """From the camera's frame to the world, (4, 4)."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = camera.rotation.T, camera.centre
    return pose


OF_ROW: Mapping[str, Callable[[Camera], Array]] = {"pose": _pose, "intrinsics": lambda camera: camera.k}
"""What is computed of the camera alone."""
