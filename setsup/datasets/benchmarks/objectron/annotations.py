"""Annotations of Objectron: one protocol-buffer message per video.

Convention
----------
As published, a world has y up and is in metres, and a camera's frame is that of the phone held sideways (ARKit: x
right, y up, z backward), while videos and their pixels are upright: pixels go to the right as the camera's y does, and
down as its x does. Here a camera has x right, y down and z forward of the upright image, so that (x, y, z) is the
published (y, x, −z), and intrinsics have their two axes exchanged. Pixels of annotated points have their centres at
integers; the intrinsics are used as published, since their pixel origin is undocumented. Turning an image upright
reverses one of its axes. Whether the published principal point must be mirrored too (width − 1 − cx) could not be
verified without a genuine annotation; the repository's tutorials exchange its coordinates without mirroring. The 2D
points do not depend on it. None of this was compared with a published file.

References
----------
.. [1] Ahmadyan, Zhang, Ablavatski, Wei, Grundmann, "Objectron: A Large Scale Dataset of Object-Centric Videos in the
   Wild with Pose Annotations", CVPR 2021.

"""

import struct
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.formats.protobuf import read_fields, read_floats, read_varint
from setsup.errors import DamagedFile, DataError

__all__ = ["POINTS", "Frame", "Sequence", "frame_points", "read_sequence"]

POINTS = 9
"""Points of a box: its middle, and its corners from (−, −, −) to (+, +, +), z changing fastest, then y."""

_OBJECTS, _FRAMES = 1, 2
_UPRIGHT = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]])
_WRONG_ROTATION = 0.05

Reals = npt.NDArray[np.float64]
Fields = dict[int, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A frame: `pose` (4, 4), camera to world; `lens` fx, fy, cx, cy; `size` height and width of the upright image."""

    number: int
    time: float
    objects: int
    pose: Reals
    lens: Reals
    size: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """A video's frames, and the pose (4, 4) of its first object: object to world."""

    first: Reals
    frames: list[Frame]


def read_sequence(content: bytes, label: str) -> Sequence:
    """Read the content that precedes the frames of a sequence, without the points."""
    wire = _Wire(content, label)
    top = wire.fields(0, len(content))
    objects = [(wire.integer(fields, 1), wire.object_pose(fields)) for fields in map(wire.inside, top[_OBJECTS])]
    if not objects or not top[_FRAMES]:
        raise DamagedFile(
            f"{label} has {len(objects)} objects and {len(top[_FRAMES])} frames; expected at least one of each"
        )
    first = min(objects, key=lambda each: each[0])[1]
    return Sequence(first, [wire.frame(*span) for span in top[_FRAMES]])


def frame_points(content: bytes, label: str, position: int, size: tuple[int, int]) -> tuple[Reals, Reals]:
    """Points of all objects of a frame: (objects, 9, 3) in the camera's frame, m, and (objects, 9, 2) pixels."""
    wire = _Wire(content, label)
    spans = wire.fields(0, len(content))[_FRAMES]
    if position >= len(spans):
        raise replaced(label)
    frame = wire.inside(spans[position])
    points, pixels = [], []
    for annotated in map(wire.inside, frame[2]):
        keypoints = list(map(wire.inside, annotated[2]))
        if len(keypoints) != POINTS:
            raise DamagedFile(f"{label}: an object has {len(keypoints)} keypoints; expected {POINTS}")
        points.append([wire.triple(each, 2) for each in keypoints])
        pixels.append([wire.triple(each, 3)[:2] for each in keypoints])
    camera = np.array(points, np.float64).reshape(-1, POINTS, 3) @ _UPRIGHT[:3, :3].T
    return camera, np.array(pixels, np.float64).reshape(-1, POINTS, 2) * [size[1], size[0]] - 0.5


class _Wire:
    """Messages in a file."""

    def __init__(self, content: bytes, label: str) -> None:
        self.content, self.label = content, label

    def refuse(self, at: int, why: str) -> DataError:
        return DamagedFile(f"{self.label} could not be parsed as an Objectron annotation: {why} (byte {at:,})")

    def fields(self, at: int, end: int) -> Fields:
        """Places of the fields of a message, by number."""
        fields: Fields = defaultdict(list)
        for number, start, stop in read_fields(self.content, at, end, self.refuse):
            fields[number].append((start, stop))
        return fields

    def inside(self, span: tuple[int, int]) -> Fields:
        return self.fields(*span)

    def integer(self, fields: Fields, number: int) -> int:
        """An integer, 0 if it is omitted."""
        return read_varint(self.content, *fields[number][-1], self.refuse)[0] if fields[number] else 0

    def floats(self, fields: Fields, number: int, count: int, what: str) -> Reals:
        values = read_floats(self.content, fields[number]).astype(np.float64)
        if len(values) != count:
            raise DamagedFile(f"{self.label}: {what} has {len(values)} numbers; expected {count}")
        if not np.isfinite(values).all():
            raise DamagedFile(
                f"{self.label}: {what} contains a value that is not finite; expected {count} finite numbers"
            )
        return values

    def triple(self, fields: Fields, number: int) -> list[float]:
        """Floats 1, 2 and 3 of a nested message, each 0 if it is omitted."""
        values = [0.0, 0.0, 0.0]
        for span in fields[number][-1:]:
            for axis, spans in self.inside(span).items():
                if 1 <= axis <= 3 and spans[-1][1] - spans[-1][0] == 4:
                    values[axis - 1] = struct.unpack_from("<f", self.content, spans[-1][0])[0]
        return values

    def object_pose(self, fields: Fields) -> Reals:
        pose = np.eye(4)
        pose[:3, :3] = self.floats(fields, 4, 9, "the rotation of an object").reshape(3, 3)
        pose[:3, 3] = self.floats(fields, 5, 3, "the position of an object")
        return pose

    def frame(self, at: int, end: int) -> Frame:
        fields = self.fields(at, end)
        camera = self.inside(fields[3][-1]) if fields[3] else self.fields(0, 0)
        view = self.floats(camera, 9, 16, "the view matrix of a frame").reshape(4, 4)
        lens = self.floats(camera, 7, 9, "the intrinsics of a frame").reshape(3, 3)
        if abs(np.linalg.det(view[:3, :3]) - 1) > _WRONG_ROTATION:
            raise DamagedFile(f"{self.label}: the view matrix of a frame is not a rotation and translation")
        span = fields[4][-1] if fields[4] else (0, 0)
        time = struct.unpack_from("<d", self.content, span[0])[0] if span[1] - span[0] == 8 else np.nan
        return Frame(
            number=self.integer(fields, 1),
            time=time,
            objects=len(fields[2]),
            pose=np.asarray(np.linalg.inv(_UPRIGHT @ view), np.float64),
            lens=lens[[1, 0, 1, 0], [1, 0, 2, 2]],
            size=(self.integer(camera, 5), self.integer(camera, 6)),
        )
