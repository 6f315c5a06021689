"""Fashion-MNIST: 70,000 grayscale images of clothes in ten categories, with the file names and sizes of MNIST."""

from pathlib import Path

from setsup.datasets.benchmarks.idx_images import IdxImages, release
from setsup.factors import Factor, Kind

__all__ = ["open"]

_CATEGORIES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


def open(root: Path | str | None = None) -> IdxImages:
    """Open Fashion-MNIST; its files have the names of MNIST's, so keep them in separate folders.

    References
    ----------
    .. [1] Xiao, Rasul, Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms",
       2017 (arXiv 1708.07747).

    """
    label = Factor("category", Kind.NOMINAL, _CATEGORIES)
    return IdxImages("fashion-mnist", release("fashion-mnist", root), label)
