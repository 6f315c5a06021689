"""Copies of rows into a caller's arrays: the check of those arrays, and the copy."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.modality import Modality
from setsup.errors import DataError
from setsup.files.mapped import check_mapped

__all__ = ["check_out", "gather"]


def gather(array: Array, rows: npt.NDArray[np.int64], out: Array | None = None) -> Array:
    """Copy rows of an array in memory or mapped from a file.

    Parameters
    ----------
    array : (n, ...) array
        Source of the rows.
    rows : integer array of any shape
        Row numbers checked by :func:`setsup.datasets.fetch_request`.
    out : array, optional
        Destination, of the result's shape and dtype.

    Returns
    -------
    array of shape ``rows.shape + array.shape[1:]`` and the dtype of ``array``

    Raises
    ------
    DataError
        When the file was truncated after it was mapped.

    Examples
    --------
    >>> gather(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]

    """
    check_mapped(array)
    # the rows are in range, and with "clip" numpy does not check them again
    return np.asarray(np.asarray(array).take(rows, axis=0, out=out, mode="clip"))


def check_out(modalities: Mapping[str, Modality], out: Mapping[str, Array], rows: npt.NDArray[np.int64]) -> None:
    """Refuse arrays to write into that have another shape than the rows, or a dtype that would lose values."""
    for name, array in out.items():
        if not isinstance(array, np.ndarray):
            raise DataError(f"out[{name!r}] must be a numpy array, not {type(array).__name__}")
        modality = modalities[name]
        shape = (*rows.shape, *modality.shape)
        if array.ndim != len(shape) or any(
            side not in (None, own) for side, own in zip(shape, array.shape, strict=True)
        ):
            raise DataError(f"out[{name!r}] must have the shape {shape}, not {array.shape}")
        if not np.can_cast(modality.dtype, array.dtype):
            raise DataError(
                f"out[{name!r}] must have a dtype that can represent all values of {modality.dtype}, not {array.dtype}"
            )
