"""Objectron: the annotated frames of its videos, from lists and annotations; the videos themselves are not read."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.factor_columns import nominal
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.adapters.missing_files import warn_left_out
from setsup.datasets.base import BaseDataset
from setsup.datasets.benchmarks.objectron.annotations import POINTS, Sequence, frame_points, read_sequence
from setsup.datasets.cached_arrays import cached_table, release_state
from setsup.datasets.dataset import Modality
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of
from setsup.progress import progress

__all__ = ["Objectron", "open"]

_FILE = r"annotations/(?P<category>[^/]+)/(?P<sequence>batch-[0-9]+/[0-9]+)\.pbdata"
_HOLDS = {r"annotations/[^/]+/batch-[0-9]+/[0-9]+\.pbdata": "annotations/<category>/batch-*/*.pbdata"}
_ARCHIVES = ("objectron", "Objectron", "objectron.zip", "objectron.tar")
_SPLITS = ("train", "test")
_FACTORS = {"time": "s", "azimuth": "deg", "elevation": "deg", "distance": "m"}
_NUMBERS = (*(f"pose{row}{column}" for row in range(3) for column in range(4)), "fx", "fy", "cx", "cy")
_SIZE = ("height", "width")
_PREVIEW = 128
_MOST, _MOST_LIST = 1 << 28, 1 << 24
_EDITION = 1


class Objectron(BaseDataset):
    """Annotated frames, by category, sequence and frame.

    Factors are ``category``; ``sequence`` (within the category, such as ``batch-1/20``); the key ``frame``, its number
    in the video; ``time`` (s); ``objects``, the number of annotated objects in the frame; ``azimuth``, ``elevation``
    and ``distance`` (m) of the camera from the sequence's first object, in that object's own axes, so that they can be
    compared between sequences: azimuth 0 looks at its front (+z), 90 at its +x side, and elevation is the angle above
    its centre; and ``split``, if the lists exist.

    Modalities are ``pose`` (camera to world, m), ``intrinsics`` (pixels), and, for the objects of the frame, padded
    with NaN to the largest number of objects: ``points``, (objects, 9, 3) m in the camera's frame, and ``pixels``,
    (objects, 9, 2), the middle and the corners of each box; ``preview``, (128, 128, 3), is a drawing of the boxes, not
    a photograph. :mod:`setsup.datasets.benchmarks.objectron.annotations` defines the frames and the pixels.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.

    Raises
    ------
    DataError
        An annotation or a list is damaged.

    """

    name = "objectron"
    cpu_bound = True

    def __init__(self, members: MemberIndex) -> None:
        self._members, self._source = members, members.source
        places, groups = members.matching(_FILE)
        names = list(zip(groups["category"].to_pylist(), groups["sequence"].to_pylist(), strict=True))
        order = sorted(range(len(names)), key=lambda row: (names[row][0], *_numbers(names[row][1])))
        self._places, self._names = places[order], [names[row] for row in order]
        state = release_state(members, self._places)
        path = cache_folder() / "indexes" / "objectron" / f"{_EDITION}-{state}.arrow"
        self._index = cached_table(path, self._read_index)
        self._most = max(1, int(self._index.values("objects").max()))
        self._sizes = np.stack([self._index.codes(name) for name in _SIZE], axis=1).astype(np.int64)
        self._video = self._index.codes("video")
        self.factors = self._table()
        self.modalities = {
            "pose": Modality((4, 4), "float32", unit="m"),
            "intrinsics": Modality((3, 3), "float32", unit="pixel"),
            "points": Modality((self._most, POINTS, 3), "float32", unit="m"),
            "pixels": Modality((self._most, POINTS, 2), "float32", unit="pixel"),
            "preview": Modality((_PREVIEW, _PREVIEW, 3), "uint8", color="srgb"),
        }

    def _read_all(self, rows: Rows, out: Mapping[str, Any]) -> dict[str, Array]:
        arrays = {name: self._camera(name, rows) for name in out if name in ("pose", "intrinsics")}
        others = {name: array for name, array in out.items() if name not in arrays}

        def put(row: int, slot: int) -> None:
            points, pixels = self._points(row)
            for name, array in others.items():
                if name == "preview":
                    array[slot] = _drawn(pixels, *self._sizes[row].tolist())
                else:
                    array[slot] = np.nan
                    array[slot, : len(points)] = points if name == "points" else pixels

        if others:
            read_distinct(rows, list(others.values()), np.ndarray.tolist, put)
        return {**arrays, **others}

    def _camera(self, name: str, rows: Rows) -> Array:
        numbers = np.stack([self._index.codes(each, rows) for each in _NUMBERS], axis=-1)
        if name == "pose":
            matrices = np.tile(np.eye(4, dtype=np.float32), (len(rows), 1, 1))
            matrices[:, :3] = numbers[:, :12].reshape(-1, 3, 4)
        else:
            matrices = np.tile(np.eye(3, dtype=np.float32), (len(rows), 1, 1))
            matrices[:, [0, 1, 0, 1], [0, 1, 2, 2]] = numbers[:, 12:]
        return matrices

    def _points(self, row: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        member = int(self._places[self._video[row]])
        content, label = self._members.read(member, _MOST), self._members.label(member)
        height, width = self._sizes[row].tolist()
        points, pixels = frame_points(content, label, int(self._index.values("position", row)), (height, width))
        if len(points) > self._most:
            raise replaced(label)
        return points, pixels

    def _read_index(self) -> FactorTable:
        """Read all annotations: a row for each frame, without its points."""
        rows: list[tuple[float, ...]] = []
        integers: list[tuple[int, int, int, int]] = []
        with progress(len(self._places), f"indexing {self.name}", "sequences") as advance:
            for video, member in enumerate(self._places.tolist()):
                sequence = read_sequence(self._members.read(member, _MOST), self._members.label(member))
                for position, (frame, angles) in enumerate(
                    zip(sequence.frames, _angles(sequence).tolist(), strict=True)
                ):
                    rows.append((frame.time, *angles, *frame.pose[:3].ravel(), *frame.lens, *frame.size))
                    integers.append((video, frame.number, position, frame.objects))
                advance(1)
        columns = np.array(integers, np.int64).T
        continuous = np.array(rows, np.float32).T
        factors, found_columns = [], {}
        for name, column in zip(("video", "frame", "position", "objects"), columns, strict=True):
            # objects are counted from 0, so that the factor has all levels
            levels = np.arange(column.max() + 1) if name == "objects" else np.unique(column)
            factors.append(Factor(name, Kind.ORDINAL, tuple(levels.tolist())))
            found_columns[name] = np.searchsorted(levels, column)
        for name, values in zip((*_FACTORS, *_NUMBERS, *_SIZE), continuous, strict=True):
            factors.append(Factor(name, Kind.CONTINUOUS))
            found_columns[name] = values
        return FactorTable(factors, found_columns)

    def _table(self) -> FactorTable:
        names = [self._names[video] for video in self._video.tolist()]
        category = nominal("category", [name for name, _ in names])
        levels = sorted({sequence for _, sequence in self._names}, key=_numbers)
        sequence = nominal("sequence", [name for _, name in names], within="category", levels=levels)
        frame = self._index["frame"].levels or ()
        columns: list[tuple[Factor, Array]] = [
            category,
            sequence,
            (Factor("frame", Kind.ORDINAL, frame, within="sequence", role="key"), self._index.codes("frame")),
            (Factor("time", Kind.CONTINUOUS, unit="s"), self._index.codes("time")),
            (Factor("objects", Kind.ORDINAL, self._index["objects"].levels or ()), self._index.codes("objects")),
        ]
        for name in ("azimuth", "elevation", "distance"):
            period = 360.0 if name == "azimuth" else None
            factor = Factor(name, Kind.CONTINUOUS, unit=_FACTORS[name], period=period)
            columns.append((factor, self._index.codes(name)))
        listed = _lists(self._members)
        if listed:
            there = {"/".join(name): None for name in self._names}
            lost = [f"annotations/{name}.pbdata" for name in listed if name not in there]
            warn_left_out(self._source, "sequences", lost, len(listed))
            codes = [listed.get(name, -1) for name in there]
            columns.append((Factor("split", Kind.NOMINAL, _SPLITS, role="split"), np.array(codes)[self._video]))
        return FactorTable([factor for factor, _ in columns], {factor.name: codes for factor, codes in columns})


def open(root: Path | str | None = None) -> Objectron:
    """Open Objectron's annotations: a folder with ``annotations`` and ``index``, as in the bucket and the repository.

    A clone of the repository next to ``annotations`` may replace ``index``. Any subset of sequences is accepted. Videos
    are not read.

    References
    ----------
    .. [1] Ahmadyan, Zhang, Ablavatski, Wei, Grundmann, "Objectron: A Large Scale Dataset of Object-Centric Videos in
       the Wild with Pose Annotations", CVPR 2021.

    """
    return Objectron(find_members("objectron", root, _HOLDS, _ARCHIVES))


def _numbers(sequence: str) -> tuple[int, ...]:
    """Numbers in a name such as batch-1/20."""
    return tuple(map(int, re.findall("[0-9]+", sequence)))


def _angles(sequence: Sequence) -> npt.NDArray[np.float64]:
    """Azimuth, elevation (degrees) and distance of each frame's camera, in the axes of the first object."""
    places = np.array([frame.pose[:3, 3] for frame in sequence.frames])
    x, y, z = ((places - sequence.first[:3, 3]) @ sequence.first[:3, :3]).T
    azimuth = np.rad2deg(np.arctan2(x, z)).astype(np.float32) % np.float32(360)
    elevation = np.rad2deg(np.arctan2(y, np.hypot(x, z)))
    return np.stack([np.where(azimuth >= 360, 0, azimuth), elevation, np.sqrt(x * x + y * y + z * z)], axis=1)


