"""Neighbour tables: the rows nearest to each row of a dataset, as arrays or files, known by their digests."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_array, check_path
from setsup.errors import SamplerError, abbreviate, advice, spell_name
from setsup.files.disk import read_errors
from setsup.samplers.steps import LAST

__all__ = ["NeighbourTable", "read_tables"]

_BLOCK = 1 << 20  # entries looked at together
_FILE = {"path", "digest"}  # what plain data have of a file


@dataclass(frozen=True, slots=True)
class NeighbourTable:
    """The rows nearest to each row, nearest first; -1 where there are fewer.

    Attributes
    ----------
    rows : (rows, k) integers
        In memory, or mapped from a file.
    digest : str
        32 hexadecimal digits, a function of the shape and the numbers, whatever integers they are stored as.
    plain : array or dict
        What the table is made of again: itself, or the path of its file with the digest.

    """

    rows: Array
    digest: str
    plain: Any


def read_tables(neighbours: Any, count: int) -> dict[int, NeighbourTable]:
    """Neighbour tables of `count` rows by the steps from which they hold, ascending, from one or from a mapping."""
    if not isinstance(neighbours, Mapping) or set(neighbours) == _FILE:
        neighbours = {0: neighbours}
    tables = {_step(key): value for key, value in neighbours.items()}
    if not tables or len(tables) < len(neighbours):
        raise SamplerError(
            f"{spell_name('neighbours')} must map at least one step to a table, and each step only once, not "
            f"{abbreviate(list(neighbours))}"
        )
    return {step: _read(tables[step], f"the neighbour table of step {step}", count) for step in sorted(tables)}


def _step(key: Any) -> int:
    if isinstance(key, str) and key.isascii() and key.isdigit():  # as JSON has it
        key = int(key)
    if isinstance(key, bool) or not isinstance(key, int | np.integer) or not 0 <= key < LAST:
        raise SamplerError(
            f"the steps of {spell_name('neighbours')} must be integers from 0 to 2**63 - 1, not {abbreviate(key)}"
        )
    return int(key)


def _read(source: Any, what: str, count: int) -> NeighbourTable:
    """Read a table from an array, the path of an .npy file, or its path and digest."""
    expected = None
    if isinstance(source, Mapping):
        if set(source) != _FILE:
            raise SamplerError(f"{what} must be an array, a path, or a path with its digest, not {abbreviate(source)}")
        source, expected = source["path"], source["digest"]
    if not isinstance(source, str | Path):
        rows = np.array(check_array(source, what, SamplerError))  # no later change reaches it
        return NeighbourTable(rows, _digest(rows, what, count), rows)
    path = check_path(source, what, SamplerError)
    rows = _load(path)
    digest = _digest(rows, f"{what}, {path},", count)
    if expected is not None and digest != expected:
        raise SamplerError(
            f"{what} has changed: {path} had the digest {expected} and now has {digest}, which would change the "
            "draws; restore the old file, or pass the new one for a later step"
        )
    return NeighbourTable(rows, digest, {"path": str(path), "digest": digest})


def _load(path: Path) -> Array:
    with read_errors(path):
        try:
            rows: Array = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError:
            raise
        except Exception as error:  # numpy raises many kinds
            how = advice(
                "save the first array that setsup.evaluation.nearest returns with numpy.save",
                "`setsup embed --neighbours` writes one",
            )
            raise SamplerError(f"{path} is not an .npy file of integers; {how}") from error
    return rows


def _digest(rows: Array, what: str, count: int) -> str:
    """Digest of a table, whose numbers are looked at on the way."""
    if getattr(rows, "ndim", 0) != 2 or rows.dtype.kind not in "iu" or rows.shape[0] != count or not rows.shape[1]:
        whole = getattr(rows, "ndim", 0) == 2 and rows.dtype.kind in "iu" and rows.shape[1] > 0
        if whole:
            raise SamplerError(
                f"{what} has {rows.shape[0]:,} rows, but the dataset has {count:,}; compute a table with one line for "
                f"each row of the dataset, including rows that {advice('where=', '--where')} excludes"
            )
        kind = f"{rows.dtype} of shape {rows.shape}" if isinstance(rows, np.ndarray) else type(rows).__name__
        raise SamplerError(
            f"{what} must be an integer array of shape ({count}, k) with the rows nearest to each row, not {kind}; "
            + advice(
                "compute one from embeddings with setsup.evaluation.nearest", "`setsup embed --neighbours` writes one"
            )
        )
    digest = hashlib.blake2b(repr(rows.shape).encode(), digest_size=16)
    step = max(1, _BLOCK // rows.shape[1])
    for start in range(0, count, step):
        block = rows[start : start + step]
        if block.max() >= count or block.min() < -1:
            row, rank = np.argwhere((block >= count) | (block < -1))[0]
            raise SamplerError(
                f"{what} contains {block[row, rank]} for row {start + row}, rank {rank + 1}; expected row numbers "
                f"below {count}, or -1 for missing neighbours"
            )
        ordered = np.sort(block, axis=1)
        if (twice := (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            row, rank = np.argwhere(twice)[0]
            raise SamplerError(
                f"{what} lists row {ordered[row, rank]} twice among the neighbours of row {start + row}; expected "
                "each neighbour once, and -1 for missing neighbours"
            )
        digest.update(np.ascontiguousarray(block, dtype="<i8").tobytes())
    return digest.hexdigest()
