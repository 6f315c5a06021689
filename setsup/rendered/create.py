"""Create the folder of a rendered dataset: its layout, checked against an earlier start, and its empty files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from setsup.datasets.modality import Modality
from setsup.errors import DataError
from setsup.files import disk_errors, locked, written
from setsup.rendered.folder import read_table
from setsup.rendered.layout import ABOUT, PROGRESS, TABLE, Layout, Rendering, read_layout
from setsup.rendered.rows import RowFiles

__all__ = ["UNFINISHED", "open_cache", "refuse_other_files", "settle_layout"]

UNFINISHED = "{} is not finished: run the same `setsup render` command again to resume"


def open_cache(dataset: Rendering, folder: Path) -> RowFiles:
    """Open a folder as the cache of a dataset; create it if there is none."""
    folder = folder.absolute()
    with locked(folder):
        layout = settle_layout(folder, dataset, None)
        if layout.left_out and (folder / PROGRESS).exists():
            raise DataError(UNFINISHED.format(folder))
        return RowFiles(folder, layout)


def settle_layout(folder: Path, dataset: Rendering, names: tuple[str, ...] | None) -> Layout:
    """Layout of a folder, whose lock is held; create missing files.

    Without names, the folder is a cache: it may hold fewer modalities, and a new one holds all.
    """
    present = _present_layout(folder)
    # "auto" resumes with the renderer of the start
    name = present.renderer if present is not None and dataset.renderer == "auto" else dataset.renderer_name
    layout = Layout.of(dataset, name, dataset.modalities if names is None else names)
    if present is None:
        _begin(folder, layout)
    else:
        layout = _check_same(folder, layout, present, dataset.available, names is None)
    unfinished = (folder / PROGRESS).exists()
    if unfinished and not layout.left_out:
        _make_files(folder, layout, dataset)
    elif not unfinished:
        for array, about in layout.arrays.items():
            about.check(folder / f"{array}.npy")
    return layout


def _present_layout(folder: Path) -> Layout | None:
    """Layout of a folder; None if it is empty or has no layout yet."""
    if (folder / ABOUT).exists():
        return read_layout(folder)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    refuse_other_files(folder)
    return None


def refuse_other_files(folder: Path) -> None:
    """Refuse a folder that is neither a rendering nor empty nor missing."""
    if not folder.exists():
        return
    with disk_errors(folder):
        others = sorted(path.name for path in folder.iterdir() if path.name != PROGRESS and ".tmp" not in path.name)
    # looked for after the other files, which another process creates after it
    if others and not (folder / ABOUT).exists():
        raise DataError(
            f"{folder} contains other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''}); choose a new "
            "folder to render to"
        )


def _begin(folder: Path, layout: Layout) -> None:
    # the progress first: a folder without one counts as finished
    with written(folder / PROGRESS) as part:
        part.write_bytes(bytes(layout.rows * layout.entry.itemsize))
    with written(folder / ABOUT) as part:
        part.write_text(layout.to_json(), "utf-8")


def _check_same(
    folder: Path, layout: Layout, present: Layout, available: Mapping[str, Modality], cache: bool
) -> Layout:
    """Return the layout of the folder, after a check that it equals the requested one.

    A cache may hold any of the available modalities.
    """
    compared = present
    if present.asked is not None and not cache and (layout.rows, layout.factors) != (present.rows, present.factors):
        rows, factors = present.asked  # including those left out
        compared = replace(present, rows=rows, factors=factors)
    for name, what in _COMPARED.items():
        wanted, there = getattr(layout, name), getattr(compared, name)
        if wanted != there:
            said = f" (existing: {there}, requested: {wanted})" if name not in ("key", "factors") else ""
            raise DataError(
                f"{folder} was started with {what}{said}; use the same settings, choose another folder, or remove "
                "this one"
            )
    ours, theirs = dict(layout.modalities), dict(present.modalities)
    if theirs != ours and not (cache and theirs.items() <= available.items()):
        raise DataError(
            f"{folder} was started with the modalities {', '.join(theirs)}, not {', '.join(ours)}; use the same "
            "modalities, choose another folder, or remove this one"
        )
    return present


_COMPARED = {
    "recipe": "a different recipe",
    "size": "a different image size",
    "key": "different options of the recipe (seed, lengths …), or different meshes (editing a mesh changes the recipe)",
    "rows": "a different number of rows",
    "factors": "different rows (another seed or selection)",
    "renderer": "a different renderer",
    "setsup": "a different version of setsup, which may render differently",
    "pair_factors": "different pair factors",
}


def _make_files(folder: Path, layout: Layout, dataset: Rendering) -> None:
    """Create the table and the arrays, unless they exist; once a row is rendered, all must exist."""
    from pyarrow import parquet

    progress = folder / PROGRESS
    with disk_errors(progress):
        state = progress.read_bytes()
    if len(state) != layout.rows * layout.entry.itemsize:
        raise DataError(f"{progress} is damaged: it has {len(state):,} bytes for {layout.rows:,} rows; remove {folder}")
    started = any(state)
    if started or (folder / TABLE).exists():
        read_table(folder, layout)
    else:
        with written(folder / TABLE) as part:
            parquet.write_table(dataset.factors.to_arrow(), part)
    for name, array in layout.arrays.items():
        path = folder / f"{name}.npy"
        if started or path.exists():
            array.check(path)
            continue
        with written(path) as part, part.open("wb") as file:
            file.write(array.header)
            file.truncate(array.size)
