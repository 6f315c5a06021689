"""The factor table of images for ABC's pose experiment, the same for published files and their substitute."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats, Rows
from setsup.datasets.benchmarks.pascal3d.pose import rotation
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["CATEGORIES", "HIGHEST", "POSE", "SOURCES", "SPLITS", "Part", "compute_rotations", "pose_table"]

CATEGORIES = ("car", "chair")
SOURCES = ("rendering", "real")
SPLITS = ("train", "codebook", "test")
POSE = ("azimuth", "elevation", "theta")

HIGHEST = {"car": math.degrees(0.5), "chair": math.degrees(1.3)}
"""Elevations below which ABC takes renderings, degrees."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows that follow each other: of one category, source and split.

    `objects` (n,) int64 into the names of objects, -1 where unknown; `pose` (n, 3) float32, degrees, NaN where unknown.
    """

    category: str
    source: str
    split: str
    objects: npt.NDArray[np.int64]
    pose: npt.NDArray[np.float32]


def pose_table(parts: Sequence[Part], names: Sequence[str]) -> FactorTable:
    """Table of some parts, one after the other; `names` are those of the objects."""
    counts = [len(part.objects) for part in parts]

    def column(levels: Sequence[str], values: Sequence[str]) -> npt.NDArray[np.int64]:
        return np.repeat(np.array([levels.index(value) for value in values], np.int64), counts)

    pose = np.concatenate([part.pose for part in parts])
    columns = {
        "category": column(CATEGORIES, [part.category for part in parts]),
        "source": column(SOURCES, [part.source for part in parts]),
        "object": np.concatenate([part.objects for part in parts]),
        **{name: np.ascontiguousarray(pose[:, column_number]) for column_number, name in enumerate(POSE)},
        "split": column(SPLITS, [part.split for part in parts]),
    }
    factors = [
        Factor("category", Kind.NOMINAL, CATEGORIES),
        Factor("source", Kind.NOMINAL, SOURCES),
        Factor("object", Kind.NOMINAL, tuple(names), within="category"),
        Factor("azimuth", Kind.CONTINUOUS, unit="deg", period=360.0),
        Factor("elevation", Kind.CONTINUOUS, unit="deg"),
        Factor("theta", Kind.CONTINUOUS, unit="deg"),
        Factor("split", Kind.NOMINAL, SPLITS, role="split"),
    ]
    return FactorTable(factors, columns)


def compute_rotations(table: FactorTable, rows: Rows) -> Floats:
    """Rotations of rows of a table, (..., 3, 3) float32, from the object axes of Pascal3D+ to the camera; or NaN."""
    return rotation(*(table.codes(name, rows) for name in POSE)).astype(np.float32)
