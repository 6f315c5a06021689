"""Shapes3D: 480,000 images of an object in a room, from the published ``3dshapes.h5`` or disentanglement_lib's npz."""

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.adapters.prepared_images import Container, PreparedImages
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.h5.images import H5Images, h5_dataset, h5_errors, h5_open
from setsup.datasets.formats.npz import NpzArray
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.scenes import shapes3d as scene

__all__ = ["Shapes3D", "open", "prepare"]

# the published file, and the one that disentanglement_lib expects; the first that is there is opened
_FILES = ("3dshapes.h5", "look-at-object-room_floor-hueXwall-hueXobj-hueXobj-sizeXobj-shapeXview-azi.npz")
_FACTORS = 6  # axes of the npz, and columns of the labels
_IMAGE = (64, 64, 3)
_LABEL_ROWS = 1 << 16  # read at a time
_LARGEST_RATIO = 1100  # of any filter that is read


class Shapes3D(PreparedImages):
    """Images of an object in a room: floor, wall and object hue, scale, shape and orientation.

    The published file contains every combination once, in C order, and its table is a grid; a file with other rows gets
    a table with columns. The only modality is ``image``, (64, 64, 3) uint8 sRGB. Images are read from the array that
    :func:`prepare` makes if it exists and belongs to the file, else from the file itself, which is slow for the
    published layout; a warning is logged once. A compressed ``.npz`` does not support random access and must be
    prepared.
    """

    name = "shapes3d"

    def __init__(self, file: Path | str, root: Path | str | None = None) -> None:
        file = Path(file).absolute()
        if file.suffix == ".npz":
            shape = _npz_images(file).shape
            self.factors = _npz_table(file)
        else:
            with h5_errors(file), h5_open(file) as content:
                images, labels = _check(file, content)
                shape = images.shape
                self.factors = _table(file, labels)
        self.modalities = {"image": Modality(_IMAGE, "uint8", color="srgb")}
        super().__init__(file, root, shape)

    def _open_container(self) -> Container:
        if self.file.suffix == ".npz":
            return _npz_images(self.file)
        images, _ = _check(self.file, h5_open(self.file))
        return H5Images(self.file, images)


def open(root: Path | str | None = None) -> Shapes3D:
    """Open the published Shapes3D file."""
    from setsup.files import find_root

    folder = find_root("shapes3d", root, [_FILES])
    return Shapes3D(next(folder / name for name in _FILES if os.path.exists(folder / name)), root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Convert the images once into an array next to the file, which ``fetch`` then maps into memory.

    Works block by block within 1 GB of memory; an interrupted run resumes. If the folder is read-only, the array is
    written to the cache folder.
    """
    return open(root).prepare()


def _check(path: Path, content: Any) -> tuple[Any, Any]:
    """Give ``images`` and ``labels`` of an open file, with the right shapes and types."""
    images, labels = (h5_dataset(path, content, name) for name in ("images", "labels"))
    with h5_errors(path):
        if len(images.shape or ()) != 4 or images.shape[1:] != _IMAGE or images.dtype != np.uint8:
            raise DataError(
                f"{path}: 'images' has dtype {images.dtype} and shape {images.shape}; expected uint8 of shape (N, 64, "
                "64, 3); fetch the published file"
            )
        if len(labels.shape or ()) != 2 or labels.shape[1] != 6 or labels.dtype.kind != "f":
            raise DataError(
                f"{path}: 'labels' has dtype {labels.dtype} and shape {labels.shape}; expected floating-point numbers "
                "of shape (N, 6); fetch the published file"
            )
        if len(images) != len(labels):
            raise DataError(
                f"{path} has {len(images):,} images but {len(labels):,} labels; expected the same number of both; "
                "fetch the file again"
            )
        if len(images) == 0:
            raise DataError(f"{path} has no rows; fetch the published file")
        # unwritten images are black and cost nothing; unwritten labels would let a small file claim any length
        if labels.size * labels.dtype.itemsize > labels.id.get_storage_size() * _LARGEST_RATIO:
            raise DataError(
                f"{path}: 'labels' specifies {len(labels):,} rows, but contains only {labels.id.get_storage_size():,} "
                "bytes of them; fetch it again"
            )
    return images, labels


def _npz_images(path: Path) -> NpzArray:
    """Give ``images`` of the npz, whose first axes are the factors, as rows."""
    images = NpzArray(path, "images", _FACTORS)
    if images.shape[1:] != _IMAGE or images.dtype != np.uint8:
        raise DataError(
            f"{path}: 'images' has dtype {images.dtype} and {len(images):,} rows of shape {images.shape[1:]}; expected "
            "uint8 rows of shape (64, 64, 3) after six factor axes; use the npz file of disentanglement_lib"
        )
    return images


def _npz_table(path: Path) -> FactorTable:
    """Factors of the npz: a grid where its axes have the published lengths, else what its labels say."""
    axes = NpzArray(path, "images").shape[:_FACTORS]
    grid = FactorTable(scene.factors())
    if axes == tuple(map(len, grid.factors)):
        return grid  # disentanglement_lib goes by the axes, too
    stored = NpzArray(path, "labels", _FACTORS)
    if stored.shape != (math.prod(axes), _FACTORS) or stored.dtype.kind != "f" or not len(stored):
        raise DataError(
            f"{path}: 'labels' has dtype {stored.dtype} and {len(stored):,} rows of shape {stored.shape[1:]}; expected "
            f"six floating-point numbers for each of {math.prod(axes):,} images; use the npz file of "
            "disentanglement_lib"
        )
    labels = np.empty(stored.shape, stored.dtype)
    with stored.rows() as fill:
        fill(0, len(stored), labels)
    return _table(path, labels)


def _table(path: Path, labels: Any) -> FactorTable:
    """Factors of the labels: a grid where they are the full product in C order, else columns."""
    factors = scene.factors()
    columns = np.empty((len(factors), len(labels)), np.uint8)
    for start in range(0, len(labels), _LABEL_ROWS):
        block = labels[start : start + _LABEL_ROWS]
        for position, factor in enumerate(factors):
            codes = scene.codes(factor.name, block[:, position])
            if codes.min() < 0:
                row = int(np.argmin(codes))
                raise DataError(
                    f"{path}: the {factor.name} of row {start + row} (column {position} of 'labels') is "
                    f"{block[row, position]:g}, which is not one of its levels; fetch the published file"
                )
            columns[position, start : start + len(block)] = codes
    grid = FactorTable(factors)
    same = len(grid) == len(labels)
    if same and all(
        np.array_equal(grid.column(factor.name), codes) for factor, codes in zip(factors, columns, strict=True)
    ):
        return grid
    return FactorTable(factors, {factor.name: codes for factor, codes in zip(factors, columns, strict=True)})
