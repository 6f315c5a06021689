"""CO3D, version 2: videos around objects of 51 categories, with the camera, mask and depth of each frame."""

from setsup.datasets.benchmarks.co3d.dataset import open

__all__ = ["open"]
