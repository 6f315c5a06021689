"""Index of the records of MOVi: where the frames are and what does not take room, made once and mapped.

Making it reads every byte of the release and compares every checksum; using it reads none.
"""

from functools import cache
from typing import NamedTuple

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.record_files import RecordFiles
from setsup.datasets.benchmarks.movi.records import FRAME, MOTION, SCENE, Scene, object_type, read_scene
from setsup.datasets.benchmarks.movi.variants import Variant
from setsup.datasets.cached_arrays import cached_npy
from setsup.datasets.formats.tfrecord.records import record_spans
from setsup.errors import DamagedFile
from setsup.files import cache_folder
from setsup.progress import progress

__all__ = ["Index", "read_index"]

_EDITION = 1


class Index(NamedTuple):
    """Structured arrays of all scenes, frames, objects, and objects by frame; `files` (scenes,) is the file of each."""

    scenes: Array
    frames: Array
    objects: Array
    motions: Array
    files: Rows


def read_index(files: RecordFiles, letter: str, variant: Variant, side: int) -> Index:
    """Index the files, or map their index from the cache folder."""

    @cache
    def made() -> tuple[Array, ...]:
        return _make(files, variant, side)

    folder = cache_folder() / "indexes" / "movi" / f"{files.identity()}.{letter}{side}.{_EDITION}"
    types = (SCENE, FRAME, object_type(variant), MOTION, np.dtype(np.int64))

    def array(place: int) -> Array:
        path = folder / f"{Index._fields[place]}.npy"
        return cached_npy(path, lambda found: found.dtype == types[place] and found.ndim == 1, lambda: made()[place])

    index = Index(*(array(place) for place in range(len(types))))
    frames, objects = index.scenes["frames"].astype(np.int64), index.scenes["objects"].astype(np.int64)
    lengths = (len(index.files), frames.sum(), objects.sum(), (frames * objects).sum(), len(index.scenes))
    if lengths != tuple(map(len, index)):
        raise DamagedFile(f"the arrays in {folder} do not belong together", "delete it and open the dataset again")
    return index


def _make(files: RecordFiles, variant: Variant, side: int) -> tuple[Array, ...]:
    scenes: list[Scene] = []
    of: list[int] = []
    with progress(int(files.sizes.sum()), f"indexing {files.source.name}", "B") as advance:
        for file in range(len(files)):
            content, label = files.content(file), files.label(file)
            for number, (start, length) in enumerate(record_spans(content, label).tolist()):
                where = f"{label}, record {number}"
                scenes.append(read_scene(content, start, start + length, variant, side, where))
                of.append(file)
            advance(int(files.sizes[file]))
    if not scenes:
        raise DamagedFile(f"{files.source} contains no records")
    return (*(np.concatenate(arrays) for arrays in zip(*scenes, strict=True)), np.array(of, np.int64))
