"""MPI3D: images of an object on a robot arm, every combination of seven factors, from the published ``.npz``."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from setsup.datasets.adapters.prepared_images import Container, PreparedImages
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.npz import NpzArray
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["Mpi3D", "open_variant"]

Grid = Mapping[str, tuple[str, ...]]
"""Levels of the factors that differ between files."""

_IMAGE = (64, 64, 3)

# The file has no labels. Its length tells the grid: that of the release, or that of the challenge at NeurIPS 2019.
_GRIDS = (
    {
        "object_color": ("white", "green", "red", "blue", "brown", "olive"),
        "object_shape": ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere"),
    },
    {
        "object_color": ("green", "red", "blue", "brown"),
        "object_shape": ("cone", "cube", "hexagonal", "sphere"),
    },
)
_COMPLEX = (
    {
        "object_color": ("yellow", "green", "olive", "red"),
        "object_shape": ("coffee-cup", "tennis-ball", "croissant", "beer-cup"),
    },
)
_SIZES = ("small", "large")
_HEIGHTS = ("top", "center", "bottom")
_GROUNDS = ("purple", "sea green", "salmon")
_TURNS = 40  # of each of the arm's two axes


class Mpi3D(PreparedImages):
    """Images of an object on a robot arm, by object, camera, background and position of the arm.

    The table is a grid of ``object_color``, ``object_shape``, ``object_size``, ``camera_height``, ``background_color``,
    ``horizontal_axis`` and ``vertical_axis``, the last changing fastest: 6 · 6 · 2 · 3 · 3 · 40 · 40 = 1,036,800 rows.
    The file of the NeurIPS 2019 challenge, which is recognized by its length, and the file of the complex objects,
    which have other colors and shapes, have 4 · 4 · 2 · 3 · 3 · 40 · 40 = 460,800. The only modality is ``image``, (64,
    64, 3) uint8 sRGB. It is mapped into memory, never loaded: from the ``.npz`` if that is uncompressed, else from the
    array that ``setsup prepare`` makes.

    Parameters
    ----------
    file : Path or str
        The ``.npz``.
    name : str
        ``"mpi3d-toy"``, ``"mpi3d-realistic"``, ``"mpi3d-real"`` or ``"mpi3d-complex"``.
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Raises
    ------
    DataError
        When the file is missing or damaged, or has an unexpected number of images.

    """

    def __init__(self, file: Path | str, name: str = "mpi3d-toy", root: Path | str | None = None) -> None:
        self.name = name
        file = Path(file).absolute()
        images = NpzArray(file, "images")
        _check_images(file, images)
        self.factors = _table(file, len(images), _COMPLEX if name == "mpi3d-complex" else _GRIDS)
        self.modalities = {"image": Modality(_IMAGE, "uint8", color="srgb")}
        super().__init__(file, root, images.shape)

    def _open_container(self) -> Container:
        images = NpzArray(self.file, "images")
        _check_images(self.file, images)
        return images


def open_variant(name: str, root: Path | str | None, files: Sequence[str]) -> Mpi3D:
    """Open a variant of MPI3D."""
    from setsup.files import find_root

    folder = find_root(name, root, [files])
    return Mpi3D(next(folder / file for file in files if os.path.exists(folder / file)), name, root)


def _check_images(path: Path, images: NpzArray) -> None:
    if len(images.shape) != 4 or images.shape[1:] != _IMAGE or images.dtype != np.uint8:
        raise DataError(
            f"{path}: 'images' has dtype {images.dtype} and shape {images.shape}; expected uint8 of shape (N, 64, 64, "
            "3); fetch the published file"
        )


def _table(path: Path, count: int, grids_of: Sequence[Grid]) -> FactorTable:
    grids = [_factors(grid) for grid in grids_of]
    lengths = [math.prod(map(len, factors)) for factors in grids]
    if count not in lengths:
        known = " or ".join(f"{length:,}" for length in lengths)
        raise DamagedFile(
            f"{path} has {count:,} images and no labels; expected {known} images, because only a complete grid can be "
            "read without labels"
        )
    return FactorTable(grids[lengths.index(count)])


def _factors(grid: Grid) -> list[Factor]:
    return [
        *(Factor(name, Kind.NOMINAL, levels) for name, levels in grid.items()),
        Factor("object_size", Kind.ORDINAL, _SIZES),
        Factor("camera_height", Kind.ORDINAL, _HEIGHTS),
        Factor("background_color", Kind.NOMINAL, _GROUNDS),
        Factor("horizontal_axis", Kind.ORDINAL, tuple(range(_TURNS))),
        Factor("vertical_axis", Kind.ORDINAL, tuple(range(_TURNS))),
    ]
