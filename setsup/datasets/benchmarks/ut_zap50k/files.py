"""Files of UT Zappos50K: the catalogue ``meta-data.csv``, and the image of each of its lines.

An image's path is ``<category>/<subcategory>/<brand>/<CID>.jpg``. The list ``image-path.mat`` has the paths in the
order of the catalogue's lines, but some brands have different names on disk: a final dot is dropped or written as
``%2E``, and special characters are HTML entities. Such an image is found by its file name, which is the CID with a dot
instead of the hyphen.
"""

import csv
import html
import io
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile, DataError, did_you_mean
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.expand_user import expanded
from setsup.files.texts import comma_separated

__all__ = ["COLUMNS", "Shoes", "find_shoes", "first_values", "read_shoes", "several"]

COLUMNS = {
    "category": "Category",
    "subcategory": "SubCategory",
    "heel_height": "HeelHeight",
    "insole": "Insole",
    "closure": "Closure",
    "gender": "Gender",
    "material": "Material",
    "toe_style": "ToeStyle",
}
"""Factor, and column of the catalogue."""

_CATALOGUE, _LIST = "meta-data.csv", "image-path.mat"
_VARIANTS = ("ut-zap50k-images", "ut-zap50k-images-square")
_BELOW = r"(?P<category>Boots|Sandals|Shoes|Slippers)/[^/]+/(?P<brand>[^/]+)/(?P<file>[^/]+\.jpg)"
_MOST = 1 << 26  # bytes of the catalogue, and of the list


@dataclass(frozen=True, slots=True, eq=False)
class Shoes:
    """Lines of the catalogue whose images exist, one row each.

    `places` (rows,) int64.
    """

    images: MemberIndex
    places: npt.NDArray[np.int64]
    cids: list[str]
    brands: list[str]
    cells: dict[str, npt.NDArray[np.str_]]
    lost: list[str]


def find_shoes(root: Path | str | None, square: bool = False) -> tuple[MemberIndex, MemberIndex]:
    """Find the images and the catalogue, which were published in separate archives."""
    variants = _VARIANTS[1:] if square else _VARIANTS
    release = _find_images(root, variants)
    images = next(below for variant in variants if len(below := release.under(variant)))
    wanted, packed = {r"meta-data\.csv": f"ut-zap50k-data/{_CATALOGUE}"}, ["ut-zap50k-data.zip"]
    if root is not None and os.path.isfile(expanded(root)):
        try:
            return images, find_members("ut-zap50k", root, wanted, packed)
        except DataError:
            root = expanded(root).parent
    return images, find_members("ut-zap50k", root, wanted, packed)


def _find_images(root: Path | str | None, variants: Sequence[str]) -> MemberIndex:
    """Find the images of the first variant that is present."""
    for variant in variants[:-1]:
        # apart, so that another variant beside it is no part of it that was left out
        with suppress(DataError):
            return find_members("ut-zap50k", root, [f"{variant}/{_BELOW}"], [f"{variant}.zip"])
    holds = {rf"(?:{'|'.join(variants)})/{_BELOW}": f"{variants[0]}/Shoes"}
    return find_members("ut-zap50k", root, holds, [f"{variant}.zip" for variant in variants])


def read_shoes(images: MemberIndex, data: MemberIndex) -> Shoes:
    """Read the catalogue, and find the image of each of its lines."""
    member = data.place(_CATALOGUE)
    cids, cells = _catalogue(data.read(member, _MOST), data.label(member))
    listed = data.place(_LIST) if _LIST in data else None
    paths = None if listed is None else _read_list(data.read(listed, _MOST), data.label(listed), len(cids))
    places, folders = _found(images, cids, paths)
    rows = np.flatnonzero(places >= 0)
    if not len(rows):
        raise DamagedFile(f"{images.source} contains none of the {len(cids):,} images of {data.label(member)}")
    # the list has the names as the publisher wrote them
    named = folders if paths is None else [path.split("/")[2] for path in paths]
    return Shoes(
        images,
        places[rows],
        [cids[row] for row in rows.tolist()],
        [html.unescape(unquote(named[row])) for row in rows.tolist()],
        {name: column[rows] for name, column in cells.items()},
        [cids[row] for row in np.flatnonzero(places < 0).tolist()],
    )


