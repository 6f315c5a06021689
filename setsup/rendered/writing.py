"""Draw a rendered data set to disk: killed at any moment and started again, it goes on, to the same bytes."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.selections import Selection
from setsup.errors import DataError, SetsupError, near
from setsup.files import disk_errors, locked, need_space, written
from setsup.files.expand_user import expanded
from setsup.jobs import Ray, Unit, check_processes, run
from setsup.jobs.cluster import Cluster
from setsup.rendered.create import settled_layout
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.failures import Failure, close_ranks, leave_out, tell, write_failures
from setsup.rendered.folder import RenderedFolder, drawn_rows, is_rendered, open_rendered
from setsup.rendered.layout import ABOUT, FAILED, NAMES, PARTS, PROGRESS, Layout
from setsup.rendered.renderer_pool import without_scene
from setsup.rendered.rows import RowFiles

if TYPE_CHECKING:
    from setsup.scenes import Camera, Frame, Scene

__all__ = ["opened_cache", "render"]

Rows = npt.NDArray[np.int64]

_PIXELS = 1 << 20  # of a unit of work
_FEWEST, _MOST = 16, 64  # its rows
_UNFINISHED = "{} is not finished: give the same `setsup render` command again, and it goes on"


def render(
    dataset: RenderedDataset | Selection,
    folder: Path | str,
    modalities: Iterable[str] | None = None,
    *,
    processes: int = 1,
    on: Ray | None = None,
    skip_broken: bool = False,
    begun: Callable[[Layout, int], object] | None = None,
) -> RenderedFolder:
    """Draw all rows to a folder; rows that are there already are not drawn again.

    Equal arguments give equal bytes in all files, for any number of processes or machines, however often the work was
    stopped. What a kill loses is what was drawn in the last second. Another process that renders to the same folder
    waits.

    A row that cannot be drawn, such as of a broken mesh, does not keep the others from being drawn. At the end the
    error names such rows, ``failed.json`` lists them all, and the folder is not finished: the same call draws them
    alone. The first row is not one of them: by that it is told whether the fault is the row's, or anything can be drawn
    at all. A mesh that was mended is another mesh, and so needs a new folder.

    Parameters
    ----------
    dataset : RenderedDataset or a selection of one
        What to draw, and with which renderer.
    folder : Path or str
        New, empty, or one in which this very work was begun; :mod:`setsup.rendered.layout` describes its
        files.
    modalities : iterable of str, optional
        What to keep; everything by default. Cameras and the names of instances are always kept.
    processes : int
        How many draw. Each makes its own renderer, and builds the scenes that it draws.
    on : Ray, optional
        A cluster that draws in place of this machine; ``"auto"`` is then what its first free machine would choose. All
        machines have setsup in this version, and meshes and the folder under the same paths, on a file system that they
        share.
    skip_broken : bool
        Finish the folder without the rows that cannot be drawn; ``failed.json`` lists them, and ``left_out`` of what
        is returned counts them. The others are not drawn again, and have the bytes that a table without those rows
        would give. Of pairs of views both are left out.
    begun : callable of (layout, rows), optional
        Called once nothing stands in the way, before anything else is drawn: with what the folder will hold, and how
        many of its rows are there.

    Returns
    -------
    RenderedFolder

    Raises
    ------
    DataError
        When the folder holds something else, the disk is full (once there is room, the same call goes on), rows cannot
        be drawn, or the cluster cannot be used.

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
    whole = _unselected(dataset)
    folder = expanded(folder).absolute()
    names = _checked(whole, modalities)
    check_processes(processes, on)
    with nullcontext() if on is None else Cluster(on) as cluster:
        return _rendered(whole, folder, names, processes, cluster, skip_broken, begun)


def _rendered(
    dataset: RenderedDataset,
    folder: Path,
    names: tuple[str, ...],
    processes: int,
    cluster: Cluster | None,
    skip_broken: bool,
    begun: Callable[[Layout, int], object] | None,
) -> RenderedFolder:
    if not is_rendered(folder):
        dataset = _tried(dataset, cluster)
        layout = Layout.of(dataset, dataset.renderer_name, names)
        need_space(folder.parent, layout.size_on_disk, f"rendering {layout.recipe}")
    with locked(folder):
        layout = settled_layout(folder, dataset, names)
        unfinished = (folder / PROGRESS).exists()
        if layout.left_out:
            _need_same_choice(folder, dataset, layout, skip_broken, unfinished)
        if begun is not None:
            begun(layout, min(drawn_rows(folder)[0], layout.rows))
        if unfinished:
            _fill(folder, dataset, layout, processes, cluster, skip_broken)
    return open_rendered(folder)


