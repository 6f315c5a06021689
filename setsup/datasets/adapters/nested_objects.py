"""Images with several objects: the objects' factors in one table, and nested per image.

Convention
----------
Objects are ordered by image, in the order of the release. Nested arrays have the length of the largest number of
objects in an image, and are padded with −1 (int8 codes of levels) or NaN (float32).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.fetching import common_size, fetch_images, sample_headers
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Modality
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["NestedObjects", "ObjectImages"]

_LOOKED_AT = 16


@dataclass(frozen=True, slots=True, eq=False)
class NestedObjects:
    """Objects of images: `table` has one row per object, ordered by image.

    `counts` (images,) int64: number of objects of each image, −1 if unknown; their sum, without −1, is the length of
    the table.

    Examples
    --------
    >>> table = FactorTable.from_values({"shape": ["cube", "ball", "cube"]})
    >>> objects = NestedObjects(table, np.array([2, -1, 1]))
    >>> objects.nested("shape", np.array([2, 1, 0])).tolist()  # levels are ball, cube
    [[1, -1], [-1, -1], [1, 0]]
    >>> [(factor.name, codes.tolist()) for factor, codes in objects.level_counts(["shape"])]
    [('ball', [1, -1, 0]), ('cube', [1, -1, 1])]

    """

    table: FactorTable
    counts: Rows
    firsts: Rows = field(init=False)
    most: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute ``firsts``, the first object of each image, and ``most``, the largest number of objects."""
        counts = np.maximum(self.counts, 0)
        object.__setattr__(self, "firsts", np.cumsum(counts) - counts)
        object.__setattr__(self, "most", max(1, int(counts.max(initial=0))))

    @property
    def images(self) -> Rows:
        """Image of each object: (objects,) int64."""
        return np.repeat(np.arange(len(self.counts)), np.maximum(self.counts, 0))

    def nested(self, name: str, rows: Rows) -> Array:
        """Return a factor of all objects of some images.

        `rows` (n,) int64; returns (n, most) int8 codes, or float32 for a continuous factor.
        """
        objects = self.firsts[rows, None] + np.arange(self.most)
        filled = np.arange(self.most) < self.counts[rows, None]
        numbers = self.table[name].levels is None
        nested = np.full(filled.shape, np.nan if numbers else -1, np.float32 if numbers else np.int8)
        nested[filled] = self.table.codes(name, objects[filled])
        return nested

    def count_factor(self, name: str = "objects") -> tuple[Factor, Rows]:
        """Make the factor that counts the objects of each image, with its codes."""
        return _counting(name, self.counts, self.most)

    def level_counts(self, names: Sequence[str], prefix: str = "") -> list[tuple[Factor, Rows]]:
        """Make one factor per level of some factors, with its name: the number of objects with that level."""
        images, columns = self.images, []
        for name in names:
            levels = [f"{prefix}{level}" for level in self.table[name].levels or ()]
            codes = self.table.codes(name)
            cells = np.bincount(images * len(levels) + codes, minlength=len(self.counts) * len(levels))
            by_level = np.where(self.counts >= 0, cells.reshape(-1, len(levels)).T, -1)
            columns += [_counting(level, counts, self.most) for level, counts in zip(levels, by_level, strict=True)]
        return columns


def _counting(name: str, counts: Rows, most: int) -> tuple[Factor, Rows]:
    return Factor(name, Kind.ORDINAL, tuple(range(most + 1))), counts


class ObjectImages(ReleaseDataset):
    """Images of a release, and columns of its table of objects.

    Rows are images, with the objects' columns nested per image; or, with `nested` false, rows are objects, each with
    the whole image and its own columns.

    `images` has an image for each row, and `factors` a row for each; `columns` names the modalities besides the image,
    each of one continuous or discrete column, or of several continuous ones; `units` has a unit by modality; `size`
    (height, width), optional.
    """

    def __init__(
        self,
        name: str,
        factors: FactorTable,
        images: MemberImages,
        objects: NestedObjects,
        columns: Mapping[str, str | Sequence[str]],
        units: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
        nested: bool = True,
    ) -> None:
        self.name, self.factors = name, factors
        self._images, self._size, self._objects, self._nested = images, size, objects, nested
        self._columns = dict(columns)
        shape = size or common_size(sample_headers(images, _LOOKED_AT))
        self.modalities = {"image": Modality((*shape, 3), "uint8", color="srgb")}
        for modality, source in self._columns.items():
            several = () if isinstance(source, str) else (len(source),)
            dtype = "int8" if isinstance(source, str) and objects.table[source].levels is not None else "float32"
            lengths = (*((objects.most,) if nested else ()), *several)
            self.modalities[modality] = Modality(lengths, dtype, unit=(units or {}).get(modality, ""))

    @property
    def objects(self) -> FactorTable:
        """The table of all objects, image after image."""
        return self._objects.table

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        if name == "image":
            return fetch_images(self._images, rows, self.modalities[name].shape, self._size, out)
        source = self._columns[name]
        if isinstance(source, str):
            return self._column(source, rows)
        return np.stack([self._column(each, rows) for each in source], axis=-1)

    def _column(self, column: str, rows: Rows) -> Array:
        return self._objects.nested(column, rows) if self._nested else self._objects.table.codes(column, rows)
