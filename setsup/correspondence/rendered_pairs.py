"""Rendered pairs of views: two rows a pair, each with the partner of every pixel in the other."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments
from setsup.correspondence.pair_sampler import PixelPairSampler
from setsup.correspondence.spatial import spatial
from setsup.datasets.dataset import Dataset, Modality
from setsup.errors import DataError
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable
from setsup.rendered.dataset import RenderedDataset
from setsup.scenes import Camera, Frame, Recipe, Renderer, Scene

__all__ = ["OWN", "PAIR", "VIEW", "RenderedPairs", "pair_table"]

PAIR, VIEW = "view_pair", "view"
OWN = ("partners", "status")


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
                f"{self.name}: rows 2n and 2n + 1 must be views 0 and 1 of the same pair; create the factors with "
                "pair_table"
            )
        for name in recipe.scene_factors:
            codes = factors.codes(name).reshape(-1, 2)
            if (codes[:, 0] != codes[:, 1]).any():
                raise DataError(
                    f"{self.name}: the two views of a pair differ in {name!r}, so they show different scenes; create "
                    "the factors with pair_table"
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
        arrays = super().outputs(row, scene, camera, frame, [name for name in names if name not in OWN])
        if len(arrays) < len(names):
            pairs = spatial(scene, camera, self.camera(row ^ 1))
            height, width = self.recipe.size
            maps: dict[str, npt.NDArray[Any]] = {
                "partners": pairs.points2.astype(np.float32).reshape(height, width, 2),
                "status": pairs.status.reshape(height, width),
            }
            arrays |= {name: maps[name] for name in names if name in maps}
        return arrays

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
            raise DataError(
                f"the views already have a factor {factor.name!r}, a name reserved for pairs; rename the factor"
            )
    return FactorTable([*views.factors, *added], {**columns, PAIR: numbers // 2, VIEW: numbers % 2})


class _Views(Dataset):
    """What a PixelPairSampler reads of views that are not drawn."""

    def __init__(self, name: str, factors: FactorTable, pair_factors: tuple[str, ...]) -> None:
        self.name, self.factors, self.modalities, self.pair_factors = name, factors, {}, pair_factors

    def fetch(self, indices: npt.ArrayLike, modalities: Any = None) -> dict[str, npt.NDArray[Any]]:
        return {}
