"""How much of what one view shows another shows as well: the directed overlap of views, as pairs are chosen by.

Overlap is not symmetric: a close-up overlaps with the whole, while the whole hardly overlaps with the close-up.
Training of matchers and of multi-view models draws pairs in a band of overlap, sometimes also of angle and scale.

References
----------
.. [1] M. Dusmanu et al., "D2-Net: A Trainable CNN for Joint Description and Detection of Local Features", CVPR 2019
   (arXiv 1905.03561): pairs by overlap and by the ratio of scales.

"""

import hashlib
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup import random
from setsup.arrays import Rows
from setsup.checks import check_arguments, check_integer, check_number, check_path
from setsup.correspondence.overlaps.measures import SceneOverlaps, join_measures
from setsup.correspondence.overlaps.scenes import STREAM, Plan, measure_scenes
from setsup.correspondence.overlaps.tracks import measure_tracks
from setsup.correspondence.overlaps.views import Source, SourceName, choose_source, content_digest
from setsup.correspondence.overlaps.work import Work
from setsup.correspondence.recorded_frames import moving_factors
from setsup.datasets.dataset import Dataset
from setsup.errors import DataError, SetsupError, advice
from setsup.factors.column_storage import check_rows
from setsup.files import disk_errors, locked
from setsup.files.atomic import clear
from setsup.files.expand_user import expanded
from setsup.jobs import Ray, check_processes
from setsup.jobs.cluster import Cluster
from setsup.samplers.overlap.table import LEAST, TRACKS, OverlapTable

__all__ = ["overlap"]

