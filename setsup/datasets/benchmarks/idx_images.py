"""Grayscale images of 28 × 28 pixels with labels, in four IDX files: MNIST, and datasets in its format."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from setsup.datasets.adapters.alike import check_alike
from setsup.datasets.adapters.inconsistent import count_mismatch
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.idx import IdxFile
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["PREFIXES", "IdxImages", "release"]

PREFIXES = ("train", "t10k")
"""What the names of the files of the two parts begin with."""

_ALIKE = ("mnist", "fashion-mnist", "kmnist")  # whose files have these names and sizes
_SPLITS = ("train", "test")
_SIDE = 28


class IdxImages(BaseDataset):
    """Images: the rows of the train files, followed by those of the test files.

    The factors are `label` and ``split``. The only modality is ``image``, (28, 28, 1) uint8 grayscale: 0 is the
    background.

    Parameters
    ----------
    name : str
        Name of the dataset.
    folder : Path or str
        Folder of the four files.
    label : Factor
        Factor of the labels, with one level per label, in order.
    prefixes : sequence of two str
        Prefixes of the names of the train and test files.
    first : int
        The smallest label.
    transposed : bool
        Whether the files store images column by column.

    Raises
    ------
    DataError
        When a file is missing, damaged or not the expected one.

    """

    def __init__(
        self,
        name: str,
        folder: Path | str,
        label: Factor,
        prefixes: Sequence[str] = PREFIXES,
        first: int = 0,
        transposed: bool = False,
    ) -> None:
        self.name, self._transposed = name, transposed
        self._source = folder = Path(folder)
        images = [_open_file(folder, _names(prefix, "images", 3), (_SIDE, _SIDE)) for prefix in prefixes]
        labels = [_open_file(folder, _names(prefix, "labels", 1), ()) for prefix in prefixes]
        for image, file in zip(images, labels, strict=True):
            if len(image) != len(file):
                raise count_mismatch(image.path, len(image), file.path, len(file))
        self._train, self._test = images
        self.factors = FactorTable(
            [label, Factor("split", Kind.NOMINAL, _SPLITS, role="split")],
            {
                label.name: np.concatenate([_codes(file, label, first) for file in labels]),
                "split": np.repeat(np.arange(2, dtype=np.uint8), [len(file) for file in images]),
            },
        )
        self.modalities = {"image": Modality((_SIDE, _SIDE, 1), "uint8", color="grey")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        train, image = len(self._train), out[..., 0]
        if self._transposed:
            image = np.swapaxes(image, -1, -2)
        beyond = rows >= train
        if beyond.all():
            gather(self._test.array(), rows - train, image)
            return out
        gather(self._train.array(), rows, image)
        if beyond.any():
            image[beyond] = self._test.array()[rows[beyond] - train]
        return out


def release(name: str, root: Path | str | None, prefixes: Sequence[str] = PREFIXES) -> Path:
    """Find the folder of the four files, for the datasets that are published in them or derived from these."""
    from setsup.files import find_root

    wanted = [_names(prefix, what, axes) for what, axes in (("images", 3), ("labels", 1)) for prefix in prefixes]
    folder = find_root(name, root, wanted)
    if prefixes == PREFIXES:
        check_alike(name, folder, _ALIKE)
    return folder


def _names(prefix: str, what: str, axes: int) -> list[str]:
    """Names that mirrors give a file, the published one first."""
    return [f"{prefix}-{what}{mark}idx{axes}-ubyte{end}" for mark in "-." for end in (".gz", "")]


def _open_file(folder: Path, names: list[str], shape: tuple[int, ...]) -> IdxFile:
    there = [folder / name for name in names if (folder / name).exists()]
    if not there:
        raise DataError(
            f"{names[0]} is missing from {folder} (other accepted names: {', '.join(names[1:])}); fetch it, or pass "
            "the folder that contains it"
        )
    # unpacked files first: they are mapped into memory, which costs nothing
    file = IdxFile(min(there, key=lambda path: path.suffix == ".gz"))
    if file.dtype != np.uint8 or len(file.shape) != 1 + len(shape) or file.shape[1:] != shape:
        expected = ", ".join(["N", *map(str, shape)])
        raise DataError(
            f"{file.path} has dtype {file.dtype} and shape {file.shape}; expected uint8 of shape ({expected}); fetch "
            "the published file"
        )
    return file


def _codes(file: IdxFile, label: Factor, first: int) -> Array:
    labels = file.array()
    last = first + len(label.levels or ()) - 1
    wrong = (labels < first) | (labels > last)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{file.path}: the label of row {row} is {labels[row]}; expected a {label.name} from {first} to {last}; "
            "fetch the published file"
        )
    return labels if not first else labels - np.uint8(first)