def _lists(members: MemberIndex) -> dict[str, int]:
    """Split of each listed sequence, ``bike/batch-1/20``."""
    parts: dict[str, int] = {}
    for code, part in enumerate(_SPLITS):
        for there, member in _places_of_lists(members, part):
            label = there.label(member)
            lines = text_of(there.read(member, _MOST_LIST), label).split()
            wrong = next((line for line in lines if re.fullmatch(r"[^/]+/batch-[0-9]+/[0-9]+", line) is None), None)
            if wrong is not None:
                raise DamagedFile(f"{label} contains the line {wrong[:60]!r}; expected a line such as bike/batch-1/20")
            parts |= dict.fromkeys(lines, code)
    return parts


def _places_of_lists(members: MemberIndex, part: str) -> list[tuple[MemberIndex, int]]:
    """Lists next to the annotations, or in a clone of the repository that lies there."""
    name = rf"(?:v1/)?index/[^/]+_annotations_{part}"
    for there, pattern in ((members, name), (members, f"[^/]+/{name}"), (members.above(), f"(?:[^/]+/)?{name}")):
        if places := there.matching(pattern)[0].tolist():
            return [(there, member) for member in places]
    return []


def _drawn(pixels: npt.NDArray[np.float64], height: int, width: int) -> Array:
    """Draw boxes by their corners: the front of each in another color."""
    image = Image.new("RGB", (_PREVIEW, _PREVIEW), (236, 236, 240))
    pen = ImageDraw.Draw(image)
    scale = _PREVIEW / max(height, width, 1)
    shift = (_PREVIEW - scale * np.array([width, height])) / 2
    edges = [(corner, corner | bit) for corner in range(8) for bit in (4, 2, 1) if not corner & bit]
    for box in pixels:
        flat = [tuple(point) for point in np.clip(box[1:] * scale + shift, -1e4, 1e4)]
        for corner, other in sorted(edges, key=lambda edge: edge[0] & edge[1] & 1):
            pen.line((*flat[corner], *flat[other]), (200, 60, 40) if corner & other & 1 else (60, 80, 150), 2)
    return np.asarray(image)
