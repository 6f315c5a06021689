"""How much of what one view shows another shows as well: the directed overlap of views, as pairs are chosen by.

Overlap is not symmetric: a close-up overlaps with the whole, while the whole hardly overlaps with the close-up.
Training of matchers and of multi-view models draws pairs in a band of overlap, sometimes also of angle and scale.

References
----------
.. [1] M. Dusmanu et al., "D2-Net: A Trainable CNN for Joint Description and Detection of Local Features", CVPR 2019
   (arXiv 1905.03561): pairs by overlap and by the ratio of scales.

"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Rows
from setsup.checks import check_arguments, check_integer, check_number
from setsup.correspondence.overlap_scenes import STREAM, Found, Plan, measure_scenes, stacked
from setsup.correspondence.overlap_views import LEAST, Source, SourceName, choose_source
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, SetsupError
from setsup.factors.column_storage import check_rows
from setsup.jobs.running import check_processes
from setsup.samplers.partners.overlap_table import OverlapTable

__all__ = ["overlap"]


def overlap(
    dataset: Dataset,
    *,
    scene: str | Sequence[str] | None = None,
    rows: npt.ArrayLike | None = None,
    pixels: int = 192,
    candidates: int = 128,
    source: SourceName | None = None,
    tolerance: float = 0.01,
    absolute: float = 0.0,
    seed: int = 0,
    processes: int = 1,
) -> OverlapTable:
    """Measure the overlap of ordered pairs of views of each scene.

    Sample pixels of view a are drawn without repeats, all subsets equally likely, from its pixels with a surface. Each
    is visible, occluded or outside in view b, or its depth there is unknown. The overlap of a with b is visible /
    (visible + occluded + outside).

    Parameters
    ----------
    dataset : Dataset
        One with scenes, such as a :class:`setsup.rendered.dataset.RenderedDataset`; or one with depth and cameras: a
        folder written by ``setsup render``, or modalities ``depth`` (h, w), ``pose`` (4, 4) from the camera to the
        world and ``intrinsics`` (3, 3), as ``scenenn-frames`` and ``co3d`` have them.
    scene : str or list of str, optional
        Factors in which the views of a scene agree; ``dataset.pair_factors`` by default.
    rows : (n,) int or bool, optional
        Rows to compare, all by default; row numbers in the table are those of the dataset.
    pixels : int
        Sample pixels per view, from 16; views with fewer pixels with a surface use all of them.
    candidates : int
        Number of views that each view is compared with, in scenes of more than 200 views: of those whose frustum meets
        its own, half the nearest by pose, half a keyed subset of the others. In smaller scenes all pairs are measured.
    source : str, optional
        ``"scenes"``: visibility is decided by rays, as :func:`setsup.correspondence.spatial` does; ``"depth"``: by
        comparing depths, as :func:`setsup.correspondence.from_depth` does. By default scenes, if there are any.
    tolerance, absolute : float
        Of :func:`setsup.correspondence.from_depth`, relative and in metres, for depth.
    seed : int
        0 ≤ seed < 2⁶⁴.
    processes : int
        Number of processes; the table does not depend on it.

    Returns
    -------
    OverlapTable
        ``overlap`` is NaN where it is unknown: depth is unknown at more than half of the sample pixels, or fewer than
        16 are decided. ``angle`` (degrees) and ``scale`` are medians over visible pixels.

    Raises
    ------
    SetsupError
        When the dataset has neither scenes nor depth, nothing says what a scene is, no scene has two views, the views
        of a scene show different scenes, a pose is not one, depth has another size than its camera, or a number is out
        of range.

    Notes
    -----
    Of n sample pixels, an overlap o has a standard deviation of √(o(1 − o)/n): at most 0.036 for 192.

    Frustums are clipped: at the bounds of scenes, or at the nearest and farthest known depth. A second view some of
    whose depth is unknown is not clipped, for it may show what it did not measure. An excluded pair would have an
    overlap of 0, and :meth:`OverlapTable.is_excluded` tells it from a pair that was not tried.

    Examples
    --------
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(32, 32)))
    >>> table = overlap(shapes, rows=range(15))  # one scene, from 15 directions
    >>> table
    OverlapTable('rendered shapes3d', 15 views of 1 scenes, 210 pairs measured)
    >>> table.sampled.min().item(), bool(table.overlap[table.find(0, 1)] > table.overlap[table.find(0, 14)])
    (192, True)

    """
    check_arguments(overlap, locals(), DataError)
    for name, value, least in (("pixels", pixels, LEAST), ("candidates", candidates, 1)):
        check_integer(value, name, SetsupError, least)
    for name, number in (("tolerance", tolerance), ("absolute", absolute)):
        check_number(number, name, SetsupError, 0)
    check_processes(processes)
    agree = _scene_factors(dataset, scene)
    scenes = _scenes(dataset, agree, rows)
    chosen = choose_source(dataset, source)
    plan = Plan(Source(dataset, chosen, float(tolerance), float(absolute)), int(pixels), int(candidates), int(seed))
    random.stream_key(seed, STREAM)  # whether the seed is in range
    found = measure_scenes(plan, scenes, processes)
    settings: dict[str, Any] = {"pixels": plan.pixels, "candidates": plan.candidates, "seed": plan.seed}
    if chosen == "depth":
        settings |= {"tolerance": plan.source.tolerance, "absolute": plan.source.absolute}
    about = {
        "dataset": str(dataset.name),
        "fingerprint": dataset.factors.fingerprint,
        "rows": len(dataset.factors),
        "source": chosen,
        "settings": {**settings, "scene": agree},
    }
    return _table(scenes, found, about)


def _scene_factors(dataset: Dataset, scene: str | Sequence[str] | None) -> list[str]:
    names = getattr(dataset, "pair_factors", ()) if scene is None else scene
    agree = [names] if isinstance(names, str) else list(names)
    if not agree:
        raise SetsupError(
            f"scene= is required for {dataset.name}; pass the factors in which the views of a scene agree, such as the "
            "number of the scene"
        )
    return agree


def _scenes(dataset: Dataset, agree: list[str], rows: npt.ArrayLike | None) -> list[Rows]:
    """Rows of each scene that has at least two views."""
    groups = dataset.factors.group_by(agree)
    if rows is None:
        members = [groups.members(group) for group in np.flatnonzero(groups.sizes > 1).tolist()]
    else:
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else check_rows(chosen, len(dataset.factors))
        chosen = np.unique(chosen.reshape(-1))
        of_row = groups.find(dataset.factors, chosen)[0]
        order = np.argsort(of_row, kind="stable")
        cuts = np.flatnonzero(np.diff(of_row[order])) + 1
        members = [chosen[some] for some in np.split(order, cuts) if len(some) > 1 and of_row[some[0]] >= 0]
    if not members:
        raise SetsupError(
            f"none of the scenes of {dataset.name} has two views that agree in {', '.join(agree)}; compare more rows, "
            "or choose fewer factors with scene="
        )
    return members


def _table(scenes: list[Rows], found: list[Found], about: dict[str, Any]) -> OverlapTable:
    pairs = np.concatenate([one.pairs for one in found])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    measures = stacked([one.measures for one in found])
    sizes = np.array([len(rows) for rows in scenes])
    possible, excluded = sizes * (sizes - 1), np.array([one.excluded for one in found])
    measured = np.array([len(one.pairs) for one in found])
    return OverlapTable(
        first=pairs[order, 0],
        second=pairs[order, 1],
        overlap=measures.overlap[order],
        angle=measures.angle[order],
        scale=measures.scale[order],
        unknown=measures.unknown[order],
        decided=measures.decided[order],
        views=np.concatenate(scenes),
        sampled=np.concatenate([one.sampled for one in found]),
        starts=np.cumsum([0, *sizes]),
        counts=np.stack([possible, excluded, measured, possible - excluded - measured], axis=1),
        excluded=np.concatenate([one.bits for one in found]),
        excluded_starts=np.cumsum([0, *(len(one.bits) for one in found)]),
        about=about,
    )
