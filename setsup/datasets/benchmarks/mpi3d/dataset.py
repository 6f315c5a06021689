"""MPI3D: pictures of an object on a robot's arm, every combination of seven factors, from the published ``.npz``."""

import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, Modality, fetch_request, gather
from setsup.datasets.formats.npz import NpzArray
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.prepared import PreparedArray

__all__ = ["Mpi3D", "open_variant"]

Array = npt.NDArray[Any]

_PICTURE = (64, 64, 3)
_BLOCK = 8192  # pictures that are converted at once, 100 MB

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
_SIZES = ("small", "large")
_HEIGHTS = ("top", "center", "bottom")
_GROUNDS = ("purple", "sea green", "salmon")
_TURNS = 40  # of each of the arm's two axes


@dataclass(slots=True)
class _Reader:
    """What one process has open."""

    lock: Lock = field(default_factory=Lock)
    images: Array | None = None


class Mpi3D(Dataset):
    """Pictures of an object on a robot's arm: what it is, how the camera and the ground are, and where the arm is.

    The table is a grid of ``object_color``, ``object_shape``, ``object_size``, ``camera_height``, ``background_color``,
    ``horizontal_axis`` and ``vertical_axis``, the last changing fastest: 6 · 6 · 2 · 3 · 3 · 40 · 40 = 1,036,800 rows,
    or 4 · 4 · 2 · 3 · 3 · 40 · 40 = 460,800 in the file of the challenge at NeurIPS 2019, which is told by its length.
    The one modality is ``image``, (64, 64, 3) uint8 sRGB. It is mapped into memory, never loaded: out of the ``.npz``
    where that is not packed, else out of the array that ``setsup prepare`` makes.

    Parameters
    ----------
    file : Path or str
        The ``.npz``.
    name : str
        ``"mpi3d-toy"``, ``"mpi3d-realistic"`` or ``"mpi3d-real"``.
    root : Path or str, optional
        What the user gave as root, for the command that messages name.

    Raises
    ------
    DataError
        The file is missing, damaged, or does not hold as many pictures as it should.

    """

    def __init__(self, file: Path | str, name: str = "mpi3d-toy", root: Path | str | None = None) -> None:
        self.file, self.name = Path(file).absolute(), name
        self._option = "" if root is None else f" --root {shlex.quote(str(root))}"
        images = NpzArray(self.file, "images")
        self.factors = _table(self.file, images)
        self.modalities = {"image": Modality(_PICTURE, "uint8", color="srgb")}
        self._packed = images.packed
        self._prepared = PreparedArray(self.file, "images", images.shape, "uint8")
        self._readers: dict[int, _Reader] = {}

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: gather(self._images(), rows) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write pictures into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        for name in names:
            gather(self._images(), rows, out[name])

    def prepare(self) -> list[Path]:
        """Unpack the pictures into an array that is mapped into memory, 12.7 GB, unless that was done already.

        Works block by block and within 300 MB of memory; killed and started again it goes on where it was. Where the
        folder is read-only the array goes into the cache folder.

        Returns
        -------
        list of Path
            The array, a ``.npy`` file; nothing where the ``.npz`` is not packed, and none is made.

        Raises
        ------
        DataError
            The file is damaged, or the disk is full or may not be written.

        """
        from setsup.files.prepare import prepare_array
        from setsup.progress import progress

        images = self._npz()
        if not images.packed:
            return []
        with progress(len(self), f"preparing {self.name}", "rows") as advance, images.rows() as fill:
            found = prepare_array(self._prepared, _BLOCK, fill, None, advance)
        self._readers.pop(os.getpid(), None)  # from now on the array is read
        return [found]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what this process has open."""
        return {**self.__dict__, "_readers": {}}

    def __repr__(self) -> str:
        """Show the file and the number of rows."""
        return f"Mpi3D({str(self.file)!r}, {len(self):,} rows)"

    def _images(self) -> Array:
        # keyed by process: a forked child must not use its parent's locks
        reader = self._readers.get(os.getpid()) or self._readers.setdefault(os.getpid(), _Reader())
        if reader.images is None:
            with reader.lock:
                if reader.images is None:
                    reader.images = self._opened()
        return reader.images

    def _opened(self) -> Array:
        if not self._packed:
            return self._npz().mapped()
        prepared = self._prepared.open()
        if prepared is not None:
            return prepared
        outdated = self._prepared.outdated()
        why = f" ({outdated} was made of another version of it)" if outdated else ""
        raise DataError(
            f"{self.file} can only be read from its begin to its end{why}; run `setsup prepare {self.name}"
            f"{self._option}` once"
        )

    def _npz(self) -> NpzArray:
        images = NpzArray(self.file, "images")
        if (images.shape, images.packed, images.dtype.str) != (self._prepared.shape, self._packed, "|u1"):
            raise DataError(f"{self.file} was replaced since it was opened; open it again")
        return images


def open_variant(name: str, root: Path | str | None, files: Sequence[str]) -> Mpi3D:
    """Open a variant of MPI3D."""
    from setsup.files import find_root

    folder = find_root(name, root, [files])
    return Mpi3D(next(folder / file for file in files if os.path.exists(folder / file)), name, root)


def _table(path: Path, images: NpzArray) -> FactorTable:
    if len(images.shape) != 4 or images.shape[1:] != _PICTURE or images.dtype != np.uint8:
        raise DataError(f"{path}: 'images' is {images.dtype} {images.shape}; uint8 (N, 64, 64, 3) was expected")
    grids = [_factors(grid) for grid in _GRIDS]
    lengths = [math.prod(map(len, factors)) for factors in grids]
    if len(images) not in lengths:
        known = " or ".join(f"{length:,}" for length in lengths)
        raise DamagedFile(
            f"{path} has {len(images):,} pictures, where {known} were expected: it has no labels, so only a whole grid "
            "can be read"
        )
    return FactorTable(grids[lengths.index(len(images))])


def _factors(grid: Mapping[str, tuple[str, ...]]) -> list[Factor]:
    return [
        *(Factor(name, Kind.NOMINAL, levels) for name, levels in grid.items()),
        Factor("object_size", Kind.ORDINAL, _SIZES),
        Factor("camera_height", Kind.ORDINAL, _HEIGHTS),
        Factor("background_color", Kind.NOMINAL, _GROUNDS),
        Factor("horizontal_axis", Kind.ORDINAL, tuple(range(_TURNS))),
        Factor("vertical_axis", Kind.ORDINAL, tuple(range(_TURNS))),
    ]
