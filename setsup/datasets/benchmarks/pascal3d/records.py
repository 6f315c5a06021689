"""Annotations of Pascal3D+: thousands of small MAT files, read once into columns that the user's cache stores.

Convention
----------
A row is an object of the class that the folder of its file is named after. ``car_pascal/2008_000203.mat`` may contain
buses too, but these are rows of ``bus_pascal/2008_000203.mat``, so no object appears twice. Angles are in degrees,
boxes in 1-based inclusive pixels.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.boxes import clipped
from setsup.datasets.adapters.image_sources import as_stored
from setsup.datasets.benchmarks.pascal3d.objects import (
    CATEGORIES,
    COARSE,
    FLAGS,
    LARGEST,
    POSE,
    SIDES,
    VIEW,
    Row,
    read_objects,
)
from setsup.datasets.cached_arrays import cached_table, release_state
from setsup.datasets.images import header, parallel
from setsup.errors import DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some

__all__ = ["ANNOTATIONS", "IMAGES", "SOURCES", "find_images", "open_records"]


SOURCES = ("pascal", "imagenet")

_FOLDER = f"(?P<category>{'|'.join(CATEGORIES)})_(?P<source>{'|'.join(SOURCES)})"
ANNOTATIONS = rf"Annotations/{_FOLDER}/(?P<image>[^/.][^/]*)\.mat"
IMAGES = rf"Images/{_FOLDER}/(?P<image>[^/.][^/]*)\.(?i:jpe?g|png)"
"""Names of the files; the extension of images comes from the folder, since some records have another one."""

_VERSION = 3  # of the cached columns
_BLOCK = 256

_log = logging.getLogger("setsup")


def open_records(members: MemberIndex) -> FactorTable:
    """Annotated objects of a release, one per row; read on the first call, then cached where possible."""
    from setsup.files import cache_folder

    places, groups = members.matching(ANNOTATIONS)
    if not len(places):
        raise DataError(
            f"{members.source} contains no annotations such as Annotations/car_pascal/2008_000203.mat; unpack or fetch "
            "the release again"
        )
    state = release_state(members, np.concatenate([places, members.matching(IMAGES)[0]]))
    path = cache_folder() / "indexes" / "pascal3d" / f"{_VERSION}-{state}.arrow"
    return cached_table(path, lambda: _read(members, places, groups))


# -- reading all -------------------------------------------------------------------------------------------------------


def find_images(members: MemberIndex, folders: Sequence[str], images: Sequence[str]) -> npt.NDArray[np.int64]:
    """Positions of the images, -1 for missing ones.

    Returns (n,) int64.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    places, groups = members.matching(IMAGES)
    text = pa.large_string()
    parts = [groups["category"], "_", groups["source"], "/", groups["image"], ""]
    there = pc.binary_join_element_wise(
        *(pa.scalar(part, text) if isinstance(part, str) else part.cast(text) for part in parts)
    )
    wanted = pa.array([f"{folder}/{image}" for folder, image in zip(folders, images, strict=True)], text)
    index = np.asarray(pc.fill_null(pc.index_in(wanted, value_set=there), -1), dtype=np.int64)
    return np.where(index >= 0, np.append(places, -1)[index], -1)


def _read(members: MemberIndex, places: npt.NDArray[np.int64], groups: dict[str, Any]) -> FactorTable:
    from setsup.progress import progress

    category, source, image = (groups[name].to_pylist() for name in ("category", "source", "image"))
    seen = find_images(members, [f"{a}_{b}" for a, b in zip(category, source, strict=True)], image)
    work = list(zip(places.tolist(), category, seen.tolist(), strict=True))
    results: list[list[Row] | str] = []
    with progress(len(work), "reading the annotations of pascal3d", "files") as advance:
        for start in range(0, len(work), _BLOCK):
            block = work[start : start + _BLOCK]
            results += parallel(partial(_read_file, members), block)
            advance(len(block))
    _refuse_damaged(members, results)
    rows: list[Row] = []
    files: list[int] = []
    for file, objects in enumerate(results):
        rows += [row for row in objects if isinstance(row, dict)]
        files += [file] * len(objects)
    boxless = [turn for turn, row in enumerate(rows) if np.isnan(row["left"])]
    if boxless:
        first = some([members.label(int(places[files[turn]])) for turn in boxless])
        _log.warning(
            "%s: %d of %d objects are left out, because their boxes lie outside the image, such as %s",
            *(members.source, len(boxless), len(rows), first),
        )
    boxed = np.setdiff1d(np.arange(len(rows)), boxless)
    if not len(boxed):
        raise DataError(
            f"{members.source}: none of its {len(results):,} annotations contains an object of the class that its "
            "folder is named after; unpack or fetch the release again"
        )
    which = np.array(files)[boxed]
    names = {name: np.array(values)[which] for name, values in (("category", category), ("source", source))}
    return _table([rows[turn] for turn in boxed], {**names, "photo": np.array(image)[which]})


