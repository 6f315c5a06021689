"""A small SceneNN as it is after the recordings were extracted: colour, depth and mask pictures, poses, times."""

from pathlib import Path

import numpy as np
from PIL import Image

from tests.kept import kept
from tests.true_files.scenenn import SCENES, things

HELD = "scene"

FRAMES = 8
STEP = 5  # pixels of a side of what is drawn in one piece
FOCAL, CENTRE = 544.47329, (320.0, 240.0)
LOST = ((0, 5), (1, 8))  # scene and frame whose pose is no rotation, and which has none


def pose(scene: int, frame: int) -> np.ndarray:
    """Camera to world: on an arc above the room's open corner, looking at the middle of the floor."""
    angle = np.deg2rad(20 + 7 * frame + 3 * scene)
    eye = np.array([2.6 * np.sin(angle), 1.7 + 0.05 * scene, 2.6 * np.cos(angle)])
    forward = np.array([0, 0.25, 0]) - eye
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 1, 0])
    right /= np.linalg.norm(right)
    found = np.eye(4)
    found[:3, 0], found[:3, 1], found[:3, 2], found[:3, 3] = right, np.cross(forward, right), forward, eye
    return found


def draw(scene: int, frame: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Colour (480, 640, 3) uint8, depth (480, 640) uint16 in mm, ids (480, 640), 0 where nothing is."""
    camera = pose(scene, frame)
    v, u = np.mgrid[(STEP - 1) / 2 : 480 : STEP, (STEP - 1) / 2 : 640 : STEP]
    rays = np.stack([(u - CENTRE[0]) / FOCAL, (v - CENTRE[1]) / FOCAL, np.ones_like(u)], -1) @ camera[:3, :3].T
    depth = np.full(u.shape, np.inf)
    color, ids = np.full((*u.shape, 3), 0.1), np.zeros(u.shape, np.uint32)
    for thing in things(scene):
        axes = thing.axes()
        start, along = axes @ (camera[:3, 3] - thing.centre), rays @ axes.T
        with np.errstate(divide="ignore"):
            ends = (np.array([-1, 1])[:, None, None, None] * thing.half - start) / along
        near, far = ends.min(axis=0), ends.max(axis=0)
        enter = near.max(axis=-1)
        hit = (enter < far.min(axis=-1)) & (enter > 0) & (enter < depth)
        axis = near.argmax(axis=-1)
        normal = -np.sign(np.take_along_axis(along, axis[..., None], -1)) * axes[axis]
        shade = 0.7 + 0.3 * normal @ np.array([0.36, 0.8, 0.48])
        depth[hit], ids[hit] = enter[hit], thing.id
        color[hit] = (shade[..., None] * np.array(thing.color))[hit]
    millimetres = np.where(np.isfinite(depth), np.rint(depth * 1000), 0).astype(np.uint16)
    pictures = np.clip(np.rint(255 * color), 0, 255).astype(np.uint8), millimetres, ids
    return tuple(np.repeat(np.repeat(picture, STEP, 0), STEP, 1) for picture in pictures)


def trajectory(scene: int) -> str:
    """Poses, numbered from 0."""
    blocks = []
    for frame in range(1, FRAMES + 1):
        if (scene, frame) == LOST[1]:
            continue
        found = pose(scene, frame)
        if (scene, frame) == LOST[0]:
            found[:3, :3] *= 0.5
        rows = "\n".join(" ".join(f"{value:.8f}" for value in row) for row in found)
        blocks.append(f"{frame - 1}\t{frame - 1}\t{frame}\n{rows}\n")
    return "".join(blocks)


@kept
def write(folder: Path, scenes: int = len(SCENES), frames: int = FRAMES) -> None:
    """Write the frames of a few scenes; the last scene has no masks."""
    for scene, name in enumerate(SCENES[:scenes]):
        for kind in ("image", "depth", "mask"):
            (folder / name / kind).mkdir(parents=True, exist_ok=True)
        for frame in range(1, frames + 1):
            color, depth, ids = draw(scene, frame)
            Image.fromarray(color).save(folder / name / "image" / f"image{frame:05d}.png", compress_level=1)
            Image.fromarray(depth).save(folder / name / "depth" / f"depth{frame:05d}.png", compress_level=1)
            if scene < scenes - 1:
                # the most significant byte is blue, then green, red, alpha: OpenCV's order, in which the authors work
                blue, green, red, alpha = ids.astype(">u4").view(np.uint8).reshape(*ids.shape, 4).transpose(2, 0, 1)
                channels = np.stack([red, green, blue, alpha], axis=-1)
                Image.fromarray(channels).save(folder / name / "mask" / f"mask{frame:05d}.png", compress_level=1)
        (folder / name / "trajectory.log").write_text(trajectory(scene))
        times = "".join(f"{frame} {(frame - 1) * 33369}\n" for frame in range(1, frames + 1))
        (folder / name / "timestamp.txt").write_text(times)
    (folder / "intrinsic").mkdir(exist_ok=True)
    lens = f"depth_width 640\ndepth_height 480\nfx {FOCAL}\nfy {FOCAL}\ncx {CENTRE[0]:g}\ncy {CENTRE[1]:g}\n"
    (folder / "intrinsic" / "asus.ini").write_text(lens)
