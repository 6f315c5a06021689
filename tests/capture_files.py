"""Captures of a box from a ring of cameras: COLMAP models and ``transforms.json``, by the formats' descriptions.

Distorted images and observations are made by OpenCV.
"""

import io
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from PIL import Image
from scipy.spatial.transform import Rotation

from tests.true_files.rings import Reals, marks, project, ring, seen

SIZE = (90, 120)
AZIMUTHS = (0.0, 35, 80, 130, 200, 290)
FOCAL = (110.0, 104.0)
CENTRE = (62.0, 44.0)  # from the corner of the image, as all of these formats have it
K = np.array([[FOCAL[0], 0, CENTRE[0] - 0.5], [0, FOCAL[1], CENTRE[1] - 0.5], [0, 0, 1]])
"""Intrinsics with centres of pixels at integers."""

TURN, SHIFT, SCALE = Rotation.from_rotvec([0.4, -0.9, 0.3]), np.array([4.0, -2.0, 7.0]), 1.7
"""COLMAP's world, of the one in which the box is drawn."""

# name, number in binary files, OpenCV's k1, k2, p1, p2, k3, k4, k5, k6
LENSES: Mapping[str, tuple[int, tuple[float, ...]]] = {
    "SIMPLE_PINHOLE": (0, ()),
    "PINHOLE": (1, ()),
    "SIMPLE_RADIAL": (2, (-0.11,)),
    "RADIAL": (3, (0.12, -0.03)),
    "OPENCV": (4, (-0.12, 0.02, 0.003, -0.002)),
    "FULL_OPENCV": (6, (-0.2, 0.03, 0.002, -0.003, 0.001, 0.02, -0.01, 0.002)),
}
SIMPLE = ("SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL")
REFUSED = {
    5: ("OPENCV_FISHEYE", 8),
    7: ("FOV", 5),
    10: ("THIN_PRISM_FISHEYE", 12),
    11: ("RAD_TAN_THIN_PRISM_FISHEYE", 16),
    15: ("FISHEYE", 4),
    17: ("EQUIRECTANGULAR", 2),
}


def intrinsics(lens: str) -> Reals:
    """Intrinsics of a lens; simple ones have one focal length."""
    k = K.copy()
    k[1, 1] = k[0, 0] if lens in SIMPLE else k[1, 1]
    return k


def distortion(lens: str) -> Reals:
    """OpenCV's coefficients."""
    return np.array([*LENSES[lens][1], *[0.0] * 8][:8])


def parameters(lens: str) -> list[float]:
    """The parameters of COLMAP's camera."""
    return [*(FOCAL[:1] if lens in SIMPLE else FOCAL), *CENTRE, *LENSES[lens][1]]


def world(points: Reals) -> Reals:
    """Points in COLMAP's world."""
    return SCALE * TURN.apply(points) + SHIFT


def cloud() -> Reals:
    """Points around the box, in which it is drawn."""
    grid = np.stack(np.meshgrid([-0.4, 0, 0.45], [-0.3, 0.1, 0.3], [-0.2, 0.25]), axis=-1).reshape(-1, 3)
    return np.concatenate([marks(), grid])


def plain_poses(elevation: float = 25.0) -> Reals:
    """Poses in the world in which the box is drawn."""
    return ring(AZIMUTHS, elevation)


def poses(elevation: float = 25.0) -> Reals:
    """Poses, camera to world, in COLMAP's world."""
    found = plain_poses(elevation)
    found[:, :3, :3] = TURN.as_matrix() @ found[:, :3, :3]
    found[:, :3, 3] = world(found[:, :3, 3])
    return found


def image_name(frame: int) -> str:
    return f"frame_{frame:02}.png"


def image(pose: Reals, lens: str = "PINHOLE", size: tuple[int, int] = SIZE) -> Image.Image:
    """What a camera sees through a lens: each pixel from where OpenCV undistorts it to, of four times the pixels."""
    k = intrinsics(lens)
    if not LENSES[lens][1]:
        return seen(pose, k, size)[0]
    wide = np.array([[4 * k[0, 0], 0, 400], [0, 4 * k[1, 1], 300], [0, 0, 1]])
    pixels = np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), axis=-1).reshape(-1, 1, 2).astype(float)
    rounds = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-12)
    ideal = cv2.undistortPointsIter(pixels, k, distortion(lens), np.eye(3), wide, rounds)
    at = ideal.reshape(*size, 2).astype(np.float32)
    drawn = np.asarray(seen(pose, wide, (600, 800))[0])
    return Image.fromarray(cv2.remap(drawn, at[..., 0], at[..., 1], cv2.INTER_LINEAR))


def png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def observed(pose: Reals, lens: str = "PINHOLE") -> Reals:
    """Pixels (n, 2) of the cloud from the corner of the image, by OpenCV's own projection."""
    turn, shift = pose[:3, :3].T, -pose[:3, :3].T @ pose[:3, 3]
    vector = Rotation.from_matrix(turn).as_rotvec()
    pixels, _ = cv2.projectPoints(world(cloud()), vector, shift, intrinsics(lens), distortion(lens))
    return pixels[:, 0] + 0.5


def observations(pose: Reals, frame: int, lens: str = "PINHOLE") -> list[tuple[float, float, int]]:
    """Observations of an image: every point but one, and a keypoint of no point before each third."""
    entries = []
    for number, (x, y) in enumerate(observed(pose, lens).tolist()):
        if number % 3 == 0:
            entries.append((x + 1, y + 2, -1))
        if number != frame:
            entries.append((x, y, point_id(number)))
    return entries


