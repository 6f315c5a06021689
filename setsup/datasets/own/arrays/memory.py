"""Datasets of arrays in memory, or mapped from files by the user."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_arguments, check_array, check_mapping
from setsup.datasets.formats.npy import NUMBERS
from setsup.datasets.own.arrays.dataset import ArrayDataset, describe
from setsup.datasets.own.arrays.files import open_arrays
from setsup.datasets.own.arrays.stored import StoredArray, hold
from setsup.datasets.own.factor_sources import Kinds, read_factors
from setsup.errors import DataError

__all__ = ["from_arrays"]


def from_arrays(
    images: Any,
    factors: Any = None,
    *,
    kinds: Kinds = None,
    channels_first: bool | None = None,
    name: str = "arrays",
) -> ArrayDataset:
    """Make a dataset from numpy arrays, in memory or memory-mapped, without copying them.

    Rows are the first axis. Arrays of uint8 with the shape (n, height, width) or (n, height, width, 1, 3 or 4) are
    images; all other arrays of numbers are modalities that are not images, such as depth in float32.

    Parameters
    ----------
    images : array, mapping of str to array, Path or str
        Images, which become the modality ``image``; a mapping of names of modalities to arrays; or a ``.npy`` or
        ``.npz`` file, which :func:`setsup.open` also opens. Pass ``numpy.load(path, mmap_mode="r")`` for an array that
        does not fit into memory. CPU tensors are not copied either.
    factors : FactorTable, mapping of str to (n,) values, pandas.DataFrame, Path or str
        The value of every factor for every row, or the path of a CSV or Parquet file. For an ``.npz``, the default is
        its arrays of shape (n,).
    kinds : mapping of str to Kind, optional
        Kinds of factors, instead of those inferred from the values: ``{"age": "continuous"}``.
    channels_first : bool, optional
        If True, arrays of uint8 (n, 1, 3 or 4, height, width) are images, and are fetched as (height, width,
        channels). If False, they are not images. By default, such arrays raise an error unless their last axis could
        be channels.
    name : str
        Name in messages and reports; the name of a file without its suffix.

    Returns
    -------
    ArrayDataset

    Raises
    ------
    DataError
        When there are no images or arrays, or they have different numbers of rows, contain objects, or could be
        channels-first; when a file is missing or damaged.
    FactorError
        When there are no factors, or their values mix types.

    Notes
    -----
    Rows are copied out of the arrays, so changes to a batch never modify them. Later fetches see changes to the arrays
    themselves, but worker processes that already received the dataset do not. A worker process maps a mapped array
    again; an array in memory is sent to it completely unless the process is forked. By default, a loader therefore
    reads such datasets in threads.

    Examples
    --------
    >>> images = np.zeros((6, 8, 8, 3), np.uint8)
    >>> depth = np.ones((6, 8, 8), np.float32)
    >>> faces = from_arrays({"image": images, "depth": depth}, {"identity": list("aabbcc")})
    >>> faces.factors, faces.fetch([0, 5])["depth"].shape
    (FactorTable(6 rows: identity 3), (2, 8, 8))

    """
    check_arguments(from_arrays, locals(), DataError)
    if isinstance(images, str | Path):
        return open_arrays(images, factors, kinds, channels_first=channels_first)
    named = images if isinstance(images, Mapping) else {"image": images}
    arrays = {label: _held(label, array) for label, array in check_mapping(named, "images", DataError).items()}
    lengths = {label: array.shape[0] for label, array in arrays.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise DataError(
            f"{name}: all arrays must have the same number of rows, at least one, but got "
            f"{describe(arrays) or 'no arrays'}"
        )
    if not isinstance(images, Mapping):
        _refuse_numbers(arrays["image"])
    if factors is None:
        raise DataError(f"{name} has no factors; pass them, as in from_arrays(images, {{'name': values}})")
    table = read_factors(factors, max(lengths.values()), name, kinds)
    return ArrayDataset(name, table, arrays, channels_first)


def _held(label: str, values: Any) -> StoredArray:
    if hasattr(values, "detach"):
        values = values.detach()
    array = check_array(values, label, DataError)
    if array.dtype.kind not in NUMBERS:
        raise DataError(
            f"{label} has dtype {array.dtype} and shape {array.shape}; expected an array of numbers (pass strings as "
            "factors=)"
        )
    if not array.ndim:
        raise DataError(f"{label} is a single number; expected an array of shape (n, …), with one row per image")
    return hold(array)


def _refuse_numbers(array: StoredArray) -> None:
    """Refuse arrays that cannot be images."""
    if array.dtype == np.uint8 and len(array.shape) in (3, 4):
        return
    what = (
        f"images must be uint8 of shape (n, height, width) or (n, height, width, channels), not {array.dtype} of shape "
        f"{array.shape}"
    )
    if array.dtype.kind == "f" and len(array.shape) in (3, 4):
        what += "; convert values from 0 to 1 with (255 * images).round().astype('uint8')"
    raise DataError(f"{what}; pass arrays that are not images by name, as in from_arrays({{'numbers': array}}, …)")