def opened_cache(dataset: RenderedDataset, folder: Path) -> RowFiles:
    """Open a folder as the cache of a data set; it is begun where there is none."""
    folder = folder.absolute()
    with locked(folder):
        layout = settled_layout(folder, dataset, None)
        if layout.left_out and (folder / PROGRESS).exists():
            raise DataError(_UNFINISHED.format(folder))
        return RowFiles(folder, layout)


def _need_same_choice(
    folder: Path, dataset: RenderedDataset, layout: Layout, skip_broken: bool, unfinished: bool
) -> None:
    """Refuse work that did not ask for rows to be left out, where some are."""
    rows, fingerprint = layout.asked or (0, "")
    all_asked = rows == len(dataset) and dataset.factors.has_fingerprint(fingerprint)
    if not all_asked:  # this dataset has the rows that are there, and no others
        if unfinished:
            raise DataError(_UNFINISHED.format(folder))
    elif not skip_broken:
        raise DataError(
            f"{folder} leaves out {layout.left_out:,} rows that could not be drawn, which {FAILED} in it lists: give "
            "--skip-broken (skip_broken=True) again, or choose another folder"
        )


def _tried(dataset: RenderedDataset, cluster: Cluster | None) -> RenderedDataset:
    """Draw one row before anything is written, where the others will be: what cannot work leaves no folder behind.

    Which renderer "auto" is, is thereby settled.
    """
    if cluster is None:
        _try_first(dataset)
        return dataset
    settled = copy(dataset)
    name = run(_try_first, [Unit("the first picture", dataset)], on=cluster)[0]
    if isinstance(dataset.renderer, str):
        settled.renderer = name
    return settled


def _try_first(dataset: RenderedDataset) -> str:
    """Draw a row; where that is what fails, and not its renderer, say how to go on without."""

    def failed(row: int, error: SetsupError) -> None:
        advice = without_scene(dataset.factors, dataset.recipe.scene_factors, dataset.values(row))
        raise DataError(f"{dataset.name}, row {row}: {error}{advice}") from error

    dataset.draw([0], lambda row, scene, camera, frame: None, failed)
    return dataset.renderer_name


def _try(dataset: RenderedDataset) -> str:
    dataset.draw([0], lambda row, scene, camera, frame: None)
    return dataset.renderer_name


# -- the work ----------------------------------------------------------------------------------------------------------


class _Draw:
    """Draws units of rows, in whichever process, and on whichever machine where the folder is shared."""

    def __init__(self, dataset: RenderedDataset, folder: Path, layout: Layout, shared: bool) -> None:
        self._dataset, self._folder, self._layout, self._shared = dataset, folder, layout, shared
        self._files: RowFiles | None = None

    def __call__(self, rows: Rows) -> list[Failure]:
        if self._files is None:
            self._files = RowFiles(self._folder, self._layout, self._shared)
        files, names = self._files, tuple(self._layout.modalities)
        failures: list[Failure] = []

        def failed(row: int, error: SetsupError) -> None:
            failures.append(Failure(row, str(error)))

        def keep(row: int, scene: "Scene", camera: "Camera", frame: "Frame") -> None:
            try:
                arrays = self._dataset.outputs(row, scene, camera, frame, names)
            except SetsupError as error:
                failed(row, error)
            else:
                files.keep(row, arrays, camera, scene)

        self._dataset.draw(rows[~files.done(rows, self._layout.full)].tolist(), keep, failed)
        if failures:  # of the rows, or is it this machine that cannot draw any more?
            _try(self._dataset)
        if self._shared:  # nobody else can have the disk keep what this machine has written
            files.flush()
        return failures

    def close(self) -> None:
        """Have the disk keep what was drawn."""
        if self._files is not None:
            self._files.close()

    def __getstate__(self) -> dict[str, Any]:
        """Each process opens the files itself."""
        return {**self.__dict__, "_files": None}


def _fill(
    folder: Path,
    dataset: RenderedDataset,
    layout: Layout,
    processes: int,
    cluster: Cluster | None,
    skip_broken: bool,
) -> None:
    """Draw what is missing, and finish the folder."""
    if not layout.left_out:
        with closing(RowFiles(folder, layout)) as files:
            failures = _draw(dataset, files, processes, cluster)
            if failures:  # what other processes drew within the last second has not been marked
                there = np.setdiff1d(np.arange(layout.rows), [failure.row for failure in failures])
                files.mark(there[~files.done(there, layout.full)])
        if failures and not skip_broken:
            raise tell(folder, layout, write_failures(folder, dataset, failures))
        if failures:
            layout = leave_out(folder, dataset, layout, failures)
    if layout.left_out:
        close_ranks(folder, dataset, layout)
    _finish(folder, layout)


