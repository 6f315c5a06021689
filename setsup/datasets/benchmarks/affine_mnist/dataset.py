"""Affine MNIST: every digit with random affine copies on a larger canvas, computed when they are fetched.

An orbit is a digit of MNIST and its copies [1]_, [2]_. The rotation, shear, scale and translation of the copies are
sampled once per seed and are factors of the table. The digit itself, in the middle of the canvas, is the canonical
member of the orbit::

    digits = setsup.load("affine-mnist", root="mnist", split="embedding")
    orbits = setsup.OrbitSampler(digits.factors, "source", sets=32, size=8, canonical={"member": 0})

References
----------
.. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
   self-supervised visual experience", NeurIPS 2018.
.. [2] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Discriminate-and-rectify encoders: learning from image
   transformation sets", 2017 (arXiv 1703.04775).

"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.checks import check_number
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.affine_mnist.affine import ORDER, affine_copies, affine_maps
from setsup.datasets.benchmarks.idx_images import release
from setsup.datasets.benchmarks.mnist import Mnist
from setsup.datasets.dataset import Modality
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.factors.column_storage import code_dtype
from setsup.random import fold, stream_key, uniform

__all__ = ["RANGES", "AffineMnist", "open"]

RANGES: dict[str, tuple[float, float]] = {
    "rotation": (-math.pi / 2, math.pi / 2),
    "shear": (-0.3, 0.3),
    "scale": (0.7, 1.3),
    "translation_x": (-15.0, 15.0),
    "translation_y": (-15.0, 15.0),
}
"""Least and largest value of what the copies differ in; all are uniform in between."""

_UNITS = {"rotation": "rad", "translation_x": "px", "translation_y": "px"}
_UNCHANGED = {"scale": 1.0}  # of the digit itself; 0 of everything else
_SIDE = 40
_DRAWN_AT_ONCE = 1024  # digits


class AffineMnist(BaseDataset):
    """Digits and their affine copies: row ``source · (copies + 1) + member``, where member 0 is the digit itself.

    Factors: ``digit``; ``rotation`` (rad, counterclockwise as displayed), ``shear`` (x becomes x + shear · y),
    ``scale``, ``translation_x`` and ``translation_y`` (px, to the right and down), continuous and uniform in the ranges
    of the paper, :data:`RANGES`. The keys are ``source``, the row of ``mnist``, which identifies the orbit, and
    ``member``, 0 to ``copies``. The split ``split``: ``embedding`` is the first five sixths of the published training
    set, 50,000 digits, ``rest`` the remaining 10,000, and ``test`` the published test set. No orbit is in two parts.

    The modality ``image`` is (40, 40, 1) uint8 grayscale: 0 is background, 255 ink. Member 0 shows the digit unchanged
    in the middle. All other members are computed from the factors by bilinear interpolation, with 0 outside the digit's
    image. ``original`` is (28, 28, 1) uint8, the digit of which a row is a copy, for
    :class:`~setsup_papers.orbits.AffineMembers`, which computes the copies of a batch on its device.

    Parameters
    ----------
    folder : Path or str
        Folder of the four files of MNIST, as for :class:`setsup.datasets.benchmarks.mnist.Mnist`.
    copies : int
        Number of copies of each digit. The parameters of a copy do not depend on this number.
    order : sequence of str
        ``rotate``, ``shear``, ``scale`` and ``translate``, in the order in which they are applied; see
        :func:`setsup.datasets.benchmarks.affine_mnist.affine.affine_maps`.
    seed : int
        0 ≤ seed < 2⁶⁴.
    translation : float
        Largest translation in each direction in pixels; 15 in the papers.

    Attributes
    ----------
    order : tuple of str
        The order as passed.

    Raises
    ------
    DataError
        When a file is missing, damaged or not the expected one, or the order, the number of copies or the translation
        is invalid.

    Notes
    -----
    The papers specify the ranges, the size of the canvas, and 50,000 training digits with 32 copies each. They do not
    specify the order of the steps, the interpolation, the background of the canvas, or which 50,000 digits are used. By
    default the digit is rotated, sheared and scaled about its centre and then translated, which keeps about 95 % of the
    ink on the canvas; translating first keeps 91 %.

    """

    name = "affine-mnist"
    _parts: tuple[str, ...] = ("embedding", "rest", "test")

    def __init__(
        self,
        folder: Path | str,
        copies: int = 32,
        order: Sequence[str] = ORDER,
        seed: int = 0,
        translation: float = RANGES["translation_x"][1],
    ) -> None:
        moved = check_number(translation, "translation", DataError, 0)
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
            raise DataError(f"copies must be an integer of at least 1, not {copies!r}")
        affine_maps([], [], [], [], [], order)  # an order that is none is refused here and not when rows are fetched
        self.folder = self._source = Path(folder)
        self._digits = Mnist(folder)
        self.order, self._orbit = tuple(order), copies + 1
        self.factors = self._table(seed, {**RANGES, "translation_x": (-moved, moved), "translation_y": (-moved, moved)})
        self.modalities = {
            "image": Modality((_SIDE, _SIDE, 1), "uint8", color="grey"),
            "original": self._digits.modalities["image"],
        }

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        digits = self._digits.fetch(rows // self._orbit, ["image"])["image"][..., 0]
        if name == "original":
            out[..., 0] = digits
            return out
        drawn = {parameter: self.factors.column(parameter).take(rows) for parameter in RANGES}
        affine_copies(digits, affine_maps(**drawn, order=self.order), _SIDE, out[..., 0])
        return out

    def _table(self, seed: int, ranges: Mapping[str, tuple[float, float]]) -> FactorTable:
        count, digits = len(self._digits), self._digits.factors
        drawn = _parameters(seed, count, self._orbit, ranges)
        keys = {"source": count, "member": self._orbit}
        factors = [
            digits["digit"],
            *(Factor(name, Kind.CONTINUOUS, unit=_UNITS.get(name, "")) for name in RANGES),
            *(Factor(name, Kind.NOMINAL, tuple(range(levels)), role="key") for name, levels in keys.items()),
            Factor("split", Kind.NOMINAL, self._parts, role="split"),
        ]
        split = self._part_of(digits.column("digit"), digits.column("split") == 1)
        columns = {
            "digit": np.repeat(digits.column("digit"), self._orbit),
            **{name: values.reshape(-1) for name, values in drawn.items()},
            "source": np.repeat(np.arange(count, dtype=code_dtype(count)), self._orbit),
            "member": np.tile(np.arange(self._orbit, dtype=code_dtype(self._orbit)), count),
            "split": np.repeat(split.astype(np.uint8), self._orbit),
        }
        return FactorTable(factors, columns)

    def _part_of(self, digit: Array, test: npt.NDArray[np.bool_]) -> Array:
        """Part of each digit of MNIST, by what it is and whether it is of the published test set, which comes last."""
        train = int(np.count_nonzero(~test))
        return np.where(test, 2, np.arange(len(digit)) >= train * 5 // 6)


def open(
    root: Path | str | None = None,
    *,
    copies: int = 32,
    order: Sequence[str] = ORDER,
    seed: int = 0,
    translation: float = RANGES["translation_x"][1],
) -> AffineMnist:
    """Open Affine MNIST.

    Parameters
    ----------
    root : Path, str or None
        Folder of the MNIST files, or a folder with a subfolder ``affine-mnist`` or ``mnist`` that contains them; None
        for the default folders of either name.
    copies, order, seed, translation
        As for :class:`AffineMnist`.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them), or are damaged.

    """
    return AffineMnist(release("affine-mnist", root), copies, order, seed, translation)


def _parameters(
    seed: int, sources: int, orbit: int, ranges: Mapping[str, tuple[float, float]]
) -> dict[str, npt.NDArray[np.float32]]:
    """Value of each parameter for (sources, members), a function of the seed, the source and the member alone."""
    values = {name: np.full((sources, orbit), _UNCHANGED.get(name, 0.0), np.float32) for name in RANGES}
    key, members = stream_key(seed, "AffineMnist"), np.arange(1, orbit, dtype=np.uint64)
    for first in range(0, sources, _DRAWN_AT_ONCE):
        some = slice(first, min(first + _DRAWN_AT_ONCE, sources))
        copies = fold(fold(key, np.arange(some.start, some.stop, dtype=np.uint64))[:, None], members)
        for number, (name, (low, high)) in enumerate(ranges.items()):
            values[name][some, 1:] = low + (high - low) * uniform(fold(copies, number))
    return values
