"""Makes and models of CompCars in ``misc``, and its lists of images in ``train_test_split``."""

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
    """Names and attributes of makes and models, by their numbers in the paths; empty if a file is missing."""

    makes: dict[int, str] = field(default_factory=dict)
    models: dict[int, str] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    attributes: dict[int, tuple[float, ...]] = field(default_factory=dict)


def read_models(members: MemberIndex) -> Models:
    """Read the files of ``misc`` that are present."""
    models = Models()
    if "misc/make_model_name.mat" in members:
        member = members.place("misc/make_model_name.mat")
        names = read_mat(members.read(member, _MOST), members.label(member), ["make_names", "model_names"], _MOST)
        models.makes.update(_number(names["make_names"], members.label(member)))
        models.models.update(_number(names["model_names"], members.label(member)))
    if "misc/car_type.mat" in members:
        member = members.place("misc/car_type.mat")
        types = read_mat(members.read(member, _MOST), members.label(member), ["types"], _MOST)["types"]
        models.types.update(_number(types, members.label(member)))
    if "misc/attributes.txt" in members:
        member = members.place("misc/attributes.txt")
        models.attributes.update(_attributes(members.read(member, _MOST), members.label(member)))
    return models


def named(ids: Iterable[int], names: dict[int, str]) -> tuple[str, ...]:
    """Return a level for each number: its name, with the number if names repeat, or the number alone."""
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
    """Find which images are in lists; listed images that are missing are counted in the log.

    Returns (n,) bool.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    is_listed = np.zeros(len(images), bool)
    for name in lists:
        if name not in members:
            continue
        member = members.place(name)
        wanted = list(dict.fromkeys(_paths(members.read(member, _MOST), members.label(member), columns)))
        at = np.asarray(pc.fill_null(pc.index_in(pa.array(wanted, pa.large_string()), value_set=images), -1))
        is_listed[at[at >= 0]] = True
        lost = np.flatnonzero(at < 0)
        if len(lost):
            _log.warning(
                "%s: %s of its %s images are missing from the release, or have no label (%s)",
                *(members.label(member), f"{len(lost):,}", f"{len(wanted):,}"),
                some([wanted[turn] for turn in lost.tolist()]),
            )
    return is_listed


# -- inside ------------------------------------------------------------------------------------------------------------


def _number(value: Any, label: str) -> dict[int, str]:
    """Names of a cell array by their numbers from 1, without those that are empty; some end with spaces."""
    if value.dtype != object:
        raise DamagedFile(f"{label} has no cell array of names", _FIX)
    texts = {}
    for number, cell in enumerate(value.reshape(-1), 1):
        if isinstance(cell, np.ndarray) and cell.size and (cell.dtype.kind != "U" or cell.size != 1):
            raise DamagedFile(
                f"{label}: name {number} has dtype {cell.dtype.name} and shape {cell.shape}; expected a string", _FIX
            )
        text = str(cell.reshape(-1)[0]).strip() if isinstance(cell, np.ndarray) and cell.size else ""
        if text:
            texts[number] = text
    return texts


def _attributes(content: bytes, label: str) -> dict[int, tuple[float, ...]]:
    lines = [line.split() for line in text_of(content, label, _FIX).splitlines()]
    if not lines or lines[0] != ["model_id", *ATTRIBUTES]:
        raise DamagedFile(f"{label} does not start with the header model_id {' '.join(ATTRIBUTES)}", _FIX)
    attributes: dict[int, tuple[float, ...]] = {}
    for number, words in enumerate(lines[1:], 2):
        if not words:
            continue
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = []
        whole = [value for at, value in enumerate(values) if at != 2]  # displacement, in litres
        if len(values) != 1 + len(ATTRIBUTES) or not all(0 <= value <= _LARGEST for value in values):
            raise DamagedFile(
                f"{label}: line {number} is {' '.join(words)[:80]!r}; expected {1 + len(ATTRIBUTES)} numbers from 0 "
                f"to {_LARGEST:,}",
                _FIX,
            )
        if any(value != int(value) for value in whole) or int(values[0]) in attributes:
            raise DamagedFile(
                f"{label}: line {number} contains a value that is not an integer, or repeats a model", _FIX
            )
        attributes[int(values[0])] = tuple(values[1:])
    return attributes


def _paths(content: bytes, label: str, columns: int) -> list[str]:
    all_paths = []
    for number, line in enumerate(text_of(content, label, _FIX).splitlines(), 1):
        words = line.split()
        if not words:
            continue
        paths = [word.replace("\\", "/") for word in words[:columns]]
        if not columns <= len(words) <= columns + 1 or any(path.count("/") != 3 for path in paths):
            raise DamagedFile(
                f"{label}: line {number} is {line[:80]!r}; expected {columns} paths of the form make/model/year/file",
                _FIX,
            )
        all_paths += paths
    return all_paths
