"""Datasets in the BOP format, by its description: boxes on a table, seen from a ring of cameras.

Depth and masks are made by intersecting the rays of pixels with the boxes and the table.
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.spatial.transform import Rotation

from tests.true_files.rings import Reals, ring

SIZE = (48, 64)
K = np.array([[70.0, 0, 31.25], [0, 68.0, 22.5], [0, 0, 1]])
AZIMUTHS = (0.0, 40, 100, 160, 220, 300)
NUMBERS = (0, 3, 4, 10, 11, 250)
"""Numbers of the images."""
STEP = 0.1
"""Millimetres of a step of depth."""

HALVES = {1: np.array([0.05, 0.08, 0.06]), 5: np.array([0.04, 0.04, 0.1])}
"""Half the sides of the models, metres."""


class Thing(NamedTuple):
    """An object in a scene: its model's number, and its pose, from model to world (m)."""

    number: int
    pose: Reals


def _placed(number: int, x: float, y: float, degrees: float, lift: float = 0) -> Thing:
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_euler("z", degrees, degrees=True).as_matrix()
    pose[:3, 3] = x, y, HALVES[number][2] + lift
    return Thing(number, pose)


SCENES: Mapping[int, tuple[Thing, ...]] = {
    1: (_placed(5, 0.1, 0.05, 20), _placed(1, -0.08, 0.0, 70), _placed(5, 0.02, -0.12, 0)),
    2: (_placed(1, 0.0, 0.0, 0), _placed(5, 0.0, 0.0, 45, 2 * HALVES[1][2])),
}


class View(NamedTuple):
    """What a camera sees: depth (m, 0 for none), and for each object its silhouette and the visible part of it."""

    depth: Reals
    whole: list[npt.NDArray[np.bool_]]
    visible: list[npt.NDArray[np.bool_]]


def camera_poses(elevation: float = 35.0) -> Reals:
    """Poses of a scene's cameras, camera to world, metres."""
    return ring(AZIMUTHS, elevation, 0.7)


def view(things: Sequence[Thing], pose: Reals, table: float = 0.25) -> View:
    """Look at a scene, whose table is a disc of a radius in metres."""
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    pixels = np.stack([columns, rows, np.ones(SIZE)], axis=-1).astype(float)
    rays = pixels @ np.linalg.inv(K).T @ pose[:3, :3].T  # with depth 1 along the optical axis
    with np.errstate(all="ignore"):
        reach = -pose[2, 3] / rays[..., 2]
        at = pose[:3, 3] + reach[..., None] * rays
        reach = np.where((reach > 0) & (np.hypot(at[..., 0], at[..., 1]) < table), reach, np.inf)
    own = [_box(thing, pose[:3, 3], rays) for thing in things]
    first = np.minimum.reduce([reach, *own])
    return View(
        np.where(np.isfinite(first), first, 0),
        [np.isfinite(each) for each in own],
        [np.isfinite(each) & (each <= first) for each in own],
    )


def _box(thing: Thing, centre: Reals, rays: Reals) -> Reals:
    """Depth at which rays meet a box, infinite for none: where they are between all three pairs of its sides."""
    turn, half = thing.pose[:3, :3], HALVES[thing.number]
    start, way = (centre - thing.pose[:3, 3]) @ turn, rays @ turn
    with np.errstate(all="ignore"):
        one, other = (-half - start) / way, (half - start) / way
    near, far = np.minimum(one, other).max(axis=-1), np.maximum(one, other).min(axis=-1)
    return np.where((near <= far) & (near > 0), near, np.inf)


def encode(array: npt.NDArray[Any], kind: str) -> bytes:
    """An image file."""
    file = io.BytesIO()
    Image.fromarray(array).save(file, {"png": "PNG", "jpg": "JPEG", "tif": "TIFF"}[kind], quality=95)
    return file.getvalue()


def camera(pose: Reals | None, scale: float | None = STEP) -> dict[str, Any]:
    """An entry of ``scene_camera.json``."""
    entry: dict[str, Any] = {"cam_K": K.reshape(-1).tolist()}
    if scale is not None:
        entry["depth_scale"] = scale
    if pose is not None:
        inverse = np.linalg.inv(pose)
        entry["cam_R_w2c"], entry["cam_t_w2c"] = inverse[:3, :3].reshape(-1).tolist(), (1000 * inverse[:3, 3]).tolist()
    return entry


def object_pose(thing: Thing, pose: Reals) -> Reals:
    """From model to camera, metres."""
    return np.linalg.inv(pose) @ thing.pose