def point_id(number: int) -> int:
    return 1000 + 7 * number


def entries(lens: str = "PINHOLE", elevation: float = 25.0) -> list[tuple[int, list[float], int, str, list]]:
    """Number, quaternion and translation, camera, name and observations of each image."""
    found = []
    for frame, pose in enumerate(poses(elevation)):
        x, y, z, w = Rotation.from_matrix(pose[:3, :3].T).as_quat()
        shift = -pose[:3, :3].T @ pose[:3, 3]
        found.append((frame + 3, [w, x, y, z, *shift], 5, image_name(frame), observations(pose, frame, lens)))
    return found[::-1]


def tracks(elevation: float = 25.0) -> list[list[tuple[int, int]]]:
    """Of each point the images that observe it, and the positions of its observations there."""
    listed = [
        (frame + 3, [point for _, _, point in observations(pose, frame)]) for frame, pose in enumerate(poses(elevation))
    ]
    return [
        [(image, points.index(point_id(number))) for image, points in listed if point_id(number) in points]
        for number in range(len(cloud()))
    ]


def binary_model(lens: str = "PINHOLE", elevation: float = 25.0) -> dict[str, bytes]:
    """The three files of a model, binary."""
    code, numbers = LENSES[lens][0], parameters(lens)
    cameras = struct.pack("<QIiQQ", 1, 5, code, SIZE[1], SIZE[0]) + struct.pack(f"<{len(numbers)}d", *numbers)
    listed = entries(lens, elevation)
    images = struct.pack("<Q", len(listed))
    for number, pose, camera, name, points in listed:
        images += struct.pack("<I7dI", number, *pose, camera) + name.encode() + b"\0" + struct.pack("<Q", len(points))
        images += b"".join(struct.pack("<ddq", *point) for point in points)
    points = struct.pack("<Q", len(cloud()))
    for number, (position, track) in enumerate(zip(world(cloud()), tracks(elevation), strict=True)):
        points += struct.pack("<Q3d3BdQ", point_id(number), *position, number, 2 * number, 255, 0.5, len(track))
        points += b"".join(struct.pack("<II", *each) for each in track)
    return {"cameras.bin": cameras, "images.bin": images, "points3D.bin": points}


def text_model(lens: str = "PINHOLE", elevation: float = 25.0) -> dict[str, bytes]:
    """The same as text, with the comments that COLMAP writes."""
    cameras = "# Camera list with one line of data per camera:\n#   CAMERA_ID, MODEL, WIDTH, HEIGHT, PARAMS[]\n"
    cameras += f"# Number of cameras: 1\n5 {lens} {SIZE[1]} {SIZE[0]} {' '.join(map(repr, parameters(lens)))}\n"
    listed = entries(lens, elevation)
    images = (
        f"# Image list with two lines of data per image:\n# Number of images: {len(listed)}, mean observations: 9\n"
    )
    for number, pose, camera, name, points in listed:
        images += f"{number} {' '.join(map(repr, map(float, pose)))} {camera} {name}\n"
        images += " ".join(f"{x!r} {y!r} {point}" for x, y, point in points) + "\n"
    points = f"# 3D point list with one line of data per point:\n# Number of points: {len(cloud())}\n"
    for number, (position, track) in enumerate(zip(world(cloud()).tolist(), tracks(elevation), strict=True)):
        seen = " ".join(f"{image} {at}" for image, at in track)
        points += f"{point_id(number)} {' '.join(map(repr, position))} {number} {2 * number} 255 0.5 {seen}\n"
    return {"cameras.txt": cameras.encode(), "images.txt": images.encode(), "points3D.txt": points.encode()}


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def pictures(lens: str = "PINHOLE", elevation: float = 25.0) -> dict[str, bytes]:
    """The images of a capture by name."""
    return {image_name(frame): png(image(pose, lens)) for frame, pose in enumerate(plain_poses(elevation))}


def write_colmap(folder: Path, lens: str = "PINHOLE", *, text: bool = False, model: str = "sparse/0") -> Path:
    """Write a capture as COLMAP's commands leave it."""
    files = text_model(lens) if text else binary_model(lens)
    put(folder / "images", pictures(lens))
    return put(folder / model, files)


def shown(points: Reals, picture: npt.NDArray[np.uint8], pose: Reals, k: Reals) -> bool:
    """Whether the discs of the marks, which are at `points`, are where a camera says."""
    pixels = np.rint(project(points, pose.astype(float), k.astype(float))).astype(int)
    colors = picture[pixels[:, 1], pixels[:, 0], :3].astype(int)
    return bool(np.abs(colors - [(255, 0, 0), (0, 255, 0), (0, 0, 255)]).max() < 110)


def opengl(pose: Reals) -> list[list[float]]:
    """A pose whose camera has y up and z backward."""
    return (pose @ np.diag([1.0, -1, -1, 1])).tolist()


def transforms(
    paths: Sequence[str], turned: Reals | None = None, *, frame: Mapping[str, object] = {}, **meta: object
) -> bytes:
    """A ``transforms.json`` of the box's own world, which `turned` moves."""
    frames = [
        {"file_path": path, "transform_matrix": opengl(pose if turned is None else turned @ pose), **frame}
        for path, pose in zip(paths, plain_poses(), strict=False)
    ]
    return json.dumps({**meta, "frames": frames}).encode()
