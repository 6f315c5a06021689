"""ImageNet: 1.28 million pictures of 1,000 synsets, as ILSVRC 2012 published them; and subsets by list."""

from setsup.datasets.benchmarks.imagenet.dataset import SynsetPictures, open

__all__ = ["SynsetPictures", "open"]
