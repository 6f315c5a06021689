"""Rendered pairs of views: two rows a pair, each with the partner of every pixel in the other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments
from setsup.correspondence.pair_sampler import PixelPairSampler
from setsup.correspondence.pixel_pairs import PixelPairs, Status
from setsup.correspondence.planar import inside
from setsup.correspondence.spatial import drawn_pixels, spatial
from setsup.datasets.dataset import Dataset, Modality
from setsup.errors import DataError, SetsupError
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes import Camera, Frame, Recipe, Renderer, Scene

__all__ = ["RenderedPairs", "pair_table", "stored"]

PAIR, VIEW = "view_pair", "view"
_OWN = ("partners", "status")


class RenderedPairs(RenderedDataset):
    """A rendered dataset of pairs of views, with two modalities more.

    ``partners`` (H, W, 2) float32 has for each pixel its place (x, y) in the other view of the pair, NaN where there is
    no surface or it lies behind the other camera. ``status`` (H, W) uint8 is the pixel's
    :class:`setsup.correspondence.Status`, of which 0 is visible. float32 keeps places to 1/30,000 of a pixel in
    images of up to 1,024.
    """

    def __init__(
        self,
        recipe: Recipe,
        factors: FactorTable,
        renderer: str | Renderer = "auto",
        cache: Path | str | None = None,
    ) -> None:
        super().__init__(recipe, factors, renderer, cache)
        if not _paired(factors):
            raise DataError(
                f"{self.name}: rows 2n and 2n + 1 must be views 0 and 1 of a pair of their own; see pair_table"
            )
        for name in recipe.scene_factors:
            codes = factors.codes(name).reshape(-1, 2)
            if (codes[:, 0] != codes[:, 1]).any():
                raise DataError(
                    f"{self.name}: two views of a pair differ in {name!r}, so that they show different scenes"
                )
        size = tuple(recipe.size)
        self.modalities = {
            **self.modalities,
            "partners": Modality((*size, 2), "float32", unit="px"),
            "status": Modality(size, "uint8"),
        }

    @property
    def pair_factors(self) -> tuple[str, ...]:
        """The number of the pair."""
        return (PAIR,)

    def outputs(
        self, row: int, scene: Scene, camera: Camera, frame: Frame, names: Sequence[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Modalities of a row that was drawn; see :meth:`setsup.rendered.dataset.RenderedDataset.outputs`."""
        found = super().outputs(row, scene, camera, frame, [name for name in names if name not in _OWN])
        if len(found) < len(names):
            pairs = spatial(scene, camera, self.camera(row ^ 1))
            height, width = self.recipe.size
            maps: dict[str, npt.NDArray[Any]] = {
                "partners": pairs.points2.astype(np.float32).reshape(height, width, 2),
                "status": pairs.status.reshape(height, width),
            }
            found |= {name: maps[name] for name in names if name in maps}
        return found

    def bound(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Both views of the pairs that some rows are of."""
        return np.union1d(rows, rows ^ 1)


def _paired(table: FactorTable) -> bool:
    """Whether each two rows are views 0 and 1 of a pair of their own."""
    if not {PAIR, VIEW} <= set(table.names) or len(table) % 2:
        return False
    pairs, views = (table.codes(name).reshape(-1, 2) for name in (PAIR, VIEW))
    alone = len(np.unique(pairs)) == len(pairs)
    return alone and bool((pairs[:, 0] == pairs[:, 1]).all() and (views == [0, 1]).all())


def pair_table(
    recipe: Recipe,
    pairs: int,
    *,
    factors: FactorTable | None = None,
    tolerance: Mapping[str, float] | None = None,
    seed: int = 0,
) -> FactorTable:
    """Draw pairs of views that share a scene, as rows of a table."""
    check_arguments(pair_table, locals())
    views = FactorTable(recipe.factors) if factors is None else factors
    agree = tuple(getattr(recipe, "pair_factors", recipe.scene_factors))
    sampler = PixelPairSampler(_Views(recipe.name, views, agree), pairs=pairs, tolerance=tolerance, seed=seed)
    rows = sampler[0].indices.ravel()
    numbers = np.arange(len(rows))
    columns = {factor.name: views.codes(factor.name, rows) for factor in views.factors}
    added = [Factor(PAIR, Kind.ORDINAL, tuple(range(pairs))), Factor(VIEW, Kind.ORDINAL, (0, 1))]
    for factor in added:
        if factor.name in columns:
            raise DataError(f"the views have a factor {factor.name!r} already, which pairs need for themselves")
    return FactorTable([*views.factors, *added], {**columns, PAIR: numbers // 2, VIEW: numbers % 2})


class _Views(Dataset):
    """What a PixelPairSampler reads of views that are not drawn."""

    def __init__(self, name: str, factors: FactorTable, pair_factors: tuple[str, ...]) -> None:
        self.name, self.factors, self.modalities, self.pair_factors = name, factors, {}, pair_factors

    def fetch(self, indices: npt.ArrayLike, modalities: Any = None) -> dict[str, npt.NDArray[Any]]:
        return {}


def stored(
    dataset: Any, row1: int, row2: int, camera1: Camera, camera2: Camera, fraction: float, key: int
) -> PixelPairs:
    """Pairs of rows of a dataset that stores partners: the ``match`` of rendered pairs on disk."""
    if not set(_OWN) <= set(dataset.modalities) or not {PAIR, VIEW} <= set(dataset.factors.names):
        raise SetsupError(
            f"{dataset.name} keeps no {' and '.join(_OWN)} of pairs: render it as RenderedPairs, with both"
        )
    (pair1, pair2), (view1, view2) = (dataset.factors.codes(name, [row1, row2]) for name in (PAIR, VIEW))
    if pair1 != pair2 or view1 == view2:
        raise SetsupError(f"rows {row1} and {row2} of {dataset.name} are not the two views of a pair")
    known = [name for name in ("partners", "status", "depth", "instances") if name in dataset.modalities]
    found = dataset.fetch(row1, known)
    (left1, top1), (left2, top2) = (
        (dataset.camera(row).k[:2, 2] - camera.k[:2, 2]).round().astype(int)
        for row, camera in ((row1, camera1), (row2, camera2))
    )
    at = drawn_pixels(camera1.height, camera1.width, fraction, key)
    x, y = at.astype(int).T + np.array([[left1], [top1]])
    points2 = found["partners"][y, x].astype(np.float64) - [left2, top2]
    status = found["status"][y, x].copy()
    gone = (status <= Status.OCCLUDED) & ~inside(points2, camera2.height, camera2.width)
    status[gone] = Status.OUTSIDE
    instance = found["instances"][y, x] if "instances" in found else np.full(len(at), -1)
    depth = found["depth"][y, x].astype(np.float64) if "depth" in found else np.full(len(at), np.nan)
    xyz = camera1.centre + depth[:, None] * camera1.rays(at)
    xyz[status == Status.NO_SURFACE] = np.nan
    return PixelPairs(at, points2, xyz, instance, status)
