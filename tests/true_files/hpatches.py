"""A small HPatches in the published folders: planes under other lights, and from other viewpoints."""

from pathlib import Path

import numpy as np
from PIL import Image

HELD = "scene"

SIZES = {"i_lamp": (60, 80), "i_dc": (72, 60), "v_wall": (64, 96), "v_talent": (66, 80)}
"""Height and width of the images of each sequence; two of the names are of those that are usually left out."""


def homography(scene: str, view: int) -> np.ndarray:
    """From pixels of image 1 to those of another image."""
    if scene.startswith("i"):
        return np.eye(3) + np.array([[0, 0, 0.125 * (view - 1)], [0, 0, 0], [0, 0, 0]])
    turn = np.deg2rad(4.0 * (view - 1))
    near = 1 + 0.05 * (view - 1)
    return np.array(
        [
            [near * np.cos(turn), -np.sin(turn), 2.5 * (view - 1)],
            [np.sin(turn), near * np.cos(turn), -1.5 * (view - 1)],
            [2e-4 * (view - 1), -1e-4 * (view - 1), 1.0],
        ]
    )


def plane(scene: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Colours of a plane at places (x, y): bricks of many colours, none like another."""
    seed = sorted(SIZES).index(scene)
    row, column = np.floor(y / 10), np.floor((x + 7 * (np.floor(y / 10) % 2)) / 16)
    mortar = (y % 10 < 1.2) | ((x + 7 * (row % 2)) % 16 < 1.2)
    brick = np.stack([np.sin(row * (1.7 + k) + column * (2.3 - k / 2) + seed + k) for k in range(3)], axis=-1)
    waves = np.stack([np.sin(x / 13 + seed), np.cos(y / 11 - seed), np.sin((x - y) / 17)], axis=-1)
    colors = 130 + 60 * brick + 30 * waves
    return np.where(mortar[..., None], 225.0, colors)


def image(scene: str, view: int) -> np.ndarray:
    """What an image shows, uint8; lights of an illumination sequence differ."""
    height, width = SIZES[scene]
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    back = np.linalg.inv(homography(scene, view)) @ np.stack([x, y, np.ones_like(x)]).reshape(3, -1)
    colors = plane(scene, *(back[:2] / back[2])).reshape(height, width, 3)
    if scene.startswith("i"):
        colors = colors * np.array([1.0, 1.0 - 0.06 * view, 1.0 - 0.1 * view]) * (1.1 - 0.12 * view)
    return colors.clip(0, 255).round().astype(np.uint8)


def write(folder: Path) -> None:
    """Write ``hpatches-sequences-release/<sequence>/``."""
    for scene in SIZES:
        place = folder / "hpatches-sequences-release" / scene
        place.mkdir(parents=True)
        for view in range(1, 7):
            Image.fromarray(image(scene, view)).save(place / f"{view}.ppm")
            if view > 1:
                lines = [" ".join(f"{number:.10g}" for number in row) for row in homography(scene, view)]
                (place / f"H_1_{view}").write_text("\n".join(lines) + "\n")
