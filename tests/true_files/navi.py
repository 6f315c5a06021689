"""A small NAVI: annotations, photographs, masks and disparity of 16 bits, for each scene of each object."""

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.spatial.transform import Rotation

from tests.true_files.pacs import encoded, put
from tests.true_files.rings import HALF, ring, seen

HELD = "object"

UNIT = 200.0  # millimetres of a unit of the rings
SCENES = {
    "3d_dollhouse_sink": ("wild_set", "multiview-00-pixel_5"),
    "keywest_showpiece_tall": ("wild_set", "video-00-canon_t4i-MVI_2649"),
}
SIZES = {"wild_set": ((96, 128), (131, 97)), "multiview-00-pixel_5": ((96, 128),)}
IMAGES = 5
ON_ITS_SIDE = 1  # image of a wild_set that a phone stored turned, with a note of that
AZIMUTHS = (0.0, 25.0, 60.0, 110.0, 200.0)


def size_of(scene: str, image: int) -> tuple[int, int]:
    """Height and width of an image as it is shown."""
    sizes = SIZES.get(scene, ((90, 120),))
    return sizes[image % len(sizes)]


def camera(thing: int, scene: str, image: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Pose (millimetres) and intrinsics of an image in setsup's convention."""
    height, width = size_of(scene, image)
    shift = 7.0 * thing + (12.0 if scene == "wild_set" else 0.0)
    pose = ring([azimuth + shift for azimuth in AZIMUTHS], 20 + 6 * thing, 3.0 + 0.1 * image)[image]
    pose[:3, 3] *= UNIT
    roll = Rotation.from_euler("z", 8 * image, degrees=True).as_matrix()
    pose[:3, :3] = pose[:3, :3] @ roll
    focal = 1.6 * max(height, width)
    return pose, np.array([[focal, 0, width // 2 - 0.5], [0, focal, height // 2 - 0.5], [0, 0, 1]])


def depth_of(pose: npt.NDArray[np.float64], k: npt.NDArray[np.float64], pixels: npt.NDArray[Any]) -> Any:
    """Depth (millimetres) of the box at pixels (..., 2), by slabs; infinite beside it."""
    ones = np.ones((*pixels.shape[:-1], 1))
    rays = np.concatenate([pixels, ones], axis=-1) @ np.linalg.inv(k).T @ pose[:3, :3].T
    with np.errstate(divide="ignore"):
        ends = [(side * HALF * UNIT - pose[:3, 3]) / rays for side in (-1, 1)]
    near, far = np.minimum(*ends).max(axis=-1), np.maximum(*ends).min(axis=-1)
    return np.where((near <= far) & (near > 0), near, np.inf)


def grid(size: tuple[int, int]) -> npt.NDArray[np.float64]:
    """All pixels (h, w, 2)."""
    return np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), axis=-1).astype(np.float64)


def disparity(thing: int, scene: str, image: int) -> npt.NDArray[np.uint16]:
    """Depth as published: 65535 · 10 / millimetres, 0 beside the object."""
    depth = depth_of(*camera(thing, scene, image), grid(size_of(scene, image)))
    return np.rint(65535 * 10 / depth).astype(np.uint16)


def annotation(thing: int, scene: str, image: int) -> dict[str, Any]:
    """What annotations.json says of an image."""
    pose, k = camera(thing, scene, image)
    turn = pose[:3, :3].T
    x, y, z, w = Rotation.from_matrix(turn).as_quat()
    length = 1.0 + 0.5 * (image == 2)  # which need not be 1
    said = {
        "object_id": list(SCENES)[thing],
        "camera": {
            "q": [length * each for each in (w, x, y, z)],
            "t": (-turn @ pose[:3, 3]).tolist(),
            "focal_length": k[0, 0],
            "camera_model": "canon_t4i" if scene.startswith("video") else "pixel_5",
        },
        "filename": f"{image:03}.jpg",
        "filename_original": f"PXL_20230304_01415{image}",
        "image_size": list(size_of(scene, image)),
        "scene_name": scene,
        "split": "val" if image == IMAGES - 1 else "train",
        "occluded": image == 3,
    }
    return {**said, "video_id": "MVI_2649"} if scene.startswith("video") else said


def rows() -> list[tuple[int, str, int]]:
    """Object, scene and image of each row."""
    return [
        (thing, scene, image)
        for thing, scenes in enumerate(SCENES.values())
        for scene in sorted(scenes)
        for image in range(IMAGES)
    ]


def _photo(picture: Image.Image, turned: bool) -> bytes:
    file = io.BytesIO()
    exif = Image.Exif()
    if turned:
        exif[0x0112] = 6  # to be shown turned by 90 degrees, clockwise
        picture = picture.transpose(Image.Transpose.ROTATE_90)
    picture.save(file, "JPEG", quality=95, subsampling=0, exif=exif)
    return file.getvalue()


@cache
def release() -> dict[str, bytes]:
    """Content by path."""
    files = {}
    for thing, (name, scenes) in enumerate(SCENES.items()):
        for scene in scenes:
            top = f"{name}/{scene}"
            said = [annotation(thing, scene, image) for image in range(IMAGES)]
            files[f"{top}/annotations.json"] = json.dumps(said[::-1]).encode()
            for image in range(IMAGES):
                pose, k = camera(thing, scene, image)
                pose[:3, 3] /= UNIT
                picture, _ = seen(pose, k, size_of(scene, image), 2 * thing)
                stored = disparity(thing, scene, image)
                files[f"{top}/images/{image:03}.jpg"] = _photo(picture, scene == "wild_set" and image == ON_ITS_SIDE)
                files[f"{top}/depth/{image:03}.png"] = encoded(Image.fromarray(stored), "PNG")
                mask = Image.fromarray((stored > 0).astype(np.uint8) * np.uint8(255))
                files[f"{top}/masks/{image:03}.png"] = encoded(mask, "PNG")
    return files


def write(folder: Path) -> None:
    """Write the folders of two objects."""
    put(folder, release())
