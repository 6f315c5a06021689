"""Multi-dSprites: images of several colored sprites, with the factors and the mask of each."""

from setsup.datasets.benchmarks.multi_dsprites.dataset import MultiDsprites, open, prepare

__all__ = ["MultiDsprites", "open", "prepare"]
