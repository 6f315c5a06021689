"""The files of a benchmark of WILDS: ``metadata.csv`` or the like, and the images that its rows name.

References
----------
.. [1] Koh, Sagawa, Marklund et al., "WILDS: A Benchmark of in-the-Wild Distribution Shifts", ICML 2021.

"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Places
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.described.texts import read_comma_separated
from setsup.errors import DamagedFile
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members

__all__ = ["Metadata", "Texts", "codes_of", "find_release", "integers_of", "read_table", "rows_with_images"]

Texts = npt.NDArray[np.object_]
Metadata = dict[str, Texts]
"""Columns of the table, each (rows,) texts as they are written there."""

_MOST = 1 << 30
_INTEGER = re.compile(r"-?[0-9]{1,18}")


def find_release(
    name: str, root: Path | str | None, table: str, columns: Sequence[str], images: Mapping[str, str], version: str
) -> tuple[MemberIndex, Metadata]:
    """Find a release, and read some columns of its table.

    `table` is the file's name; `images` is an expression (RE2) that the images match, with its description; `version`
    is the number in the name of the folder that WILDS makes, such as ``v1.0``.

    Raises
    ------
    DataError
        There is no release, or the table is damaged or lacks a column.

    """
    wanted = {table.replace(".", r"\.") + "$": table, **images}
    release = find_members(name, root, wanted, [f"{name}_{version}", f"{name}_{version}.zip", f"{name}_{version}.tar"])
    return release, read_table(release, table, columns)


def read_table(release: MemberIndex, name: str, columns: Sequence[str]) -> Metadata:
    """Read some columns of a table of the release."""
    place = release.place(name)
    return _read(release.read(place, _MOST), release.label(place), columns)


def rows_with_images(release: MemberIndex, names: Sequence[str]) -> tuple[Places, Places]:
    """Rows whose image is there, and the places of their images; the number of others is logged."""
    places = release.places(names)
    rows = np.flatnonzero(places >= 0)
    warn_left_out(release.source, "images", [names[row] for row in np.flatnonzero(places < 0).tolist()], len(names))
    return rows, places[rows]


def codes_of(values: Texts, column: str, label: str, levels: Mapping[str, int]) -> Places:
    """Codes of texts, by what each text stands for."""
    known = np.array(sorted(set(values.tolist()) - set(levels)), object)
    if len(known):
        row = int(np.flatnonzero(values == known[0])[0])
        raise DamagedFile(f"{label}: {column} of row {row} is {known[0]!r}; one of {', '.join(levels)} was expected")
    return np.array([levels[value] for value in values.tolist()], np.int64)


def integers_of(values: Texts, column: str, label: str) -> list[int]:
    """Integers that the texts of a column stand for."""
    wrong = next((row for row, text in enumerate(values.tolist()) if not _INTEGER.fullmatch(text)), None)
    if wrong is not None:
        raise DamagedFile(f"{label}: {column} of row {wrong} is {values[wrong]!r:.40}; an integer was expected")
    return list(map(int, values.tolist()))


def _read(content: bytes, label: str, columns: Sequence[str]) -> Metadata:
    found = read_comma_separated(content, label, columns)
    return {column: found[column].to_numpy(zero_copy_only=False).astype(object) for column in columns}
