"""Even/Odd: Affine MNIST, where representations are learned on even digits and tested on odd ones.

The experiment is that of A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample
complexity through self-supervised visual experience", NeurIPS 2018: representations learned from orbits should transfer
to unseen classes.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.benchmarks.affine_mnist.affine import ORDER
from setsup.datasets.benchmarks.affine_mnist.dataset import RANGES, AffineMnist
from setsup.datasets.benchmarks.idx_images import release

__all__ = ["EvenOdd", "open"]


class EvenOdd(AffineMnist):
    """Affine MNIST with the split ``embedding``, ``evaluation`` and ``rest``.

    Rows, images, parameters and the other factors are those of
    :class:`setsup.datasets.benchmarks.affine_mnist.dataset.AffineMnist`. ``embedding`` has the even digits among the
    first 50,000 of the published training set, ``evaluation`` the odd digits of the published test set, five classes
    that are not in ``embedding``; ``rest`` has all other digits.

    Notes
    -----
    The paper does not specify from which published part the odd digits are taken; here, as in its other experiment on
    MNIST, it is the test set.

    """

    name = "even-odd"
    _parts = ("embedding", "evaluation", "rest")

    def _part_of(self, digit: Array, test: npt.NDArray[np.bool_]) -> Array:
        embedding = (digit % 2 == 0) & (super()._part_of(digit, test) == 0)
        return np.where(embedding, 0, np.where((digit % 2 == 1) & test, 1, 2))


def open(
    root: Path | str | None = None,
    *,
    copies: int = 32,
    order: Sequence[str] = ORDER,
    seed: int = 0,
    translation: float = RANGES["translation_x"][1],
) -> EvenOdd:
    """Open Even/Odd.

    Parameters
    ----------
    root : Path, str or None
        Folder with the files of MNIST, or with a folder ``even-odd`` or ``mnist`` that has them; None for the default
        folders of either name.
    copies, order, seed, translation
        As for :class:`setsup.datasets.benchmarks.affine_mnist.dataset.AffineMnist`.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them), or are damaged.

    """
    return EvenOdd(release("even-odd", root), copies, order, seed, translation)
