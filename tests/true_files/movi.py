"""A small MOVi-A in the form of its release: TFDS' record files of videos, with balls on a floor drawn by rays.

Written from the format's description in Kubric's axes: the camera looks along −z with x right and y up, quaternions are
(w, x, y, z), depth is the distance from the camera, flow is (row, column), and normals are in the world. The release of
128 pixels has every second pixel of the maps, from the first, and means of the colors.
"""

import io
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.spatial.transform import Rotation

from tests.true_files.clevr_with_masks import framed
from tests.true_files.multi_dsprites import float_list, serialised
from tests.true_files.shapenet_renderings import field

HELD = "objects"

Reals = npt.NDArray[np.float64]

SIDE, NATIVE, FRAMES, FOCAL, SENSOR = 128, 256, 3, 35.0, 32.0
SHARDS = {"train": ((0, 1), (2,)), "validation": ((3,),)}
COUNTS = (1, 2, 2, 1)
COLORS = np.array([(42, 75, 215), (129, 74, 25), (41, 208, 208), (87, 87, 87), (29, 105, 20), (129, 38, 192)]) / 255
FLOOR = np.array([0.6, 0.6, 0.6])


def pose(frame: float) -> tuple[Reals, Reals]:
    """Position of the camera, and its rotation to the world: columns right, up and back."""
    position = np.array([6 + 0.1 * frame, -4.0, 5.0])
    back = position / np.linalg.norm(position)
    right = np.cross([0, 0, 1], back)
    right /= np.linalg.norm(right)
    return position, np.stack([right, np.cross(back, right), back], axis=1)


def balls(number: int, frame: float) -> tuple[Reals, Reals]:
    """Centres and radii of the balls of a video."""
    chance = np.random.Generator(np.random.PCG64([number, 7]))
    centres = chance.uniform([-1.5, -1.5, 0.6], [1.5, 1.5, 1.6], (2, 3))
    centres[:, 1] += (-1, 1)
    speeds = chance.uniform(-0.2, 0.2, (2, 3))
    return (centres + frame * speeds)[: COUNTS[number]], np.array([0.5, 0.8])[: COUNTS[number]]


def projected(points: Reals, frame: float, side: int) -> Reals:
    """Rows and columns of points in an image of a side, centres of pixels at integers."""
    position, rotation = pose(frame)
    seen = (points - position) @ rotation
    columns = (seen[..., 0] / -seen[..., 2] * FOCAL / SENSOR + 0.5) * side - 0.5
    rows = (seen[..., 1] / seen[..., 2] * FOCAL / SENSOR + 0.5) * side - 0.5
    return np.stack([rows, columns], axis=-1)


@cache
def drawn(number: int, frame: int) -> dict[str, Any]:
    """Maps of a frame at the size at which they are rendered."""
    position, rotation = pose(frame)
    at = ((np.arange(NATIVE) + 0.5) / NATIVE - 0.5) * SENSOR
    rays = np.stack([*np.broadcast_arrays(at, -at[:, None]), np.full((NATIVE, NATIVE), -FOCAL)], axis=-1)
    rays = rays / np.linalg.norm(rays, axis=-1, keepdims=True) @ rotation.T
    down = rays[..., 2] < -0.02
    distance = np.where(down, -position[2] / np.where(down, rays[..., 2], -1), 100.0)
    owner = np.zeros((NATIVE, NATIVE), np.uint8)
    normals = np.broadcast_to([0.0, 0, 1], rays.shape).copy()
    centres, radii = balls(number, frame)
    for each, (centre, radius) in enumerate(zip(centres, radii, strict=True), 1):
        along = rays @ (centre - position)
        inside = along**2 - np.sum((centre - position) ** 2) + radius**2
        near = along - np.sqrt(np.maximum(inside, 0))
        hit = (inside > 0) & (near < distance)
        distance[hit], owner[hit] = near[hit], each
        normals[hit] = ((position + near[..., None] * rays - centre) / radius)[hit]
    points = position + distance[..., None] * rays
    moves = np.concatenate([np.zeros((1, 3)), balls(number, 1)[0] - balls(number, 0)[0]])[owner]
    here = projected(points, frame, NATIVE)
    local = (points - np.concatenate([np.zeros((1, 3)), centres])[owner]) / np.append(10, radii)[owner][..., None]
    paint = np.concatenate([FLOOR[None], COLORS[[(number + each) % 6 for each in range(len(centres))]]])
    return {
        "video": np.rint(255 * paint[owner] * (0.4 + 0.6 * np.abs(normals[..., 2:]))).astype(np.uint8),
        "segmentations": owner,
        "depth": distance,
        "normal": normals,
        "object_coordinates": np.clip(local / 2 + 0.5, 0, 1),
        "forward_flow": projected(points + moves, frame + 1, NATIVE) - here,
        "backward_flow": here - projected(points - moves, frame - 1, NATIVE),
        "points": points,
    }