def _read_file(members: MemberIndex, item: tuple[int, str, int]) -> list[Row] | str:
    """Objects of a file, with their boxes clipped to the image; or what is wrong with the file."""
    member, category, place_of_image = item
    try:
        label = members.label(member)
        rows = read_objects(members.path(member) or members.read(member, LARGEST), label, category)
    except DataError as error:
        return str(error)
    if rows and place_of_image >= 0:
        try:
            seen = header(as_stored(members, place_of_image), members.label(place_of_image))
            size: tuple[float, float] = (seen.height, seen.width)
        except DataError:
            size = (np.inf, np.inf)  # who fetches the image is told
    else:
        size = (np.inf, np.inf)
    for row in rows:
        box = clipped([row[side] for side in SIDES], size)
        row.update(zip(SIDES, box.tolist(), strict=True))
    return rows


def _refuse_damaged(members: MemberIndex, results: Sequence[list[Row] | str]) -> None:
    damaged = [sentence for sentence in results if isinstance(sentence, str)]
    if damaged:
        raise DataError(
            f"{members.source}: {len(damaged):,} of {len(results):,} annotation files could not be read "
            f"({some(damaged, '; ')}); unpack or fetch the release again"
        )


def _table(rows: Sequence[Row], names: dict[str, Array]) -> FactorTable:
    photos, photo = np.unique(names["photo"], return_inverse=True)
    objects = np.array([row["object"] for row in rows], dtype=np.int64)
    columns: dict[str, Array] = {
        "category": _codes(names["category"], tuple(CATEGORIES)),
        "photo": photo,
        "object": objects - 1,
        "source": _codes(names["source"], SOURCES),
        "cad": np.array([row["cad"] for row in rows], dtype=np.int64) - 1,
    }
    factors = [
        Factor("category", Kind.NOMINAL, tuple(CATEGORIES)),
        Factor("photo", Kind.NOMINAL, tuple(photos.tolist()), role="key"),
        Factor("object", Kind.NOMINAL, tuple(range(1, int(objects.max()) + 1)), role="key"),
        Factor("source", Kind.NOMINAL, SOURCES),
        Factor("cad", Kind.NOMINAL, tuple(range(1, max(CATEGORIES.values()) + 1)), within="category"),
    ]
    for name in FLAGS:
        columns[name] = np.array([row[name] for row in rows], dtype=np.int64)
        factors.append(Factor(name, Kind.NOMINAL, (False, True)))
    for name in (*POSE, *COARSE, *VIEW, *SIDES):
        columns[name] = np.array([row[name] for row in rows], dtype=np.float32)
        turns = name in ("azimuth", "azimuth_coarse")
        unit = "deg" if name in POSE + COARSE else "px" if name in ("px", "py", *SIDES) else ""
        factors.append(Factor(name, Kind.CONTINUOUS, unit=unit, period=360.0 if turns else None))
        if turns:
            columns[name][columns[name] >= 360] = 0  # 359.99999999 in float32
    return FactorTable(factors, columns)


def _codes(values: Array, levels: tuple[str, ...]) -> Array:
    order = {level: code for code, level in enumerate(levels)}
    return np.array([order[value] for value in values.tolist()], dtype=np.int64)
