"""The beginning of a rendered folder: what it is to hold, whether it was begun so, and its files in their full size."""

from dataclasses import replace
from pathlib import Path

from setsup.errors import DataError
from setsup.files import disk_errors, written
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.folder import read_table
from setsup.rendered.layout import ABOUT, PROGRESS, TABLE, Layout, read_layout

__all__ = ["settled_layout"]


def settled_layout(folder: Path, dataset: RenderedDataset, names: tuple[str, ...] | None) -> Layout:
    """What a folder holds or will hold; its files are made where there are none; under its lock.

    Without names, as a cache: a folder may then hold fewer modalities, and a new one holds all.
    """
    found = _found(folder)
    # "auto" goes on with what began
    name = found.renderer if found is not None and dataset.renderer == "auto" else dataset.renderer_name
    layout = Layout.of(dataset, name, dataset.modalities if names is None else names)
    if found is None:
        _begin(folder, layout)
    else:
        layout = _same(folder, layout, found, names is None)
    unfinished = (folder / PROGRESS).exists()
    if unfinished and not layout.left_out:
        _make_files(folder, layout, dataset)
    elif not unfinished:
        for array, about in layout.arrays.items():
            about.check(folder / f"{array}.npy")
    return layout


def _found(folder: Path) -> Layout | None:
    """What a folder holds; None where it is empty, or was not begun far enough to tell."""
    if (folder / ABOUT).exists():
        return read_layout(folder)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        others = sorted(path.name for path in folder.iterdir() if path.name != PROGRESS and ".tmp" not in path.name)
    if others:
        raise DataError(
            f"{folder} holds other files ({', '.join(others[:3])}{', …' if len(others) > 3 else ''}); "
            "choose a new folder for what is rendered"
        )
    return None


def _begin(folder: Path, layout: Layout) -> None:
    # the progress first: a folder without one counts as finished
    with written(folder / PROGRESS) as part:
        part.write_bytes(bytes(layout.rows))
    with written(folder / ABOUT) as part:
        part.write_text(layout.to_json(), "utf-8")


def _same(folder: Path, layout: Layout, found: Layout, cache: bool) -> Layout:
    """What the folder holds, if that is what is to be drawn."""
    there_are = found
    if found.asked is not None and not cache and (layout.rows, layout.factors) != (found.rows, found.factors):
        rows, factors = found.asked  # with those that were left out
        there_are = replace(found, rows=rows, factors=factors)
    for name, what in _COMPARED.items():
        wanted, there = getattr(layout, name), getattr(there_are, name)
        if wanted != there:
            said = f" ({there} there, {wanted} here)" if name not in ("key", "factors") else ""
            raise DataError(
                f"{folder} was begun with {what}{said}; give it that, choose another folder, or remove this one"
            )
    ours, theirs = dict(layout.modalities), dict(found.modalities)
    if theirs != ours and not (cache and theirs.items() <= ours.items()):
        raise DataError(
            f"{folder} was begun with the modalities {', '.join(theirs)}, not {', '.join(ours)}; "
            "give it those, choose another folder, or remove this one"
        )
    return found


_COMPARED = {
    "recipe": "another recipe",
    "size": "another size of pictures",
    "key": "other options of the recipe (its seed, its lengths …), or other meshes, such as a mended one",
    "rows": "another number of rows",
    "factors": "other rows (another seed, another choice)",
    "renderer": "another renderer",
    "setsup": "another version of setsup, which may draw otherwise",
    "pair_factors": "other factors of pairs",
}


def _make_files(folder: Path, layout: Layout, dataset: RenderedDataset) -> None:
    """Make the table and the arrays, unless they are there; where rows are, all must be."""
    from pyarrow import parquet

    progress = folder / PROGRESS
    with disk_errors(progress):
        state = progress.read_bytes()
    if len(state) != layout.rows:
        raise DataError(f"{progress} is damaged: it has {len(state):,} bytes for {layout.rows:,} rows; remove {folder}")
    drawn = any(state)
    if drawn or (folder / TABLE).exists():
        read_table(folder, layout)
    else:
        with written(folder / TABLE) as part:
            parquet.write_table(dataset.factors.to_arrow(), part)
    for name, array in layout.arrays.items():
        path = folder / f"{name}.npy"
        if drawn or path.exists():
            array.check(path)
            continue
        with written(path) as part, part.open("wb") as file:
            file.write(array.header)
            file.truncate(array.size)
