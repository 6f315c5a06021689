"""dSprites: 737,280 images of a white shape on black, read from the published ``.npz`` or ``.hdf5``."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.prepared_images import Container, PreparedImages
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.h5.images import H5Images, h5_dataset, h5_errors, h5_open
from setsup.datasets.formats.npz import NpzArray
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.prepare import Fill

__all__ = ["Dsprites", "open", "prepare"]

Labels = Callable[[int, int], tuple[Array, Array]]
"""``labels(start, stop)`` gives the classes and the values of rows ``start`` to ``stop − 1``, each (n, 6)."""

_STEM = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64"
_FILES = (f"{_STEM}.hdf5", f"{_STEM}.h5", f"{_STEM}.npz")  # the first that is there is opened
_SIDE = 64
_VALUES = (
    np.array([1.0]),
    np.array([1.0, 2.0, 3.0]),
    np.linspace(0.5, 1.0, 6),
    np.linspace(0.0, 2 * np.pi, 40),
    np.linspace(0.0, 1.0, 32),
    np.linspace(0.0, 1.0, 32),
)
_NEAR = 1e-4  # by which values may differ
_BLOCK = 1 << 15  # rows read at once
_LARGEST_RATIO = 1100  # of any filter that is read


class Dsprites(PreparedImages):
    """Images of a shape: its color, kind, scale, orientation and position.

    The published file contains every combination once, in C order, the vertical position changing fastest, and its
    table is a grid; a file with other rows gets a table with columns. The only modality is ``image``, (64, 64, 1) uint8
    grey: 255 is the shape, 0 the background (1 and 0 in the file). Images are read from the array that :func:`prepare`
    makes if it exists and belongs to the file. Without it the ``.hdf5`` is read, which is slow; a warning is logged
    once; the published, compressed ``.npz`` does not support random access.

    Parameters
    ----------
    file : Path or str
        The ``.npz`` or ``.hdf5``, recognized by its name.
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Raises
    ------
    DataError
        When the file is missing or damaged, or does not have the published content.

    Notes
    -----
    Orientations 0 and 2π are both present and show the same image; the square repeats every 90°, the ellipse every
    180°. Levels are the published values, rounded to four decimals. The array ``metadata`` of the ``.npz`` is a pickle
    and is never read.

    """

    name = "dsprites"

    def __init__(self, file: Path | str, root: Path | str | None = None) -> None:
        file = Path(file).absolute()
        with (_npz_labels if file.suffix == ".npz" else _h5_labels)(file) as (rows, labels):
            self.factors = _table(file, rows, labels)
        self.modalities = {"image": Modality((_SIDE, _SIDE, 1), "uint8", color="grey")}
        super().__init__(file, root, (rows, _SIDE, _SIDE))

    def _open_container(self) -> Container:
        if self.file.suffix == ".npz":
            npz = NpzArray(self.file, "imgs")
            _check_images(self.file, npz)
            return npz
        images = h5_dataset(self.file, h5_open(self.file), "imgs")
        with h5_errors(self.file):
            _check_images(self.file, images)
        return H5Images(self.file, images)

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        images = self._take(rows, out[..., 0])
        if images.size and images.max() > 1:
            raise _no_bits(self.file, int(rows[np.argmax(images.max(axis=(1, 2)))]), images)
        np.multiply(images, 255, out=images)
        return out

    def _filling(self, fill: Fill) -> Fill:
        def checked(start: int, stop: int, out: Array) -> None:
            fill(start, stop, out)
            if out.max() > 1:
                raise _no_bits(self.file, start + int(np.argmax(out.max(axis=(1, 2)))), out)

        return checked


def open(root: Path | str | None = None) -> Dsprites:
    """Open the published dSprites file.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5`` or ``.npz`` (of both the first is opened), or
        with a folder ``dsprites`` that has one; None for the default folders.

    Raises
    ------
    DataError
        When the file is missing (the message shows the command that fetches it), or does not have the published
        content.

    """
    from setsup.files import find_root

    folder = find_root("dsprites", root, [_FILES])
    return Dsprites(next(folder / name for name in _FILES if os.path.exists(folder / name)), root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Convert the images once into an array of 3 GB next to the file, which ``fetch`` then maps into memory.

    Works block by block within 1 GB of memory; an interrupted run resumes. If the folder is read-only, arrays are
    written to the cache folder. Shows a progress bar.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    list of Path
        The array, a ``.npy`` file; an empty list if the images in the file are not compressed, so no array is needed.

    Raises
    ------
    DataError
        As for :func:`open`, and when a pixel is neither 0 nor 1, or the disk is full or not writable.

    """
    return open(root).prepare()


# -- the files ---------------------------------------------------------------------------------------------------------


