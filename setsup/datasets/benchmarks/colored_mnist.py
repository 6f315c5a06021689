"""Colored MNIST: digits whose color predicts their label better than their shape, except in the test environment.

A label that depends on the digit is flipped for a quarter of the images, and the color equals the flipped label except
for a share that depends on the environment. So shape predicts 75 % everywhere; color predicts more in the training
environments, and the opposite in the test environment.

References
----------
.. [1] M. Arjovsky, L. Bottou, I. Gulrajani, D. Lopez-Paz, "Invariant risk minimization", 2019 (arXiv 1907.02893),
   section 5.2, and its published code.
.. [2] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), first experiment, and its published code.
.. [3] I. Gulrajani, D. Lopez-Paz, "In Search of Lost Domain Generalization", ICLR 2021 (arXiv 2007.01434), and its
   published code.

"""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.idx_images import release
from setsup.datasets.benchmarks.mnist import Mnist
from setsup.datasets.benchmarks.mnist_environments import Permutation, deal
from setsup.datasets.dataset import Modality
from setsup.errors import DataError, did_you_mean
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.split import split
from setsup.random import fold, permute, stream_key, uniform

__all__ = ["LABEL_NOISE", "NOISE", "ColoredMnist", "open", "zeroed"]

Codes = npt.NDArray[np.uint8]

LABEL_NOISE = 0.25
"""Share of the images whose label is not what their digit says."""

NOISE = (0.1, 0.2, 0.9)
"""Share of the images whose color is not what their label says: the levels of the factor ``environment``."""

Recipe = Literal["irm", "pixels", "domainbed"]

_SHAPES = {"irm": (14, 14, 2), "pixels": (32, 32, 3), "domainbed": (28, 28, 2)}
_SPLITS = {"irm": ("train", "test"), "pixels": ("train", "validation", "test", "ood")}
_SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


class ColoredMnist(BaseDataset):
    """Digits with a label and a color, sampled once per seed.

    Rows are those of ``mnist``. Factors: ``digit``; ``clean_label``, 1 for the digits 0 to 4 and 0 for the others;
    ``label``, the clean label, flipped with probability 0.25; ``color``, the label, flipped with the probability of the
    environment; and ``environment``, named by that probability; and ``split``. All flips are independent and depend on
    the seed and the row only.

    The only modality is ``image``. The color determines which channel of the image is zero; see :func:`zeroed`.

    ============  ====================================================  ================================================
    recipe        ``"irm"`` [1]_                                        ``"pixels"`` [2]_
    ============  ====================================================  ================================================
    rows          the published training set, 60,000                    all 70,000
    image         (14, 14, 2) uint8: every second row and column        (32, 32, 3) uint8 sRGB: enlarged (bilinear)
    environment   the first 50,000 (five sixths), shuffled: 0.2 at      0.1, 0.2 and 0.9, one after the other: 23,333,
                  even places, 0.1 at odd ones; the others 0.9          23,333 and 23,334
    split         ``train`` (0.2 and 0.1), ``test`` (0.9)               ``train``, ``validation``, ``test``: 80, 10 and
                                                                        10 % of 0.1 and of 0.2; ``ood``: 0.9
    color alone   predicts 85 % of ``train``, 10 % of ``test``          predicts 85 % of the three, 10 % of ``ood``
    ============  ====================================================  ================================================

    The recipe ``"domainbed"`` [3]_ has all 70,000 rows, images of (28, 28, 2) uint8 at their original size, and the
    environments 0.1, 0.2 and 0.9 in turn along a shuffled order. It has no factor ``split``: the named splits
    ``leave-out-0.1``, ``leave-out-0.2`` and ``leave-out-0.9`` each test in one environment.

    The published code of [2]_ draws labels and colors again whenever an image is read;
    :class:`setsup_papers.pixels.FreshColors` does so in batches.

    Parameters
    ----------
    folder : Path or str
        Folder of the four files of MNIST, as for :class:`setsup.datasets.benchmarks.mnist.Mnist`.
    recipe : str
        ``"irm"``, ``"pixels"`` or ``"domainbed"``.
    seed : int
        0 ≤ seed < 2⁶⁴.
    permutation : sequence of int, Path or str, optional
        Only for ``"domainbed"``: order of the rows, instead of one derived from the seed: 70,000 integers, or a
        ``.npy`` file.

    Raises
    ------
    DataError
        When a file is missing, damaged or not the expected one, or the recipe or the permutation is invalid.

    Notes
    -----
    The published codes of [1]_ and [3]_ shuffle and flip without a seed, and that of [2]_ seeds the training part with
    the number of the run and the validation part with 0, so they overlap. Here one seed defines parts that do not
    overlap.

    """

    name = "colored-mnist"

    def __init__(
        self, folder: Path | str, recipe: Recipe = "irm", seed: int = 0, permutation: Permutation = None
    ) -> None:
        if not isinstance(recipe, str) or recipe not in _SHAPES:
            raise DataError(f"colored-mnist has no recipe {recipe!r}{did_you_mean(recipe, _SHAPES)}")
        if permutation is not None and recipe != "domainbed":
            raise DataError(
                f"the recipe {recipe!r} does not accept permutation=; use recipe='domainbed', or leave out permutation="
            )
        self.recipe = recipe
        self.folder, self._digits = Path(folder), Mnist(folder)
        self.factors = _table(self._digits.factors, recipe, seed, permutation)
        color = "srgb" if recipe == "pixels" else "red-green"
        self.modalities = {"image": Modality(_SHAPES[recipe], "uint8", color=color)}

    def __repr__(self) -> str:
        """Show the folder, the recipe and the number of rows."""
        return f"ColoredMnist({str(self.folder)!r}, {self.recipe!r}, {len(self):,} rows)"

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        grey = self._digits.fetch(rows, ["image"])["image"][..., 0]
        if self.recipe != "domainbed":
            grey = grey[..., ::2, ::2] if self.recipe == "irm" else _enlarge(grey)
        channels = out.shape[-1]
        dark = zeroed(self.factors.column("color").take(rows), channels)[..., np.newaxis, np.newaxis]
        for channel in range(channels):
            np.multiply(grey, dark != channel, out=out[..., channel])
        return out


