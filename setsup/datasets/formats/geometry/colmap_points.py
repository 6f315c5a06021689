"""Points of COLMAP's sparse models: ``points3D.bin`` or ``.txt``, and the observations of an image.

Convention
----------
That of :mod:`setsup.datasets.formats.geometry.colmap`: pixels have their centres at integers here.
"""

import struct
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.geometry.colmap import OBSERVATION
from setsup.datasets.formats.geometry.colmap_text import parse_numbers
from setsup.errors import DamagedFile, DataError

__all__ = ["ColmapPoints", "read_observations", "read_points"]

_COUNT = struct.Struct("<Q")
_POINT = struct.Struct("<q3d3BdQ")
_TRACK = 8  # bytes of an image in a point's track
_FIELDS = 8  # of a line, before the track
_OBSERVATION = np.dtype([("pixel", "<f8", 2), ("point", "<i8")])
_FIX = "write the model again"


@dataclass(frozen=True, slots=True, eq=False)
class ColmapPoints:
    """The 3D points of a model, in the order of the file.

    Attributes
    ----------
    ids : (n,) int64
        Their numbers, to which observations refer.
    xyz : (n, 3) float64
        Positions in the world.
    rgb : (n, 3) uint8
        Colors.
    errors : (n,) float64, pixels
        Mean reprojection errors, −1 where unknown.
    views : (n,) int64
        Number of observations.

    """

    ids: npt.NDArray[np.int64]
    xyz: npt.NDArray[np.float64]
    rgb: npt.NDArray[np.uint8]
    errors: npt.NDArray[np.float64]
    views: npt.NDArray[np.int64]
    _order: npt.NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Prepare :meth:`find`, and make arrays read-only."""
        for array in (self.ids, self.xyz, self.rgb, self.errors, self.views):
            array.flags.writeable = False
        object.__setattr__(self, "_order", np.argsort(self.ids))

    def find(self, ids: npt.NDArray[np.int64], observer: str) -> npt.NDArray[np.int64]:
        """Positions of points by their numbers, (n,) int64.

        Parameters
        ----------
        ids : (n,) int64
            Numbers of points.
        observer : str
            What observes them, for the error.

        Raises
        ------
        DataError
            When the model lacks one of them.

        Examples
        --------
        >>> xyz = np.array([[0, 0, 1.0], [0, 0, 2]])
        >>> cloud = ColmapPoints(np.array([9, 4]), xyz, np.zeros((2, 3), np.uint8), np.zeros(2), np.ones(2, np.int64))
        >>> cloud.xyz[cloud.find(np.array([4, 4, 9]), "row 0"), 2].tolist()
        [2.0, 2.0, 1.0]

        """
        at = np.minimum(np.searchsorted(self.ids, ids, sorter=self._order), max(len(self.ids) - 1, 0))
        found = self._order[at] if len(self.ids) else np.full(len(ids), -1)
        lost = np.flatnonzero(self.ids[found] != ids) if len(self.ids) else np.arange(len(ids))
        if len(lost):
            raise DataError(
                f"{observer} observes the point {ids[lost[0]]}, but its model lacks it among its {len(self.ids):,} "
                "points; write the files of the model again"
            )
        return found


def read_observations(content: bytes, text: bool, label: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Read the observations of an image: pixels (n, 2), and the number of each one's 3D point, (n,), −1 for none.

    `content` is the part of ``images.bin`` that contains them, or the line of ``images.txt`` if `text`.
    """
    if text:
        numbers = parse_numbers(content, label)
        if len(numbers) % 3:
            raise DamagedFile(f"{label} has {len(numbers)} numbers; expected X Y POINT3D_ID of each observation", _FIX)
        pixels, points = numbers.reshape(-1, 3)[:, :2], numbers[2::3]
        _need_integers(points, label)
    elif len(content) % OBSERVATION:
        raise DamagedFile(f"{label} end inside an observation", _FIX)
    else:
        entries = np.frombuffer(content, _OBSERVATION)
        pixels, points = entries["pixel"], entries["point"]
    if not np.isfinite(pixels).all() or not (np.abs(points) < 1 << 53).all():
        raise DamagedFile(f"{label} contain a number that is not finite, or too large for a point", _FIX)
    return pixels - 0.5, points.astype(np.int64)


def read_points(content: bytes, text: bool, label: str) -> ColmapPoints:
    """Read ``points3D.bin``, or ``points3D.txt`` if `text`."""
    rows, views = _text_rows(content, label) if text else _binary_rows(content, label)
    table = np.array(rows, np.float64).reshape(-1, _FIELDS)
    if not np.isfinite(table).all() or not ((table[:, 4:7] >= 0) & (table[:, 4:7] < 256)).all():
        raise DamagedFile(
            f"{label} contains a point with a color outside 0 to 255, or a coordinate that is not finite", _FIX
        )
    _need_integers(table[:, 0], label)
    ids = table[:, 0].astype(np.int64)
    numbers, counts = np.unique(ids, return_counts=True)
    if len(numbers) < len(ids):
        raise DamagedFile(f"{label} lists the point {numbers[counts > 1][0]} twice; expected each number once", _FIX)
    return ColmapPoints(ids, table[:, 1:4], table[:, 4:7].astype(np.uint8), table[:, 7], np.array(views, np.int64))


def _need_integers(points: npt.NDArray[np.float64], label: str) -> None:
    """Refuse numbers of points that are none."""
    broken = points[np.isfinite(points) & (points != np.rint(points))]
    if len(broken):
        raise DamagedFile(f"{label} has the POINT3D_ID {broken[0]:g}; expected an integer", _FIX)


def _binary_rows(content: bytes, label: str) -> tuple[list[tuple[float, ...]], list[int]]:
    rows, views, at = [], [], _COUNT.size
    cut_off = DamagedFile(f"{label} ends inside an entry: it is truncated, or not a binary COLMAP model", _FIX)
    if len(content) < at or _COUNT.unpack_from(content)[0] * _POINT.size > len(content):
        raise cut_off
    for _ in range(_COUNT.unpack_from(content)[0]):
        if at + _POINT.size > len(content):
            raise cut_off
        *row, track = _POINT.unpack_from(content, at)
        at += _POINT.size + _TRACK * track
        rows.append(tuple(row))
        views.append(track)
    if at > len(content):
        raise cut_off
    return rows, views


def _text_rows(content: bytes, label: str) -> tuple[list[tuple[float, ...]], list[int]]:
    rows, views = [], []
    for line, text in enumerate(content.split(b"\n"), 1):
        fields = text.split()
        if not fields or fields[0].startswith(b"#"):
            continue
        if len(fields) < _FIELDS or len(fields) % 2:
            raise DamagedFile(
                f"{label}, line {line} has {len(fields)} fields; expected POINT3D_ID X Y Z R G B ERROR and pairs of "
                "IMAGE_ID POINT2D_IDX",
                _FIX,
            )
        rows.append(tuple(parse_numbers(b" ".join(fields[:_FIELDS]), f"{label}, line {line}").tolist()))
        views.append((len(fields) - _FIELDS) // 2)
    return rows, views
