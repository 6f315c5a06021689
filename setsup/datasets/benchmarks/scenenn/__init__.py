"""SceneNN: scanned rooms, with labelled objects and (in ``frames``) the frames of the recordings."""

from setsup.datasets.benchmarks.scenenn.dataset import SceneNN, open, prepare

__all__ = ["SceneNN", "open", "prepare"]
