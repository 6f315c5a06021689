"""Records of MOVi: the content of an example, as TFDS writes it without compression.

Convention
----------
A record is a video of s frames with k objects. ``video``, ``segmentations``, ``depth``, ``normal`` and
``object_coordinates`` are s PNG files; ``forward_flow`` and ``backward_flow`` one list of integers, (s, height, width,
2) uint16. Arrays of objects are (k, s, …), in the order of their total number of pixels. Quaternions are (w, x, y, z).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.benchmarks.movi.variants import NUMBERS, Variant
from setsup.datasets.formats.protobuf import packed_ends
from setsup.datasets.formats.tfrecord.example import Feature, read_example
from setsup.errors import DamagedFile
from setsup.html import counted

__all__ = ["FRAME", "MAPS", "MOTION", "SCENE", "Scene", "object_type", "read_scene"]

_IMAGES = ("video", "segmentations", "depth", "normal", "object_coordinates")
_FLOWS = ("forward_flow", "backward_flow")
MAPS = (*_IMAGES, *_FLOWS)
"""Features whose frames are located, in the order of the index."""

_RANGES = ("depth", *_FLOWS)
_TEXT = "S160"
_MOST_FRAMES, _MOST_OBJECTS = 1 << 10, 255

SCENE = np.dtype(
    [
        ("name", _TEXT),
        ("background", _TEXT),
        ("frames", "i4"),
        ("objects", "i4"),
        ("ranges", "f4", (len(_RANGES), 2)),
        ("focal_length", "f4"),
        ("sensor_width", "f4"),
        ("motion_blur", "f4"),
        ("background_color", "f4", (3,)),
    ]
)
FRAME = np.dtype([("spans", "i8", (len(MAPS), 2)), ("position", "f4", (3,)), ("quaternion", "f4", (4,))])
MOTION = np.dtype([("position", "f4", (3,)), ("quaternion", "f4", (4,)), ("visible", "i4")])


class Scene(NamedTuple):
    """A video: `scene` (1,), `frames` (s,), `objects` (k,) and `motions` (k · s,), structured arrays."""

    scene: Array
    frames: Array
    objects: Array
    motions: Array


def object_type(variant: Variant) -> np.dtype[Any]:
    """Type of the structured array of objects: codes, numbers, and the name of the asset."""
    fields: list[Any] = [(name, "i2") for name in variant.levels]
    fields += [(name, "f4") for name in (*NUMBERS, "scale")]
    return np.dtype([*fields, ("rgb", "f4", (3,)), ("asset", _TEXT)])


def read_scene(content: bytes, start: int, stop: int, variant: Variant, side: int, label: str) -> Scene:
    """Read a record of a file's content; DamagedFile if it is not a video of this variant and side."""
    names = _names(variant)
    found = _Features(read_example(content, names, label, start, stop, _FLOWS), content, label)
    frames, objects = found.integer("metadata/num_frames"), found.integer("metadata/num_instances")
    size = found.integer("metadata/height"), found.integer("metadata/width")
    if size != (side, side) or not 0 < frames <= _MOST_FRAMES or not 0 <= objects <= _MOST_OBJECTS:
        raise DamagedFile(
            f"{label} has {frames:,} frames of {size[0]} × {size[1]} pixels and {objects:,} objects; expected up to "
            f"{_MOST_FRAMES:,} frames of {side} × {side} pixels and {_MOST_OBJECTS} objects"
        )
    scene = np.zeros(1, SCENE)
    scene["name"], scene["background"] = found.text("metadata/video_name"), found.text("background", b"")
    scene["frames"], scene["objects"] = frames, objects
    scene["ranges"][0] = [found.floats(f"metadata/{name}_range", 2) for name in _RANGES]
    scene["focal_length"] = found.floats("camera/focal_length", 1)
    scene["sensor_width"] = found.floats("camera/sensor_width", 1)
    scene["motion_blur"] = found.optional("metadata/motion_blur", 1)
    scene["background_color"] = found.optional("background_color", 3)
    lengths = scene["focal_length"][0], scene["sensor_width"][0]
    if not (np.isfinite(scene["ranges"]).all() and 0 < min(lengths) and max(lengths) < np.inf):
        raise DamagedFile(f"{label}: a range or a length of the camera is not a finite number above 0")
    every = np.zeros(frames, FRAME)
    every["position"] = found.floats("camera/positions", 3 * frames).reshape(frames, 3)
    every["quaternion"] = found.floats("camera/quaternions", 4 * frames).reshape(frames, 4)
    for place, name in enumerate(MAPS):
        every["spans"][:, place] = (
            found.flow_spans(name, frames, 2 * side * side) if name in _FLOWS else found.spans(name, frames)
        )
    motions = np.zeros(objects * frames, MOTION)
    motions["position"] = found.floats("instances/positions", 3 * len(motions)).reshape(-1, 3)
    motions["quaternion"] = found.floats("instances/quaternions", 4 * len(motions)).reshape(-1, 4)
    motions["visible"] = found.integers("instances/visibility", len(motions))
    for array in (every, motions):
        length = np.linalg.norm(array["quaternion"], axis=1)
        if not (np.isfinite(array["position"]).all() and (length > 1e-3).all() and (length < np.inf).all()):
            raise DamagedFile(f"{label}: a position is not finite, or a quaternion has the length 0")
    return Scene(scene, every, _objects(found, variant, objects), motions)