_EDITION = 1  # of results of units of work; those of other editions are ignored


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
    on: Ray | None = None,
    path: Path | str | None = None,
) -> OverlapTable:
    """Measure the overlap of ordered pairs of views of each scene.

    Sample pixels of view a are drawn without repeats, all subsets equally likely, from its pixels with a surface. Each
    is visible, occluded or outside in view b, or its depth there is unknown. The overlap of a with b is visible /
    (visible + occluded + outside). In a COLMAP model it is the share of the 3D points observed in a that b observes as
    well.

    Parameters
    ----------
    dataset : Dataset
        One with scenes, such as a :class:`setsup.rendered.dataset.RenderedDataset`; or one with depth and cameras: a
        folder written by ``setsup render``, or modalities ``depth`` (h, w), ``pose`` (4, 4) from the camera to the
        world and ``intrinsics`` (3, 3), as ``scenenn-frames``, ``co3d`` and datasets in the BOP format have them; or a
        capture with a COLMAP model, opened by :func:`setsup.open`, or ``mvimgnet``.
    scene : str or list of str, optional
        Factors in which the views of a scene agree; ``dataset.pair_factors`` by default.
    rows : (n,) int or bool, optional
        Rows to compare, all by default; row numbers in the table are those of the dataset.
    pixels : int
        Sample pixels per view, from 16; views with fewer pixels with a surface use all of them.
    candidates : int
        Number of views that each view chooses, in scenes of more than 200 views: of those whose frustum meets its own,
        half the nearest by pose, half a keyed subset of the others. A pair that either of its views chose is measured
        in both directions. In smaller scenes all pairs are measured.
    source : str, optional
        ``"scenes"``: visibility is decided by rays, as :func:`setsup.correspondence.spatial` does; ``"depth"``: by
        comparing depths, as :func:`setsup.correspondence.from_depth` does; ``"tracks"``: by the points of a COLMAP
        model that both views observe. By default the first of these that the dataset has.
    tolerance, absolute : float
        Of :func:`setsup.correspondence.from_depth`, relative and in metres, for depth.
    seed : int
        0 ≤ seed < 2⁶⁴.
    processes : int
        Number of processes; the table does not depend on it.
    on : Ray, optional
        A cluster that measures instead of this machine; its machines share the folder of ``path``.
    path : Path or str, optional
        File to write, from which the table is mapped. If the call is interrupted, ``<path>.units`` keeps what was
        measured; the same call resumes, and writes the same bytes. A file of the same call is opened as it is.

    Returns
    -------
    OverlapTable
        ``overlap`` is NaN where it is unknown: depth is unknown at more than half of the sample pixels, or fewer than
        16 are decided. ``angle`` (degrees) and ``scale`` are medians over visible pixels.

    Raises
    ------
    SetsupError
        When the dataset has neither scenes nor depth nor tracks, nothing says what a scene is, no scene has two views,
        the views of a scene show different scenes, a pose is not one, depth has another size than its camera, a number
        is out of range, or ``path`` has other content.

    Notes
    -----
    Of n sample pixels, an overlap o has a standard deviation of √(o(1 − o)/n): at most 0.036 for 192.

    Frustums are clipped: at the bounds of scenes, or at the nearest and farthest known depth. A second view some of
    whose depth is unknown is not clipped, for it may show what it did not measure. An excluded pair would have an
    overlap of 0, and :meth:`OverlapTable.is_excluded` tells it from a pair that was not tried.

    Choosing candidates by random words that both views of a pair share makes most choices mutual, and every subset of
    the views to choose from equally likely. Of 2,000 views in a room, a view has 137 pairs with the default of 128.

    Tracks under-count, since keypoints are found and matched in some views of a surface only: compare values of one
    source. A view counts points that are in its image as it is fetched, cropped by ``size=`` or not. Its pixels,
    candidates, seed and tolerances do not matter. Pairs without a common point are measured, and not listed:
    :meth:`OverlapTable.is_disjoint`.

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
    check_processes(processes, on)
    random.stream_key(seed, STREAM)  # whether the seed is in range
    if on is not None and path is None:
        raise SetsupError("on= requires path=, a file in a folder that all machines of the cluster share")
    agree = _scene_factors(dataset, scene)
    for name in moving_factors(dataset):
        if name not in agree:
            raise SetsupError(
                f"things move in the scenes of {dataset.name} with {name!r}, and overlap is measured where nothing "
                f"moves; add {name!r} to {advice('scene=', '--scene')}"
            )
    scenes = _scenes(dataset, agree, rows)
    chosen = choose_source(dataset, source)
    plan = Plan(Source(dataset, chosen, float(tolerance), float(absolute)), int(pixels), int(candidates), int(seed))
    about = _about(plan, agree, int(scenes[0][0]))
    if path is None:
        return _measure(plan, scenes, about, Work(None, {}, processes))
    file = expanded(check_path(path, "the file of overlaps", DataError)).absolute()
    with locked(file):
        return _measure_into(plan, scenes, about, file, processes, on)


def _about(plan: Plan, agree: list[str], first: int) -> dict[str, Any]:
    """What a table says of how it was measured."""
    source = plan.source
    settings: dict[str, Any] = {"scene": agree}
    if source.name != TRACKS:
        settings |= {"pixels": plan.pixels, "candidates": plan.candidates, "seed": plan.seed}
    if source.name == "depth":
        settings |= {"tolerance": source.tolerance, "absolute": source.absolute}
    return {
        "dataset": str(source.dataset.name),
        "fingerprint": source.dataset.factors.fingerprint,
        "content": content_digest(source, first),
        "rows": len(source.dataset.factors),
        "source": source.name,
        "settings": settings,
    }


def _measure(plan: Plan, scenes: list[Rows], about: dict[str, Any], work: Work) -> OverlapTable:
    if plan.source.name == TRACKS:
        return _table(scenes, measure_tracks(plan.source.dataset, scenes, work), about)
    return _table(scenes, measure_scenes(plan, scenes, work), about)


def _measure_into(
    plan: Plan, scenes: list[Rows], about: dict[str, Any], file: Path, processes: int, on: Ray | None
) -> OverlapTable:
    """Measure into a file, or open the one that is there."""
    views = np.concatenate(scenes)
    clear(file)
    folder = file.with_name(f"{file.name}.units")
    if not file.exists():
        digest = hashlib.sha256(views.astype("<i8").tobytes()).hexdigest()
        with disk_errors(folder):
            folder.mkdir(exist_ok=True)
        with nullcontext() if on is None else Cluster(on) as cluster:
            work = Work(folder, {**about, "views": digest, "edition": _EDITION}, processes, cluster)
            _measure(plan, scenes, about, work).save(file)
    found = OverlapTable.open(file)
    if found.about != about or not np.array_equal(found.views, views):
        raise DataError(
            f"{file} has overlaps of {found.about['dataset']} that were measured by another call{_how(found, about)}; "
            "choose another file, or remove it",
            file=file,
        )
    with disk_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _how(found: OverlapTable, about: dict[str, Any]) -> str:
    """What distinguishes the call that measured a table, for a message."""
    if any(found.about.get(name) != about[name] for name in ("dataset", "fingerprint", "rows", "source")):
        return ", of another dataset or from another source"
    here, there = about["settings"], found.about["settings"]
    if names := [name for name in here | there if here.get(name) != there.get(name)]:
        return f", with other settings ({', '.join(names)})"
    if found.about.get("content") != about["content"]:
        return ", of views with equal factors but other content, such as another mesh, size or unit of depth"
    return ", of other rows"


def _scene_factors(dataset: Dataset, scene: str | Sequence[str] | None) -> list[str]:
    names = getattr(dataset, "pair_factors", ()) if scene is None else scene
    agree = [names] if isinstance(names, str) else list(names)
    if not agree:
        given = advice("scene=", "--scene")
        raise SetsupError(
            f"{given} is required for {dataset.name}; pass the factors in which the views of a scene agree, such as "
            f"the number of the scene; its factors are {', '.join(dataset.factors.names)}"
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
            f"or choose fewer factors with {advice('scene=', '--scene')}"
        )
    return members


def _table(scenes: list[Rows], found: list[SceneOverlaps], about: dict[str, Any]) -> OverlapTable:
    pairs = np.concatenate([one.pairs for one in found])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    measures = join_measures([one.measures for one in found])
    sizes = np.array([len(rows) for rows in scenes])
    possible, excluded = sizes * (sizes - 1), np.array([one.excluded for one in found])
    # of tracks all pairs are measured, and those without a common point are not listed
    measured = possible if about["source"] == TRACKS else np.array([len(one.pairs) for one in found])
    return OverlapTable(
        first=pairs[order, 0],
        second=pairs[order, 1],
        overlap=measures.overlap[order],
        angle=measures.angle[order],
        # a model may have a point behind a camera that observes it
        scale=np.where((measures.scale > 0) & np.isfinite(measures.scale), measures.scale, np.nan)[order],
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
