"""Results and sheets of benchmarks with their own protocols."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.datasets import Dataset
from setsup.experiments.data import image_modality
from setsup.random import permute, stream_key

__all__ = [
    "ALL",
    "BenchmarkResults",
    "Encode",
    "Example",
    "Measured",
    "describe_count",
    "draw_numbers",
    "fetch_rgb",
    "spread_numbers",
]

Encode = Callable[[npt.NDArray[np.uint8]], npt.NDArray[Any]]
"""Computes the features (rows, columns, D) of one image (height, width, 3) uint8 of any size."""

ALL = "all"
"""The group of all pairs or videos."""


class Measured(NamedTuple):
    """A number that a benchmark reports.

    Attributes
    ----------
    value : str
        Its name, ``"TITLE: HEAD"``: the title of its table, and the head of its column.
    group : str
        ``"all"``, or a kind of group and its name, such as ``"category cat"``.
    number : float
        NaN where it is undefined.
    count : int
        Number of pairs, points or videos that it is computed from.

    """

    value: str
    group: str
    number: float
    count: int  # type: ignore[assignment]  # instead of the method of tuples


class Example(NamedTuple):
    """A pair of images for a sheet.

    Attributes
    ----------
    views : two (h, w, 3) uint8
        The images; sizes may differ.
    maps : two (rows, columns, D) float
        Their features.
    points1, points2 : (n, 2) float64
        Points (x, y) of image 1, and where they are found in image 2, pixels.
    right : (n,) bool
        Which of them are found in the right place.
    caption : str
        Caption of the pair.

    """

    views: tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]
    maps: tuple[npt.NDArray[Any], npt.NDArray[Any]]
    points1: Reals
    points2: Reals
    right: Bools
    caption: str


def fetch_rgb(dataset: Dataset, row: int) -> npt.NDArray[np.uint8]:
    """The image of a row, (height, width, 3) uint8; grey ones have three equal channels, and alpha is left out."""
    name = image_modality(dataset)
    image = dataset.fetch(row, [name])[name]
    return np.ascontiguousarray(image.repeat(3, axis=-1) if image.shape[-1] == 1 else image[..., :3], dtype=np.uint8)


def draw_numbers(total: int, most: int | None, seed: int, stream: str) -> Rows:
    """Draw at most `most` of the numbers below `total`, (k,) int64, ascending; all of them for None."""
    if most is None or most >= total:
        return np.arange(total)
    return np.sort(permute(stream_key(seed, stream), total, np.arange(most)))


def spread_numbers(total: int, count: int) -> Rows:
    """At most `count` of the numbers below `total`, (k,) int64, ascending and evenly spread, for a sheet."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(np.int64))


def describe_count(count: int, total: int, one: str, several: str) -> str:
    """How many pairs or videos are measured, for a line of a report; `one` and `several` name them."""
    drawn = f"{count:,}" if count == total else f"{count:,} (drawn by --seed) of {total:,}"
    return f"{drawn} {one if total == 1 else several}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResults:
    """Results of encoders on a benchmark.

    Attributes
    ----------
    about : mapping of str to JSON value
        Benchmark, dataset and settings.
    main : str
        Name of the value that tables show by groups.
    measured : mapping of str to sequence of Measured
        Values by encoder.
    weights : mapping of str to str
        Description of the weights by encoder.

    """

    about: Mapping[str, Any]
    main: str
    measured: Mapping[str, Sequence[Measured]] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values; numbers that are not finite remain floats."""
        encoders = {
            encoder: {"weights": self.weights.get(encoder, ""), "values": [one._asdict() for one in found]}
            for encoder, found in self.measured.items()
        }
        return {**self.about, "encoders": encoders}

    def to_csv(self) -> str:
        """Write a line for each encoder, value and group, with its count; undefined numbers are empty."""
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(["encoder", *Measured._fields])
        for encoder, found in self.measured.items():
            for one in found:
                number = "" if math.isnan(one.number) else repr(one.number)
                writer.writerow([encoder, one.value, one.group, number, one.count])
        return lines.getvalue()

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Titles, heads and rows of tables: one per title, with a row per encoder, then the main value by groups."""
        known = {encoder: {one[:2]: one for one in found} for encoder, found in self.measured.items()}
        every = [one for found in self.measured.values() for one in found]
        tables = []
        for title in dict.fromkeys(one.value.partition(": ")[0] for one in every if one.group == ALL):
            values = _distinct(one.value for one in every if one.group == ALL and one.value.startswith(f"{title}: "))
            rows = [[encoder, *(_text(of.get((value, ALL))) for value in values)] for encoder, of in known.items()]
            tables.append((title, ["encoder", *(value.partition(": ")[2] for value in values)], rows))
        groups = _distinct(one.group for one in every if one.group != ALL and one.value == self.main)
        for kind in _distinct(group.partition(" ")[0] for group in groups):
            rows = []
            for group in (group for group in groups if group.partition(" ")[0] == kind):
                found = [of.get((self.main, group)) for of in known.values()]
                count = next(one.count for one in found if one is not None)
                rows.append([group.partition(" ")[2], f"{count:,}", *map(_text, found)])
            tables.append((f"{self.main}, by {kind}", [kind, "count", *known], rows))
        return tables


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _text(one: Measured | None) -> str:
    if one is None or math.isnan(one.number):
        return ""
    return f"{one.number:,.1f}" if abs(one.number) >= 100 else f"{one.number:.3f}"
