"""A small CLEVR as it was published: images by part, and a JSON file of scenes for training and validation."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tests.true_files.pacs import encoded, put

HELD = "objects"

SIZE = (320, 480)
COUNTS = {"train": (3, 5, 3, 5, 3, 5, 3, 5), "val": (3, 5, 3), "test": (3, 4)}
COLORS = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}
RADIUS = {"large": 0.7, "small": 0.35}


def scene(part: str, number: int) -> dict[str, Any]:
    """The scene of an image, in the generator's form."""
    chance = np.random.Generator(np.random.PCG64([len(part), number]))
    turn = np.deg2rad(40 + 3 * number)
    right, front = [np.cos(turn), np.sin(turn), 0.0], [np.sin(turn), -np.cos(turn), -0.0]
    things = []
    for place in chance.permutation(9)[: COUNTS[part][number]].tolist():
        size = ("large", "small")[int(chance.integers(2))]
        x, y = 2.4 * (place % 3 - 1) + chance.uniform(-0.4, 0.4), 2.4 * (place // 3 - 1) + chance.uniform(-0.4, 0.4)
        along, towards = x * right[0] + y * right[1], x * front[0] + y * front[1]
        things.append(
            {
                "shape": ("cube", "sphere", "cylinder")[int(chance.integers(3))],
                "size": size,
                "material": ("rubber", "metal")[int(chance.integers(2))],
                "3d_coords": [x, y, RADIUS[size]],
                "rotation": float(chance.uniform(0, 360)),
                "pixel_coords": [round(240 + 50 * along), round(150 + 30 * towards), 11.2 - towards],
                "color": list(COLORS)[int(chance.integers(8))],
            }
        )
    directions = {"right": right, "front": front, "above": [0.0, 0.0, 1.0]}
    opposite = {"left": "right", "behind": "front", "below": "above"}
    directions |= {name: [-value for value in directions[other]] for name, other in opposite.items()}
    return {
        "split": part,
        "image_index": number,
        "image_filename": f"CLEVR_{part}_{number:06}.png",
        "objects": things,
        "directions": directions,
        "relationships": {name: [[] for _ in things] for name in ("right", "behind", "front", "left")},
    }


def drawn(said: dict[str, Any]) -> Image.Image:
    """The scene in flat shapes, with alpha, as the generator's files have it."""
    picture = Image.new("RGBA", (SIZE[1], SIZE[0]), (190, 190, 190, 255))
    pen = ImageDraw.Draw(picture)
    for thing in sorted(said["objects"], key=lambda each: -each["pixel_coords"][2]):
        x, y, depth = thing["pixel_coords"]
        half = 560 * RADIUS[thing["size"]] / depth
        box = (x - half, y - half, x + half, y + half)
        fill = (*COLORS[thing["color"]], 255)
        rim = (250, 250, 250, 255) if thing["material"] == "metal" else (60, 60, 60, 255)
        if thing["shape"] == "sphere":
            pen.ellipse(box, fill, rim, 3)
        elif thing["shape"] == "cube":
            pen.rectangle(box, fill, rim, 3)
        else:
            pen.rounded_rectangle((x - 0.8 * half, y - half, x + 0.8 * half, y + half), half / 2, fill, rim, 3)
    return picture


@cache
def release() -> dict[str, bytes]:
    """Content by path."""
    files = {}
    for part, counts in COUNTS.items():
        scenes = [scene(part, number) for number in range(len(counts))]
        files |= {f"images/{part}/{each['image_filename']}": encoded(drawn(each), "PNG") for each in scenes}
        if part != "test":
            info = {"split": part, "license": "Creative Commons Attribution (CC BY 4.0)", "version": "1.0", "date": ""}
            files[f"scenes/CLEVR_{part}_scenes.json"] = json.dumps({"info": info, "scenes": scenes}).encode()
        files[f"questions/CLEVR_{part}_questions.json"] = b"{}"
    return files


def write(folder: Path) -> None:
    """Write the folder ``CLEVR_v1.0``."""
    put(folder / "CLEVR_v1.0", release())
