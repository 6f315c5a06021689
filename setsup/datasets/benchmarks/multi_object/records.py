"""Records of Multi-Object Datasets: the content of an example as arrays.

Convention
----------
The objects of an image are its visible entities without the background, in their order. Objects Room has no
visibility: an object is visible if its mask has a pixel. Masks become one number for each pixel: 0, 1, … of the parts
of the background, and after these the objects.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.nested_objects import NestedObjects
from setsup.datasets.benchmarks.multi_object.forms import Form
from setsup.datasets.formats.tfrecord.example import Feature, read_example
from setsup.datasets.formats.tfrecord.stream import stream_records
from setsup.errors import DamagedFile
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["nest", "read_images", "read_objects"]

_MOST_LEVELS = 127  # codes are int8


def read_objects(path: Path, form: Form) -> FactorTable:
    """Read a row for each object, image after image: its factors, and ``object``, its number in the image from 0.

    An image without objects has one row, whose ``object`` is unknown.
    """
    names = ("visibility", *form.levels, *form.numbers) if form.levels else ("mask",)
    rows: list[npt.NDArray[np.float32]] = []
    numbers: list[npt.NDArray[np.int64]] = []
    for number, record in enumerate(stream_records(path)):
        label = f"{path}, record {number:,}"
        features = read_example(record, names, label)
        visible = _visible(record, features, form, label)
        if form.levels and not len(visible):
            raise DamagedFile(f"{label} contains no visible object")
        columns = [_codes(record, features, name, form, label)[visible] for name in form.levels]
        for name, parts in form.numbers.items():
            # a grey image has one color
            width = min(len(parts), form.channels)
            values = _floats(features, name, form.entities * width, label).reshape(form.entities, width)[visible]
            columns += list(np.broadcast_to(values, (len(visible), len(parts))).T)
        rows.append(np.array(columns, np.float32).reshape(len(columns), len(visible)).T)
        numbers.append(np.arange(len(visible)))
    if not rows:
        raise DamagedFile(f"{path} contains no records")
    return _table(path, rows, numbers, form)


def nest(table: FactorTable) -> NestedObjects:
    """Nest the rows of :func:`read_objects` per image."""
    places = table.codes("object")
    starts = np.flatnonzero(places <= 0)
    counts = np.diff(np.append(starts, len(table)))
    counts[places[starts] < 0] = 0
    return NestedObjects(table.select(np.flatnonzero(places >= 0)) if (places < 0).any() else table, counts)


def _table(path: Path, rows: list[Array], numbers: list[Rows], form: Form) -> FactorTable:
    empty = np.full((1, len(form.levels) + len(form.columns)), np.nan, np.float32)
    values = np.concatenate([each if len(each) else empty for each in rows])
    places = np.concatenate([each if len(each) else np.array([-1]) for each in numbers])
    factors, columns = [], {}
    for name, column in zip((*form.levels, *form.columns), values.T, strict=True):
        if not np.isfinite(column).all():
            raise DamagedFile(f"{path}: {name!r} of a visible object is not finite")
        if name not in form.levels:
            factors.append(Factor(name, Kind.CONTINUOUS))
            columns[name] = column
            continue
        levels, columns[name] = np.unique(column, return_inverse=True)
        if (levels != np.rint(levels)).any() or len(levels) > _MOST_LEVELS:
            raise DamagedFile(f"{path}: {name!r} is not an integer, or has more than {_MOST_LEVELS} values")
        factors.append(Factor(name, Kind.NOMINAL, tuple(levels.astype(int).tolist())))
    factors.append(Factor("object", Kind.ORDINAL, tuple(range(max(1, int(places.max()) + 1))), role="key"))
    return FactorTable(factors, {**columns, "object": places})


def read_images(path: Path, form: Form) -> Iterator[Array]:
    """Read the images one after the other, each (height, width, C + 1) uint8: its channels, and each pixel's number.

    A pixel belongs to the part of the background, or the visible object, whose mask is the largest there.
    """
    names = ("image", "mask", *(("visibility",) if form.levels else ()))
    for number, record in enumerate(stream_records(path)):
        label = f"{path}, record {number:,}"
        features = read_example(record, names, label)
        kept = np.append(np.arange(form.backgrounds), _visible(record, features, form, label))
        out = np.empty((*form.size, form.channels + 1), np.uint8)
        out[..., :-1] = _pixels(record, features, "image", (*form.size, form.channels), label)
        out[..., -1] = _masks(record, features, form, label)[kept].argmax(axis=0)
        yield out


def _visible(record: bytes, features: dict[str, Feature], form: Form, label: str) -> Rows:
    """Entities that are visible objects, ascending."""
    if form.levels:
        shown: Array = _floats(features, "visibility", form.entities, label) > 0
    else:
        shown = np.asarray(_masks(record, features, form, label).any(axis=(1, 2)))
    visible: Rows = np.flatnonzero(shown[form.backgrounds :]) + form.backgrounds
    return visible


def _masks(record: bytes, features: dict[str, Feature], form: Form, label: str) -> Array:
    """Masks of all entities, (E, height, width) uint8."""
    if form.masks_last:
        return np.moveaxis(_pixels(record, features, "mask", (*form.size, form.entities), label), -1, 0)
    return _pixels(record, features, "mask", (form.entities, *form.size), label)


def _floats(features: dict[str, Feature], name: str, count: int, label: str) -> npt.NDArray[np.float32]:
    feature = features.get(name)
    if feature is None or feature.kind != "float" or len(feature.values) != count:
        there = "nothing" if feature is None else f"{len(feature.values)} values of type {feature.kind}"
        raise DamagedFile(f"{label}: {name!r} contains {there}; expected {count} values of type float")
    return feature.values


def _codes(record: bytes, features: dict[str, Feature], name: str, form: Form, label: str) -> Array:
    if not form.byte_levels:
        return _floats(features, name, form.entities, label)
    return _pixels(record, features, name, (form.entities,), label)


def _pixels(
    record: bytes, features: dict[str, Feature], name: str, shape: tuple[int, ...], label: str
) -> npt.NDArray[np.uint8]:
    feature = features.get(name)
    spans = np.empty((0, 2), np.int64) if feature is None or feature.kind != "bytes" else feature.values
    # tf.io.FixedLenFeature of strings: a byte each, or all in one
    if len(spans) == 1:
        start, length = spans[0].tolist()
        content = np.frombuffer(record, np.uint8, length, start)
    elif (spans[:, 1] == 1).all():
        content = np.frombuffer(record, np.uint8)[spans[:, 0]]
    else:
        content = np.empty(0, np.uint8)
    if len(content) != np.prod(shape):
        raise DamagedFile(f"{label}: {name!r} has {len(content):,} bytes; expected {' × '.join(map(str, shape))} bytes")
    return content.reshape(shape)
