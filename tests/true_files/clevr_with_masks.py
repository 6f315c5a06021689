"""A small CLEVR with masks in the form of its release: a gzipped TFRecord file whose codes are single bytes."""

import gzip
import struct
from functools import cache
from pathlib import Path

import google_crc32c
import numpy as np
import numpy.typing as npt
from PIL import Image

from tests.true_files.clevr import COLORS, scene
from tests.true_files.clevr import drawn as pictured
from tests.true_files.multi_dsprites import bytes_list, float_list, serialised

HELD = "objects"

SCENES = (0, 2, 4, 6)  # of three objects; a record has three million bytes, so there are few
LEVELS = {
    "shape": ("cube", "sphere", "cylinder"),
    "size": ("large", "small"),
    "color": tuple(COLORS),
    "material": ("rubber", "metal"),
}


def factors(number: int) -> dict[str, npt.NDArray[np.float32]]:
    """Features of a record by name: the background, the objects, null ones last; codes count from 1."""
    things = scene("train", SCENES[number])["objects"]
    found = {name: np.zeros(11, np.float32) for name in ("x", "y", "z", "rotation", "visibility", *LEVELS)}
    found["pixel_coords"] = np.zeros((11, 3), np.float32)
    found["visibility"][: len(things) + 1] = 1
    for entity, thing in enumerate(things, 1):
        for name, levels in LEVELS.items():
            found[name][entity] = levels.index(thing[name]) + 1
        for name, value in zip("xyz", thing["3d_coords"], strict=True):
            found[name][entity] = value
        found["rotation"][entity] = thing["rotation"]
        x, y, depth = thing["pixel_coords"]
        found["pixel_coords"][entity] = x * 2 / 3, y * 3 / 4, depth
    return found


def drawn(number: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Image (240, 320, 3) and masks (11, 240, 320, 1): nearer objects cover others."""
    said = scene("train", SCENES[number])
    size, way = (320, 240), Image.Resampling.NEAREST
    image = np.asarray(pictured(said).convert("RGB").resize(size, way))
    owner = np.zeros((240, 320), int)
    for entity in sorted(range(len(said["objects"])), key=lambda each: -said["objects"][each]["pixel_coords"][2]):
        alone = pictured({**said, "objects": [said["objects"][entity]]}).convert("RGB").resize(size, way)
        owner[(np.asarray(alone) != (190, 190, 190)).any(axis=-1)] = entity + 1
    return image, 255 * (owner == np.arange(11)[:, None, None]).astype(np.uint8)[..., None]


def framed(data: bytes) -> bytes:
    """One record; three million bytes are too many for the checksum of the other writers."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@cache
def content() -> bytes:
    """Content of the file."""
    records = []
    for number in range(len(SCENES)):
        image, masks = drawn(number)
        lists = {
            name: bytes_list(values.astype(np.uint8)) if name in LEVELS else float_list(values)
            for name, values in factors(number).items()
        }
        records.append(framed(serialised({"image": bytes_list(image), "mask": bytes_list(masks), **lists})))
    return gzip.compress(b"".join(records), 1, mtime=0)


def write(folder: Path) -> None:
    """Write the release."""
    (folder / "clevr_with_masks_train.tfrecords").write_bytes(content())