def _names(variant: Variant) -> list[str]:
    names = ["video_name", "num_frames", "num_instances", "height", "width", "motion_blur"]
    names = [f"metadata/{name}" for name in (*names, *(f"{name}_range" for name in _RANGES))]
    names += [f"camera/{name}" for name in ("focal_length", "sensor_width", "positions", "quaternions")]
    own = ("positions", "quaternions", "visibility", *NUMBERS, *(level.feature for level in variant.levels.values()))
    names += [f"instances/{name}" for name in (*own, *variant.features)]
    return [*names, *MAPS, "background", "background_color"]


def _objects(found: "_Features", variant: Variant, count: int) -> Array:
    objects = np.zeros(count, object_type(variant))
    for name, level in variant.levels.items():
        objects[name] = codes = found.integers(f"instances/{level.feature}", count)
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(level.names):
            raise DamagedFile(
                f"{found.label}: instances/{level.feature} has values from {codes.min()} to {codes.max()}; expected 0 "
                f"to {len(level.names) - 1}"
            )
    for name in NUMBERS:
        objects[name] = found.floats(f"instances/{name}", count)
    objects["scale"], objects["rgb"] = np.nan, np.nan
    if "scale" in variant.features:
        objects["scale"] = found.floats("instances/scale", count)
    if "color" in variant.features:
        objects["rgb"] = found.floats("instances/color", 3 * count).reshape(count, 3)
    if "asset_id" in variant.features:
        objects["asset"] = found.texts("instances/asset_id", count)
    return objects


class _Features:
    """Features of a record by name, with their number of values checked."""

    def __init__(self, features: Mapping[str, Feature], content: bytes, label: str) -> None:
        self._features, self._content, self.label = features, content, label

    def values(self, name: str, kind: str, count: int) -> npt.NDArray[Any]:
        feature = self._features.get(name)
        # a list without values has no kind in some writers
        if feature is None or (feature.kind != kind and len(feature.values)) or len(feature.values) != count:
            there = "lacks it" if feature is None else f"has {counted(len(feature.values), 'value')} of {feature.kind}"
            raise DamagedFile(f"{self.label}: expected {count} of {kind} in {name!r}, but the record {there}")
        return feature.values

    def floats(self, name: str, count: int) -> npt.NDArray[Any]:
        return self.values(name, "float", count)

    def integers(self, name: str, count: int) -> npt.NDArray[Any]:
        return self.values(name, "int64", count)

    def integer(self, name: str) -> int:
        return int(self.integers(name, 1)[0])

    def optional(self, name: str, count: int) -> npt.NDArray[Any]:
        return self.floats(name, count) if name in self._features else np.full(count, np.nan, np.float32)

    def spans(self, name: str, count: int) -> npt.NDArray[Any]:
        return self.values(name, "bytes", count)

    def texts(self, name: str, count: int) -> list[bytes]:
        texts = [self._content[at : at + length] for at, length in self.spans(name, count).tolist()]
        longest = np.dtype(_TEXT).itemsize
        for text in texts:
            try:
                text.decode()
            except UnicodeDecodeError:
                raise DamagedFile(f"{self.label}: {name!r} is not UTF-8 text") from None
            if len(text) > longest or b"\0" in text:
                raise DamagedFile(f"{self.label}: {name!r} is not a text of up to {longest} bytes")
        return texts

    def text(self, name: str, default: bytes | None = None) -> bytes:
        return default if default is not None and name not in self._features else self.texts(name, 1)[0]

    def flow_spans(self, name: str, frames: int, values: int) -> npt.NDArray[Any]:
        """Places of the values of each frame in the one list of them."""
        start, length = self.values(name, "packed int64", 1)[0].tolist()
        ends = packed_ends(np.frombuffer(self._content, np.uint8, length, start))
        if len(ends) != frames * values or ends[-1] != length:
            raise DamagedFile(f"{self.label}: {name!r} has {len(ends):,} values; expected {frames * values:,}")
        stops = start + ends[values - 1 :: values]
        starts = np.append(start, stops[:-1])
        return np.stack([starts, stops - starts], axis=1)
