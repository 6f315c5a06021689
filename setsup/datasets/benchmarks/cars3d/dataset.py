"""Cars3D: images of 183 car models from 24 azimuths and 4 elevations, read from the published MAT files."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from setsup.datasets.adapters.prepared_images import convert, prepare_command
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.cars3d.files import MOST_BYTES, LooseCars, PackedCars, Source, find_cars
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.matlab.mat import read_mat
from setsup.datasets.per_process import per_process
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.prepared import PreparedArray

__all__ = ["Cars3D", "open", "prepare"]

Take = Callable[[Rows, Array], Array]

_ELEVATIONS, _AZIMUTHS = 4, 24
_POSES = _ELEVATIONS * _AZIMUTHS
_SIDE = 128
_SHAPES = {"image": (_SIDE, _SIDE, 3), "object_mask": (_SIDE, _SIDE)}
_DTYPES = {"image": "uint8", "object_mask": "bool"}
# name of the variable in the files, its axes there, and these in the order that they have here
_STORED = {
    "image": ("im", (_SIDE, _SIDE, 3, _AZIMUTHS, _ELEVATIONS), (4, 3, 0, 1, 2)),
    "object_mask": ("mask", (_SIDE, _SIDE, _AZIMUTHS, _ELEVATIONS), (3, 2, 0, 1)),
}
_KEPT = 8  # cars, of 4.7 MB each, that a process keeps
_BLOCK = 8  # cars that are converted at once

_log = logging.getLogger("setsup")


@dataclass(slots=True)
class _Reader:
    """What one process has open."""

    lock: Lock = field(default_factory=Lock)
    takes: dict[str, Take] = field(default_factory=dict)

    cache: OrderedDict[tuple[str, int], Array] = field(default_factory=OrderedDict)


class Cars3D(BaseDataset):
    """Images of cars: every combination of elevation, azimuth and object once.

    The table is a grid: row ``(elevation · 24 + azimuth) · objects + object``. Objects are numbered by ``list.txt``, or
    by sorted names if it is missing; listed objects without a file are left out, and the others keep their numbers.
    Modalities are ``image``, (128, 128, 3) uint8 sRGB on white, and ``object_mask``, (128, 128) bool, true where the
    mask of the file is not zero. Both are read from the arrays that :func:`prepare` makes if they exist, else from the
    MAT files, each with the 96 images of a car, which is slow; a warning is logged once.

    Parameters
    ----------
    cars : LooseCars or PackedCars
        Location of the MAT files.
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Attributes
    ----------
    objects : tuple of str
        Name of each object's file, without ``.mat``.

    """

    name = "cars3d"

    def __init__(self, cars: LooseCars | PackedCars, root: Path | str | None = None) -> None:
        self._cars = cars
        self._source, self._command = cars.where, prepare_command(self.name, root)
        self.objects = cars.stems
        count = len(cars.stems)
        self.factors = FactorTable(
            [
                Factor("elevation", Kind.ORDINAL, tuple(range(_ELEVATIONS))),
                Factor("azimuth", Kind.CYCLIC, tuple(range(0, 360, 15)), unit="deg", period=360.0),
                Factor("object", Kind.NOMINAL, cars.numbers),
            ]
        )
        self.modalities = {
            "image": Modality(_SHAPES["image"], _DTYPES["image"], color="srgb"),
            "object_mask": Modality(_SHAPES["object_mask"], _DTYPES["object_mask"]),
        }
        self._arrays = {
            name: PreparedArray(cars.source, f"{name}s", (_POSES * count, *shape), _DTYPES[name], cars.files)
            for name, shape in _SHAPES.items()
        }
        # where an object stands in the prepared arrays, which follow the order of the source
        self._positions = np.argsort(np.array(cars.order, np.int64))
        self.cpu_bound = self._arrays["image"].find() is None

    def prepare(self) -> list[Path]:
        """Convert images and masks into arrays that are mapped into memory; see :func:`prepare`."""
        masks: dict[int, Array] = {}
        paths = []
        for name, array in self._arrays.items():
            with self._cars.reading() as read:
                fill = partial(self._fill, name, read, masks)
                paths.append(convert(array, f"{self.name} {name}s", _BLOCK * _POSES, fill))
        del self._reader  # from now on the arrays are read
        self.cpu_bound = False
        return paths

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        reader = self._reader
        with reader.lock:
            if name not in reader.takes:
                reader.takes[name] = self._open_take(name, reader)
        return reader.takes[name](rows, out)

    @per_process
    def _reader(self) -> _Reader:
        return _Reader()

    def _open_take(self, name: str, reader: _Reader) -> Take:
        array = self._arrays[name]
        prepared = array.open()
        if prepared is not None:
            return partial(self._from_array, prepared)
        outdated = array.outdated()
        why = f"{outdated} was created from other files" if outdated else "each file contains the 96 images of one car"
        if not self._cars.direct:
            raise DataError(
                f"{self._cars.where} can only be read sequentially{f' ({why})' if outdated else ''}; run "
                f"{self._command} once to convert it, or unpack it"
            )
        if not reader.takes:
            _log.warning(
                "reading %ss directly from %s is slow (%s); run %s once to convert them",
                *(name, self._cars.where, why, self._command),
            )
        return partial(self._from_files, name, reader)

    def _from_array(self, prepared: Array, rows: Rows, out: Array) -> Array:
        pose, number = np.divmod(rows, len(self.objects))
        return gather(prepared, self._positions[number] * _POSES + pose, out)

    def _from_files(self, name: str, reader: _Reader, rows: Rows, out: Array) -> Array:
        pose, number = np.divmod(rows, len(self.objects))
        for car in np.unique(number).tolist():
            here = number == car
            out[here] = self._car(name, reader, car)[pose[here]]
        return out

    def _car(self, name: str, reader: _Reader, number: int) -> Array:
        """Images or masks of an object by pose, kept for a while."""
        with reader.lock:
            car = reader.cache.get((name, number))
            if car is not None:
                reader.cache.move_to_end((name, number))
                return car
        with self._cars.reading() as read:
            car = _decode(read(number), [name])[name]
        with reader.lock:
            reader.cache[name, number] = car
            while len(reader.cache) > _KEPT:
                reader.cache.popitem(last=False)
        return car

    def _fill(
        self, name: str, read: Callable[[int], Source], masks: dict[int, Array], start: int, stop: int, out: Array
    ) -> None:
        """Convert a block of cars; masks that are met with the images are kept, as bits, for their turn."""
        for position in range(start // _POSES, stop // _POSES):
            number = self._cars.order[position]
            target = out[position * _POSES - start :][:_POSES]
            if name == "object_mask" and number in masks:
                target[:] = np.unpackbits(masks[number], axis=-1)
                continue
            arrays = _decode(read(number), ["image", "object_mask"] if name == "image" else [name])
            target[:] = arrays[name]
            if name == "image":
                masks[number] = np.packbits(arrays["object_mask"], axis=-1)


def open(root: Path | str | None = None) -> Cars3D:
    """Open Cars3D.

    Parameters
    ----------
    root : Path, str or None
        Folder with the MAT files (directly or in ``data/cars``), with a subfolder ``cars3d`` that contains them, or
        with the published ``nips2015-analogy-data.tar.gz``; or the archive itself, decompressed to a tar or as
        published. None for the default folders.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them), or if no listed file exists.

    """
    return Cars3D(find_cars(root), root)


def prepare(root: Path | str | None = None) -> list[Path]:
    """Convert images and masks once into arrays next to the files, which ``fetch`` then maps into memory.

    Works block by block within 300 MB of memory; an interrupted run resumes. The published
    archive is read through once. If the folder is read-only, arrays are written to the cache folder. Shows a progress
    bar.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    list of Path
        The array of the images and that of the masks, ``.npy`` files.

    Raises
    ------
    DataError
        As for :func:`open`, and when a file is damaged or the disk is full or not writable.

    """
    return open(root).prepare()


def _decode(source: Source, names: Iterable[str]) -> dict[str, Array]:
    """Images and masks of a car by pose, (96, 128, 128, 3) uint8 and (96, 128, 128) bool."""
    content, label = source
    names = list(names)
    stored = read_mat(content, label, [_STORED[name][0] for name in names], MOST_BYTES)
    return {name: _by_pose(stored[_STORED[name][0]], label, name) for name in names}


def _by_pose(stored: Any, label: str, name: str) -> Array:
    variable, shape, order = _STORED[name]
    kinds = "u" if name == "image" else "buif"
    right = isinstance(stored, np.ndarray) and stored.shape == shape and stored.dtype.kind in kinds
    if not right or (name == "image" and stored.dtype.itemsize != 1):
        what = (
            f"dtype {stored.dtype} and shape {stored.shape}"
            if isinstance(stored, np.ndarray)
            else "a value that is not an array"
        )
        expected = "uint8" if name == "image" else "numbers"
        raise DataError(
            f"{label}: {variable!r} has {what}; expected {expected} of shape {shape}; fetch the published file"
        )
    poses = np.ascontiguousarray((stored if name == "image" else stored != 0).transpose(order))
    return poses.reshape(_POSES, *_SHAPES[name])