def several(cells: npt.NDArray[np.str_]) -> int:
    """Count the cells of a column that contain more than one value."""
    texts, counts = np.unique(cells, return_counts=True)
    more = [sum(map(bool, map(str.strip, text.split(";")))) > 1 for text in texts.tolist()]
    return int(counts[more].sum())


def first_values(cells: npt.NDArray[np.str_]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """Levels and codes of a column by the first value of each cell.

    `cells` (rows,) array of str; returns `codes` (rows,) int64.

    Examples
    --------
    >>> first_values(np.array(["Leather;Suede", "", "Canvas"]))
    (('Canvas', 'Leather'), array([ 1, -1,  0]))

    """
    texts, inverse = np.unique(cells, return_inverse=True)
    firsts = [text.partition(";")[0].strip() for text in texts.tolist()]
    levels = tuple(sorted(set(firsts) - {""}))
    order = {level: code for code, level in enumerate(levels)} | {"": -1}
    return levels, np.array([order[first] for first in firsts], np.int64)[inverse]


# -- inside ------------------------------------------------------------------------------------------------------------


def _catalogue(content: bytes, label: str) -> tuple[list[str], dict[str, npt.NDArray[np.str_]]]:
    try:
        lines = list(csv.reader(io.StringIO(comma_separated(content).decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DamagedFile(f"{label} could not be parsed as CSV: {error}") from error
    header = [name.strip() for name in lines[0]] if lines else []
    wanted = ["CID", *COLUMNS.values()]
    for name in wanted:
        if header.count(name) != 1:
            raise DataError(
                f"{label} must have exactly one column {name}, not {header.count(name)}{did_you_mean(name, header)}"
            )
    rows = [line for line in lines[1:] if line]
    if not rows:
        raise DamagedFile(f"{label} is empty")
    wrong = next((row for row, line in enumerate(rows) if len(line) != len(header)), None)
    if wrong is not None:
        raise DamagedFile(f"{label}: row {wrong} has {len(rows[wrong])} cells; expected {len(header)}")
    columns = {name: [line[header.index(name)].strip() for line in rows] for name in wanted}
    cids = columns["CID"]
    if not all(cids) or len(set(cids)) != len(cids):
        raise DamagedFile(f"{label} has empty or duplicate values in the column CID")
    return cids, {name: np.array(columns[column]) for name, column in COLUMNS.items()}


def _read_list(content: bytes, label: str, rows: int) -> list[str]:
    value: Any = read_mat(content, label, ["imagepath"], _MOST)["imagepath"]
    cells = list(value.reshape(-1)) if value.dtype == object else []
    texts = [
        str(cell.reshape(-1)[0]) if isinstance(cell, np.ndarray) and cell.dtype.kind == "U" and cell.size == 1 else ""
        for cell in cells
    ]
    if len(texts) != rows:
        raise DamagedFile(
            f"{label} lists {len(texts):,} images, but {_CATALOGUE} has {rows:,} rows; expected the same number of both"
        )
    wrong = next((row for row, text in enumerate(texts) if text.count("/") != 3), None)
    if wrong is not None:
        raise DataError(f"{label}: path {wrong + 1} is {texts[wrong][:80]!r}; expected category/subcategory/brand/file")
    return texts


def _found(
    images: MemberIndex, cids: Sequence[str], paths: Sequence[str] | None
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Place of each line's image, -1 where it is missing, and the folder of its brand."""
    there, groups = images.matching(_BELOW)
    if not len(there):
        raise DamagedFile(f"{images.source} contains no image such as Shoes/Oxfords/Bostonian/100627.72.jpg")
    files, brands = groups["file"].to_pylist(), groups["brand"].to_pylist()
    # a name that occurs twice tells nothing
    at: dict[str, int] = {}
    for turn, file in enumerate(files):
        at[file] = -1 if file in at else turn
    names = [f"{cid.replace('-', '.')}.jpg" for cid in cids] if paths is None else [p.split("/")[3] for p in paths]
    turns = np.array([at.get(name, -1) for name in names], np.int64)
    places = np.append(there, -1)[turns]
    if paths is not None:
        verbatim = images.places(paths)
        places = np.where(verbatim >= 0, verbatim, places)
    return places, [brands[turn] if turn >= 0 else "" for turn in turns.tolist()]
