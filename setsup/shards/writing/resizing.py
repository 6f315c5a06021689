"""A dataset with its images brought to one size, as they go into shards."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, fetch_request
from setsup.datasets.images import parallel
from setsup.shards.decoding import resize_image, resized_modalities
from setsup.shards.layout import Member

__all__ = ["Resized"]

Array = npt.NDArray[Any]


class Resized(Dataset):
    """Another dataset whose images, of whatever sizes, are resized and cropped as :func:`setsup.open_shards` does.

    `size` (height, width), pixels.

    Examples
    --------
    >>> import setsup
    >>> small = Resized(setsup.load("shapes3d-procedural"), (32, 48))
    >>> small.fetch([[0], [7]])["image"].shape
    (2, 1, 32, 48, 3)
    >>> small
    Resized(ProceduralShapes3D(480,000 rows), (32, 48))

    """

    def __init__(self, source: Dataset, size: tuple[int, int]) -> None:
        self.source, self._size = source, size
        self.name, self.factors = source.name, source.factors
        # the format is of no account here
        members = {name: Member(kind, "npy") for name, kind in source.modalities.items()}
        self.modalities = resized_modalities(members, size)
        self._images = [name for name, kind in self.modalities.items() if kind is not source.modalities[name]]

    def __repr__(self) -> str:
        """Show the source and the size."""
        return f"Resized({self.source!r}, {self._size})"

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        resized = [name for name in names if name in self._images]
        others = [name for name in names if name not in self._images]
        found = dict(self.source.fetch(rows, others)) if others else {}
        if not resized:
            return found
        # row by row: those of different sizes cannot be fetched together, and many whole ones take much memory
        each = parallel(lambda row: self._resized(row, resized), rows.reshape(-1).tolist())
        for name in resized:
            kind = self.modalities[name]
            stacked = np.empty((len(each), *(length or 0 for length in kind.shape)), kind.dtype)
            for place, arrays in enumerate(each):
                stacked[place] = arrays[name]
            found[name] = stacked.reshape(*rows.shape, *stacked.shape[1:])
        return {name: found[name] for name in names}

    def _resized(self, row: int, names: list[str]) -> dict[str, Array]:
        return {name: resize_image(array, self._size) for name, array in self.source.fetch(row, names).items()}
