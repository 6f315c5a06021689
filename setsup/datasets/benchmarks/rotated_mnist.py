"""Rotated MNIST as in DomainBed: each digit is in one of six environments, each of which has one angle of rotation.

References
----------
.. [1] I. Gulrajani, D. Lopez-Paz, "In Search of Lost Domain Generalization", ICLR 2021 (arXiv 2007.01434), and its
   published code.
.. [2] M. Ghifary, W. B. Kleijn, M. Zhang, D. Balduzzi, "Domain Generalization for Object Recognition with Multi-task
   Autoencoders", ICCV 2015.

"""

from pathlib import Path

import numpy as np
from PIL import Image

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.idx_images import release
from setsup.datasets.benchmarks.mnist import Mnist
from setsup.datasets.benchmarks.mnist_environments import Permutation, deal
from setsup.factors import Factor, FactorTable, Kind
from setsup.random import stream_key

__all__ = ["ANGLES", "RotatedMnist", "open"]

ANGLES = (0, 15, 30, 45, 60, 75)
"""Angles of the environments, degrees counterclockwise."""


class RotatedMnist(BaseDataset):
    """Digits, each rotated by the angle of its environment.

    Rows are those of ``mnist``: 60,000 of its training part, then 10,000 of its test part, which DomainBed joins.
    Factors are ``digit`` and the ordinal ``angle``, by which the image is rotated counterclockwise about its centre
    (bilinear, 0 outside), as in Pillow and torchvision. All rows are shuffled and assigned to the environments in turn.
    The only modality is ``image``, (28, 28, 1) uint8 grayscale.

    Parameters
    ----------
    folder : Path or str
        Folder of the four files of MNIST, as for :class:`setsup.datasets.benchmarks.mnist.Mnist`.
    seed : int
        0 ≤ seed < 2⁶⁴.
    permutation : sequence of int, Path or str, optional
        Order of the rows, instead of one derived from the seed: 70,000 integers, or a ``.npy`` file of them.

    Raises
    ------
    DataError
        When a file is missing, damaged or not the expected one, or the permutation is invalid.

    Notes
    -----
    The published code shuffles without a seed, so each of its runs has different environments. Until 2021 it
    interpolated with Pillow's bicubic filter.

    """

    name = "rotated-mnist"
    cpu_bound = True

    def __init__(self, folder: Path | str, seed: int = 0, permutation: Permutation = None) -> None:
        self.folder = self._source = Path(folder)
        self._digits = Mnist(folder)
        digits = self._digits.factors
        angle = deal(len(digits), len(ANGLES), int(stream_key(seed, "RotatedMnist")), permutation)
        self.factors = FactorTable(
            [digits["digit"], Factor("angle", Kind.ORDINAL, ANGLES, unit="deg")],
            {"digit": digits.column("digit"), "angle": angle},
        )
        self.modalities = self._digits.modalities

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        digits = self._digits.fetch(rows, ["image"])["image"][..., 0]
        for image, code, slot in zip(digits, self.factors.column("angle").take(rows).tolist(), out, strict=True):
            turned = Image.fromarray(image).rotate(ANGLES[code], Image.Resampling.BILINEAR, fillcolor=0)
            slot[..., 0] = np.asarray(turned)
        return out


def open(root: Path | str | None = None, *, seed: int = 0, permutation: Permutation = None) -> RotatedMnist:
    """Open Rotated MNIST.

    Parameters
    ----------
    root : Path, str or None
        Folder with the files of MNIST, or with a folder ``rotated-mnist`` or ``mnist`` that has them; None for the
        default folders of either name.
    seed, permutation
        As for :class:`RotatedMnist`.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them) or damaged, or the permutation is
        invalid.

    """
    return RotatedMnist(release("rotated-mnist", root), seed, permutation)