def _draw(dataset: RenderedDataset, files: RowFiles, processes: int, cluster: Cluster | None) -> list[Failure]:
    layout = files.layout
    left = [rows for rows in _units(dataset) if not files.done(rows, layout.full).all()]
    missing = sum(int((~files.done(rows, layout.full)).sum()) for rows in left)
    row_bytes = sum(array.row_bytes for array in layout.arrays.values())
    need_space(files.folder, missing * row_bytes, f"rendering {layout.recipe}")
    # what is drawn with was settled when the folder was begun: "auto" must not settle it anew in each process
    settled = copy(dataset)
    if isinstance(dataset.renderer, str):
        settled.renderer = layout.renderer
    work = _Draw(settled, files.folder, layout, shared=cluster is not None)
    units = [Unit(f"the {len(rows)} rows from row {rows[0]} on", rows, len(rows)) for rows in left]
    try:
        what = f"rendering {layout.recipe}"
        found = run(work, units, processes=processes, on=cluster, folder=files.folder, what=what, counted="pictures")
    finally:
        work.close()
    return [failure for failures in found for failure in failures]


def _units(dataset: RenderedDataset) -> Iterator[Rows]:
    """Rows in pieces, those of a scene together, which depend on the table alone."""
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
    for start, stop in _scenes(np.flatnonzero(changes), len(order)):
        if stop - first > most and start > first:
            yield order[first:start]
            first = start
        while stop - first >= most:
            yield order[first : first + most]
            first += most
    if first < len(order):
        yield order[first:]


def _scenes(starts: npt.NDArray[np.intp], rows: int) -> Iterator[tuple[int, int]]:
    """Where each scene begins and ends."""
    ends = [*starts.tolist(), rows]
    return zip([0, *ends[:-1]], ends, strict=True)


def _finish(folder: Path, layout: Layout) -> None:
    """Put together what parts are left, see that the disk has all, and take away what tells that rows are missing."""
    with disk_errors(folder / ABOUT):
        for name in layout.arrays:
            _flush(folder / f"{name}.npy")
        found = {} if not (folder / NAMES).exists() else json.loads((folder / NAMES).read_bytes())
        parts = folder / PARTS
        for part in sorted(parts.glob("[0-9a-f]*.json")):
            found[part.stem] = json.loads(part.read_bytes())
        if layout.left_out:
            used = {f"{key:016x}" for key in np.unique(layout.arrays["names"].map(folder / "names.npy")).tolist()}
            found = {key: names for key, names in found.items() if key in used}
        else:
            (folder / FAILED).unlink(missing_ok=True)
        with written(folder / NAMES) as fresh:
            fresh.write_text(json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n", "utf-8")
        shutil.rmtree(parts, ignore_errors=True)
        for left in folder.glob(".*.tmp*"):  # of a process that was killed while it wrote one
            left.unlink(missing_ok=True)
        (folder / PROGRESS).unlink()
        _flush(folder)


def _flush(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError:
        if not path.is_dir():  # some network disks cannot flush a folder
            raise
    finally:
        os.close(file)


def _unselected(dataset: Any) -> RenderedDataset:
    """A data set of its own in place of a selection of one."""
    if isinstance(dataset, Selection) and isinstance(dataset.source, RenderedDataset):
        return type(dataset.source)(dataset.source.recipe, dataset.factors, dataset.source.renderer)
    if isinstance(dataset, RenderedDataset):
        return dataset
    raise DataError(f"only a RenderedDataset, or a selection of one, can be rendered, not a {type(dataset).__name__}")


def _checked(dataset: RenderedDataset, modalities: Iterable[str] | None) -> tuple[str, ...]:
    if modalities is None:
        return tuple(dataset.modalities)
    if isinstance(modalities, str):
        raise DataError(f"modalities must be a list of names, such as [{modalities!r}], not the text {modalities!r}")
    names = tuple(modalities)
    for name in names:
        if name not in dataset.modalities:
            raise DataError(f"{dataset.name} has no modality {name!r}{near(name, dataset.modalities)}")
    if not names:
        raise DataError(f"name at least one modality to render: {', '.join(dataset.modalities)}")
    return names
