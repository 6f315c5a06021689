"""Datasets for pages: one with images, unknown values and names that a browser could take for something else."""

import numpy as np

import setsup
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["HOSTILE", "awkward", "uneven"]

HOSTILE = ("</script><img src=x onerror=alert(1)>", "\u202eright to left", "🦊 & \"quotes' `ticks`", "a\\b\nc")


def awkward():
    """24 rows with images and depth, whose factors and levels have hostile names."""
    rows = np.arange(24)
    factors = [
        Factor(HOSTILE[0], Kind.NOMINAL, (*HOSTILE, "plain")),
        Factor(HOSTILE[2], Kind.ORDINAL, (1, 2.5, 3)),
        Factor("yaw", Kind.CONTINUOUS, None, "deg", 360.0),
        Factor(HOSTILE[1], Kind.NOMINAL, (False, True)),
    ]
    columns = {
        HOSTILE[0]: np.where(rows == 7, -1, rows % 5),
        HOSTILE[2]: rows % 3,
        "yaw": np.where(rows == 3, np.nan, rows * 15.0).astype(np.float32),
        HOSTILE[1]: rows % 2,
    }
    images = np.random.default_rng(0).integers(0, 256, (24, 12, 16, 3), dtype=np.uint8)
    depth = np.linspace(1, 3, 24 * 12 * 16, dtype=np.float32).reshape(24, 12, 16)
    return setsup.from_arrays(
        {"image": images, "depth": depth}, factors=FactorTable(factors, columns), name="</script>awkward"
    )


def uneven():
    """A dataset without images in which one group has a single row."""
    table = FactorTable.from_values({"species": ["cat"] * 5 + ["dog"] * 3 + ["emu"], "day": [1, 2, 3] * 3})
    return setsup.from_arrays({"number": np.arange(9, dtype=np.float32)}, factors=table, name="animals")
