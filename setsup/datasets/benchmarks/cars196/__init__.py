"""Cars196 (Stanford Cars): photographs of cars with model class and box."""

from setsup.datasets.benchmarks.cars196.dataset import Cars196, open

__all__ = ["Cars196", "open"]
