"""Read images with an array of latents: ``train/images/00000.png`` and row 0 of ``train/raw_latents.npy``.

Convention
----------
Values are those of ``raw_latents``, on which methods are evaluated: each from −1 to 1. The renderer of 3DIdent
multiplies positions by 3 (that of Causal3DIdent reportedly by 2), and angles by 90°, including hues, which are angles
on a color circle of 360°. Columns are in the order of that renderer; the adjacent ``latents.npy`` has other units and
is not read.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from setsup.arrays import Array, Floats, Places
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.formats.npy import LONGEST_HEAD, npy_head
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.archives.releases import find_members

__all__ = ["LATENTS", "Part", "open_parts"]

LATENTS = (
    *("x", "y", "z", "rotation_x", "rotation_y", "rotation_z"),
    *("spotlight", "hue", "spotlight_hue", "background_hue"),
)
"""Columns of the latents."""

_MOST = 1 << 28
_COLUMN_ORDER = (b"'fortran_order': True, ", b"'fortran_order': False,")  # equally long


class Part(NamedTuple):
    """Images of one array: codes of their split and shape, expressions (RE2) of the array's file and the folder."""

    split: int
    shape: int
    latents: str
    images: str


class _Rows(NamedTuple):
    source: int
    part: Part
    places: Places
    values: Floats


def open_parts(
    name: str,
    parts: Sequence[Part],
    tars: str,
    shapes: Sequence[str],
    root: Path | str | None,
    size: tuple[int, int] | None,
) -> ImageFilesDataset:
    """Open the parts of a release that are present, unpacked or in the tars whose names match an expression.

    `shapes`: levels of the factor ``shape``, which is left out if there are none.

    Raises
    ------
    DataError
        When no part is present, latents are damaged, or an image has no latents.

    """
    size = check_size(size)
    holds = "|".join(f"(?:[^/]+/)?{part.latents}" for part in parts) + f"|{tars}"
    example = parts[0].latents.replace("\\", "")
    release = find_members(name, root, {holds: example}, ())
    sources = (release, *(open_members(path) for path in _packed(release, tars)))
    rows_of_parts = [rows for part in parts if (rows := _read(sources, part)) is not None]
    if not rows_of_parts:
        raise DamagedFile(f"{release.source} contains no {example}")
    lengths = [len(rows.places) for rows in rows_of_parts]
    values = np.concatenate([rows.values for rows in rows_of_parts])
    columns = [(Factor(latent, Kind.CONTINUOUS), values[:, column]) for column, latent in enumerate(LATENTS)]
    if shapes:
        shape = np.repeat([rows.part.shape for rows in rows_of_parts], lengths)
        columns.insert(0, (Factor("shape", Kind.NOMINAL, tuple(shapes)), shape))
    split = np.repeat([rows.part.split for rows in rows_of_parts], lengths)
    columns.append((Factor("split", Kind.NOMINAL, ("train", "test"), role="split"), split))
    images = MemberImages(
        sources,
        np.concatenate([rows.places for rows in rows_of_parts]),
        np.repeat([rows.source for rows in rows_of_parts], lengths),
    )
    return ImageFilesDataset(name, table_of(columns), images, size)


def _packed(release: MemberIndex, tars: str) -> list[Path]:
    """Tars of parts in the folder of the release, or next to it where one part was unpacked."""
    inside = [path for member in release.matching(tars)[0].tolist() if (path := release.path(member)) is not None]
    if not release.source.is_dir():
        return inside
    beside = sorted(release.source.absolute().parent.glob("*.tar"))
    return inside + [path for path in beside if re.fullmatch(tars, path.name)]


def _read(sources: Sequence[MemberIndex], part: Part) -> _Rows | None:
    """Images of a part with their latents, in the order of their numbers; None where it is missing."""
    for number, members in enumerate(sources):
        files = members.matching(rf"(?:.*/)?{part.latents}")[0]
        if not len(files):
            continue
        file = int(files[0])
        values = _matrix(members.read(file, _MOST), members.label(file))
        top = members.names[file].as_py().rpartition("/")[0]
        folder = members.under(top)
        places, groups = folder.matching(rf"{part.images}/(?P<number>[0-9]{{1,9}})\.png")
        numbers = np.array(groups["number"].to_pylist(), np.int64)
        order = np.argsort(numbers, kind="stable")
        numbers, places = numbers[order], places[order]
        if len(numbers) and numbers[-1] >= len(values):
            raise DamagedFile(
                f"{members.label(file)} has {len(values):,} rows, but the images are numbered up to {numbers[-1]}"
            )
        lost = np.setdiff1d(np.arange(len(values)), numbers).tolist()
        warn_left_out(members.label(file), "images", [f"{part.images}/{each}.png" for each in lost], len(values))
        # places of the whole member index, since the images of several folders are read through it
        return _Rows(number, part, places + _first(members, folder), values[numbers])
    return None


def _first(members: MemberIndex, folder: MemberIndex) -> int:
    """Place that the first file of a folder has in the whole."""
    return int(members.place(folder.prefix.removeprefix(members.prefix) + folder.names[0].as_py()))


def _matrix(content: bytes, label: str) -> Floats:
    """The (n, 10) array of a ``.npy``, by rows or by columns, as float32."""
    by_columns = _COLUMN_ORDER[0] in content[:LONGEST_HEAD]
    dtype, shape, start = npy_head(content[:LONGEST_HEAD].replace(*_COLUMN_ORDER, 1), label, "f")
    if len(shape) != 2 or shape[1] != len(LATENTS) or not shape[0]:
        raise DamagedFile(
            f"{label} has dtype {dtype} and shape {shape}; expected floating-point numbers of shape (n, {len(LATENTS)})"
        )
    expected = start + shape[0] * shape[1] * dtype.itemsize
    if len(content) != expected:
        raise DamagedFile(
            f"{label}: the header specifies the shape {shape} and dtype {dtype} ({expected:,} bytes), but the data has "
            f"{len(content):,} bytes"
        )
    numbers: Array = np.frombuffer(content, dtype, offset=start)
    matrix = numbers.reshape(shape[::-1]).T if by_columns else numbers.reshape(shape)
    if not np.isfinite(matrix).all():
        raise DamagedFile(f"{label} contains a value that is not finite")
    return np.ascontiguousarray(matrix, np.float32)
