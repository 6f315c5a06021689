"""A small TAP-Vid-DAVIS as published: a pickle of videos by name, with tracks of points."""

import pickle
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HELD = "video"

VIDEOS = {"goat": (6, 48, 80), "car-roundabout": (8, 45, 64), "soapbox": (7, 48, 80)}
"""Frames, height and width."""
POINTS = 5


def places(video: str) -> np.ndarray:
    """Centre of a disc in each frame, (t, 2), in 0 … 1."""
    frames = VIDEOS[video][0]
    turn = np.arange(frames) / frames * 2 + len(video)
    return np.stack([0.5 + 0.25 * np.sin(turn), 0.5 + 0.2 * np.cos(1.3 * turn)], axis=1)


def frame(video: str, number: int) -> np.ndarray:
    """A disc with a pattern before stripes, and a post that hides it in the middle of the frame."""
    _, height, width = VIDEOS[video]
    image = Image.new("RGB", (width, height), (70, 110 + 8 * (len(video) % 5), 150))
    pen = ImageDraw.Draw(image)
    for left in range(-height, width, 12):
        pen.line((left, height, left + height, 0), fill=(110, 150, 120 + 9 * (len(video) % 5)), width=4)
    x, y = places(video)[number] * (width, height)
    pen.ellipse((x - 11, y - 11, x + 11, y + 11), fill=(225, 190, 60))
    for turn, color in enumerate(((200, 30, 40), (30, 60, 170), (20, 130, 60), (250, 250, 245))):
        dx, dy = 6 * np.cos(turn * np.pi / 2), 6 * np.sin(turn * np.pi / 2)
        pen.ellipse((x + dx - 3, y + dy - 3, x + dx + 3, y + dy + 3), fill=color)
    pen.rectangle((width / 2 - 3, 0, width / 2 + 3, height), fill=(90, 60, 40))
    return np.asarray(image)


def example(video: str) -> dict[str, np.ndarray]:
    """A video as it is pickled: float32 points, one of which begins hidden and one of which never shows."""
    frames, height, width = VIDEOS[video]
    turns = np.arange(POINTS) * np.pi / 2
    offsets = np.stack([np.cos(turns), np.sin(turns)], axis=1) * 6 / (width, height)
    points = (places(video)[None] + offsets[:, None]).astype(np.float32)
    occluded = np.abs(points[..., 0] * width - width / 2) < 3
    occluded[1, :2] = True
    occluded[4] = True
    return {
        "points": points,
        "occluded": occluded,
        "video": np.stack([frame(video, number) for number in range(frames)]),
    }


def content() -> dict[str, dict[str, np.ndarray]]:
    """What is pickled."""
    return {video: example(video) for video in VIDEOS}


def write(folder: Path, protocol: int = 4) -> None:
    """Write ``tapvid_davis/tapvid_davis.pkl``, as the published zip unpacks."""
    (folder / "tapvid_davis").mkdir(parents=True)
    (folder / "tapvid_davis" / "tapvid_davis.pkl").write_bytes(pickle.dumps(content(), protocol))
