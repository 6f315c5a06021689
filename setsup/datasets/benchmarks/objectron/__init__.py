"""Objectron: videos around objects, with the camera of each frame and the box of each object."""

from setsup.datasets.benchmarks.objectron.dataset import Objectron, open

__all__ = ["Objectron", "open"]