def zeroed(color: Any, channels: int) -> Any:
    """Return the channel that is zero in an image of a color.

    Parameters
    ----------
    color : array or tensor of integers
        0 or 1.
    channels : int
        2, as in the recipe ``irm``, where color 0 is red and 1 is green: the channel 1 − color is empty. Or 3, as in
        ``pixels``, where color 0 is cyan and 1 is magenta: the channel ``color`` is empty.

    Returns
    -------
    array or tensor like ``color``

    Examples
    --------
    >>> zeroed(np.array([0, 1]), 2), zeroed(np.array([0, 1]), 3)
    (array([1, 0]), array([0, 1]))

    """
    return 1 - color if channels == 2 else color


def open(
    root: Path | str | None = None, *, recipe: Recipe = "irm", seed: int = 0, permutation: Permutation = None
) -> ColoredMnist:
    """Open Colored MNIST.

    Parameters
    ----------
    root : Path, str or None
        Folder with the files of MNIST, or with a folder ``colored-mnist`` or ``mnist`` that has them; None for the
        default folders of either name.
    recipe, seed, permutation
        As for :class:`ColoredMnist`.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them) or are damaged, or there is no such
        recipe.

    """
    return ColoredMnist(release("colored-mnist", root), recipe, seed, permutation)


def _table(mnist: FactorTable, recipe: str, seed: int, permutation: Permutation) -> FactorTable:
    key = stream_key(seed, "ColoredMnist")
    train = int(np.count_nonzero(mnist.column("split") == 0))
    count = train if recipe == "irm" else len(mnist)
    environment = _environments(count, int(fold(key, 0)), recipe, permutation)
    digit = mnist.column("digit")[:count]
    clean = (digit < 5).astype(np.uint8)
    chances = uniform(fold(fold(fold(key, 1), np.arange(count, dtype=np.uint64))[:, np.newaxis], np.arange(2)))
    label = clean ^ (chances[:, 0] < LABEL_NOISE)
    color = label ^ (chances[:, 1] < np.array(NOISE)[environment])
    bits = {"clean_label": clean, "label": label, "color": color}
    factors = [
        mnist["digit"],
        *(Factor(name, Kind.NOMINAL, (0, 1)) for name in bits),
        Factor("environment", Kind.NOMINAL, NOISE),
    ]
    table = FactorTable(factors, {"digit": digit, **bits, "environment": environment})
    if recipe not in _SPLITS:
        return table
    role = environment == 2 if recipe == "irm" else _deal(table, seed)
    return table.with_factor(Factor("split", Kind.NOMINAL, _SPLITS[recipe], role="split"), role.astype(np.uint8))


def _environments(count: int, key: int, recipe: str, permutation: Permutation) -> Codes:
    """Code of each row's environment."""
    if recipe == "domainbed":
        return deal(count, len(NOISE), key, permutation)
    return _shuffle(count, key) if recipe == "irm" else _stretches(count)


def _shuffle(count: int, key: int) -> Codes:
    """Environments of [1]: by even and odd places in a random order of the first five sixths, and the rest."""
    parts = np.full(count, 2, np.uint8)
    first = max(count * 5 // 6, 1)
    order = permute(key, first, np.arange(first))
    parts[order[::2]], parts[order[1::2]] = 1, 0
    return parts


def _stretches(count: int) -> Codes:
    """Environments of [2]: three stretches."""
    return np.minimum(np.arange(count) // max(count // 3, 1), 2).astype(np.uint8)


def _deal(table: FactorTable, seed: int) -> Array:
    """Parts of [2]: shares of each environment, and the last one as a whole."""
    inside = table.column("environment") < 2
    dealt = split(table.select(np.flatnonzero(inside)), _SHARES, seed, stratify="environment")
    parts = np.full(len(table), len(_SHARES), np.int64)
    parts[inside] = dealt.codes("split")
    return parts


def _weights(source: int, target: int) -> npt.NDArray[np.float32]:
    """Bilinear enlargement of one axis, (target, source); its corners are those of the image, not of its pixels."""
    centres = np.clip((np.arange(target) + 0.5) * source / target - 0.5, 0, source - 1)
    return np.asarray(np.maximum(1 - np.abs(centres[:, np.newaxis] - np.arange(source)), 0), np.float32)


_LARGER = _weights(28, 32)  # multiples of 1/16, so that products and sums of grey values are exact


def _enlarge(grey: Array) -> Array:
    """Images (..., 28, 28) uint8 as (..., 32, 32) uint8, rounded."""
    return np.asarray(np.rint(_LARGER @ grey.astype(np.float32) @ _LARGER.T).astype(np.uint8))
