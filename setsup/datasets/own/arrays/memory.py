"""Datasets of arrays that are in memory, or that the user has mapped from files."""

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
    """Make a dataset of numpy arrays, in memory or mapped from files; they are not copied.

    Rows are the first axis. Arrays of uint8 with the shape (n, height, width) or (n, height, width, 1, 3 or 4) are
    images; all other arrays of numbers are modalities that are not images, such as depth in float32.

    Parameters
    ----------
    images : array, mapping of str to array, Path or str
        Images, which are the modality ``image``; arrays by the names of modalities; or a ``.npy`` or ``.npz`` file,
        which :func:`setsup.open` opens too. Give ``numpy.load(path, mmap_mode="r")`` for an array that does not fit
        into memory. CPU tensors are taken without a copy, too.
    factors : FactorTable, mapping of str to (n,) values, pandas.DataFrame, Path or str
        The value of every factor for every row; a path is that of a CSV or Parquet file. Of an ``.npz`` the arrays of
        (n,) are the factors, unless others are given.
    kinds : mapping of str to Kind, optional
        Kinds of factors that are not those inferred from the values: ``{"age": "continuous"}``.
    channels_first : bool, optional
        True: arrays of uint8 (n, 1, 3 or 4, height, width) are images, which are fetched as (height, width,
        channels). False: they are no images. By default those whose last axis is none of channels are refused.
    name : str
        Name in messages and reports; the name of a file without its suffix.

    Returns
    -------
    ArrayDataset

    Raises
    ------
    DataError
        When there are no images or arrays, they have different numbers of rows, hold objects, or could be
        channels-first; when a file is missing or damaged.
    FactorError
        When there are no factors, or their values mix types.

    Notes
    -----
    Rows are copied out of the arrays, so that changes of a batch never reach them. Changes of the arrays themselves
    are seen by later fetches, but not by worker processes that have received the dataset already. What is mapped
    from a file is mapped again by a worker process; what is in memory is sent to it whole where it is not forked. A
    loader therefore reads such datasets in threads, unless it is told otherwise.

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
    given = images if isinstance(images, Mapping) else {"image": images}
    arrays = {label: _held(label, array) for label, array in check_mapping(given, "images", DataError).items()}
    lengths = {label: array.shape[0] for label, array in arrays.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise DataError(
            f"{name} needs arrays with one row or more, all with the same number, not {describe(arrays) or 'none'}"
        )
    if not isinstance(images, Mapping):
        _refuse_numbers(arrays["image"])
    if factors is None:
        raise DataError(f"{name} has no factors; give them as from_arrays(images, {{'name': values}})")
    table = read_factors(factors, max(lengths.values()), name, kinds)
    return ArrayDataset(name, table, arrays, channels_first)


def _held(label: str, given: Any) -> StoredArray:
    if hasattr(given, "detach"):
        given = given.detach()
    array = check_array(given, label, DataError)
    if array.dtype.kind not in NUMBERS:
        raise DataError(f"{label} holds {array.dtype} {array.shape}; arrays hold numbers, and factors= takes strings")
    if not array.ndim:
        raise DataError(f"{label} is a single number; arrays have a row per image, and (n, …) as their shape")
    return hold(array)


def _refuse_numbers(array: StoredArray) -> None:
    """Refuse what was given as images, but cannot be."""
    if array.dtype == np.uint8 and len(array.shape) in (3, 4):
        return
    what = f"images are uint8 (n, height, width) or (n, height, width, channels), not {array.dtype} {array.shape}"
    if array.dtype.kind == "f" and len(array.shape) in (3, 4):
        what += "; convert those in 0 … 1 with (255 * images).round().astype('uint8')"
    raise DataError(f"{what}; arrays that are no images are given by name, as from_arrays({{'numbers': array}}, …)")
