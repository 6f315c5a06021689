"""NYU Depth V2, labelled: 1,449 images of rooms with depth and labels, from ``nyu_depth_v2_labeled.mat``.

Convention
----------
Images are 480 × 640 (height × width). Depth is the distance along the optical axis in metres, 0 if unknown. Pixels are
numbered from 0 and have their centres on the integers; the published intrinsics count from 1, like the toolbox that
projected the depth, so the principal point is 1 less here. Camera frame: x right, y down, z forward.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.adapters.prepared_images import convert, prepare_command
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.nyu.classes import read_classes13, read_classes40, read_split
from setsup.datasets.benchmarks.nyu.file import SIZE, STORED, open_file, open_stack, read_contents, table
from setsup.datasets.benchmarks.nyu.normals import Intrinsics, surface_normals
from setsup.datasets.benchmarks.nyu.repacks import NyuRepack, find_repack
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality, check_modalities
from setsup.datasets.formats.matlab.h5 import MatlabStack
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.files import need_space
from setsup.files.prepared import PreparedArray

__all__ = ["INTRINSICS", "NyuDepth", "crop", "open", "prepare"]

Take = Callable[[Rows, Array], Array]

INTRINSICS = Intrinsics(518.85790117450188, 519.46961112127485, 324.58244941119034, 252.73616633400465)
"""The color camera, to whose images the depth was projected, pixels counted from 0."""

_FILE, _SPLIT, _CLASSES40, _CLASSES13 = (
    "nyu_depth_v2_labeled.mat",
    "splits.mat",
    "classMapping40.mat",
    "class13Mapping.mat",
)
_CROP = (slice(45, 471), slice(41, 601))
_DERIVED = MappingProxyType({"labels40": "labels", "labels13": "labels", "normals": "depth"})
"""What is computed, and of what."""

_log = logging.getLogger("setsup")


@dataclass(slots=True)
class _Reader:
    """What one process has open."""

    lock: Lock = field(default_factory=Lock)
    file: Any = None
    takes: dict[str, Take] = field(default_factory=dict)


class NyuDepth(BaseDataset):
    """Images of rooms with depth and labels.

    Factors are ``scene`` (within ``scene_type`` if each scene has only one type), ``scene_type``, ``split`` and the key
    ``raw_rgb``, the name of the image in the raw recording. Modalities are ``image`` (480, 640, 3) uint8, whose
    outermost pixels are white; ``depth``, inpainted, and ``raw_depth``, with holes of 0, (480, 640) float32 in metres;
    ``labels`` uint16 and, if the class maps are next to the file, ``labels40`` and ``labels13`` uint8, 0 for
    unlabelled; ``instances`` uint8, which distinguishes objects of the same class; and ``normals`` (480, 640, 3)
    float32, unit vectors (x right, y down, z forward) that face the camera, computed from ``depth`` by
    :func:`setsup.datasets.benchmarks.nyu.normals.surface_normals` when they are fetched, 0 if undefined (without depth,
    or on a surface one pixel wide that is seen edge-on). :func:`crop` removes the border.

    Arrays are read from the output of :func:`prepare` if it exists and belongs to the file, else from the file itself,
    which decompresses each image at every read; a warning is logged once.

    Parameters
    ----------
    file : Path or str
        ``nyu_depth_v2_labeled.mat``; the other files are expected in the same folder.
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Attributes
    ----------
    classes : mapping of str to tuple of str
        Names of the classes of ``labels``, and of ``labels40`` and ``labels13`` if available.

    Raises
    ------
    DataError
        A file is missing, truncated, or has another format or unexpected content, or the files contradict each other.

    """

    name = "nyu"
    cpu_bound = True

    def __init__(self, file: Path | str, root: Path | str | None = None) -> None:
        self.file = Path(file).absolute()
        self._source, self._command = self.file, prepare_command(self.name, root)
        contents = read_contents(self.file)
        self.factors = table(contents, read_split(self.file.with_name(_SPLIT), len(contents.scenes)))
        self.classes: dict[str, tuple[str, ...]] = {"labels": contents.classes}
        self._maps: dict[str, npt.NDArray[np.uint8]] = {}
        self._read_classes()
        self.modalities = _modalities(self._maps)
        self._prepared = {
            name: PreparedArray(self.file, stored.key, (len(self), *stored.shape), stored.dtype)
            for name, stored in STORED.items()
        }

    def _read_all(self, rows: Rows, out: Mapping[str, Array]) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        for name in dict.fromkeys(_DERIVED.get(name, name) for name in out):
            room = out[name] if name in out else np.empty((len(rows), *STORED[name].shape), STORED[name].dtype)
            arrays[name] = self._take(name)(rows, room)
        return {name: self._derive(name, rows, arrays, out[name]) if name in _DERIVED else arrays[name] for name in out}

    def prepare(self, modalities: Iterable[str] | None = None) -> list[Path]:
        """Convert modalities into arrays that are mapped into memory; see :func:`prepare`."""
        arrays = {name: self._prepared[name] for name in self._to_prepare(modalities)}
        _need_space(arrays)
        made = []
        with open_file(self.file) as content:
            for name, array in arrays.items():
                stack = self._stack(content, name)
                fill = self._filler(name, stack)
                made.append(convert(array, f"{self.name} {name}", stack.block_rows, fill, stack.check))
        del self._reader  # from now on the arrays are read
        return made

    def _read_classes(self) -> None:
        """Look for the maps of classes next to the file; that to 13 classes starts from the 40."""
        forty, thirteen = self.file.with_name(_CLASSES40), self.file.with_name(_CLASSES13)
        if not os.path.exists(forty):
            return
        coarse = read_classes40(forty, len(self.classes["labels"]) - 1)
        self.classes["labels40"], self._maps["labels40"] = coarse.names, coarse.of
        if os.path.exists(thirteen):
            coarser = read_classes13(thirteen, len(coarse.names) - 1)
            self.classes["labels13"], self._maps["labels13"] = coarser.names, coarser.of[coarse.of]

    def _to_prepare(self, modalities: Iterable[str] | None) -> list[str]:
        if modalities is None:
            return list(STORED)
        names = check_modalities(self, modalities)
        return list(dict.fromkeys(_DERIVED.get(name, name) for name in names))

    def _take(self, name: str) -> Take:
        reader = self._reader
        with reader.lock:
            if name not in reader.takes:
                reader.takes[name] = self._open_take(name, reader)
            return reader.takes[name]

    @per_process
    def _reader(self) -> _Reader:
        return _Reader()

    def _open_take(self, name: str, reader: _Reader) -> Take:
        prepared = self._prepared[name].open()
        if prepared is not None:
            return partial(gather, prepared)
        if reader.file is None:
            reader.file = open_file(self.file)
            outdated = self._prepared[name].outdated()
            why = (
                f"{outdated} was created from another version of the file"
                if outdated
                else "each read decompresses a whole chunk"
            )
            _log.warning(
                "reading images directly from %s is slow (%s); run %s once to convert it", self.file, why, self._command
            )
        stack = self._stack(reader.file, name)
        return partial(self._labels, stack) if name == "labels" else stack.take

    def _stack(self, content: Any, name: str) -> MatlabStack:
        stack = open_stack(self.file, content, name)
        if stack.shape[0] != len(self):
            raise replaced(self.file)
        return stack

    def _labels(self, stack: MatlabStack, rows: Rows, out: Array | None) -> Array:
        return self._known(stack.take(rows, out))

    def _filler(self, name: str, stack: MatlabStack) -> Callable[[int, int, Array], None]:
        def fill(start: int, stop: int, out: Array) -> None:
            stack.fill(start, stop, out)
            self._known(out)

        return fill if name == "labels" else stack.fill

    def _known(self, labels: Array) -> Array:
        """Refuse labels of classes that have no name: maps of classes have no place for them."""
        most = labels.max(initial=0)
        last = len(self.classes["labels"]) - 1
        if most > last:
            raise DamagedFile(f"{self.file}: 'labels' contains the class {most}, but 'names' has only {last:,} entries")
        return labels

    def _derive(self, name: str, rows: Rows, stored: Mapping[str, Array], out: Array) -> Array:
        source = stored[_DERIVED[name]]
        if name != "normals":
            return self._maps[name].take(source, out=out, mode="clip")

        def put(depth: Array, slot: int) -> None:
            out[slot] = surface_normals(depth, intrinsics=INTRINSICS)

        first = np.unique(rows, return_index=True)[1]
        read_distinct(rows, [out], lambda distinct: list(source[first]), put)
        return out


def open(root: Path | str | None = None) -> NyuDepth | NyuRepack:
    """Open the published files or, if they are missing, a repackaged copy.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``nyu_depth_v2_labeled.mat`` and ``splits.mat`` (and the class maps ``classMapping40.mat`` and
        ``class13Mapping.mat``, which ``labels40`` and ``labels13`` require), or with a subfolder ``nyu`` that contains
        them; None for the default folders. Repackaged copies with only image and depth are accepted too: the folder or
        tar ``nyudepthv2`` of HDF5 files that FastDepth uses, or a folder of ``rgb_NNNNN.jpg`` and
        ``sync_depth_NNNNN.png``.

    Raises
    ------
    DataError
        When the files are missing (the message shows the command that fetches them), damaged or not the expected ones.

    """
    from setsup.files import data_places, find_root

    if not any(os.path.exists(folder / _FILE) for folder in data_places("nyu", root)):
        repack = find_repack(root)
        if repack is not None:
            return repack
    return NyuDepth(find_root("nyu", root, [_FILE, _SPLIT]) / _FILE, root)


def prepare(root: Path | str | None = None, modalities: Iterable[str] | None = None) -> list[Path]:
    """Convert images, depths, labels and instances once into arrays next to the file, which ``fetch`` then maps.

    All arrays require 6.2 GB of free disk space. Conversion proceeds block by block with a progress bar; an interrupted
    run resumes. If the folder is read-only, arrays are written to the cache folder.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.
    modalities : iterable of str, optional
        Modalities to convert, such as ``["image", "depth"]``; by default all modalities of the file.

    Returns
    -------
    list of Path
        The arrays, ``.npy`` files.

    Raises
    ------
    DataError
        As for :func:`open`, and when the disk is full or not writable, or the files are a repackaged copy.

    """
    dataset = open(root)
    if isinstance(dataset, NyuRepack):
        raise DataError(
            f"{dataset.source} is a repackaged copy of nyu and needs no preparation; only {_FILE} can be prepared"
        )
    return dataset.prepare(modalities)


def crop(images: Array) -> Array:
    """Remove the border, which the projection left white: keep rows 45 to 470 and columns 41 to 600.

    This is the usual crop in depth estimation, introduced by Eigen, Puhrsch and Fergus (2014).

    Parameters
    ----------
    images : (..., 480, 640) or (..., 480, 640, channels) array
        Any of the modalities.

    Returns
    -------
    (..., 426, 560) or (..., 426, 560, channels) array
        A view.

    Raises
    ------
    DataError
        The images have another size.

    Examples
    --------
    >>> crop(np.zeros((2, 480, 640, 3))).shape, crop(np.zeros((480, 640))).shape
    ((2, 426, 560, 3), (426, 560))

    """
    if images.shape[-2:] == SIZE:
        return images[..., *_CROP]
    if images.shape[-3:-1] == SIZE:
        return images[..., *_CROP, :]
    raise DataError(f"images to crop must have 480 × 640 pixels (height × width), not the shape {images.shape}")


def _modalities(coarse: Iterable[str]) -> dict[str, Modality]:
    more = {"image": {"color": "srgb"}, "depth": {"unit": "m"}, "raw_depth": {"unit": "m"}}
    return {
        **{name: Modality(stored.shape, stored.dtype, **more.get(name, {})) for name, stored in STORED.items()},
        **{name: Modality(SIZE, "uint8") for name in coarse},
        "normals": Modality((*SIZE, 3), "float32"),
    }


def _need_space(arrays: Mapping[str, PreparedArray]) -> None:
    """Say before the first array is begun that the last will not fit."""
    needed: dict[Path, int] = {}
    for array in arrays.values():
        if array.find() is None:
            target = array.place()
            part = target.with_name(target.name + ".part")  # what an earlier run has written of it
            held = part.stat().st_blocks * 512 if part.exists() else 0
            needed[target.parent] = needed.get(target.parent, 0) + max(array.size - held, 0)
    for folder, size in needed.items():
        need_space(folder, size, "preparing nyu")
