"""NYU Depth V2, labelled: rooms with depth, classes and instances."""

from setsup.datasets.benchmarks.nyu.dataset import INTRINSICS, NyuDepth, crop, open, prepare

__all__ = ["INTRINSICS", "NyuDepth", "crop", "open", "prepare"]