def small(maps: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Every second pixel of maps (frames, height, width, …)."""
    return maps[:, ::2, ::2]


def png(pixels: npt.NDArray[Any]) -> bytes:
    """A PNG of one or three channels of 8 or 16 bits."""
    if pixels.dtype == np.uint8:
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        return out.getvalue()
    height, width = pixels.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, 16, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in pixels)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def varints(values: npt.NDArray[Any]) -> bytes:
    """Many integers of up to 16 bits, as varints one after the other."""
    low = np.stack([values & 127, values >> 7 & 127, values >> 14], axis=-1).reshape(-1, 3).astype(np.uint8)
    many = 1 + (values.ravel() > 127) + (values.ravel() > 16383)
    low |= (128 * (np.arange(3) < many[:, None] - 1)).astype(np.uint8)
    return low[np.arange(3) < many[:, None]].tobytes()


def int_list(values: npt.ArrayLike) -> bytes:
    """A feature of packed integers."""
    return field(3, field(1, varints(np.asarray(values))))


def texts(values: list[bytes]) -> bytes:
    """A feature of strings."""
    return field(1, b"".join(field(1, value) for value in values))


def scaled(values: Reals, limits: tuple[float, float]) -> npt.NDArray[np.uint16]:
    """Numbers of a range as 16 bits."""
    return ((values - limits[0]) / (limits[1] - limits[0]) * 65535).astype(np.uint16)


def quaternion(rotation: Reals) -> Reals:
    """(w, x, y, z) of a rotation."""
    return np.roll(Rotation.from_matrix(rotation).as_quat(), 1)


def attributes(number: int, letter: str) -> dict[str, bytes]:
    """Features of the objects that variants do not share."""
    count = COUNTS[number]
    codes = [(number + each) % 6 for each in range(count)]
    if letter == "a":
        return {
            "shape_label": int_list([2] * count),
            "size_label": int_list([0, 1][:count]),
            "color": float_list(COLORS[codes]),
            "color_label": int_list(codes),
            "material_label": int_list([1] * count),
        }
    return {
        "asset_id": texts([b"Thing_%d" % code for code in codes]),
        "category": int_list(codes),
        "is_dynamic": int_list([1, 0][:count]),
        "scale": float_list(np.linspace(1, 2, count)),
    }


@cache
def record(number: int, letter: str = "a") -> bytes:
    """A serialised example."""
    frames = [drawn(number, frame) for frame in range(FRAMES)]
    maps = {name: np.stack([each[name] for each in frames]) for name in frames[0]}
    count = COUNTS[number]
    ranges = {name: (float(maps[name].min()), float(maps[name].max())) for name in ("forward_flow", "backward_flow")}
    colors = maps["video"].reshape(FRAMES, SIDE, 2, SIDE, 2, 3).mean(axis=(2, 4)).round().astype(np.uint8)
    depth = small(maps["depth"])
    depths = float(depth.min()), float(depth.max())
    features = {
        "metadata/video_name": texts([b"%d" % (100 + number)]),
        "metadata/depth_range": float_list(np.array(depths)),
        "video": texts([png(each) for each in colors]),
        "segmentations": texts([png(each) for each in small(maps["segmentations"])]),
        "depth": texts([png(each) for each in scaled(depth, depths)]),
        "normal": texts([png(each) for each in scaled(small(maps["normal"]), (-1, 1))]),
        "object_coordinates": texts([png(each) for each in scaled(small(maps["object_coordinates"]), (0, 1))]),
        "camera/focal_length": float_list(np.array([FOCAL])),
        "camera/sensor_width": float_list(np.array([SENSOR])),
        "camera/field_of_view": float_list(np.array([2 * np.arctan2(SENSOR / 2, FOCAL)])),
        "camera/positions": float_list(np.array([pose(frame)[0] for frame in range(FRAMES)])),
        "camera/quaternions": float_list(np.array([quaternion(pose(frame)[1]) for frame in range(FRAMES)])),
    }
    sizes = {"width": SIDE, "height": SIDE, "num_frames": FRAMES, "num_instances": count}
    features |= {f"metadata/{name}": int_list([value]) for name, value in sizes.items()}
    for name, limits in ranges.items():
        features[name] = int_list(scaled(small(maps[name]), limits))
        features[f"metadata/{name}_range"] = float_list(np.array(limits) / 2)
    positions = np.array([balls(number, frame)[0] for frame in range(FRAMES)]).transpose(1, 0, 2)
    seen = [(maps["segmentations"] == each + 1).sum(axis=(1, 2)) for each in range(count)]
    instances = {
        "mass": float_list(np.linspace(1, 2, count)),
        "friction": float_list(np.full(count, 0.4)),
        "restitution": float_list(np.full(count, 0.3)),
        "positions": float_list(positions),
        "quaternions": float_list(np.tile([1.0, 0, 0, 0], (count, FRAMES, 1))),
        "visibility": int_list(np.array(seen)),
        **attributes(number, letter),
    }
    if letter != "a":
        features["background"] = texts([b"room_%d" % (number % 2)])
    return serialised(features | {f"instances/{name}": value for name, value in instances.items()})


def write(folder: Path) -> None:
    """Write the release."""
    place = folder / "movi_a" / "128x128" / "1.0.0"
    place.mkdir(parents=True)
    for split, shards in SHARDS.items():
        for number, videos in enumerate(shards):
            name = f"movi_a-{split}.tfrecord-{number:05}-of-{len(shards):05}"
            (place / name).write_bytes(b"".join(framed(record(video)) for video in videos))
