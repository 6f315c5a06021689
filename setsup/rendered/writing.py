"""Render a dataset to disk: an interrupted job resumes and produces identical output."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from copy import copy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Rows
from setsup.datasets.croissant.rai import read_rai
from setsup.datasets.croissant.vocabulary import FILE
from setsup.datasets.dataset import Selection, check_modalities
from setsup.errors import DataError, LibraryError, SetsupError, advice
from setsup.factors.table import FactorTable
from setsup.files import disk_errors, locked, need_space, written
from setsup.files.atomic import flush
from setsup.files.expand_user import expanded
from setsup.jobs import Ray, Unit, check_processes, run
from setsup.jobs.cluster import Cluster
from setsup.rendered.create import UNFINISHED, settle_layout
from setsup.rendered.croissant import write_description
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.failures import Failure, compact, failure_report, leave_out, write_failures
from setsup.rendered.folder import RenderedFolder, is_rendered, open_rendered, read_table, rendered_rows
from setsup.rendered.layout import ABOUT, FAILED, NAMES, PARTS, PROGRESS, Layout
from setsup.rendered.renderer_pool import spread_rows, without_scene
from setsup.rendered.rows import RowFiles
from setsup.scenes import Camera, Frame, Scene

__all__ = ["render"]


_PIXELS = 1 << 20  # of a unit of work
_FEWEST, _MOST = 16, 64  # its rows


def render(
    dataset: RenderedDataset | Selection,
    folder: Path | str,
    modalities: Iterable[str] | None = None,
    *,
    processes: int = 1,
    on: Ray | None = None,
    skip_broken: bool = False,
    on_start: Callable[[Layout, int], object] | None = None,
    rows_seed: int | None = None,
    rai: Path | str | None = None,
) -> RenderedFolder:
    """Render all rows to a folder; existing rows are kept.

    Equal arguments give equal bytes in all files, for any number of processes, machines and interruptions. A kill loses
    what was rendered in the last second. Another process that renders to the same folder waits.

    A row that cannot be rendered, such as of a broken mesh, does not stop the others. At the end the error names such
    rows, ``failed.json`` lists them all, and the folder remains unfinished: the same call renders them alone. The first
    row must be renderable, which tells faults of a row from faults of the machine; with ``skip_broken``, one of 64 rows
    that are spread over the table. Editing a mesh changes the recipe, and needs a new folder.

    Parameters
    ----------
    dataset : RenderedDataset or a selection of one
        The rows to render, and the renderer.
    folder : Path or str
        Output folder; must be new, empty, or an unfinished run of the same call. :mod:`setsup.rendered.layout`
        describes its files.
    modalities : iterable of str, optional
        Modalities to store, any of ``dataset.available``; those of the dataset by default. Cameras and the names of
        instances are always stored.
    processes : int
        Number of processes. Each makes its own renderer, and builds the scenes that it renders.
    on : Ray, optional
        A cluster that renders instead of this machine; ``"auto"`` is then the choice of its first free machine. All
        machines need this version of setsup, and the meshes and the folder under the same paths on a shared file
        system.
    skip_broken : bool
        Finish the folder without the rows that cannot be rendered; ``failed.json`` lists them, and ``left_out`` of the
        result counts them. The others are not rendered again, and have the bytes that a table without those rows
        gives. Pairs of views are left out together.
    on_start : callable of (layout, rows), optional
        Called once before rendering starts, with the layout of the folder and the number of its finished rows.
    rows_seed : int, optional
        Seed with which the rows were drawn, for ``croissant.json``.
    rai : Path or str, optional
        YAML file of what only a person knows, for ``croissant.json``: limits, biases, uses, social impact; see
        :func:`setsup.datasets.croissant.rai.read_rai`. For a finished folder, only ``croissant.json`` is written again.

    Returns
    -------
    RenderedFolder

    Raises
    ------
    DataError
        If the folder has other content, the disk is full (the same call resumes once there is room), rows cannot be
        rendered, or the cluster cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(16, 16)), renderer="embree")
    >>> few = shapes.where("shape == 'cube' and scale == 1.25 and floor_hue == wall_hue == object_hue == 0.5")
    >>> drawn = render(few, Path(tempfile.mkdtemp()) / "cubes", ["image", "depth"])
    >>> len(drawn), list(drawn.modalities), drawn.names(0)[2]
    (15, ['image', 'depth'], 'cube')

    """
    whole = _as_rendered(dataset)
    folder = expanded(folder).absolute()
    names = tuple(whole.modalities) if modalities is None else check_modalities(whole, modalities, whole.available)
    if not names:
        raise DataError(f"at least one modality to render is required; choose from {', '.join(whole.available)}")
    check_processes(processes, on)
    known = read_rai(rai)
    with nullcontext() if on is None else Cluster(on) as cluster:
        seed = getattr(whole.recipe, "seed", None)
        describe = partial(write_description, folder, known=known, seed=seed, rows_seed=rows_seed)
        return _rendered(whole, folder, names, processes, cluster, skip_broken, on_start, describe)


def _rendered(
    dataset: RenderedDataset,
    folder: Path,
    names: tuple[str, ...],
    processes: int,
    cluster: Cluster | None,
    skip_broken: bool,
    on_start: Callable[[Layout, int], object] | None,
    describe: Callable[[Layout, FactorTable], object],
) -> RenderedFolder:
    if not is_rendered(folder):
        dataset = _check_first(dataset, cluster, skip_broken)
        layout = Layout.of(dataset, dataset.renderer_name, names)
        need_space(folder.parent, layout.size_on_disk, f"rendering {layout.recipe}")
    with locked(folder):
        layout = settle_layout(folder, dataset, names)
        unfinished = (folder / PROGRESS).exists()
        if layout.left_out:
            _need_same_choice(folder, dataset, layout, skip_broken, unfinished)
        if on_start is not None:
            on_start(layout, min(rendered_rows(folder)[0], layout.rows))
        if unfinished:
            _fill(folder, dataset, layout, processes, cluster, skip_broken, describe)
        rendered = open_rendered(folder)
        if not unfinished:  # a person may have given more
            describe(layout, rendered.factors)
    return rendered


def _need_same_choice(
    folder: Path, dataset: RenderedDataset, layout: Layout, skip_broken: bool, unfinished: bool
) -> None:
    """Refuse a call without ``skip_broken`` if rows are left out."""
    rows, fingerprint = layout.asked or (0, "")
    all_asked = rows == len(dataset) and dataset.factors.has_fingerprint(fingerprint)
    if not all_asked:  # this dataset has the rows that are there, and no others
        if unfinished:
            raise DataError(UNFINISHED.format(folder))
    elif not skip_broken:
        raise DataError(
            f"{folder} leaves out {layout.left_out:,} rows that could not be rendered (listed in {FAILED}); "
            f"{advice('pass skip_broken=True', 'use --skip-broken')} again, or choose another folder"
        )


def _check_first(dataset: RenderedDataset, cluster: Cluster | None, skip_broken: bool) -> RenderedDataset:
    """Render one row before anything is written, so that a failure leaves no folder; resolves the renderer "auto"."""
    try_one = _try_any if skip_broken else _try_first
    if cluster is None:
        try_one(dataset)
        return dataset
    settled = copy(dataset)
    name = run(try_one, [Unit("the first image", dataset)], on=cluster)[0]
    if isinstance(dataset.renderer, str):
        settled.renderer = name
    return settled


def _try_first(dataset: RenderedDataset) -> str:
    """Render the first row; if the row fails rather than the renderer, say how to leave it out."""

    def failed(row: int, error: SetsupError) -> None:
        hint = without_scene(dataset.factors, dataset.recipe.scene_factors, dataset.values(row))
        raise DataError(f"{dataset.name}, row {row}: {error}{hint}") from error

    try:
        dataset.scene(0)  # a broken mesh is found before a renderer is chosen
    except LibraryError:
        raise
    except DataError as error:
        hint = without_scene(dataset.factors, dataset.recipe.scene_factors, dataset.values(0))
        raise DataError(f"{error}{hint}") from error.__cause__
    dataset.render([0], lambda row, scene, camera, frame: None, failed)
    return dataset.renderer_name


def _try_any(dataset: RenderedDataset) -> str:
    """Render one of some rows, where rows that cannot be rendered are left out."""
    _good_row(dataset, spread_rows(len(dataset)))
    return dataset.renderer_name


def _good_row(dataset: RenderedDataset, rows: Sequence[int]) -> int:
    """First of some rows that can be rendered; raises the error of the first of them if none can be."""
    first: SetsupError | None = None
    for row in rows:
        try:
            dataset.render([row], lambda row, scene, camera, frame: None)
        except LibraryError:
            raise
        except SetsupError as failed:
            first = first or failed
        else:
            return row
    error = first or DataError(f"{dataset.name} has no rows")
    if len(rows) == 1:
        raise error
    raise DataError(f"none of {len(rows)} rows that were tried can be rendered: {error}") from error


# -- the work ----------------------------------------------------------------------------------------------------------


class _Work:
    """Renders units of rows, in any process, and on any machine that shares the folder."""

    def __init__(
        self, dataset: RenderedDataset, folder: Path, layout: Layout, shared: bool, good: Sequence[int]
    ) -> None:
        self._dataset, self._folder, self._layout, self._shared = dataset, folder, layout, shared
        self._good = good  # rows one of which can be rendered
        self._files: RowFiles | None = None

    def __call__(self, rows: Rows) -> list[Failure]:
        if self._files is None:
            self._files = RowFiles(self._folder, self._layout, self._shared)
        files, names = self._files, tuple(self._layout.modalities)
        failures: list[Failure] = []

        def failed(row: int, error: SetsupError) -> None:
            failures.append(Failure(row, str(error)))

        def keep(row: int, scene: Scene, camera: Camera, frame: Frame) -> None:
            try:
                arrays = self._dataset.outputs(row, scene, camera, frame, names)
            except SetsupError as error:
                failed(row, error)
            else:
                files.keep(row, arrays, camera, scene)

        self._dataset.render(rows[~files.done(rows, self._layout.full)].tolist(), keep, failed)
        if failures:  # raises if the machine fails rather than the rows
            self._good = [_good_row(self._dataset, self._good)]
        if self._shared:  # no other machine can flush what this one has written
            files.flush()
        return failures

    def close(self) -> None:
        """Flush the files."""
        if self._files is not None:
            self._files.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out open files."""
        return {**self.__dict__, "_files": None}


