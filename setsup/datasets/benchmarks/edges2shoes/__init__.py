"""Edges2Shoes: photographs of shoes, each with the output of an edge detector."""

from setsup.datasets.benchmarks.edges2shoes.dataset import Edges2Shoes, open, prepare

__all__ = ["Edges2Shoes", "open", "prepare"]