@contextmanager
def _npz_labels(path: Path) -> Iterator[tuple[int, Labels]]:
    """Rows of the npz, and how to read their labels."""
    images, classes, values = (NpzArray(path, name) for name in ("imgs", "latents_classes", "latents_values"))
    _check_images(path, images)
    _check_labels(path, images, classes, values)
    with classes.rows() as of_classes, values.rows() as of_values:

        def labels(start: int, stop: int) -> tuple[Array, Array]:
            block = np.empty((stop - start, 6), classes.dtype), np.empty((stop - start, 6), values.dtype)
            of_classes(start, stop, block[0])
            of_values(start, stop, block[1])
            return block

        yield len(images), labels


@contextmanager
def _h5_labels(path: Path) -> Iterator[tuple[int, Labels]]:
    """Rows of the hdf5, and how to read their labels."""
    import h5py

    with h5_errors(path), h5_open(path) as content:
        images = h5_dataset(path, content, "imgs")
        link = content.get("latents", getlink=True)
        if not isinstance(link, h5py.HardLink) or not isinstance(content["latents"], h5py.Group):
            raise DataError(f"{path} has no group 'latents'; fetch the published file")
        classes, values = (h5_dataset(path, content["latents"], name) for name in ("classes", "values"))
        _check_images(path, images)
        _check_labels(path, images, classes, values)
        for stored in (classes, values):
            # unwritten images are black and cost nothing; unwritten labels would let a small file claim any length
            if stored.size * stored.dtype.itemsize > stored.id.get_storage_size() * _LARGEST_RATIO:
                raise DataError(
                    f"{path}: 'latents' specifies {len(stored):,} labels, but contains only "
                    f"{stored.id.get_storage_size():,} bytes of them; fetch it again"
                )
        yield len(images), lambda start, stop: (classes[start:stop], values[start:stop])


def _check_images(path: Path, images: Any) -> None:
    if len(images.shape or ()) != 3 or images.shape[1:] != (_SIDE, _SIDE) or images.dtype != np.uint8:
        raise DataError(
            f"{path}: 'imgs' has dtype {images.dtype} and shape {images.shape}; expected uint8 of shape (N, 64, 64); "
            "fetch the published file"
        )


def _check_labels(path: Path, images: Any, classes: Any, values: Any) -> None:
    for what, labels, kinds, expected in (
        ("classes", classes, "iu", "integers"),
        ("values", values, "f", "floating-point numbers"),
    ):
        if len(labels.shape or ()) != 2 or labels.shape[1] != 6 or labels.dtype.kind not in kinds:
            raise DataError(
                f"{path}: the {what} have dtype {labels.dtype} and shape {labels.shape}; expected {expected} of shape "
                "(N, 6); fetch the published file"
            )
        if len(labels) != len(images):
            raise DataError(
                f"{path} has {len(images):,} images but {len(labels):,} {what}; expected the same number of both; "
                "fetch the file again"
            )
    if not len(images):
        raise DataError(f"{path} has no rows; fetch the published file")


def _table(path: Path, rows: int, labels: Labels) -> FactorTable:
    """Factors of the labels: a grid where they are the full product in C order, else columns."""
    factors = _factors()
    grid = FactorTable(factors)
    columns = np.empty((len(factors), rows), np.uint8)
    for start in range(0, rows, _BLOCK):
        stop = min(start + _BLOCK, rows)
        classes, values = labels(start, stop)
        for column, factor in enumerate(factors):
            codes = classes[:, column]
            known = (codes >= 0) & (codes < len(factor))
            told = _VALUES[column][np.where(known, codes, 0).astype(np.intp)]
            wrong = ~(known & (np.abs(values[:, column] - told) <= _NEAR))
            if wrong.any():
                row = int(np.argmax(wrong))
                raise DataError(
                    f"{path}: the {factor.name} of row {start + row} (column {column} of the labels) has the class "
                    f"{codes[row]} and the value {values[row, column]:g}, which contradict each other; fetch the "
                    "published file"
                )
            columns[column, start:stop] = codes
    by_name = {factor.name: codes for factor, codes in zip(factors, columns, strict=True)}
    same = rows == len(grid) and all(np.array_equal(grid.column(name), codes) for name, codes in by_name.items())
    return grid if same else FactorTable(factors, by_name)


def _factors() -> list[Factor]:
    levels = [tuple(np.round(values, 4).tolist()) for values in _VALUES]
    return [
        Factor("color", Kind.NOMINAL, ("white",)),
        Factor("shape", Kind.NOMINAL, ("square", "ellipse", "heart")),
        Factor("scale", Kind.ORDINAL, levels[2]),
        Factor("orientation", Kind.ORDINAL, levels[3], unit="rad"),
        Factor("pos_x", Kind.ORDINAL, levels[4]),
        Factor("pos_y", Kind.ORDINAL, levels[5]),
    ]


def _no_bits(path: Path, row: int, images: Array) -> DataError:
    return DataError(
        f"{path}: the image of row {row} contains the value {images.max()}; expected only 0 and 1; fetch the file again"
    )
