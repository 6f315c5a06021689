"""Records of Multi-dSprites: the content of an example as arrays.

Convention
----------
An example has E entities, the first of which is the background; entities that are not visible are null. Its ``image``
is (64, 64, C) uint8, its ``mask`` (64, 64, E, 1) uint8, and ``x``, ``y``, ``shape``, ``orientation``, ``scale``,
``visibility`` (E) and ``color`` (E, C) are float32. Here the objects of an image are its visible entities but the
first, in their order, and a mask is a number for each pixel: that of the object, or −1.

References
----------
.. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

"""

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.formats.tfrecord.example import Feature, read_example
from setsup.datasets.formats.tfrecord.stream import stream_records
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["COLORS", "SIDE", "VERSIONS", "read_images", "read_objects"]

SIDE = 64
VERSIONS = MappingProxyType({"binarized": (4, 1), "colored_on_grayscale": (6, 3), "colored_on_colored": (5, 3)})
"""Entities and channels of each version."""

COLORS = ("red", "green", "blue")
_NUMBERS = ("x", "y", "orientation", "scale")
_WHERE = ("visibility", "shape")


def read_objects(path: Path, version: str) -> FactorTable:
    """Read a row for each object, image after image: its factors, and ``object``, its number in the image from 0."""
    entities, channels = VERSIONS[version]
    rows: list[npt.NDArray[np.float32]] = []
    numbers: list[npt.NDArray[np.int64]] = []
    for number, record in enumerate(stream_records(path)):
        label = f"{path}, record {number:,}"
        features = read_example(record, (*_WHERE, *_NUMBERS, "color"), label)
        visible = np.flatnonzero(_floats(features, "visibility", entities, label) > 0)
        visible = visible[visible > 0]
        if not len(visible):
            raise DamagedFile(f"{label} contains no visible object")
        columns = [_floats(features, name, entities, label)[visible] for name in ("shape", *_NUMBERS)]
        color = _floats(features, "color", entities * channels, label).reshape(entities, channels)[visible]
        rows.append(np.column_stack([*columns, np.broadcast_to(color, (len(visible), 3))]))
        numbers.append(np.arange(len(visible)))
    if not rows:
        raise DamagedFile(f"{path} contains no records")
    return _table(path, np.concatenate(rows), np.concatenate(numbers))


def _table(path: Path, rows: npt.NDArray[np.float32], numbers: npt.NDArray[np.int64]) -> FactorTable:
    shapes = rows[:, 0].astype(np.int64)
    if (shapes != rows[:, 0]).any() or not np.isfinite(rows).all() or np.ptp(shapes) > 255:
        raise DamagedFile(
            f"{path} contains a shape that is not an integer, a range of more than 256 shapes, or a factor that is not "
            "finite"
        )
    levels, codes = np.unique(shapes, return_inverse=True)
    names = (*_NUMBERS, *COLORS)
    factors = [
        Factor("shape", Kind.NOMINAL, tuple(levels.tolist())),
        *(Factor(name, Kind.CONTINUOUS) for name in names),
        Factor("object", Kind.ORDINAL, tuple(range(int(numbers.max()) + 1)), role="key"),
    ]
    columns = dict(zip(names, rows[:, 1:].T, strict=True))
    return FactorTable(factors, {"shape": codes, **columns, "object": numbers})


def read_images(path: Path, version: str) -> Iterator[Array]:
    """Read the images one after the other, each (64, 64, C + 1) uint8: its channels, and 1 + the object of each pixel.

    A pixel belongs to the visible entity whose mask is the largest there.
    """
    entities, channels = VERSIONS[version]
    for number, record in enumerate(stream_records(path)):
        label = f"{path}, record {number:,}"
        features = read_example(record, ("image", "mask", "visibility"), label)
        visible = _floats(features, "visibility", entities, label) > 0
        visible[0] = True
        out = np.empty((SIDE, SIDE, channels + 1), np.uint8)
        out[..., :channels] = _pixels(record, features, "image", channels, label)
        masks = _pixels(record, features, "mask", entities, label)[..., visible]
        out[..., channels] = masks.argmax(axis=-1)
        yield out


def _floats(features: dict[str, Feature], name: str, count: int, label: str) -> npt.NDArray[np.float32]:
    feature = features.get(name)
    if feature is None or feature.kind != "float" or len(feature.values) != count:
        there = "nothing" if feature is None else f"{len(feature.values)} values of type {feature.kind}"
        raise DamagedFile(f"{label}: {name!r} contains {there}; expected {count} values of type float")
    return feature.values


def _pixels(record: bytes, features: dict[str, Feature], name: str, channels: int, label: str) -> npt.NDArray[np.uint8]:
    feature = features.get(name)
    spans = np.empty((0, 2), np.int64) if feature is None or feature.kind != "bytes" else feature.values
    # tf.io.FixedLenFeature of strings: a byte each, or all in one
    if len(spans) == 1:
        start, length = spans[0].tolist()
        content = record[start : start + length]
    elif (spans[:, 1] == 1).all():
        content = np.frombuffer(record, np.uint8)[spans[:, 0]].tobytes()
    else:
        content = b""
    if len(content) != SIDE * SIDE * channels:
        raise DamagedFile(
            f"{label}: {name!r} has {len(content):,} bytes; expected {SIDE} × {SIDE} × {channels} bytes (height × "
            "width × channels)"
        )
    return np.frombuffer(content, np.uint8).reshape(SIDE, SIDE, channels)
