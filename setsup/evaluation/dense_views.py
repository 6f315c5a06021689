"""A view with features: at its pixels, or at the cells of a coarser grid."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Reals, Rows
from setsup.checks import check_image_size
from setsup.errors import DataError

__all__ = ["DenseView"]


@dataclass(frozen=True, slots=True, eq=False)
class DenseView:
    """Features of a view, at its pixels or at the cells of a coarser grid, such as the patches of a transformer.

    Cells divide the view evenly. A pixel has the feature of its cell, and a cell is found at its centre.

    Parameters
    ----------
    features : (rows, columns, D) float
        Of the cells, in the order of pixels.
    size : (height, width)
        Of the view, pixels.
    xyz : (height, width, 3) float, metres, optional
        Points of the world that the pixels show; NaN where there is no surface.
    surface : (height, width) bool, optional
        Which pixels show a surface; those with finite points by default, or all without points.

    Raises
    ------
    DataError
        When shapes do not fit, or the grid is finer than the view.

    Examples
    --------
    >>> view = DenseView(np.zeros((2, 3, 8)), (28, 42))
    >>> view.cells([[0, 0], [41, 27]]).tolist(), view.centres([0, 5]).tolist()
    ([0, 5], [[6.5, 6.5], [34.5, 20.5]])

    """

    features: Reals
    size: tuple[int, int]
    xyz: Reals | None = None
    surface: Bools | None = None

    def __post_init__(self) -> None:
        """Check the shapes."""
        features = np.asarray(self.features)
        height, width = check_image_size(self.size, "size", DataError)
        if features.ndim != 3 or not features.size or features.shape[0] > height or features.shape[1] > width:
            raise DataError(
                f"features of a view of {height} × {width} pixels must have the shape (rows, columns, D) with at most "
                f"as many rows and columns, not {features.shape}"
            )
        for name, shape in (("xyz", (height, width, 3)), ("surface", (height, width))):
            given = getattr(self, name)
            if given is not None and np.shape(given) != shape:
                raise DataError(f"{name} must have the shape {shape}, not {np.shape(given)}")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "size", (height, width))

    @property
    def flat(self) -> npt.NDArray[Any]:
        """Features of the cells, row after row, (cells, D)."""
        return self.features.reshape(-1, self.features.shape[2])

    def cells(self, points: npt.ArrayLike) -> Rows:
        """Numbers of the cells of pixels (n, 2), (n,) int64; a point between pixels counts as the nearest one."""
        rows, columns = self.features.shape[:2]
        x, y = np.rint(np.asarray(points, dtype=np.float64).reshape(-1, 2)).astype(np.int64).T
        height, width = self.size
        across = (x.clip(0, width - 1) * 2 + 1) * columns // (2 * width)  # in integers, which do not round
        down = (y.clip(0, height - 1) * 2 + 1) * rows // (2 * height)
        return np.asarray(down * columns + across, dtype=np.int64)

    def centres(self, cells: npt.ArrayLike) -> Reals:
        """Centres (x, y) of cells, pixels, (n, 2) float64."""
        rows, columns = self.features.shape[:2]
        down, across = np.divmod(np.asarray(cells, dtype=np.int64), columns)
        height, width = self.size
        return np.stack([(2 * across + 1) * width / (2 * columns) - 0.5, (2 * down + 1) * height / (2 * rows) - 0.5], 1)

    def grid(self, step: int) -> Rows:
        """Numbers of the cells that the protocol ``ratio`` compares, ascending.

        Every `step`-th pixel of both axes, from ``step // 2`` on; all cells where these are coarser than pixels.
        """
        rows, columns = self.features.shape[:2]
        every = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
        if (rows, columns) != self.size:
            return every.ravel()
        return every[min(step // 2, rows - 1) :: step, min(step // 2, columns - 1) :: step].ravel()

    def has_surface(self, cells: Rows) -> Bools:
        """Whether the pixels at the centres of cells show a surface."""
        if self.surface is None and self.xyz is None:
            return np.ones(len(cells), dtype=np.bool_)
        shown = np.isfinite(self.points(cells)).all(axis=1)
        if self.surface is not None:
            x, y = self._nearest(cells)
            shown = np.asarray(self.surface[y, x], dtype=np.bool_)
        return np.asarray(shown)

    def points(self, cells: Rows) -> Reals:
        """Points of the world at the centres of cells, (n, 3); NaN where they are unknown."""
        if self.xyz is None:
            return np.full((len(cells), 3), np.nan)
        x, y = self._nearest(cells)
        return np.asarray(self.xyz[y, x], dtype=np.float64)

    def _nearest(self, cells: Rows) -> Rows:
        """Columns and rows of the pixels nearest to the centres of cells."""
        return np.asarray(np.rint(self.centres(cells)).astype(np.int64).T)

    def every_pixel(self) -> Rows:
        """The cell of each pixel, row after row, (height · width,) int64."""
        height, width = self.size
        return self.cells(np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).reshape(-1, 2))
