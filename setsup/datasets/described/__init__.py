"""Benchmarks that are images and what files say of them: opened by their manifest, without code of their own."""

from setsup.datasets.described.dataset import DescribedImages, open_described

__all__ = ["DescribedImages", "open_described"]