def _fill(
    folder: Path,
    dataset: RenderedDataset,
    layout: Layout,
    processes: int,
    cluster: Cluster | None,
    skip_broken: bool,
    describe: Callable[[Layout, FactorTable], object],
) -> None:
    """Render missing rows, and finish the folder."""
    if not layout.left_out:
        with closing(RowFiles(folder, layout)) as files:
            failures = _render_missing(dataset, files, processes, cluster, skip_broken)
            if failures:  # rows of other processes from the last second are not marked yet
                there = np.setdiff1d(np.arange(layout.rows), [failure.row for failure in failures])
                files.mark(there[~files.done(there, layout.full)])
        if failures and not skip_broken:
            raise failure_report(folder, layout, write_failures(folder, dataset, failures))
        if failures:
            layout = leave_out(folder, dataset, layout, failures)
    if layout.left_out:
        compact(folder, dataset, layout)
    _finish(folder, layout, describe)


def _render_missing(
    dataset: RenderedDataset, files: RowFiles, processes: int, cluster: Cluster | None, skip_broken: bool
) -> list[Failure]:
    layout = files.layout
    left = [rows for rows in _units(dataset) if not files.done(rows, layout.full).all()]
    missing = sum(int((~files.done(rows, layout.full)).sum()) for rows in left)
    row_bytes = sum(array.row_bytes for array in layout.arrays.values())
    need_space(files.folder, missing * row_bytes, f"rendering {layout.recipe}")
    # the renderer of the folder: "auto" must not choose another one in each process
    settled = copy(dataset)
    if isinstance(dataset.renderer, str):
        settled.renderer = layout.renderer
    good = spread_rows(len(dataset)) if skip_broken else [0]
    work = _Work(settled, files.folder, layout, cluster is not None, good)
    units = [Unit(f"the {len(rows)} rows from row {rows[0]} on", rows, len(rows)) for rows in left]
    try:
        what = f"rendering {layout.recipe}"
        failed = run(work, units, processes=processes, on=cluster, folder=files.folder, what=what, counted="images")
    finally:
        work.close()
    return [failure for failures in failed for failure in failures]


