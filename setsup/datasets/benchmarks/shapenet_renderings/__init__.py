"""Renderings of ShapeNet's cars, chairs and planes with their view matrices, as KeypointNet (2018) was trained on."""

from setsup.datasets.benchmarks.shapenet_renderings.dataset import ShapenetRenderings, open, prepare
from setsup.datasets.benchmarks.shapenet_renderings.poses import (
    TO_PASCAL3D,
    azimuth_elevation,
    crop_to_alpha,
    to_pascal3d,
)

__all__ = [
    "TO_PASCAL3D",
    "ShapenetRenderings",
    "azimuth_elevation",
    "crop_to_alpha",
    "open",
    "prepare",
    "to_pascal3d",
]
