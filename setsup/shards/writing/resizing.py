"""A dataset with its images brought to one size, as they go into shards."""

from collections.abc import Mapping

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Dataset
from setsup.datasets.images import parallel
from setsup.shards.decoding import resize_image, resized_modalities
from setsup.shards.layout import Member

__all__ = ["Resized"]


class Resized(BaseDataset):
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

    def _read_all(self, rows: Rows, out: Mapping[str, Array]) -> dict[str, Array]:
        resized = [name for name in out if name in self._images]
        others = [name for name in out if name not in self._images]
        kept = dict(self.source.fetch(rows, others)) if others else {}
        if not resized:
            return kept
        # row by row: those of different sizes cannot be fetched together, and many whole ones take much memory
        each = parallel(lambda row: self._resized(row, resized), rows.tolist())
        for index, arrays in enumerate(each):
            for name in resized:
                out[name][index] = arrays[name]
        return {**kept, **{name: out[name] for name in resized}}

    def _resized(self, row: int, names: list[str]) -> dict[str, Array]:
        return {name: resize_image(array, self._size) for name, array in self.source.fetch(row, names).items()}
