"""A small Multi-dSprites in the form of its release: a gzipped TFRecord file, images as lists of single bytes."""

import gzip
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.true_files.dsprites import sprite
from tests.true_files.shapenet_renderings import field, framed

HELD = "objects"

ENTITIES = {"binarized": 4, "colored_on_grayscale": 6, "colored_on_colored": 5}
COUNTS = (2, 3, 2, 5, 3, 2, 3, 2, 3, 5, 5, 5)
LEVELS = np.linspace(0, 1, 32)


def factors(version: str, number: int) -> dict[str, npt.NDArray[np.float32]]:
    """Features of a record by name, in the order of entities: the background first, null ones last."""
    chance = np.random.Generator(np.random.PCG64([len(version), number]))
    entities, count = ENTITIES[version], min(COUNTS[number], ENTITIES[version] - 1)
    channels = 1 if version == "binarized" else 3
    found = {name: np.zeros(entities, np.float32) for name in ("x", "y", "shape", "orientation", "scale", "visibility")}
    found["color"] = np.zeros((entities, channels), np.float32)
    found["visibility"][: count + 1] = 1
    own = slice(1, count + 1)
    found["x"][own], found["y"][own] = (LEVELS[chance.integers(4, 28, count)] for _ in range(2))
    found["shape"][own] = chance.integers(1, 4, count)
    found["orientation"][own] = np.linspace(0, 2 * np.pi, 40)[chance.integers(0, 40, count)]
    found["scale"][own] = np.linspace(0.5, 1, 6)[chance.integers(0, 6, count)]
    if version == "binarized":
        found["color"][own] = 1
    else:
        found["color"][own] = chance.uniform(0.3, 1, (count, 3))
        found["color"][0] = chance.uniform(0, 0.3, 1 if version == "colored_on_grayscale" else 3)
    return found


def drawn(version: str, number: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Image (64, 64, C) and masks (64, 64, E, 1) of a record: later sprites lie over earlier ones."""
    told = factors(version, number)
    entities, channels = told["color"].shape
    owner = np.zeros((64, 64), int)
    for entity in np.flatnonzero(told["visibility"])[1:]:
        places = [int(np.argmin(np.abs(LEVELS - told[name][entity]))) for name in ("x", "y")]
        scale = round(10 * float(told["scale"][entity])) - 5
        turn = round(float(told["orientation"][entity]) / (2 * np.pi) * 39)
        owner[sprite((0, int(told["shape"][entity]) - 1, scale, turn, *places)) > 0] = entity
    masks = 255 * (owner[..., None] == np.arange(entities)).astype(np.uint8)
    return np.rint(255 * told["color"][owner]).astype(np.uint8).reshape(64, 64, channels), masks[..., None]


def bytes_list(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A feature of strings of one byte each, as tf.io.FixedLenFeature(shape, tf.string) reads it."""
    values = np.empty((pixels.size, 3), np.uint8)
    values[:, 0], values[:, 1], values[:, 2] = 1 << 3 | 2, 1, pixels.ravel()
    return field(1, values.tobytes())


def record(version: str, number: int) -> bytes:
    """A serialised example."""
    image, masks = drawn(version, number)
    features = {"image": bytes_list(image), "mask": bytes_list(masks)}
    for name, values in factors(version, number).items():
        features[name] = float_list(values)
    return serialised(features)


def serialised(features: dict[str, bytes]) -> bytes:
    """An example of features, each a serialised list."""
    entries = (field(1, field(1, name.encode()) + field(2, value)) for name, value in features.items())
    return field(1, b"".join(entries))


def float_list(values: npt.NDArray[np.float32]) -> bytes:
    """A feature of packed floats."""
    return field(2, field(1, values.astype("<f4").tobytes()))


@cache
def content(version: str) -> bytes:
    """Content of a version's file."""
    return gzip.compress(b"".join(framed(record(version, number)) for number in range(len(COUNTS))), 1, mtime=0)


def write(folder: Path, version: str = "colored_on_grayscale") -> None:
    """Write one version."""
    (folder / f"multi_dsprites_{version}.tfrecords").write_bytes(content(version))
