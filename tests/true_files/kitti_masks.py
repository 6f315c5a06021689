"""A small KITTI Masks as its script writes it: a pickle of two lists of arrays."""

import pickle
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

HELD = "sequence"

LENGTHS = (7, 5, 9, 4)


def mask(sequence: int, frame: int) -> np.ndarray:
    """A figure that walks: a head, a body and two legs."""
    drawn = Image.new("1", (64, 64))
    pen = ImageDraw.Draw(drawn)
    x, y, tall = 10 + 4 * frame + 3 * sequence, 10 + 5 * sequence, 18 + 4 * sequence
    step = (2 + frame % 3) * (1 + sequence / 3)
    pen.ellipse((x - 3, y, x + 3, y + 7), fill=1)
    pen.rectangle((x - 3, y + 7, x + 3, y + tall - 8), fill=1)
    pen.line((x, y + tall - 8, x - step, y + tall), fill=1, width=3)
    pen.line((x, y + tall - 8, x + step, y + tall), fill=1, width=3)
    return np.asarray(drawn)


def content() -> dict[str, list[np.ndarray]]:
    """What is pickled."""
    masks = [np.stack([mask(number, frame) for frame in range(length)]) for number, length in enumerate(LENGTHS)]
    return {"pedestrians": masks, "pedestrians_latents": [latents(sequence) for sequence in masks]}


def latents(sequence: np.ndarray) -> np.ndarray:
    """Centre of mass, from the top and from the left, and number of pixels."""
    down, across = np.mgrid[:64, :64]
    return np.array([[down[each].mean(), across[each].mean(), each.sum()] for each in sequence], np.float32)


def write(folder: Path, protocol: int = 3) -> None:
    """Write ``kitti_peds_v2.pickle``."""
    (folder / "kitti_peds_v2.pickle").write_bytes(pickle.dumps(content(), protocol))
