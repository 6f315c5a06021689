"""KeypointNet's renderings of ShapeNet (2018): pairs of views of cars, planes and chairs, read without TensorFlow.

``cars_with_keypoints.zip`` and its two siblings, any of them, as zip, tar or unpacked. Every file of records in it is
one object, every record a pair of views. Poses are those of
:mod:`setsup.datasets.benchmarks.shapenet_renderings.poses`.
"""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets import images
from setsup.datasets.benchmarks.shapenet_renderings.parts import CATEGORIES, NAME, check_apart, open_part, part_table
from setsup.datasets.benchmarks.shapenet_renderings.poses import to_pascal3d
from setsup.datasets.benchmarks.shapenet_renderings.records import SIDE
from setsup.datasets.dataset import Dataset, Modality, fetch_request
from setsup.errors import DataError
from setsup.files.roots import data_places, place_seen, root_option

__all__ = ["ShapenetRenderings", "open", "prepare"]

Array = npt.NDArray[Any]

_SHAPES = {"image": (SIDE, SIDE, 4), "model_view": (4, 4), "rotation": (3, 3)}
_ENDS = ("", ".tar", ".zip")  # best first: a folder is read at random


class ShapenetRenderings(Dataset):
    """Rendered views of cars, planes and chairs: one row a view, the two views of a pair one after the other.

    The factors are ``category``, ``object`` (an id of ShapeNet where ``job.txt`` names them, else the record's name),
    ``azimuth`` and ``elevation`` in degrees, and beside them the keys ``record``, ``pair`` (number of the pair within
    its record) and ``view`` (number of the view within its record), and ``split``. In the whole data set the other view
    of row r is row ``r ^ 1``. The modalities are ``image``, (128, 128, 4) uint8 sRGB and alpha; ``model_view``, (4, 4)
    float32, from y-up object coordinates to those of the camera; ``rotation``, (3, 3) float32, its rotation from the
    object axes of Pascal3D+.

    Parameters
    ----------
    sources : mapping of str to Path
        For some of ``car``, ``plane``, ``chair`` the zip, tar or folder.

    Attributes
    ----------
    projections : dict of str to (4, 4) float32
        For each category with a ``projection.txt`` its camera projection P: a point (x, y, z) of the camera's
        coordinates is seen at (−P[0, 0]·x/z, −P[1, 1]·y/z), each from −1 to 1, y up.

    Raises
    ------
    DataError
        When a file is damaged, holds something else, is missing though a list names it, or two categories are the
        same release.

    """

    name = NAME
    computes = True

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

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        made = {"image": self._pictures, "model_view": self._model_views, "rotation": self._rotations}
        flat = rows.reshape(-1)
        return {name: made[name](flat).reshape(rows.shape + _SHAPES[name]) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write rows into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        direct = "image" in out and out["image"].flags.c_contiguous
        if direct:
            self._pictures(rows.reshape(-1), out["image"].reshape(-1, *_SHAPES["image"]))
        for name, array in self.fetch(rows, [name for name in names if not (direct and name == "image")]).items():
            out[name][...] = array

    def prepare(self) -> list[Path]:
        """Unpack the records that are deflated in archives once into arrays, from which views are read at random.

        See :func:`prepare`.
        """
        return [path for part in self._parts if (path := part.files.prepare()) is not None]

    def __repr__(self) -> str:
        """Show the categories and the number of rows."""
        return f"ShapenetRenderings({', '.join(part.category for part in self._parts)}: {len(self):,} rows)"

    def _of_parts(self, rows: npt.NDArray[np.int64]) -> list[tuple[int, Array, Array]]:
        """For each part that has some of the rows: its number, their positions among the rows, their number in it."""
        part = np.searchsorted(self._firsts, rows, side="right") - 1
        slots = [(number, np.flatnonzero(part == number)) for number in np.unique(part).tolist()]
        return [(number, where, rows[where] - self._firsts[number]) for number, where in slots]

    def _pictures(self, rows: npt.NDArray[np.int64], out: Array | None = None) -> Array:
        found = np.empty((len(rows), *_SHAPES["image"]), np.uint8) if out is None else out
        wanted: list[tuple[int, str, images.Source]] = []
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

        def decode(item: tuple[int, str, images.Source]) -> None:
            slot, label, source = item
            picture = images.decode(source, label, 4)
            if picture.shape != _SHAPES["image"]:
                raise DataError(f"{label} was replaced since it was opened; open the data set again")
            found[slot] = picture

        images.parallel(decode, wanted)
        return found

    def _model_views(self, rows: npt.NDArray[np.int64]) -> Array:
        found = np.empty((len(rows), 4, 4), np.float32)
        for number, slots, views in self._of_parts(rows):
            found[slots] = self._parts[number].views.model_views[views]
        return found

    def _rotations(self, rows: npt.NDArray[np.int64]) -> Array:
        return to_pascal3d(self._model_views(rows)[:, :3, :3])


def open(root: Path | str | None = None) -> ShapenetRenderings:
    """Open those of the three categories that are there.

    The first time every record is read and its checksums are compared; an index of them is kept in the cache folder.
    Views are then read at random, also from a tar and from a zip that stores its files as they are; for one that
    deflates them see :func:`prepare`.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``cars_with_keypoints``, ``planes_with_keypoints`` or ``chairs_with_keypoints``, each a ``.zip``, a
        ``.tar`` or a folder (also named ``cars`` …); or one of them itself. None for the usual places.

    Raises
    ------
    DataError
        When none is there (with the command that fetches them), or one is damaged.

    """
    places = data_places(NAME, root)
    for place in places:
        sources = {category: _source(place, plural) for category, plural in CATEGORIES.items()}
        there = {category: source for category, source in sources.items() if source is not None}
        if there:
            return ShapenetRenderings(there)
    raise DataError(
        f"{NAME}: none of {', '.join(f'{plural}_with_keypoints' for plural in CATEGORIES.values())} found, as .zip, "
        f".tar or folder with .tfrecord files; looked in {', '.join(map(place_seen, places))}; run "
        f"`setsup fetch {NAME}{root_option(root)}`, or name the folder that holds them (--root or root=)"
    )


def prepare(root: Path | str | None = None) -> list[Path]:
    """Unpack the records that are deflated in zip files once, each archive into an array beside it.

    Costs as much disk as the archive, and saves unpacking whole files of records for single views. Killed and started
    again it goes on where it was. Where the folder is read-only the arrays go into the cache folder.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    list of Path
        An array for each such archive, ``.npy`` files of bytes; none for folders, for tars and for zips that store
        the records as they are, from all of which views are read at random.

    Raises
    ------
    DataError
        As for :func:`open`, and where the disk is full or may not be written.

    """
    return open(root).prepare()


def _source(place: Path, plural: str) -> Path | None:
    """Where a category lies, at or below a place; None also where a folder may not be entered."""
    stems = (f"{plural}_with_keypoints", plural)
    own = [place] if place.stem in stems else []
    for path in [*own, *(place / f"{stem}{end}" for stem in stems for end in _ENDS)]:
        # os.path, since Path.is_file raises where a folder may not be entered
        if os.path.isfile(path) or (os.path.isdir(path) and next(path.rglob("*.tfrecord"), None) is not None):
            return path.absolute()
    return None
