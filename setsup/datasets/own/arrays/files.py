"""Datasets in a ``.npy`` or ``.npz`` file; pickled content is never loaded."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.checks import check_arguments
from setsup.datasets.formats.array_file import ArrayFile
from setsup.datasets.formats.npy import NUMBERS, VALUES, read_npy_head
from setsup.datasets.formats.npz import NpzArray, npz_names
from setsup.datasets.own.arrays.dataset import ArrayDataset, describe
from setsup.datasets.own.arrays.stored import NpzColumn, StoredArray
from setsup.datasets.own.factor_sources import Kinds, plain_column, read_factors
from setsup.errors import DataError, advice, did_you_mean
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import need_readable
from setsup.files.expand_user import expanded

__all__ = ["open_arrays"]

_log = logging.getLogger("setsup")


def open_arrays(
    path: Path | str,
    factors: Path | str | None = None,
    kinds: Kinds = None,
    arrays: Sequence[str] | str | None = None,
    channels_first: bool | None = None,
) -> ArrayDataset:
    """Open an ``.npz`` or ``.npy`` file, as :func:`setsup.open` does.

    In an ``.npz``, arrays of numbers with three axes or more are modalities, and define the number of rows n. Arrays of
    shape (n, d) are modalities, too; arrays of shape (n,) are factors. Arrays of other lengths are left out, with a
    warning. If no array has the shape (n,), but one besides the images describes them, such as rotations, the only
    factor is ``row``, the row number. Arrays written by ``numpy.savez`` are mapped into memory; arrays written by
    ``numpy.savez_compressed`` are read completely, once per process. A ``.npy`` contains only images, and requires
    `factors`.

    Parameters
    ----------
    path : Path or str
        The file.
    factors : Path or str, optional
        CSV or Parquet file with a row per image and a column per factor, used instead of the factors in the file
        itself; or anything else that :func:`setsup.from_arrays` accepts.
    kinds : mapping of str to Kind, optional
        Kinds of factors, in place of those inferred from the values.
    arrays : str or list of str, optional
        Names of the arrays of an ``.npz`` to use; all by default.
    channels_first : bool, optional
        As for :func:`setsup.from_arrays`.

    Returns
    -------
    ArrayDataset

    Raises
    ------
    DataError
        When the file is missing or damaged, contains no images, or arrays with different numbers of rows; when a
        required array contains objects.
    FactorError
        When the values of a factor mix types.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "faces.npz"
    >>> np.savez(path, image=np.zeros((4, 8, 8, 3), np.uint8), identity=["ann", "ann", "bob", "bob"])
    >>> faces = open_arrays(path)
    >>> faces.factors, faces.fetch(3)["image"].shape
    (FactorTable(4 rows: identity 2), (8, 8, 3))

    """
    check_arguments(open_arrays, {**locals(), "factors": None}, DataError)  # of factors, what reads them
    path = expanded(path)
    need_readable(path, "a .npy or .npz file")
    arrays = [arrays] if isinstance(arrays, str) else arrays
    opened = _open_npz if path.suffix.lower() == ".npz" or _is_zip(path) else _open_npy
    dataset = opened(path, factors, kinds, arrays, channels_first)
    if dataset.skipped:
        left = ", ".join(f"{name} ({what})" for name, what in dataset.skipped.items())
        _log.warning("%s is opened without %s", path, left)
    return dataset


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _open_npy(
    path: Path, factors: Any, kinds: Kinds, names: Sequence[str] | None, channels_first: bool | None
) -> ArrayDataset:
    if names is not None:
        raise DataError(f"{path} is a .npy file, which contains a single unnamed array; leave out arrays=")
    array = ArrayFile(path, read_npy_head)
    if len(array.shape) < 3 or array.dtype.kind not in NUMBERS or not all(array.shape):
        raise DataError(
            f"{path} contains no images: the array has dtype {array.dtype} and shape {array.shape}; expected numbers "
            "of shape (n, height, width, …), with at least three axes"
        )
    if factors is None:
        raise DataError(
            f"{path} contains images (dtype {array.dtype}, shape {array.shape}), but no factors; pass a table with one "
            "row per image: "
            + advice(
                "factors='labels.csv', or setsup.from_arrays(images, {'name': values})", "--option factors=labels.csv"
            )
        )
    table = read_factors(factors, len(array), str(path), kinds)
    return ArrayDataset(path.stem, table, {"image": array}, channels_first)


def _open_npz(
    path: Path, factors: Any, kinds: Kinds, names: Sequence[str] | None, channels_first: bool | None
) -> ArrayDataset:
    known = npz_names(path)
    for name in names or ():
        if name not in known:
            raise DataError(f"{path} has no array {name!r}{did_you_mean(name, known)}")
    arrays = {name: NpzArray(path, name, kinds=f"{VALUES}O") for name in known if names is None or name in names}
    rows = _count_rows(path, arrays)
    same = {name: array for name, array in arrays.items() if array.shape[0] == rows}
    for name, array in same.items():
        if array.dtype.kind == "O":
            raise DataError(
                f"{path}: {name} contains pickled Python objects (shape {array.shape}), which setsup never reads; save "
                f"strings as numpy.asarray({name}, dtype=str), or select other arrays with arrays="
            )
    values = {
        name: array
        for name, array in same.items()
        if array.dtype.kind in NUMBERS and len(array.shape) > 1  # of one axis they are factors
    }
    columns = {name: array for name, array in same.items() if len(array.shape) == 1}
    used = values.keys() | (columns.keys() if factors is None else ())
    if factors is None:
        if not columns and len(values) < 2:
            raise DataError(
                f"{path} contains no factors, which must be arrays of shape ({rows},); it contains {describe(arrays)}; "
                "pass them as "
                + advice("factors='labels.csv', or use setsup.from_arrays", "--option factors=labels.csv")
            )
        table = _table({name: _column(array) for name, array in columns.items()}, rows, kinds)
    else:
        table = read_factors(factors, rows, str(path), kinds)
    stored: dict[str, StoredArray] = {name: NpzColumn(array) for name, array in values.items()}
    skipped = {name: f"{array.dtype} {array.shape}" for name, array in arrays.items() if name not in used}
    return ArrayDataset(path.stem, table, stored, channels_first, skipped)


def _table(columns: Mapping[str, Any], rows: int, kinds: Kinds) -> FactorTable:
    if columns:
        return FactorTable.from_values(columns, kinds=kinds)
    return FactorTable([Factor("row", Kind.ORDINAL, tuple(range(rows)), role="key")], {"row": np.arange(rows)})


def _count_rows(path: Path, arrays: Mapping[str, NpzArray]) -> int:
    """Number of rows, which must be the same for all arrays with three axes or more."""
    images = {name: array for name, array in arrays.items() if len(array.shape) > 2 and all(array.shape)}
    images = {name: array for name, array in images.items() if array.dtype.kind in NUMBERS}
    lengths = {len(array) for array in images.values()}
    if not images:
        raise DataError(
            f"{path} contains no images: expected arrays of shape (n, height, width, …), with at least three axes, not "
            f"{describe(arrays) or 'an empty file'}"
        )
    if len(lengths) > 1:
        raise DataError(
            f"{path} contains arrays of different lengths ({' and '.join(f'{rows:,}' for rows in sorted(lengths))} "
            f"rows): {describe(arrays)}; choose arrays of the same length with arrays= (--option "
            f"arrays={next(iter(images))},…)"
        )
    return lengths.pop()


def _column(array: NpzArray) -> Any:
    out = np.empty(array.shape, array.dtype)
    with array.rows() as fill:
        fill(0, len(array), out)
    return plain_column(out)
