"""Annotations of Cars196: MAT files of either release, read into columns, and the parts of a class name.

Convention
----------
Boxes are (left, top, right, bottom), 1-based and inclusive. The files store numbers in the smallest sufficient unsigned
type; here they are float64 and int64.
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.members import MemberIndex

__all__ = ["ANNOTATIONS", "BODIES", "IMAGES", "Cars", "body", "make", "read_cars", "year"]

ANNOTATIONS = r"(?:car_devkit/)?(?:devkit/)?cars_(?:train_annos|annos)\.mat"
IMAGES = r"(?:cars_(?:train|test)/)+\d{5}\.jpg|car_ims/\d{6}\.jpg"
"""Names of the files of both releases, of which mirrors nest some folders in another of the same name."""

BODIES = ("Convertible", "Coupe", "Hatchback", "Minivan", "Pickup", "SUV", "Sedan", "Van", "Wagon")
"""Bodies that class names tell."""

_BODY = re.compile(r"\b(Convertible|Coupe|Hatchback|Minivan|SUV|Sedan|Van|Wagon|(?:Super)?Cab)\b")
_YEAR = re.compile(r"(?:19|20)\d\d")
_MAKES = ("AM General", "Aston Martin", "Land Rover")  # the makes of two words
_SIDES = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
_TRAIN, _TEST, _LABELS = "cars_train_annos.mat", "cars_test_annos.mat", "cars_test_annos_withlabels.mat"
_FOLDERS = ("devkit/", "car_devkit/devkit/", "car_devkit/", "")
_MOST = 1 << 25  # bytes of a MAT file, packed or not
_MOST_CLASSES = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class Cars:
    """Annotated images, one per row.

    `boxes` (rows, 4) float64, pixels; `codes` (rows,) int64; `test` (rows,) bool.
    """

    classes: tuple[str, ...]
    images: list[str]
    boxes: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int64]
    test: npt.NDArray[np.bool_]


def read_cars(members: MemberIndex) -> Cars:
    """Read the annotations of a release: of ``cars_train`` and ``cars_test``, else of ``car_ims``."""
    train, single = _found(members, _TRAIN), _found(members, "cars_annos.mat")
    if single is not None and (train is None or not len(members.matching(r"cars_(train|test)/.*\.jpg")[0])):
        return _of_one_file(members, single)
    if train is None:
        raise DamagedFile(
            f"{members.source} contains neither devkit/{_TRAIN} nor cars_annos.mat, which annotate the images"
        )
    meta = _found(members, "cars_meta.mat")
    if meta is None:
        raise DamagedFile(
            f"{members.source}: cars_meta.mat is missing next to {members.label(train)}", "fetch the devkit again"
        )
    classes = _classes(_variable(members, meta, "class_names"), members.label(meta))
    parts = [_part(members, train, "cars_train/", len(classes))]
    # with labels first: the file without them says the same of the boxes
    test = next((member for name in (_LABELS, _TEST) if (member := _found(members, name)) is not None), None)
    if test is not None:
        parts.append(_part(members, test, "cars_test/", len(classes)))
    images = [image for part in parts for image in part[0]]
    boxes, codes = (np.concatenate([part[at] for part in parts]) for at in (1, 2))
    return Cars(classes, images, boxes, codes, np.arange(len(images)) >= len(parts[0][0]))


def make(name: str) -> str:
    """Return the make with which a class name begins."""
    return next((two for two in _MAKES if name.startswith(two + " ")), name.partition(" ")[0])


def body(name: str) -> str | None:
    """Return the body type given by the last words of a class name, or None; all cabs are pickups."""
    bodies: list[str] = _BODY.findall(name)
    return None if not bodies else "Pickup" if bodies[-1].endswith("Cab") else bodies[-1]


def year(name: str) -> int | None:
    """Return the year, the last word of a class name, or None if that is not a year."""
    last = name.rpartition(" ")[2]
    return int(last) if _YEAR.fullmatch(last) else None


# -- inside ------------------------------------------------------------------------------------------------------------


def _found(members: MemberIndex, name: str) -> int | None:
    """Place of a file of the devkit, wherever mirrors put it."""
    return next((members.place(folder + name) for folder in _FOLDERS if folder + name in members), None)


def _variable(members: MemberIndex, member: int, name: str) -> Any:
    return read_mat(members.read(member, _MOST), members.label(member), [name], _MOST)[name]


def _classes(value: Any, label: str) -> tuple[str, ...]:
    cells = [cell for cell in value.reshape(-1)] if value.dtype == object else []
    names = tuple(str(cell.reshape(-1)[0]).strip() if _is_text(cell) else "" for cell in cells)
    if not 0 < len(names) <= _MOST_CLASSES or not all(names) or len(set(names)) != len(names):
        raise DamagedFile(
            f"{label}: 'class_names' has {len(names):,} entries; expected 1 to {_MOST_CLASSES:,} different names, "
            "each a non-empty string"
        )
    return names


def _is_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.size == 1


def _part(members: MemberIndex, member: int, folder: str, classes: int) -> tuple[list[str], Any, Any]:
    """Names of the images, boxes and classes of one annotation file."""
    label = members.label(member)
    annotations = _structs(_variable(members, member, "annotations"), ("fname", *_SIDES), label)
    names = _names(annotations["fname"], r"\d{5}\.jpg", "fname", label)
    return [folder + name for name in names], _boxes(annotations, label), _codes(annotations, classes, label)


def _of_one_file(members: MemberIndex, member: int) -> Cars:
    label = members.label(member)
    content = members.read(member, _MOST)
    read = read_mat(content, label, ["annotations", "class_names"], _MOST)
    classes = _classes(read["class_names"], label)
    annotations = _structs(read["annotations"], ("relative_im_path", "class", "test", *_SIDES), label)
    images = _names(annotations["relative_im_path"], r"car_ims/\d{6}\.jpg", "relative_im_path", label)
    test = _whole(annotations["test"], "test", label)
    if not np.isin(test, (0, 1)).all():
        raise DamagedFile(f"{label}: 'test' contains values other than 0 and 1")
    return Cars(classes, images, _boxes(annotations, label), _codes(annotations, len(classes), label), test == 1)


def _structs(value: Any, wanted: tuple[str, ...], label: str) -> Any:
    lacking = [name for name in wanted if name not in (value.dtype.names or ())]
    if lacking:
        raise DataError(f"{label}: 'annotations' lacks the fields {', '.join(lacking)}; fetch the published file")
    if not value.size:
        raise DamagedFile(f"{label}: 'annotations' is empty")
    return value.reshape(-1)


def _names(column: Any, pattern: str, field: str, label: str) -> list[str]:
    known = re.compile(pattern, re.ASCII)
    names = [str(value.reshape(-1)[0]) if _is_text(value) else "" for value in column]
    wrong = next((row for row, name in enumerate(names) if not known.fullmatch(name)), None)
    if wrong is not None:
        raise DamagedFile(
            f"{label}: {field!r} of annotation {wrong + 1} is {names[wrong]!r}; expected a file name that matches "
            f"{pattern}"
        )
    if len(set(names)) != len(names):
        raise DamagedFile(f"{label} annotates the same file more than once")
    return names


def _whole(column: Any, field: str, label: str) -> npt.NDArray[np.int64]:
    """Whole numbers of a field; widened before anything is computed, since most are stored in a byte."""
    integers = []
    for row, value in enumerate(column, 1):
        number = value.reshape(-1)[0] if value.size == 1 and value.dtype.kind in "biuf" else np.nan
        if not (number == np.floor(number) and abs(float(number)) < 1 << 31):
            raise DamagedFile(f"{label}: {field!r} of annotation {row} is not an integer")
        integers.append(int(number))
    return np.array(integers, np.int64)


def _boxes(annotations: Any, label: str) -> npt.NDArray[np.float64]:
    boxes = np.stack([_whole(annotations[side], side, label) for side in _SIDES], axis=1)
    wrong = np.flatnonzero((boxes[:, :2] < 1).any(axis=1) | (boxes[:, 2:] < boxes[:, :2]).any(axis=1))
    if len(wrong):
        raise DamagedFile(
            f"{label}: annotation {wrong[0] + 1} has the box {boxes[wrong[0]].tolist()}; expected (left, top, right, "
            "bottom) with left and top of at least 1, right of at least left, and bottom of at least top"
        )
    return boxes.astype(np.float64)


def _codes(annotations: Any, classes: int, label: str) -> npt.NDArray[np.int64]:
    if "class" not in annotations.dtype.names:
        return np.full(len(annotations), -1, np.int64)
    numbers = _whole(annotations["class"], "class", label)
    if not 1 <= numbers.min() <= numbers.max() <= classes:
        raise DamagedFile(f"{label} has class numbers from {numbers.min()} to {numbers.max()}; expected 1 to {classes}")
    return numbers - 1
