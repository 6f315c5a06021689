"""Digest of a table's content: its factors as JSON, then its columns, little-endian."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.factors.column_storage import drop_signs
from setsup.factors.factor import Factor

__all__ = ["digest"]


def digest(factors: Sequence[Factor], columns: Iterable[npt.NDArray[Any]], signs: bool) -> str:
    """Digest of factors and columns; with ``signs``, NaN and −NaN differ, and so do 0.0 and −0.0.

    `columns`: (rows,) arrays as a table stores them, none for a full grid.
    """
    about = [factor.to_dict() for factor in factors]
    if not signs:
        for factor in about:
            if "levels" in factor:
                # −0.0 + 0.0 is 0.0
                factor["levels"] = [level + 0.0 if type(level) is float else level for level in factor["levels"]]
    hashed = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for column in columns:
        for part in [column] if signs or column.dtype.kind != "f" else drop_signs(column):
            little = part.astype(part.dtype.newbyteorder("<"), copy=False)
            hashed.update(np.ascontiguousarray(little).data)
    return hashed.hexdigest()
