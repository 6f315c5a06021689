"""Datasets for pages: one with images, unknown values and names that a browser could take for something else."""

import numpy as np

import setsup
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["HOSTILE", "awkward", "numbers", "uneven"]

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


def numbers():
    """A dataset of continuous factors with values on the edges of bins, large ones, and some below a cycle's start."""
    places = np.arange(300)
    columns = {
        "tenth": places % 101 / 10,
        "third": places % 61 / 3 - 10,
        "time": 1_700_000_000 + 3600 * places,
        "turn": places % 24 * 15,
        "signed turn": places % 24 * 15 - 180,
    }
    factors = [Factor(name, Kind.CONTINUOUS, None, "", 360.0 if name.endswith("turn") else None) for name in columns]
    table = FactorTable(factors, {name: column.astype(np.float32) for name, column in columns.items()})
    return setsup.from_arrays({"number": places.astype(np.float32)}, factors=table, name="numbers")


def uneven():
    """A dataset without images in which one group has a single row."""
    table = FactorTable.from_values({"species": ["cat"] * 5 + ["dog"] * 3 + ["emu"], "day": [1, 2, 3] * 3})
    return setsup.from_arrays({"number": np.arange(9, dtype=np.float32)}, factors=table, name="animals")
