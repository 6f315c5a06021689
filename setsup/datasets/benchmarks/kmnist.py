"""Kuzushiji-MNIST: 70,000 handwritten characters of old Japanese books, with the file names and sizes of MNIST."""

from pathlib import Path

from setsup.datasets.benchmarks.idx_images import IdxImages, release
from setsup.factors import Factor, Kind

__all__ = ["open"]

_CHARACTERS = ("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")
"""The hiragana お, き, す, つ, な, は, ま, や, れ and を."""


def open(root: Path | str | None = None) -> IdxImages:
    """Open Kuzushiji-MNIST; its files have the names of MNIST's, so keep them in separate folders.

    References
    ----------
    .. [1] Clanuwat, Bober-Irizar, Kitamoto, Lamb, Yamamoto, Ha, "Deep Learning for Classical Japanese Literature",
       2018 (arXiv 1812.01718).

    """
    return IdxImages("kmnist", release("kmnist", root), Factor("character", Kind.NOMINAL, _CHARACTERS))
