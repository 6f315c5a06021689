"""KeypointNet: models of ShapeNet with keypoints that people marked."""

from setsup.datasets.benchmarks.keypointnet.dataset import KeypointNet, open

__all__ = ["KeypointNet", "open"]
