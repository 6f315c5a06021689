"""A small Causal3DIdent as it unpacks: in either part a folder of images and an array of latents for each object."""

import importlib
from functools import cache
from pathlib import Path

import numpy as np

from tests.true_files.pacs import encoded, put

HELD = "shape"

SHAPES = ("teapot", "hare", "dragon", "cow", "armadillo", "horse", "head")
COUNTS = {"trainset": 3, "testset": 2}
_3dident = importlib.import_module("tests.true_files.3dident")


def latents(part: str, shape: int) -> np.ndarray:
    """Values of an array, which is written in the order of its columns for some shapes."""
    values = _3dident.latents(COUNTS[part], 7 * shape + 60 * (part == "testset"))
    return np.asfortranarray(values) if shape % 2 else values


@cache
def files() -> dict[str, bytes]:
    """Content by path."""
    found = {}
    for part in COUNTS:
        for shape in range(len(SHAPES)):
            values = latents(part, shape)
            found[f"{part}/raw_latents_{shape}.npy"] = _3dident.npy(values)
            for row, each in enumerate(values):
                found[f"{part}/images_{shape}/{row}.png"] = encoded(_3dident.picture(each, shape), "PNG")
    return found


def write(folder: Path) -> None:
    """Write the folders ``trainset`` and ``testset``."""
    put(folder, files())
