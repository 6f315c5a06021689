"""MOVi A to F (Kubric): rendered videos of falling objects, with depth, flow, segmentation and cameras."""

from setsup.datasets.benchmarks.movi.dataset import MoviFrames, open

__all__ = ["MoviFrames", "open"]
