"""A small TAP-Vid-RGB-Stacking as published: a pickle of a list of videos, with tracks of points."""

import pickle
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HELD = "video"

FRAMES, SIDE = (6, 5), 256
COLORS = ((200, 40, 40), (40, 150, 60), (50, 70, 200))


def corners(video: int, number: int) -> np.ndarray:
    """First corner of each of three boxes, which a robot moves and stacks, in pixels."""
    step = number / (FRAMES[video] - 1)
    x = [70 + 60 * step, 130 - 10.0 * video, 180 - 40 * step]
    y = [170 - 50 * step, 170, 170 - 20 * video * step]
    return np.stack([x, y], axis=1)


def frame(video: int, number: int) -> np.ndarray:
    """Three boxes in a tray, a gripper over the first."""
    image = Image.new("RGB", (SIDE, SIDE), (120, 120, 125))
    pen = ImageDraw.Draw(image)
    pen.polygon([(10, 240), (60, 90), (196, 90), (246, 240)], fill=(60, 60, 65))
    for (x, y), color in zip(corners(video, number), COLORS, strict=True):
        pen.rectangle((x, y, x + 34, y + 30), fill=color)
        pen.polygon([(x, y), (x + 10, y - 10), (x + 44, y - 10), (x + 34, y)], fill=tuple(c + 40 for c in color))
        pen.text((x + 10, y + 8), "ABC"[COLORS.index(color)], fill="white")
    x, y = corners(video, number)[0]
    pen.rectangle((x + 12, 0, x + 26, y - 8), fill=(210, 210, 215))
    return np.asarray(image)


def example(video: int) -> dict[str, np.ndarray]:
    """A video as it is pickled."""
    places = np.stack([corners(video, number) for number in range(FRAMES[video])], axis=1)
    points = np.concatenate([places + np.array(at) for at in ((4, 4), (30, 25), (19, -4))]) / SIDE
    occluded = np.zeros(points.shape[:2], bool)
    occluded[6] = True  # behind the gripper
    return {
        "video": np.stack([frame(video, number) for number in range(FRAMES[video])]),
        "points": points,
        "occluded": occluded,
    }


def content() -> list[dict[str, np.ndarray]]:
    """What is pickled."""
    return [example(video) for video in range(len(FRAMES))]


def write(folder: Path, protocol: int = 4) -> None:
    """Write ``tapvid_rgb_stacking/tapvid_rgb_stacking.pkl``, as the published zip unpacks."""
    (folder / "tapvid_rgb_stacking").mkdir(parents=True)
    path = folder / "tapvid_rgb_stacking" / "tapvid_rgb_stacking.pkl"
    path.write_bytes(pickle.dumps(content(), protocol))
