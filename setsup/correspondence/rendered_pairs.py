"""Rendered pairs of views: two rows per pair, each with the partner of every pixel in the other."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Rows
from setsup.checks import check_arguments, check_integer
from setsup.correspondence.overlaps.work import Work
from setsup.correspondence.pair_sampler import explain_small
from setsup.correspondence.pairs_in_band import PairsInBand, Search, distance_to_band, find_pairs, work_settings
from setsup.correspondence.spatial import spatial
from setsup.errors import DataError, SetsupError, spell_name
from setsup.factors.factor import Factor, Kind
from setsup.factors.table import FactorTable
from setsup.files import disk_errors, locked
from setsup.files.expand_user import expanded
from setsup.jobs import Ray, check_processes
from setsup.jobs.cluster import Cluster
from setsup.rendered.dataset import RenderedDataset
from setsup.samplers import SetSampler
from setsup.samplers.overlap.bands import Band, Direction, check_bands, describe_bands
from setsup.samplers.overlap.table import LEAST
from setsup.scenes import Camera, Frame, Recipe, Renderer, Scene

__all__ = ["OVERLAP", "OVERLAP_BACK", "OWN", "PAIR", "VIEW", "RenderedPairs", "band_expression", "pair_table"]

PAIR, VIEW, OVERLAP, OVERLAP_BACK = "view_pair", "view", "overlap", "overlap_back"
OWN = ("partners", "status")

_log = logging.getLogger("setsup")


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
        modalities: Iterable[str] | None = None,
    ) -> None:
        super().__init__(recipe, factors, renderer, cache, modalities)
        if not _paired(factors):
            raise DataError(
                f"{self.name}: rows 2n and 2n + 1 must be views 0 and 1 of the same pair; create the factors with "
                "pair_table"
            )
        for name in recipe.scene_factors:
            if name in self.moving:
                continue  # the two views may be of two times
            codes = factors.codes(name).reshape(-1, 2)
            if (codes[:, 0] != codes[:, 1]).any():
                raise DataError(
                    f"{self.name}: the two views of a pair differ in {name!r}, so they show different scenes; create "
                    "the factors with pair_table"
                )

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the two modalities."""
        return OWN

    @property
    def pair_factors(self) -> tuple[str, ...]:
        """The number of the pair."""
        return (PAIR,)

    @property
    def kept_factors(self) -> tuple[str, ...]:
        """The number of the pair: its views may show a scene at two times, which stored partners take into account."""
        return (PAIR,)

    def outputs(
        self, row: int, scene: Scene, camera: Camera, frame: Frame, names: Sequence[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Modalities of a row that was rendered; see :meth:`setsup.rendered.dataset.RenderedDataset.outputs`."""
        arrays = super().outputs(row, scene, camera, frame, [name for name in names if name not in OWN])
        if len(arrays) < len(names):
            other = self.scene(row ^ 1)
            pairs = spatial(scene, camera, self.camera(row ^ 1), scene2=None if other is scene else other)
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
    overlap: tuple[float, float] | None = None,
    direction: Direction = "forward",
    candidates: int = 64,
    pixels: int = 192,
    seed: int = 0,
    processes: int = 1,
    on: Ray | None = None,
    folder: Path | str | None = None,
) -> FactorTable:
    """Draw pairs of views that share a scene, as rows of a table.

    Rows 2n and 2n + 1 are views 0 and 1 of pair n. :class:`PixelPairSampler` draws the pairs: the groups of views that
    agree in ``recipe.pair_factors`` are equally likely, and in a group each ordered pair of different views.

    With ``overlap``, a pair keeps its group. Its candidates are all ordered pairs of different views of the group and,
    where the recipe draws cameras again (``recipe.candidate_factor``, as a room does), each of these with the draws 0 …
    ``candidates`` − 1. The first ``candidates`` of a permutation of them, keyed by seed and pair, are measured one
    after another until the overlap lies in the band: given that one does, the pair is uniform over the candidates in
    the band. Where none does, the pair is the one whose overlap is nearest to the band, and the first of those; a
    warning counts such pairs, and the factor ``overlap`` shows them.

    Parameters
    ----------
    recipe : Recipe
        Whose views are drawn.
    pairs : int
        How many.
    factors : FactorTable, optional
        Views to draw from; the full grid of the recipe's factors by default.
    tolerance : mapping of str to float, optional
        As for :class:`PixelPairSampler`; not together with ``overlap``.
    overlap : (low, high), optional
        Band of the overlap of the two views, whose ends belong to it; from 0 to 1, as
        :func:`setsup.correspondence.overlap` defines it.
    direction : "forward", "both" or "either"
        Whether the overlap of view 0 with view 1 lies in the band, both overlaps do, or either does.
    candidates : int
        Number of candidates of a pair that are measured at most.
    pixels : int
        Sample pixels per view, from 16; views with fewer pixels with a surface use all of them.
    seed : int
        0 ≤ seed < 2⁶⁴.
    processes : int
        Number of processes that measure; the table does not depend on it.
    on : Ray, optional
        A cluster that measures instead of this machine; its machines share ``folder``, which is required.
    folder : Path or str, optional
        Keeps what was measured: the same call resumes. Remove the folder when the table is not needed again.

    Returns
    -------
    FactorTable
        The factors of the views, and ``view_pair`` and ``view``. With ``overlap`` also the continuous factors
        ``overlap``, of view 0 with view 1, and ``overlap_back``, of view 1 with view 0, equal in both rows of a pair,
        unknown where fewer than 16 sample pixels show a surface; and ``recipe.candidate_factor``, if there is one.

    Raises
    ------
    SetsupError
        When the views have one of these factors already, no two of them agree in ``recipe.pair_factors``, or an
        argument is out of its range.

    Notes
    -----
    Of n sample pixels, an overlap o has a standard deviation of √(o(1 − o)/n), at most 0.036 for 192: the overlap of
    all pixels may lie outside of the band by about that. :func:`setsup.correspondence.overlap` with the same seed
    measures exactly the values of the table, for a :class:`RenderedPairs` of it.

    Examples
    --------
    >>> from setsup.scenes.recipes import Shapes3D
    >>> table = pair_table(Shapes3D(size=(32, 32)), 20, overlap=(0.5, 0.7), seed=1)
    >>> len(table), bool((abs(table.codes("overlap") - 0.6) <= 0.1).all())
    (40, True)

    """
    check_arguments(pair_table, locals())
    if overlap is not None and tolerance:
        raise SetsupError("tolerance= and overlap= are mutually exclusive; leave out one of them")
    views = FactorTable(recipe.factors) if factors is None else factors
    agree = tuple(getattr(recipe, "pair_factors", recipe.scene_factors))
    if overlap is not None and (moving := [name for name in recipe.scene_factors if name not in agree]):
        raise SetsupError(
            f"overlap is measured in scenes that stand still, but those of {recipe.name} move with {moving[0]!r}; "
            "leave out overlap="
        )
    with explain_small(recipe.name, agree):  # as a PixelPairSampler draws from a dataset
        sampler = SetSampler(
            views,
            agree,
            size=2,
            sets=pairs,
            choose="groups",
            on_small_group="drop",
            tolerance=tolerance,
            seed=seed,
            stream="PairSampler",
        )
    added = [Factor(PAIR, Kind.ORDINAL, tuple(range(pairs))), Factor(VIEW, Kind.ORDINAL, (0, 1))]
    search = None
    if overlap is not None:
        for name, value, least in (("candidates", candidates, 1), ("pixels", pixels, LEAST)):
            check_integer(value, spell_name(name), SetsupError, least)
        band = check_bands(overlap, None, None)["overlap"]
        search = Search(recipe, views, band, direction, candidates, pixels, seed)
        added += [Factor(OVERLAP, Kind.CONTINUOUS), Factor(OVERLAP_BACK, Kind.CONTINUOUS)]
        if search.factor is not None:
            added.append(Factor(search.factor, Kind.ORDINAL, tuple(range(candidates))))
    for factor in added:
        if factor.name in views:
            raise DataError(
                f"the views already have a factor {factor.name!r}, a name reserved for pairs; rename the factor"
            )
    rows = sampler[0].indices
    columns: dict[str, npt.NDArray[Any]] = {PAIR: np.repeat(np.arange(pairs), 2), VIEW: np.tile([0, 1], pairs)}
    if search is not None:
        found = _find(search, rows[:, 0], agree, processes, on, folder)
        _warn(search, found)
        rows = found.rows
        columns |= dict(zip((OVERLAP, OVERLAP_BACK), np.repeat(found.overlap, 2, axis=0).T, strict=True))
        if search.factor is not None:
            columns[search.factor] = np.repeat(found.candidate, 2)
    of_views = {factor.name: views.codes(factor.name, rows.ravel()) for factor in views.factors}
    return FactorTable([*views.factors, *added], {**of_views, **columns})


def _find(
    search: Search, rows: Rows, agree: Sequence[str], processes: int, on: Ray | None, folder: Path | str | None
) -> PairsInBand:
    """Pairs in a band, of the groups of some rows."""
    groups = search.views.group_by(agree)
    numbers = groups.find(search.views, rows)[0]
    members = {number: groups.members(number) for number in np.unique(numbers).tolist()}
    of_pairs = [members[number] for number in numbers.tolist()]
    check_processes(processes, on)
    if folder is None:
        if on is not None:
            raise SetsupError("on= requires folder=, a folder that all machines of the cluster share")
        return find_pairs(search, of_pairs, Work(None, {}, processes))
    units = expanded(folder).absolute()
    with locked(units):
        with disk_errors(units):
            units.mkdir(parents=True, exist_ok=True)
        with nullcontext() if on is None else Cluster(on) as cluster:
            return find_pairs(search, of_pairs, Work(units, work_settings(search, of_pairs), processes, cluster))


def _warn(search: Search, found: PairsInBand) -> None:
    outside = int((distance_to_band(found.overlap, search.band, search.direction) > 0).sum())
    if outside:
        _log.warning(
            "%s of %s pairs have no candidate with %s among %s, and are the nearest ones; where=%r selects the pairs "
            "that have one",
            f"{outside:,}",
            f"{len(found.rows):,}",
            describe_bands({OVERLAP: search.band}, search.direction),
            search.candidates,
            band_expression(search.band, search.direction),
        )


def band_expression(band: Band, direction: Direction) -> str:
    """An expression for the rows of pairs in a band."""
    parts = [f"{band[0]:g} <= {name} <= {band[1]:g}" for name in (OVERLAP, OVERLAP_BACK)]
    return parts[0] if direction == "forward" else f" {'and' if direction == 'both' else 'or'} ".join(parts)