def _units(dataset: RenderedDataset) -> Iterator[Rows]:
    """Units of rows, those of a scene together; they depend on the table alone."""
    table, size = dataset.factors, dataset.recipe.size
    most = int(np.clip(_PIXELS // (size[0] * size[1]), _FEWEST, _MOST))
    if not dataset.recipe.scene_factors:
        yield from np.split(np.arange(len(table)), range(most, len(table), most))
        return
    codes = [table.codes(name) for name in dataset.recipe.scene_factors]
    order = np.lexsort(codes[::-1]).astype(np.int64)  # stable: rows of a scene stay in their order
    changes = np.zeros(len(order), bool)
    for column in codes:
        changes[1:] |= column[order[1:]] != column[order[:-1]]
    first = 0
    for start, stop in pairwise([0, *np.flatnonzero(changes).tolist(), len(order)]):  # of each scene
        if stop - first > most and start > first:
            yield order[first:start]
            first = start
        while stop - first >= most:
            yield order[first : first + most]
            first += most
    if first < len(order):
        yield order[first:]


def _finish(folder: Path, layout: Layout, describe: Callable[[Layout, FactorTable], object]) -> None:
    """Merge remaining parts, flush all files, describe them, and remove the progress file."""
    with disk_errors(folder / ABOUT):
        for name in layout.arrays:
            flush(folder / f"{name}.npy")
        all_names = {} if not (folder / NAMES).exists() else json.loads((folder / NAMES).read_bytes())
        parts = folder / PARTS
        for part in sorted(parts.glob("[0-9a-f]*.json")):
            all_names[part.stem] = json.loads(part.read_bytes())
        if layout.left_out:
            used = {f"{key:016x}" for key in np.unique(layout.arrays["names"].map(folder / "names.npy")).tolist()}
            all_names = {key: names for key, names in all_names.items() if key in used}
        else:
            (folder / FAILED).unlink(missing_ok=True)
        with written(folder / NAMES) as fresh:
            fresh.write_text(json.dumps(dict(sorted(all_names.items())), indent=1, ensure_ascii=False) + "\n", "utf-8")
        shutil.rmtree(parts, ignore_errors=True)
        for left in folder.glob(".*.tmp*"):  # of a process that was killed while it wrote one
            left.unlink(missing_ok=True)
        (folder / FILE).unlink(missing_ok=True)
        describe(layout, read_table(folder, layout))
        (folder / PROGRESS).unlink()
        flush(folder)


def _as_rendered(dataset: Any) -> RenderedDataset:
    """A dataset of the rows of a selection."""
    if isinstance(dataset, Selection) and isinstance(dataset.source, RenderedDataset):
        whole = dataset.source
        return type(whole)(whole.recipe, dataset.factors, whole.renderer, modalities=tuple(whole.modalities))
    if isinstance(dataset, RenderedDataset):
        return dataset
    raise DataError(
        f"the dataset to render must be a RenderedDataset, or a selection of one, not a {type(dataset).__name__}"
    )
