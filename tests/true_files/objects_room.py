"""A small Objects Room in the form of its release: gzipped TFRecord files of images and masks, without factors."""

import gzip
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.true_files.multi_dsprites import bytes_list, serialised
from tests.true_files.shapenet_renderings import framed

HELD = "objects"

ENTITIES = {"train": 7, "six_objects": 10, "empty_room": 4, "identical_color": 10}
FILES = {"train": "objects_room_train.tfrecords"} | {
    name: f"objects_room_test_{name}.tfrecords" for name in ("six_objects", "empty_room", "identical_color")
}
COUNTS = {"train": (3, 1, 0, 2) * 4, "six_objects": (6, 6), "empty_room": (0, 0), "identical_color": (4, 6)}


def drawn(version: str, number: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Image (64, 64, 3) and masks (E, 64, 64, 1): sky, floor, two halves of the wall, boxes; those of none first."""
    chance = np.random.Generator(np.random.PCG64([ENTITIES[version], len(version), number]))
    count = COUNTS[version][number]
    y, x = np.mgrid[:64, :64]
    owner = np.where(y < 10, 0, np.where(y > 40, 1, np.where(x < 20 + 3 * number, 2, 3)))
    colors = chance.integers(0, 256, (ENTITIES[version], 3))
    if version == "identical_color":
        colors[4:] = colors[4]
    for each, entity in enumerate(range(ENTITIES[version] - count, ENTITIES[version])):
        left, top, side = 2 + 10 * each, int(chance.integers(28, 44)), int(chance.integers(6, 10))
        owner[top : top + side, left : left + side] = entity
    masks = 255 * (owner == np.arange(ENTITIES[version])[:, None, None]).astype(np.uint8)
    return colors[owner].astype(np.uint8), masks[..., None]


@cache
def content(version: str) -> bytes:
    """Content of a version's file."""
    records = []
    for number in range(len(COUNTS[version])):
        image, masks = drawn(version, number)
        records.append(framed(serialised({"image": bytes_list(image), "mask": bytes_list(masks)})))
    return gzip.compress(b"".join(records), 1, mtime=0)


def write(folder: Path, version: str = "train") -> None:
    """Write one version."""
    (folder / FILES[version]).write_bytes(content(version))
