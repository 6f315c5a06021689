"""MNIST: handwritten digits, read from the four published idx files."""

from pathlib import Path

import numpy as np

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality, gather
from setsup.datasets.formats.idx import IdxFile
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["Mnist", "open", "release"]

_SPLITS = ("train", "test")
_PREFIXES = ("train", "t10k")
_SIDE = 28


class Mnist(BaseDataset):
    """Handwritten digits, the rows of the train files and after them those of the test files.

    In the published files rows 0 to 59,999 are train and 60,000 to 69,999 test. The factors are ``digit`` and ``split``
    (no factor of variation). The only modality is ``image``, (28, 28, 1) uint8 grey: 0 is paper, 255 ink.
    """

    name = "mnist"

    def __init__(self, folder: Path | str) -> None:
        folder = Path(folder)
        images = [_open_file(folder, _names(prefix, "images", 3), (_SIDE, _SIDE)) for prefix in _PREFIXES]
        labels = [_open_file(folder, _names(prefix, "labels", 1), ()) for prefix in _PREFIXES]
        for image, label in zip(images, labels, strict=True):
            if len(image) != len(label):
                raise DataError(
                    f"{image.path} has {len(image):,} images, but {label.path} has {len(label):,} labels; "
                    "they do not belong together: fetch both again"
                )
        self._train, self._test = images
        self._source = folder
        self.factors = FactorTable(
            [Factor("digit", Kind.NOMINAL, tuple(range(10))), Factor("split", Kind.NOMINAL, _SPLITS, role="split")],
            {
                "digit": np.concatenate([_digits(file) for file in labels]),
                "split": np.repeat(np.arange(2, dtype=np.uint8), [len(file) for file in images]),
            },
        )
        self.modalities = {"image": Modality((_SIDE, _SIDE, 1), "uint8", color="grey")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        train = len(self._train)
        beyond = rows >= train
        if beyond.all():
            gather(self._test.array(), rows - train, out[..., 0])
            return out
        gather(self._train.array(), rows, out[..., 0])
        if beyond.any():
            out[beyond, ..., 0] = self._test.array()[rows[beyond] - train]
        return out


def open(root: Path | str | None = None) -> Mnist:
    """Open MNIST."""
    return Mnist(release("mnist", root))


def release(name: str, root: Path | str | None) -> Path:
    """Find the folder of the four files, for MNIST and for datasets that are made of it."""
    from setsup.files import find_root

    wanted = [_names(prefix, what, axes) for what, axes in (("images", 3), ("labels", 1)) for prefix in _PREFIXES]
    return find_root(name, root, wanted)


def _names(prefix: str, what: str, axes: int) -> list[str]:
    """Names that mirrors give a file, the published one first."""
    return [f"{prefix}-{what}{mark}idx{axes}-ubyte{end}" for mark in "-." for end in (".gz", "")]


def _open_file(folder: Path, names: list[str], shape: tuple[int, ...]) -> IdxFile:
    there = [folder / name for name in names if (folder / name).exists()]
    if not there:
        raise DataError(f"{folder} has no {names[0]}, nor is it there as {', '.join(names[1:])}")
    # unpacked files first: they are mapped into memory, which costs nothing
    file = IdxFile(min(there, key=lambda path: path.suffix == ".gz"))
    if file.dtype != np.uint8 or len(file.shape) != 1 + len(shape) or file.shape[1:] != shape:
        expected = ", ".join(["N", *map(str, shape)])
        raise DataError(f"{file.path} holds {file.dtype} of the shape {file.shape}; uint8 ({expected}) was expected")
    return file


def _digits(file: IdxFile) -> Array:
    digits = file.array()
    if digits.max() > 9:
        row = int(np.argmax(digits > 9))
        raise DataError(f"{file.path}: the label of row {row} is {digits[row]}; a digit from 0 to 9 was expected")
    return digits
