"""The base of datasets that read their rows from files: one method to write."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.copying import check_out
from setsup.datasets.dataset import Dataset, fetch_request, of_row
from setsup.datasets.display import dataset_html
from setsup.datasets.originals import Original
from setsup.html import never_raises

__all__ = ["Array", "BaseDataset", "Rows"]


class BaseDataset(Dataset):
    """A dataset that reads its rows in one method, ``_read``.

    ``_read(name, rows, out)`` returns one modality of some rows:

    - ``rows`` is an (n,) int64 array of valid row numbers, which may repeat.
    - ``out`` is a C-contiguous array of shape ``(n, *modality.shape)`` and the modality's dtype, or None where a length
      of the modality is None. Fill it and return it, or return another array of that shape.

    ``fetch`` and ``fetch_into`` are made of it, for indices of any shape and any destination. A dataset that reads
    several modalities at once overrides ``_read_all`` instead.

    Attributes
    ----------
    cpu_bound : bool
        Whether rows are decoded or rendered, so that a loader uses worker processes.
    previews : bool
        Whether notebooks show a few images with the dataset: not where one takes seconds, or comes over a network.

    Examples
    --------
    >>> from setsup.datasets import BaseDataset, Modality, gather
    >>> from setsup.factors import FactorTable
    >>> class Ramps(BaseDataset):
    ...     name = "ramps"
    ...     factors = FactorTable.from_values({"slope": [0, 1, 2]})
    ...     modalities = {"ramp": Modality((4,), "int64")}
    ...     def _read(self, name, rows, out):
    ...         return gather(np.arange(3)[:, None] * np.arange(4), rows, out)
    >>> Ramps().fetch([[2], [1]])["ramp"].tolist()
    [[[0, 2, 4, 6]], [[0, 1, 2, 3]]]

    """

    cpu_bound: bool = False
    previews: bool = True
    _source: Path | None = None

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        arrays = self._read_all(rows.reshape(-1), {name: self._empty(name, rows.size) for name in names})
        if rows.ndim == 1:
            return {name: arrays[name] for name in names}
        return {name: arrays[name].reshape(rows.shape + arrays[name].shape[1:]) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Write rows into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        check_out(self.modalities, out, rows)
        direct = {name: _flat(out[name], rows, self.modalities[name].dtype) for name in names}
        buffers = {name: self._empty(name, rows.size) if view is None else view for name, view in direct.items()}
        for name, array in self._read_all(rows.reshape(-1), buffers).items():
            if array is not direct[name]:
                out[name][...] = array.reshape(rows.shape + array.shape[1:])

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of one modality of (n,) valid rows; None where it holds none.

        A loader with ``resize=`` decodes these, each from its original size; without them it fetches rows one by one. A
        dataset that overrides this marks it by :func:`of_row`.
        """
        return None

    def _read(self, name: str, rows: Rows, out: Any) -> Array:
        """Read one modality of (n,) rows, into `out` or as a new array."""
        raise NotImplementedError

    def _read_all(self, rows: Rows, out: Mapping[str, Any]) -> Mapping[str, Array]:
        """Read modalities of (n,) rows; each as :meth:`_read` does."""
        return {name: self._read(name, rows, array) for name, array in out.items()}

    def _empty(self, name: str, rows: int) -> Array | None:
        """Make room for rows of a modality, where its shape is known."""
        modality = self.modalities[name]
        shape: Any = modality.shape
        return None if None in shape else np.empty((rows, *shape), modality.dtype)

    def __repr__(self) -> str:
        """Show the class, the name or where the files are, and the number of rows."""
        what = self.name if self._source is None else str(self._source)
        return f"{type(self).__name__}({what!r}, {len(self):,} rows)"

    @never_raises
    def _repr_html_(self) -> str:
        """Show the factors and a few images in a notebook."""
        return dataset_html(self, self.previews)


def _flat(array: Array, rows: Rows, dtype: str) -> Array | None:
    """View an array with one axis of rows; None where it has another dtype, or where only a copy would have that."""
    if not array.flags.c_contiguous or array.dtype != dtype:
        return None
    return array.reshape(rows.size, *array.shape[rows.ndim :])
