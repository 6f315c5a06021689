"""CUB-200-2011: birds of 200 species with attributes, parts and boxes."""

from setsup.datasets.benchmarks.cub200.dataset import CUB200, open

__all__ = ["CUB200", "open"]
