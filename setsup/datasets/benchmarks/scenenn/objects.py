"""The annotation of a SceneNN scene: an XML file with one element per object."""

import re
from typing import NamedTuple

import numpy as np

from setsup.datasets.formats.xml_file import read_children
from setsup.errors import DamagedFile

__all__ = ["SceneObject", "read_objects"]

_ID = re.compile(r"[+-]?[0-9]{1,10}")


class SceneObject(NamedTuple):
    """One labelled object of an annotation.

    Attributes
    ----------
    id : int
        Label of its vertices.
    label : str
        The annotators' text with collapsed spaces; not empty.
    nyu_class : str
        Name of its class; empty if the annotation has none.
    aabb : list of 6 float, m
        Minimum and maximum x, y, z; NaN if missing.
    obb : list of 10 float
        Centre, size (m), quaternion x y z w; NaN if missing.

    """

    id: int
    label: str
    nyu_class: str
    aabb: list[float]
    obb: list[float]


def read_objects(content: bytes, label: str) -> list[SceneObject]:
    r"""Read the labelled objects of an annotation."""
    objects, seen = [], set()
    for line, attributes in read_children(content, label, "label"):
        where = f"{label}: the label in line {line}"
        number = attributes.get("id", "").strip()
        if not _ID.fullmatch(number):
            raise DamagedFile(f"{where} has the id {number[:40]!r}; expected an integer")
        if int(number) in seen:
            raise DamagedFile(f"{where} repeats the id {number} of another label")
        seen.add(int(number))
        text = " ".join(attributes.get("text", "").split())
        if text:
            aabb = _box(attributes.get("aabbox", ""), 6, f"{where} has the aabbox")
            if any(aabb[axis] > aabb[axis + 3] for axis in range(3)):
                aabb = [np.nan] * 6  # the box around nothing
            obb = _box(attributes.get("obbox", ""), 10, f"{where} has the obbox")
            nyu_class = " ".join(attributes.get("nyu_class", "").split())
            objects.append(SceneObject(int(number), text, nyu_class, aabb, obb))
    return objects


def _box(text: str, count: int, what: str) -> list[float]:
    """Numbers of a box, NaN where there are none."""
    words = text.split()
    if not words:
        return [np.nan] * count
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count or "_" in text or not (np.abs(values) < np.finfo(np.float32).max).all():
        raise DamagedFile(f"{what} {text[:80]!r}; expected {count} finite numbers")
    return values
