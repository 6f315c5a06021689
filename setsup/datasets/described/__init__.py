"""Benchmarks of images whose factors are in names and tables: opened by their manifest alone, without code."""

from setsup.datasets.described.dataset import DescribedImages, open_described, read_described

__all__ = ["DescribedImages", "open_described", "read_described"]
