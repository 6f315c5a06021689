"""Overlap tables: which views show the same surfaces, how much of them, and which certainly do not.

A pair is ordered: a row says what share of the surface that view ``first`` shows is visible in view ``second``. Pairs
that are not listed were excluded, which means that they certainly do not overlap, or were not tried; in a table of
tracks they were measured, and have no point in common.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Bytes, Floats, Numbers, Rows
from setsup.checks import check_path
from setsup.errors import DataError, SamplerError
from setsup.factors.columns import FactorColumns
from setsup.files import array_file
from setsup.samplers.overlap.checks import COUNTS, LEAST, TRACKS, find_fault

__all__ = ["COUNTS", "LEAST", "TRACKS", "OverlapTable"]

_COLUMNS = {
    "first": "<i8", "second": "<i8", "overlap": "<f4", "angle": "<f4", "scale": "<f4", "unknown": "<f4",
    "decided": "<i4", "views": "<i8", "sampled": "<i4", "starts": "<i8", "counts": "<i8", "excluded": "|u1",
    "excluded_starts": "<i8",
}  # fmt: skip
_FIX = "remove the file, and measure the overlaps again"
_ABOUT = {"dataset": str, "fingerprint": str, "rows": int, "source": str, "settings": dict}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OverlapTable:
    """Overlap of ordered pairs of views of one scene, made by :func:`setsup.correspondence.overlap`.

    Rows are those of the dataset. Pairs are sorted by ``first``, then by ``second``. With the source ``tracks`` only
    pairs with a common point are listed, and all others of a scene are measured, too: :meth:`is_disjoint`.

    Attributes
    ----------
    first, second : (pairs,) int64
        Rows of the two views.
    overlap : (pairs,) float32
        Share of the surface in view ``first`` that view ``second`` shows, from 0 to 1; NaN where it is unknown.
    angle : (pairs,) float32, degrees
        Median over the shared points of the angle between the directions to the two cameras; NaN without such points.
    scale : (pairs,) float32
        Median over the shared points of (z₂/f₂) / (z₁/f₁): above 1 if view ``second`` shows them more coarsely; NaN
        without such points.
    unknown : (pairs,) float32
        Share of the sample pixels of view ``first`` whose depth in view ``second`` is unknown; NaN without pixels.
    decided : (pairs,) int32
        Number of the other sample pixels: those that are visible, occluded or outside; of tracks the number of points
        that view ``first`` observes.
    views : (views,) int64
        Rows that were compared, scene after scene, ascending in each.
    sampled : (views,) int32
        Number of sample pixels of each of these views, or of points that it observes.
    starts : (scenes + 1,) int64
        Where the views of each scene begin in ``views``.
    counts : (scenes, 4) int64
        Ordered pairs of each scene: possible, excluded because the views cannot overlap, measured, and not tried.
    excluded, excluded_starts : uint8, int64
        Matrices of excluded pairs, packed to bits; read them with :meth:`is_excluded`.
    about : dict
        ``dataset``, its name; ``fingerprint`` of its factors; ``content``, a digest of what factors do not tell, such
        as the meshes of a recipe or the size of images; ``rows``, their number; ``source`` of the overlaps, ``scenes``,
        ``depth`` or ``tracks``; ``settings``.
    path : Path or None
        The file that the columns are mapped from.

    Examples
    --------
    >>> from setsup.correspondence import overlap
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(32, 32)))
    >>> table = overlap(shapes, rows=range(3))
    >>> table.first.tolist(), table.second.tolist()
    ([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1])
    >>> table.find([0, 2], [2, 2]).tolist()
    [1, -1]

    """

    first: Rows
    second: Rows
    overlap: Floats
    angle: Floats
    scale: Floats
    unknown: Floats
    decided: Numbers
    views: Rows
    sampled: Numbers
    starts: Rows
    counts: Rows
    excluded: Bytes
    excluded_starts: Rows
    about: Mapping[str, Any]
    path: Path | None = None
    digest: str = ""
    _order: Rows = field(init=False)

    def __post_init__(self) -> None:
        """Check that the columns fit together."""
        label = "an overlap table" if self.path is None else str(self.path)
        for name, dtype in _COLUMNS.items():
            object.__setattr__(self, name, np.asarray(getattr(self, name)).astype(dtype, copy=False))
        if wrong := find_fault({name: getattr(self, name) for name in _COLUMNS}, self.about):
            fix = "measure the overlaps again" if self.path is None else _FIX
            raise DataError(f"{label} is damaged: {wrong}; {fix}", file=self.path)
        object.__setattr__(self, "_order", np.argsort(self.views, kind="stable"))
        if not self.digest:
            object.__setattr__(self, "digest", array_file.digest_of(*self._content()))

    def __len__(self) -> int:
        """Count the listed pairs."""
        return len(self.first)

    def __repr__(self) -> str:
        """Show the numbers of views, scenes and pairs."""
        return (
            f"OverlapTable({self.about['dataset']!r}, {len(self.views):,} views of {len(self.counts):,} scenes, "
            f"{len(self):,} pairs {'with common points' if self.source == TRACKS else 'measured'})"
        )

    @property
    def source(self) -> str:
        """What the overlaps were measured from; tables of different sources are not joined."""
        return str(self.about["source"])

    def find(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Rows:
        """Indices of pairs in the table, int64 of the broadcast shape; −1 for those that are not listed."""
        one, two = np.broadcast_arrays(np.asarray(first, np.int64), np.asarray(second, np.int64))
        low, high = np.searchsorted(self.first, one), np.searchsorted(self.first, one, side="right")
        found = np.full(one.shape, -1, np.int64)
        flat = [each.reshape(-1) for each in (low, high, two, found)]
        while len(some := np.flatnonzero(flat[0] < flat[1])):  # bisection, in all pairs at once
            middle = (flat[0][some] + flat[1][some]) // 2
            there = np.asarray(self.second[middle])
            flat[3][some[there == flat[2][some]]] = middle[there == flat[2][some]]
            less = there < flat[2][some]
            flat[0][some[less]], flat[1][some[~less]] = middle[less] + 1, middle[~less]
        return flat[3].reshape(one.shape)

    def is_excluded(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Bools:
        """Whether view ``second`` certainly shows nothing of view ``first``, since their frustums do not meet.

        bool of the broadcast shape; False for measured pairs, pairs that were not tried, and rows of different scenes.
        """
        one, two = np.broadcast_arrays(np.asarray(first, np.int64), np.asarray(second, np.int64))
        found = np.zeros(one.shape, bool)
        if not len(self.excluded):
            return found
        scene1, place1 = self._places(one)
        scene2, place2 = self._places(two)
        scene = np.where(scene1 == scene2, scene1, -1)
        begin = self.excluded_starts[scene]
        known = (scene >= 0) & (place1 != place2) & (self.excluded_starts[np.where(scene < 0, 0, scene) + 1] > begin)
        sizes = np.diff(self.starts)[scene[known]]
        bit = place1[known] * sizes + place2[known]
        found[known] = self.excluded[begin[known] + bit // 8] >> (7 - bit % 8).astype(np.uint8) & 1
        return found

    def is_disjoint(self, first: npt.ArrayLike, second: npt.ArrayLike) -> Bools:
        """Whether view ``second`` is known to show nothing of view ``first``: measured to be 0, or excluded.

        bool of the broadcast shape; False where the overlap is unknown, for pairs that were not tried, and for rows of
        different scenes. With the source ``tracks`` it is known of every view that observes at least 16 points.
        """
        one, two = np.broadcast_arrays(np.asarray(first, np.int64), np.asarray(second, np.int64))
        at = self.find(one, two)
        found = np.zeros(one.shape, bool)
        found[at >= 0] = self.overlap[at[at >= 0]] == 0
        if self.source != TRACKS:
            return found | self.is_excluded(one, two)
        scene1, place1 = self._places(one)
        scene2, _ = self._places(two)
        others = np.flatnonzero((at < 0) & (scene1 >= 0) & (scene1 == scene2) & (one != two))
        sampled = self.sampled[self.starts[scene1.flat[others]] + place1.flat[others]]
        found.flat[others] = sampled >= LEAST
        return found

    def _places(self, rows: Rows) -> tuple[Rows, Rows]:
        """Scenes of rows, and their places among its views; −1 for rows that were not compared."""
        if not len(self.views):
            return np.full(rows.shape, -1), np.full(rows.shape, -1)
        at = self._order[np.searchsorted(self.views, rows, sorter=self._order).clip(max=len(self.views) - 1)]
        scene = np.searchsorted(self.starts, at, side="right") - 1
        known = self.views[at] == rows
        return np.where(known, scene, -1), np.where(known, at - self.starts[scene], -1)

    def check_dataset(self, factors: FactorColumns) -> None:
        """Raise a SamplerError unless the overlaps were measured in the dataset with this table."""
        if not factors.has_fingerprint(self.about["fingerprint"]):
            raise SamplerError(
                f"the overlap table of {self.about['dataset']} was measured for {self.about['rows']:,} rows with other "
                f"factors, but the dataset has {len(factors):,} rows; measure the overlaps of this dataset, or open "
                "the dataset as it was"
            )

    def save(self, path: Path | str) -> None:
        """Write the table to one file, atomically; equal tables give equal bytes."""
        array_file.write(check_path(path, "the file of overlaps", DataError), *self._content())

    @classmethod
    def open(cls, path: Path | str) -> "OverlapTable":
        """Open a file that :meth:`save` wrote; its columns are mapped.

        Raises
        ------
        DataError
            When the file is missing, damaged, or not an overlap table.

        """
        file = check_path(path, "the file of overlaps", DataError)
        about, arrays, digest = array_file.read(file, _COLUMNS, "an overlap table", _FIX)
        for name, kind in _ABOUT.items():
            if not isinstance(about.get(name), kind):
                raise DataError(f"{file} is damaged: its {name} is {about.get(name)!r}; {_FIX}")
        return cls(**arrays, about=about, path=file, digest=digest)

    def _content(self) -> tuple[Mapping[str, Any], dict[str, Array]]:
        return self.about, {name: getattr(self, name) for name in _COLUMNS}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a mapped table as its path and digest."""
        if self.path is not None:
            return _reopen, (self.path, self.digest)
        names = [one.name for one in fields(self) if one.init]
        return OverlapTable, tuple(getattr(self, name) for name in names)


def _reopen(path: Path, digest: str) -> OverlapTable:
    table = OverlapTable.open(path)
    if table.digest != digest:
        raise DataError(f"{path} has changed since it was opened; open it again", file=path)
    return table
