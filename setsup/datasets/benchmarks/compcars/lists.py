"""What CompCars says of makes and models in ``misc``, and its lists of pictures in ``train_test_split``."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some
from setsup.files.texts import text_of

__all__ = ["ATTRIBUTES", "Models", "listed", "named", "read_models"]

ATTRIBUTES = ("maximum_speed", "displacement", "door_number", "seat_number", "type")
"""Columns of ``attributes.txt`` after the number of the model; 0 is unknown."""

_MOST = 1 << 25  # bytes of a file
_LARGEST = 1e6
_FIX = "unpack the release again"

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True)
class Models:
    """What is known of makes and models, by their numbers in the paths; what has no file is empty."""

    makes: dict[int, str] = field(default_factory=dict)
    models: dict[int, str] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    attributes: dict[int, tuple[float, ...]] = field(default_factory=dict)


def read_models(members: MemberIndex) -> Models:
    """Read the files of ``misc`` that are there."""
    found = Models()
    if "misc/make_model_name.mat" in members:
        place = members.place("misc/make_model_name.mat")
        names = read_mat(members.read(place, _MOST), members.label(place), ["make_names", "model_names"], _MOST)
        found.makes.update(_numbered(names["make_names"], members.label(place)))
        found.models.update(_numbered(names["model_names"], members.label(place)))
    if "misc/car_type.mat" in members:
        place = members.place("misc/car_type.mat")
        types = read_mat(members.read(place, _MOST), members.label(place), ["types"], _MOST)["types"]
        found.types.update(_numbered(types, members.label(place)))
    if "misc/attributes.txt" in members:
        place = members.place("misc/attributes.txt")
        found.attributes.update(_attributes(members.read(place, _MOST), members.label(place)))
    return found


def named(ids: Iterable[int], names: dict[int, str]) -> tuple[str, ...]:
    """Give a level for each number: its name, with the number where names are equal, or the number alone."""
    wanted = [(number, names.get(number, "")) for number in ids]
    counts = Counter(name for _, name in wanted)
    levels = [
        str(number) if not name else name if counts[name] == 1 else f"{name} ({number})" for number, name in wanted
    ]
    # a name may be another's with its number
    return (
        tuple(levels)
        if len(set(levels)) == len(wanted)
        else tuple(f"{name or number} ({number})" for number, name in wanted)
    )


def listed(members: MemberIndex, lists: Sequence[str], images: Any, columns: int = 1) -> npt.NDArray[np.bool_]:
    """Tell which pictures are in lists; what they list and is not there is counted in the log.

    Returns (n,) bool.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = np.zeros(len(images), bool)
    for name in lists:
        if name not in members:
            continue
        place = members.place(name)
        wanted = list(dict.fromkeys(_paths(members.read(place, _MOST), members.label(place), columns)))
        at = np.asarray(pc.fill_null(pc.index_in(pa.array(wanted, pa.large_string()), value_set=images), -1))
        found[at[at >= 0]] = True
        lost = np.flatnonzero(at < 0)
        if len(lost):
            _log.warning(
                "%s: %s of its %s pictures are not in the release, or have no label (%s)",
                *(members.label(place), f"{len(lost):,}", f"{len(wanted):,}"),
                some([wanted[turn] for turn in lost.tolist()]),
            )
    return found


# -- inside ------------------------------------------------------------------------------------------------------------


def _numbered(value: Any, label: str) -> dict[int, str]:
    """Names of a cell array by their numbers from 1, without those that are empty; some end with spaces."""
    if value.dtype != object:
        raise DamagedFile(f"{label} has no lists of names", _FIX)
    found = {}
    for number, cell in enumerate(value.reshape(-1), 1):
        if isinstance(cell, np.ndarray) and cell.size and (cell.dtype.kind != "U" or cell.size != 1):
            raise DamagedFile(f"{label}: its name {number} is {cell.dtype.name} {cell.shape}, no text", _FIX)
        text = str(cell.reshape(-1)[0]).strip() if isinstance(cell, np.ndarray) and cell.size else ""
        if text:
            found[number] = text
    return found


def _attributes(content: bytes, label: str) -> dict[int, tuple[float, ...]]:
    lines = [line.split() for line in text_of(content, label, _FIX).splitlines()]
    if not lines or lines[0] != ["model_id", *ATTRIBUTES]:
        raise DamagedFile(f"{label} does not begin with the line model_id {' '.join(ATTRIBUTES)}", _FIX)
    found: dict[int, tuple[float, ...]] = {}
    for number, words in enumerate(lines[1:], 2):
        if not words:
            continue
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        whole = [value for at, value in enumerate(values) if at != 2]  # displacement, in litres
        if len(values) != 1 + len(ATTRIBUTES) or not all(0 <= value <= _LARGEST for value in values):
            raise DamagedFile(f"{label}: line {number} is {' '.join(words)[:80]!r}, not six numbers", _FIX)
        if any(value != int(value) for value in whole) or int(values[0]) in found:
            raise DamagedFile(f"{label}: line {number} has a fraction or a model that was told before", _FIX)
        found[int(values[0])] = tuple(values[1:])
    return found


def _paths(content: bytes, label: str, columns: int) -> list[str]:
    found = []
    for number, line in enumerate(text_of(content, label, _FIX).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        paths = [word.replace("\\", "/") for word in words[:columns]]
        if not columns <= len(words) <= columns + 1 or any(path.count("/") != 3 for path in paths):
            raise DamagedFile(f"{label}: line {number} is {line[:80]!r}, not {columns} of make/model/year/file", _FIX)
        found += paths
    return found
