"""CLEVR: images of three to ten objects; here by image, and (in ``objects``) by object."""

from setsup.datasets.benchmarks.clevr.images import open

__all__ = ["open"]
