"""KeypointNet: models of ShapeNet with manually annotated keypoints."""

from setsup.datasets.benchmarks.keypointnet.dataset import KeypointNet, open

__all__ = ["KeypointNet", "open"]
