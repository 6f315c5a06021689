"""UT Zappos50K: images of shoes from a shop's catalogue, with their entries in the catalogue."""

from setsup.datasets.benchmarks.ut_zap50k.dataset import UtZap50k, open

__all__ = ["UtZap50k", "open"]
