"""ImageNet: 1.28 million images of 1,000 synsets, as ILSVRC 2012 published them; and subsets by list."""

from setsup.datasets.benchmarks.imagenet.dataset import SynsetImages, open

__all__ = ["SynsetImages", "open"]
