"""Datasets made of several, one after the other."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Dataset, Modality, Selection, is_cpu_bound, of_row
from setsup.datasets.originals import Original
from setsup.errors import DataError
from setsup.factors.concat import concat as concat_tables

__all__ = ["Concat", "concat", "sources"]


class Concat(BaseDataset):
    """Datasets one after the other, as returned by :func:`concat`.

    Parameters
    ----------
    datasets : sequence of Dataset
        At least one.
    parts : sequence of str, optional
        Level of the factor ``part`` for each dataset.

    Attributes
    ----------
    datasets : tuple of Dataset
        The concatenated datasets.
    offsets : (datasets + 1,) int64
        First row of each dataset, followed by the total number of rows.

    """

    def __init__(self, datasets: Sequence[Dataset], parts: Sequence[str] | None = None) -> None:
        check_arguments(Concat.__init__, locals(), DataError)
        if not len(datasets):
            raise DataError("concat requires at least one dataset")
        self.datasets = tuple(datasets)
        self.modalities = _common_modalities(self.datasets)
        self.factors = concat_tables([dataset.factors for dataset in self.datasets], parts)
        self.name = " + ".join(dataset.name for dataset in self.datasets)
        self.cpu_bound = any(map(is_cpu_bound, self.datasets))
        self.previews = all(getattr(dataset, "previews", True) for dataset in self.datasets)
        self.offsets: npt.NDArray[np.int64] = np.cumsum([0, *(len(dataset) for dataset in self.datasets)])

    @of_row
    def originals(self, rows: Rows, name: str) -> list[Original] | None:
        """Encoded images of (n,) rows; None where one of the datasets has none."""
        origin = np.searchsorted(self.offsets, rows, side="right") - 1
        found: dict[int, Original] = {}
        for part in np.unique(origin).tolist():
            slots = np.flatnonzero(origin == part)
            read = getattr(self.datasets[part], "originals", None)
            images = None if read is None else read(rows[slots] - self.offsets[part], name)
            if images is None:
                return None
            found |= dict(zip(slots.tolist(), images, strict=True))
        return [found[slot] for slot in range(len(rows))]

    def _read_all(self, rows: Rows, out: Mapping[str, Array | None]) -> dict[str, Array]:
        origin = np.searchsorted(self.offsets, rows, side="right") - 1
        joined: dict[str, Array] = {}
        # no row at all still has shapes and dtypes, which the first dataset knows
        for part in np.unique(origin) if rows.size else [0]:
            slots = np.flatnonzero(origin == part)
            arrays = self.datasets[part].fetch(rows[slots] - self.offsets[part], tuple(out))
            for name in out:
                _scatter(joined, name, slots, arrays[name], rows.size)
        return joined

    def __repr__(self) -> str:
        """Show the joined datasets."""
        return f"Concat({', '.join(repr(dataset) for dataset in self.datasets)})"


def concat(*datasets: Dataset, parts: Sequence[str] | None = None) -> Concat:
    """Join datasets: the rows of each one follow those of the previous one.

    The joined table has the union of the factors, unknown where a dataset lacks one, and the factor ``part``, the
    dataset of each row. Modalities are those that all datasets have.

    Parameters
    ----------
    *datasets : Dataset
        At least one; the rows keep their order.
    parts : sequence of str, optional
        Levels of the factor ``part``, one per dataset; "a", "b", … by default.

    Returns
    -------
    Concat

    Raises
    ------
    DataError
        When no modality is common to all, or one differs in shape, dtype, unit or color space.
    FactorError
        When a factor differs in kind or unit between the datasets.

    """
    if len(datasets) == 1 and isinstance(datasets[0], list | tuple):
        raise DataError("concat expects datasets as separate arguments, concat(a, b), not as a list")
    return Concat(datasets, parts)


def _common_modalities(datasets: Sequence[Dataset]) -> dict[str, Modality]:
    first, *others = datasets
    common = [name for name in first.modalities if all(name in other.modalities for other in others)]
    if not common:
        had = "; ".join(f"{dataset.name} has {', '.join(dataset.modalities) or 'none'}" for dataset in datasets)
        raise DataError(
            f"the datasets to concatenate have no modality in common ({had}); choose datasets with a common modality"
        )
    for name in common:
        for other in others:
            if other.modalities[name] != first.modalities[name]:
                here, there = _describe(first.modalities[name]), _describe(other.modalities[name])
                raise DataError(
                    f"the modality {name!r} differs: {first.name} has {here}, {other.name} has {there}; arrays must "
                    "have the same shape and dtype to be concatenated"
                )
    return {name: first.modalities[name] for name in common}


def _describe(modality: Modality) -> str:
    return " ".join(filter(None, [str(modality.shape), modality.dtype, modality.unit, modality.color]))


def _scatter(arrays: dict[str, Array], name: str, slots: npt.NDArray[np.int64], values: Array, length: int) -> None:
    """Put one dataset's arrays where they belong in the joined one, which the first of them shapes."""
    if len(slots) == length:
        arrays[name] = values
        return
    if name not in arrays:
        arrays[name] = np.empty((length, *values.shape[1:]), values.dtype)
    joined = arrays[name]
    if joined.shape[1:] != values.shape[1:] or joined.dtype != values.dtype:
        raise DataError(
            f"the rows of modality {name!r} cannot be stacked: some have dtype {joined.dtype} and shape "
            f"{joined.shape[1:]}, others dtype {values.dtype} and shape {values.shape[1:]}; open the datasets with "
            "the same size=(height, width)"
        )
    joined[slots] = values


def sources(dataset: Dataset) -> Iterator[Dataset]:
    """Datasets that one was made from by selection and concatenation; itself where it was not."""
    if isinstance(dataset, Selection):
        yield from sources(dataset.source)
    elif isinstance(dataset, Concat):
        for part in dataset.datasets:
            yield from sources(part)
    else:
        yield dataset
