"""CelebA: aligned faces of 10,177 people with attributes and landmarks."""

from setsup.datasets.benchmarks.celeba.dataset import CelebA, open

__all__ = ["CelebA", "open"]
