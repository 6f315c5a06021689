"""KeypointNet's renderings of ShapeNet (2018): pairs of views of cars, planes and chairs, read without TensorFlow.

Any of ``cars_with_keypoints.zip`` and its two siblings can be opened as a zip, a tar or unpacked. Each record file is
one object, each record a pair of views. Poses are those of :mod:`setsup.datasets.benchmarks.shapenet_renderings.poses`.
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from setsup.datasets import images
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.shapenet_renderings.parts import CATEGORIES, NAME, check_apart, open_part, part_table
from setsup.datasets.benchmarks.shapenet_renderings.poses import to_pascal3d
from setsup.datasets.benchmarks.shapenet_renderings.records import SIDE
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.source import Source
from setsup.errors import DataError, advice
from setsup.files.roots import data_places, place_seen, root_option

__all__ = ["ShapenetRenderings", "open", "prepare"]

_SHAPES = {"image": (SIDE, SIDE, 4), "model_view": (4, 4), "rotation": (3, 3)}
_ENDS = ("", ".tar", ".zip")  # best first: a folder is read at random


class ShapenetRenderings(BaseDataset):
    """Rendered views of cars, planes and chairs: one row per view, the two views of a pair one after the other.

    The factors are ``category``, ``object`` (a ShapeNet id if ``job.txt`` lists it, else the name of the record),
    ``azimuth`` and ``elevation`` in degrees, and the keys ``record``, ``pair`` (number of the pair within its record)
    and ``view`` (number of the view within its record), and ``split``. In the whole dataset the other view of row r is
    row ``r ^ 1``. The modalities are ``image``, (128, 128, 4) uint8 sRGB and alpha; ``model_view``, (4, 4) float32,
    from y-up object coordinates to those of the camera; ``rotation``, (3, 3) float32, its rotation from the object axes
    of Pascal3D+.

    Parameters
    ----------
    sources : mapping of str to Path
        Zip, tar or folder of some of ``car``, ``plane`` and ``chair``.

    Attributes
    ----------
    projections : dict of str to (4, 4) float32
        Camera projection P of each category with a ``projection.txt``: a point (x, y, z) of the camera's coordinates is
        seen at (−P[0, 0]·x/z, −P[1, 1]·y/z), each from −1 to 1, y up.

    Raises
    ------
    DataError
        When a file is damaged or not the expected one, a listed file is missing, or two categories are the same
        release.

    """

    name = NAME
    cpu_bound = True

    def __init__(self, sources: Mapping[str, Path]) -> None:
        self._parts = [open_part(category, sources[category]) for category in CATEGORIES if category in sources]
        check_apart(self._parts)
        self.factors = part_table(self._parts)
        self.projections = {part.category: part.projection for part in self._parts if part.projection is not None}
        self.modalities = {
            "image": Modality(_SHAPES["image"], "uint8", color="srgb"),
            "model_view": Modality(_SHAPES["model_view"], "float32"),
            "rotation": Modality(_SHAPES["rotation"], "float32"),
        }
        self._firsts = np.cumsum([0, *(len(part.views.offsets) for part in self._parts)])
        self._file_firsts = [np.cumsum([0, *part.views.counts]) for part in self._parts]

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        if name == "image":
            return self._images(rows, out)
        views = np.empty((len(rows), 4, 4), np.float32)
        for number, slots, chosen in self._of_parts(rows):
            views[slots] = self._parts[number].views.model_views[chosen]
        return views if name == "model_view" else to_pascal3d(views[:, :3, :3])

    def prepare(self) -> list[Path]:
        """Unpack the records that are deflated in archives once into arrays, from which views are read at random.

        See :func:`prepare`.
        """
        return [path for part in self._parts if (path := part.files.prepare()) is not None]

    def __repr__(self) -> str:
        """Show the categories and the number of rows."""
        return f"ShapenetRenderings({', '.join(part.category for part in self._parts)}: {len(self):,} rows)"

    def _of_parts(self, rows: Rows) -> list[tuple[int, Array, Array]]:
        """For each part that has some of the rows: its number, their positions among the rows, their number in it."""
        part = np.searchsorted(self._firsts, rows, side="right") - 1
        slots = [(number, np.flatnonzero(part == number)) for number in np.unique(part).tolist()]
        return [(number, where, rows[where] - self._firsts[number]) for number, where in slots]

    def _images(self, rows: Rows, out: Array) -> Array:
        wanted: list[tuple[int, str, Source]] = []
        for number, slots, views in self._of_parts(rows):
            part, firsts = self._parts[number], self._file_firsts[number]
            file = np.searchsorted(firsts, views, side="right") - 1
            # file by file, so that one that has to be unpacked is unpacked once
            order = np.argsort(file, kind="stable")
            slots, views, file = slots[order], views[order], file[order]
            within, offsets, lengths = views - firsts[file], part.views.offsets[views], part.views.lengths[views]
            columns = (column.tolist() for column in (slots, file, within, offsets, lengths))
            for slot, at, view, offset, length in zip(*columns, strict=True):
                label = f"{part.files.label(at)}, record {view // 2}, 'img{view % 2}'"
                wanted.append((slot, label, partial(part.files.read, at, offset, length)))

        def decode(item: tuple[int, str, Source]) -> None:
            slot, label, source = item
            image = images.decode(source, label, 4)
            if image.shape != _SHAPES["image"]:
                raise replaced(label)
            out[slot] = image

        images.parallel(decode, wanted)
        return out


def open(root: Path | str | None = None) -> ShapenetRenderings:
    """Open the available categories.

    The first call reads every record, verifies its checksums, and stores an index in the cache folder. Views are then
    read at random, also from a tar or an uncompressed zip; for a compressed zip, see :func:`prepare`.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``cars_with_keypoints``, ``planes_with_keypoints`` or ``chairs_with_keypoints``, each a ``.zip``, a
        ``.tar`` or a folder (also named ``cars`` …); or one of these itself. None for the default folders.

    Raises
    ------
    DataError
        When all are missing (the message shows the command that fetches them), or one is damaged.

    """
    places = data_places(NAME, root)
    for folder in places:
        sources = {category: _source(folder, plural) for category, plural in CATEGORIES.items()}
        there = {category: source for category, source in sources.items() if source is not None}
        if there:
            return ShapenetRenderings(there)
    raise DataError(
        f"{NAME}: none of {', '.join(f'{plural}_with_keypoints' for plural in CATEGORIES.values())} exists as a .zip "
        f"file, a .tar file or a folder of .tfrecord files (looked in {', '.join(map(place_seen, places))}); run "
        f"`setsup fetch {NAME}{root_option(root)}`, or pass the folder that contains them ({advice('root=', '--root')})"
    )


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the records of compressed zip files once, each archive into an array next to it.

    Requires as much disk space as the archive, and avoids unpacking whole record files for single views. An interrupted
    run resumes. If the folder is read-only, arrays are written to the cache folder.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    list of Path
        One ``.npy`` file of bytes per compressed archive; none for folders, tars and uncompressed zips, from which
        views are read at random.

    Raises
    ------
    DataError
        As for :func:`open`, and when the disk is full or not writable.

    """
    return open(root).prepare()


def _source(folder: Path, plural: str) -> Path | None:
    """Where a category lies, at or below a place; None also where a folder may not be entered."""
    stems = (f"{plural}_with_keypoints", plural)
    own = [folder] if folder.stem in stems else []
    for path in [*own, *(folder / f"{stem}{end}" for stem in stems for end in _ENDS)]:
        # os.path, since Path.is_file raises where a folder may not be entered
        if os.path.isfile(path) or (os.path.isdir(path) and next(path.rglob("*.tfrecord"), None) is not None):
            return path.absolute()
    return None
