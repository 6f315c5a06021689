"""Factor tables to measure on: the Shapes3D grid, and random rows of the same factors."""

import numpy as np
import numpy.typing as npt

from setsup import Factor, FactorTable, Kind

__all__ = ["NAMES", "SIZES", "factors", "grid", "random_columns", "random_table"]

NAMES = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
SIZES = (10, 10, 10, 8, 4, 15)


def factors(sizes: tuple[int, ...] = SIZES, names: tuple[str, ...] = NAMES) -> list[Factor]:
    return [Factor(name, Kind.ORDINAL, tuple(range(size))) for name, size in zip(names, sizes, strict=False)]


def grid() -> FactorTable:
    """480,000 rows, implicit."""
    return FactorTable(factors())


def random_columns(rows: int, seed: int = 0) -> dict[str, npt.NDArray[np.uint8]]:
    """Codes drawn uniformly: every one of the 480,000 cells has about as many rows."""
    random = np.random.default_rng(seed)
    return {name: random.integers(0, size, rows, dtype=np.uint8) for name, size in zip(NAMES, SIZES, strict=True)}


def random_table(rows: int) -> FactorTable:
    return FactorTable(factors(), random_columns(rows))
