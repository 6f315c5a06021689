"""Lists of Pascal3D+: the validation images, and ABC's lists of objects to evaluate poses on."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.datasets.benchmarks.pascal3d.objects import CATEGORIES, POSE, SIDES
from setsup.errors import DamagedFile, DataError
from setsup.factors import FactorTable
from setsup.files.archives.members import MemberIndex
from setsup.files.expand_user import expanded
from setsup.files.roots import some
from setsup.files.texts import content_of, find_beside, label_of, read_beside, text_of

__all__ = ["ABC", "AbcList", "abc_codes", "read_abc_list", "validation"]


ABC = ("car", "chair")
"""Categories that ABC has an evaluation list of."""

_VOC = "PASCAL/VOCdevkit/VOC2012/ImageSets/Main"
# of Spherical_Regression, whose lists are those of VOC2012 without its directories
_OTHERS = ("image_sets/val.txt", "ImageSets/val.txt", "val.txt")
_ID = re.compile(r"[\w+ -]+(?:\.[\w+ -]+)*")
_VOC_ID = re.compile(r"\d{4}_\d{6}", re.ASCII)
_MOST = 1 << 24  # bytes of a list
_WHAT = "a list of images"
_PIXELS, _DEGREES = 1.0, 1e-3  # by which a list may differ from the annotation

_log = logging.getLogger("setsup")


@dataclass(frozen=True, slots=True, eq=False)
class AbcList:
    """Objects of one of ABC's evaluation lists.

    `boxes` (n, 4) float64; `azimuth, elevation, theta` (n,) float64.
    """

    images: tuple[str, ...]
    boxes: Reals
    azimuth: Reals
    elevation: Reals
    theta: Reals

    def __len__(self) -> int:
        """Count the objects."""
        return len(self.images)


def read_abc_list(path: Path | str) -> AbcList:
    r"""Read one of ABC's evaluation lists, ``car_test.txt`` or ``chair_test.txt``.

    Each line is ``<image>.jpg left top right bottom azimuth elevation theta``.

    Parameters
    ----------
    path : Path or str
        The list.

    Returns
    -------
    AbcList

    Raises
    ------
    DataError
        When the file is missing, or contains an invalid line, an empty box or an angle out of range.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "car_test.txt"
    >>> _ = file.write_text("2008_000203.jpg 81 108 246 258 0.0 2.987543 -0.704578\n")
    >>> read_abc_list(file).boxes.tolist()
    [[81.0, 108.0, 246.0, 258.0]]

    """
    path = expanded(path)
    return _abc_list(text_of(read_beside(path, _MOST, _WHAT), str(path)), str(path))


def validation(members: MemberIndex, folders: Sequence[Path]) -> set[str] | None:
    """Image ids of the validation part of VOC2012."""
    classes = [f"{_VOC}/{category}_val.txt" for category in CATEGORIES]
    for names in ([f"{_VOC}/val.txt"], classes, *([name] for name in _OTHERS)):
        lists = [text for name in names if (text := _found(members, folders, name))]
        if lists:
            return {image for text, label in lists for image in _ids(text, label)}
    return None


def abc_codes(members: MemberIndex, folders: Sequence[Path], table: FactorTable) -> npt.NDArray[np.int64]:
    """For each row the number of the category in :data:`ABC` whose evaluation list has it; -1 for the others.

    An object of a list is matched to the row of its category, its image and the PASCAL part whose box agrees to a pixel
    and whose angles agree to a thousandth of a degree. Objects without a matching row are listed in the log.

    Returns (rows,) int64.
    """
    codes = np.full(len(table), -1, dtype=np.int64)
    for code, category in enumerate(ABC):
        for name in (f"{category}_test.txt", f"abc_lists/{category}_test.txt"):
            text = _found(members, folders, name)
            if text is not None:
                wanted = _abc_list(*text)
                rows = _match(wanted, category, table)
                _report(text[1], wanted, rows)
                codes[rows[rows >= 0]] = code
                break
    return codes


def _report(label: str, wanted: AbcList, rows: npt.NDArray[np.int64]) -> None:
    lost = np.flatnonzero(rows < 0)
    if len(lost):
        first = some([f"line {turn + 1} ({wanted.images[turn]})" for turn in lost.tolist()])
        _log.warning(
            "%s: %d of its %d objects match no annotated object: %s; they are left out of the part",
            *(label, len(lost), len(wanted), first),
        )


def _match(wanted: AbcList, category: str, table: FactorTable) -> npt.NDArray[np.int64]:
    """Row of each object of a list, -1 where there is none."""
    matches = np.full(len(wanted), -1, dtype=np.int64)
    rows = table.rows(f"category == {category!r} and source == 'pascal'")
    here: dict[str, list[int]] = {}
    for row, image in zip(rows.tolist(), table.values("photo", rows).tolist(), strict=True):
        here.setdefault(image, []).append(row)
    boxes = np.stack([table.column(name) for name in SIDES], axis=1).astype(np.float64)
    poses = np.stack([table.column(name) for name in POSE], axis=1).astype(np.float64)
    angles = np.stack([wanted.azimuth, wanted.elevation, wanted.theta], axis=1)
    for turn, image in enumerate(wanted.images):
        near = np.array(here.get(image, ()), dtype=np.int64)
        turned = np.abs(poses[near] - angles[turn])
        turned[:, 0] = np.minimum(turned[:, 0], 360 - turned[:, 0])
        apart = np.abs(boxes[near] - wanted.boxes[turn]).max(axis=1)
        fits = np.flatnonzero((apart <= _PIXELS) & (turned <= _DEGREES).all(axis=1))
        if len(fits):
            matches[turn] = near[fits[np.argmin(apart[fits])]]
    return matches


# -- reading -----------------------------------------------------------------------------------------------------------


def _found(members: MemberIndex, folders: Sequence[Path], name: str) -> tuple[str, str] | None:
    """Text and label of a list in the release, or next to it."""
    source = find_beside(members, folders, [name])
    return None if source is None else (text_of(content_of(source, _MOST, _WHAT), label_of(source)), label_of(source))


def _ids(text: str, label: str) -> set[str]:
    lines = [line.split() for line in text.splitlines()]
    ids = {words[0] for words in lines if words}
    for line, words in enumerate(lines, 1):
        # of VOC: the id alone, or with -1, 0 or 1 for a class
        if words and (len(words) > 2 or not _VOC_ID.fullmatch(words[0])):
            shown = " ".join(words)[:60]
            raise DataError(
                f"{label}: line {line} is {shown!r}; expected an image id such as 2008_000203; fetch it again, or "
                "remove it if it is an unrelated file"
            )
    if not ids:
        raise DamagedFile(f"{label} lists no images")
    return ids


def _abc_list(text: str, label: str) -> AbcList:
    images, rows = [], []
    for line, words in enumerate(map(str.split, text.splitlines()), 1):
        if not words:
            continue
        try:
            numbers = [float(word) for word in words[1:]]
        except ValueError:
            numbers = []
        image, _, extension = words[0].rpartition(".")
        if len(numbers) != 7 or not np.isfinite(numbers).all() or not _ID.fullmatch(image) or extension != "jpg":
            raise DamagedFile(
                f"{label}: line {line} is {' '.join(words)[:80]!r}; expected <image>.jpg, the four sides of a box and "
                "three angles"
            )
        left, top, right, bottom, azimuth, elevation, theta = numbers
        if not (1 <= left <= right and 1 <= top <= bottom):
            raise DamagedFile(
                f"{label}: line {line} has the box {words[1:5]}; expected left, top, right and bottom, with left and "
                "top of at least 1 and a positive area"
            )
        if not (0 <= azimuth <= 360 and abs(elevation) <= 90 and abs(theta) <= 180):
            raise DamagedFile(
                f"{label}: line {line} has the angles {words[5:]}; expected azimuth from 0 to 360, elevation from -90 "
                "to 90 and theta from -180 to 180"
            )
        images.append(image)
        rows.append(numbers)
    values = np.array(rows, dtype=np.float64).reshape(-1, 7)
    if not len(values):
        raise DamagedFile(f"{label} is empty")
    return AbcList(tuple(images), values[:, :4], values[:, 4], values[:, 5], values[:, 6])
