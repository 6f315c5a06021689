"""Repackaged copies of NYU Depth V2: files of images and depth, whose folders define scene, scene type and split.

FastDepth's: ``train/<scene>/NNNNN.h5`` (frames of the recordings) and ``val/official/NNNNN.h5`` (the published test
images), each with ``rgb`` (3, 480, 640) uint8 and ``depth`` (480, 640) float32 metres. As images: ``rgb_NNNNN.jpg`` and
``sync_depth_NNNNN.png`` (16 bits, millimetres) in folders named after a scene or a scene type, which are in ``train``
and ``test`` for the labelled images.
"""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.depth_images import decode_depth
from setsup.datasets.formats.h5.images import h5_dataset, h5_errors
from setsup.datasets.formats.source import Source, source_content
from setsup.datasets.images import decode
from setsup.errors import DamagedFile, DataError
from setsup.factors import FactorTable
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.roots import data_places

__all__ = ["NyuRepack", "find_repack"]

_SIZE = (480, 640)
_MODALITIES = {
    "image": Modality((*_SIZE, 3), "uint8", color="srgb"),
    "depth": Modality(_SIZE, "float32", unit="m"),
}
_PART = r"(?:(?P<part>train|val|test)/)?"
_H5 = r"(?P<part>train|val)/(?P<folder>[^/]+)/(?P<number>[0-9]{5})\.h5"
_RGB = _PART + r"(?:(?P<folder>[^/]+)/)?rgb_(?P<number>[0-9]{5})\.jpg"
_HOLDS = {
    r"(train|val)/[^/]+/[0-9]{5}\.h5|((train|val|test)/)?([^/]+/)?rgb_[0-9]{5}\.jpg": "train/<scene>/00001.h5 or "
    "rgb_00000.jpg"
}
_ARCHIVES = ("nyudepthv2.tar", "nyudepthv2.zip")
_LIMIT = 1 << 24  # bytes of a file, which unpacked has 2.2 MB at most
_RECORDING = re.compile(r"(.+?)_([0-9]+)[a-z]?")
"""Name of a recording: kind of scene, number, and a letter where a scene was recorded in pieces."""


class NyuRepack(BaseDataset):
    """Images of rooms with depth, one or two files per row, sorted by name.

    Factors are derived from the folders: ``scene`` (the recording's name without the letter of its part) and
    ``scene_type``, both unknown if the folders do not define them, and ``split`` (``val`` counts as test); ``path`` is
    a key. Modalities are ``image`` (480, 640, 3) uint8 and ``depth`` (480, 640) float32 in metres, 0 if unknown.
    """

    name = "nyu"
    cpu_bound = True
    modalities = _MODALITIES

    def __init__(self, members: MemberIndex) -> None:
        self.source = self._source = members.source
        places, groups = members.matching(_H5)
        self._packed = len(places) > 0
        if not self._packed:
            places, groups = members.matching(_RGB)
        names = members.names.take(places)
        self.factors = _table(groups, names)
        self._files = {"image": MemberImages(members, places)}
        if not self._packed:
            self._files["depth"] = MemberImages(members, _depth_places(members, names))

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        read = _unpack if self._packed else _READ[name]

        def put(item: tuple[Source, str], slot: int) -> None:
            out[slot] = read(*item, name)

        read_distinct(rows, [out], self._files["image" if self._packed else name].take, put)
        return out


def find_repack(root: Path | str | None) -> NyuRepack | None:
    """Find a repackaged copy in the folders of the dataset; None if there is none."""
    places = data_places("nyu", root)
    sources = [source for folder in places for source in (folder, *(folder / archive for archive in _ARCHIVES))]
    if not any(os.path.exists(source) for source in sources):
        return None
    try:
        members = find_members("nyu", root, _HOLDS, _ARCHIVES)
    except DataError:
        if any(os.path.isfile(source) for source in sources):
            raise
        return None
    return NyuRepack(members)


def _table(groups: dict[str, Any], names: Any) -> FactorTable:
    # row by row for folders only, of which there are some hundreds
    folders = groups["folder"].dictionary_encode()
    told = [_told(folder) for folder in folders.dictionary.to_pylist()]
    folder = np.asarray(folders.indices.fill_null(-1))
    scene = [told[code][0] if code >= 0 else "" for code in folder.tolist()]
    kind = [told[code][1] if code >= 0 else "" for code in folder.tolist()]
    part = ["test" if part == "val" else part or "" for part in groups["part"].to_pylist()]
    return table_of(
        [
            nominal("scene", scene, within="scene_type"),
            nominal("scene_type", kind),
            nominal("split", part, None, "split", ("train", "test")),
            nominal("path", names.to_pylist(), role="key"),
        ]
    )


def _told(folder: str) -> tuple[str, str]:
    """Scene and kind of scene that a folder tells; empty where it tells none."""
    recording = _RECORDING.fullmatch(folder)
    if recording:
        kind, number = recording.groups()
        return f"{kind}_{number}", kind
    # a folder that is no recording is a kind of scene, but for that of the published test images
    return "", "" if folder == "official" else folder


def _depth_places(members: MemberIndex, names: Any) -> npt.NDArray[np.int64]:
    import pyarrow.compute as pc

    wanted = pc.replace_substring_regex(names, r"rgb_([0-9]{5})\.jpg$", r"sync_depth_\1.png")
    places = members.places(wanted.to_pylist())
    missing = np.flatnonzero(places < 0)
    if len(missing):
        raise DataError(
            f"{members.source}: {len(missing):,} of {len(places):,} depth images are missing, such as "
            f"{wanted[missing[0]]} for {names[missing[0]]}; unpack the release again"
        )
    return places


def _unpack(source: Source, label: str, name: str) -> Array:
    """One of the two arrays of an HDF5 file of its own."""
    import h5py

    content = source_content(source)
    if len(content) > _LIMIT:
        raise DataError(
            f"{label} has {len(content):,} bytes, more than the limit of {_LIMIT:,}; replace it with the published file"
        )
    key, shape, dtype = ("rgb", (3, *_SIZE), np.uint8) if name == "image" else ("depth", _SIZE, np.float32)
    with h5_errors(label), h5py.File(h5py.h5f.open_file_image(content)) as file:
        stored = h5_dataset(label, file, key)
        if stored.shape != shape or stored.dtype != dtype:
            raise DataError(
                f"{label}: {key!r} has dtype {stored.dtype} and shape {stored.shape}; expected {np.dtype(dtype)} of "
                f"shape {shape}"
            )
        read = np.empty(shape, dtype)
        stored.read_direct(read)
    if name == "depth" and not (np.isfinite(read).all() and read.min() >= 0):
        row, column = np.argwhere(~(np.isfinite(read) & (read >= 0)))[0]
        raise DamagedFile(
            f"{label}: the depth of pixel ({row}, {column}) is {read[row, column]} m; expected a finite number of at "
            "least 0 (0 means unknown depth)"
        )
    return np.moveaxis(read, 0, -1) if name == "image" else read


def _image(source: Source, label: str, name: str) -> Array:
    image = decode(source, label, 3)
    if image.shape[:2] != _SIZE:
        raise DataError(f"{label} is {image.shape[0]} × {image.shape[1]} pixels (height × width); expected 480 × 640")
    return image


def _depth(source: Source, label: str, name: str) -> Array:
    return decode_depth(source, label, _SIZE) / np.float32(1000)


_READ = {"image": _image, "depth": _depth}
