"""One annotation file of Pascal3D+: a MATLAB struct with one element per object of the image.

Convention
----------
Angles are in degrees, boxes in 1-based inclusive pixels.
"""

from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile, DataError

__all__ = ["CATEGORIES", "COARSE", "FLAGS", "LARGEST", "POSE", "SIDES", "VIEW", "Row", "read_objects"]

Row = dict[str, float]

CATEGORIES = MappingProxyType(
    {
        **{"aeroplane": 8, "bicycle": 6, "boat": 6, "bottle": 8, "bus": 6, "car": 10},
        **{"chair": 10, "diningtable": 6, "motorbike": 5, "sofa": 6, "train": 4, "tvmonitor": 4},
    }
)
"""The classes, each with the number of its CAD models."""
POSE = ("azimuth", "elevation", "theta")
COARSE = ("azimuth_coarse", "elevation_coarse")
VIEW = ("distance", "px", "py", "focal", "viewport")
FLAGS = ("truncated", "occluded", "difficult")
SIDES = ("left", "top", "right", "bottom")

LARGEST = 1 << 24
"""Bytes that an annotation may have; published ones have a few thousand."""

_MOST_OBJECTS = 1 << 16


def read_objects(source: Path | bytes, label: str, category: str) -> list[Row]:
    """Objects of one category in an annotation file.

    Returns: A dict per object: ``object`` (its number in the file, from 1), ``cad`` (0: unknown), the flags (0, 1, or
    -1: unknown), azimuth, elevation, theta, distance, their coarse counterparts, px, py, focal, viewport, and the box
    as published. NaN is unknown. A pose without a distance whose angles are all zero was annotated only coarsely: it is
    unknown.
    """
    record = _struct(read_mat(source, label, ["record"], LARGEST)["record"], label, "record")
    objects = None if record is None else _field(record, "objects")
    if objects is None or (objects.size and objects.dtype.names is None):
        raise DataError(f"{label}: the variable 'record' has no struct array 'objects'; fetch it again")
    if objects.size > _MOST_OBJECTS:
        raise DataError(
            f"{label} contains {objects.size:,} objects, more than the limit of {_MOST_OBJECTS:,}; fetch it again"
        )
    rows = []
    for number, element in enumerate(objects.reshape(-1) if objects.size else (), 1):
        where = f"{label}: object {number}"
        if _text(_field(element, "class"), where, "class") == category:
            rows.append(_row(element, number, category, where))
    return rows


def _row(element: Any, number: int, category: str, where: str) -> Row:
    view = _struct(_field(element, "viewpoint"), where, "viewpoint")
    row = {"object": float(number)}
    cad = _number(_field(element, "cad_index"), where, "cad_index")
    if not (np.isnan(cad) or cad in range(CATEGORIES[category] + 1)):
        raise DamagedFile(
            f"{where}: 'cad_index' is {cad:g}; expected a model of {category} from 1 to {CATEGORIES[category]}, or 0 "
            "for none"
        )
    row["cad"] = 0.0 if np.isnan(cad) else cad
    for name in FLAGS:
        value = _number(_field(element, name), where, name)
        row[name] = -1.0 if np.isnan(value) else float(value != 0)
    for name in (*POSE, *COARSE, *VIEW):
        row[name] = np.nan if view is None else _number(_field(view, name), where, name)
    distance = row["distance"]
    if not (distance > 0):
        row["distance"] = np.nan
        if not any(row[name] for name in POSE if not np.isnan(row[name])):
            row.update(dict.fromkeys((*POSE, "px", "py"), np.nan))
    for name in ("azimuth", "azimuth_coarse"):
        row[name] %= 360
    row.update(zip(SIDES, _box(_field(element, "bbox"), where), strict=True))
    return row


def _box(value: Any, where: str) -> list[float]:
    """Four sides, as published; NaN where there is no box."""
    if value is None or value.size == 0:
        return [np.nan] * 4
    if value.dtype.kind not in "biuf" or value.size != 4:
        raise DataError(
            f"{where}: 'bbox' has dtype {value.dtype} and shape {value.shape}; expected four numbers; fetch the file "
            "again"
        )
    sides: list[float] = value.reshape(-1).astype(np.float64).tolist()
    return sides


def _number(value: Any, where: str, name: str) -> float:
    """A number; NaN where the field is missing or empty, or no finite number."""
    if value is None or value.size == 0:
        return np.nan
    if value.dtype.kind not in "biuf" or value.size != 1:
        raise DataError(
            f"{where}: {name!r} has dtype {value.dtype} and shape {value.shape}; expected one number; fetch the file "
            "again"
        )
    number = float(value.reshape(-1)[0])
    return number if np.isfinite(number) else np.nan


def _text(value: Any, where: str, name: str) -> str:
    if value is None or value.dtype.kind != "U" or value.size > 1:
        raise DataError(f"{where}: the field {name!r} is not a string; fetch the file again")
    return str(value.reshape(-1)[0]) if value.size else ""


def _struct(value: Any, where: str, name: str) -> Any:
    """The element of a struct; None where there is none."""
    if value is None or value.size == 0:
        return None
    if value.dtype.names is None or value.size != 1:
        raise DataError(
            f"{where}: {name!r} has dtype {value.dtype.name} and shape {value.shape}; expected a struct; fetch the "
            "file again"
        )
    return value.reshape(-1)[0]


def _field(element: Any, name: str) -> Any:
    """A field of a struct, an array; None where there is no such field."""
    if name not in (element.dtype.names or ()):
        return None
    value = element[name]
    return value if isinstance(value, np.ndarray) else None
