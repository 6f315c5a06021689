"""NAVI: photographs of 36 scanned objects, with the pose, depth and mask of the object in each."""

from setsup.datasets.benchmarks.navi.dataset import open

__all__ = ["open"]