def scene_files(
    number: int,
    *,
    kind: str = "rgb",
    ending: str = "png",
    deep: str = "png",
    sensor: str = "",
    posed: bool = True,
    truth: bool = True,
    masks: bool = True,
) -> dict[str, bytes]:
    """Files of a scene by name."""
    end = f"_{sensor}" if sensor else ""
    things = SCENES[number]
    files: dict[str, bytes] = {}
    lists: dict[str, dict[str, Any]] = {"scene_camera": {}, "scene_gt": {}, "scene_gt_info": {}}
    for image, pose in zip(NUMBERS, camera_poses(), strict=True):
        seen = view(things, pose)
        color = np.full((*SIZE, 3), 30, np.uint8)
        color[seen.depth > 0] = 200, 190, 180
        for instance, visible in enumerate(seen.visible):
            color[visible] = 60 + 60 * instance, 220 - 50 * instance, 90
        files[f"{kind}{end}/{image:06d}.{ending}"] = encode(color[..., 1] if kind == "gray" else color, ending)
        steps = np.round(1000 * seen.depth / STEP)
        if deep:
            dtype = np.float32 if deep == "float" else np.uint16
            files[f"depth{end}/{image:06d}.{'tif' if deep != 'png' else 'png'}"] = encode(
                steps.astype(dtype), "png" if deep == "png" else "tif"
            )
        lists["scene_camera"][str(image)] = camera(pose if posed else None, STEP if deep else None)
        lists["scene_gt"][str(image)] = entries = []
        lists["scene_gt_info"][str(image)] = infos = []
        for instance, thing in enumerate(things):
            placed = object_pose(thing, pose)
            shift = (1000 * placed[:3, 3]).tolist()
            entries.append(
                {"cam_R_m2c": placed[:3, :3].reshape(-1).tolist(), "cam_t_m2c": shift, "obj_id": thing.number}
            )
            whole, visible = seen.whole[instance], seen.visible[instance]
            infos.append({"px_count_all": int(whole.sum()), "visib_fract": float(visible.sum() / whole.sum())})
            for folder, mask in (("mask", whole), ("mask_visib", visible)):
                if masks:
                    name = f"{folder}{end}/{image:06d}_{instance:06d}.png"
                    files[name] = encode(mask.astype(np.uint8) * np.uint8(255), "png")
    for name, content in lists.items():
        if truth or name == "scene_camera":
            files[f"{name}{end}.json"] = json.dumps(content).encode()
    return files


def model_files() -> dict[str, bytes]:
    """Models of both objects: the first is symmetric by half a turn, the second by any about z."""
    infos = {}
    files = {}
    for number, half in HALVES.items():
        corners = 1000 * half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        low, sides = (-1000 * half).tolist(), (2000 * half).tolist()
        infos[str(number)] = {
            "diameter": float(2000 * np.linalg.norm(half)),
            **{f"min_{axis}": value for axis, value in zip("xyz", low, strict=True)},
            **{f"size_{axis}": value for axis, value in zip("xyz", sides, strict=True)},
        }
        faces = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)]
        faces += [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
        lines = ["ply", "format ascii 1.0", "element vertex 8", *(f"property float {axis}" for axis in "xyz")]
        lines += ["element face 12", "property list uchar int vertex_indices", "end_header"]
        lines += [" ".join(map(repr, corner)) for corner in corners.tolist()]
        lines += [f"3 {a} {b} {c}" for a, b, c in faces]
        files[f"obj_{number:06d}.ply"] = "\n".join(lines).encode() + b"\n"
    half_turn = [-1.0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    infos["1"]["symmetries_discrete"] = [half_turn]
    infos["5"]["symmetries_continuous"] = [{"axis": [0, 0, 2], "offset": [10, -20, 0]}]
    return {**files, "models_info.json": json.dumps(infos).encode()}


def targets() -> bytes:
    """``test_targets_bop19.json``: two images of scene 2."""
    return json.dumps(
        [{"im_id": image, "inst_count": 1, "obj_id": number, "scene_id": 2} for image in (3, 250) for number in (1, 5)]
    ).encode()


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def write(folder: Path, split: str = "test", scenes: Sequence[int] = (1, 2), **options: Any) -> Path:
    """Write a dataset with one split."""
    for number in scenes:
        put(folder / split / f"{number:06d}", scene_files(number, **options))
    put(folder / "models", model_files())
    put(folder / "models_eval", model_files())
    camera_json = {"cx": 31.25, "cy": 22.5, "depth_scale": STEP, "fx": 70.0, "fy": 68.0, "height": 48, "width": 64}
    put(folder, {"test_targets_bop19.json": targets(), "camera.json": json.dumps(camera_json).encode()})
    return put(folder, {"dataset_info.json": b"{}", "dataset_info.md": b"boxes"})
