"""Rendered datasets on disk: folders that ``setsup render`` wrote, mapped into memory."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.copying import gather
from setsup.datasets.dataset import of_row
from setsup.errors import DamagedFile, DataError, SetsupError
from setsup.factors.table import FactorTable
from setsup.files import need_readable
from setsup.files.expand_user import expanded
from setsup.files.mapped import check_mapped
from setsup.rendered.layout import (
    ABOUT,
    CAMERA,
    FIX,
    NAMES,
    PROGRESS,
    TABLE,
    Layout,
    one_row,
    read_layout,
    reading,
)
from setsup.rendered.modalities import LABELS
from setsup.scenes import Camera

__all__ = ["RenderedFolder", "is_rendered", "open_rendered", "read_table", "rendered_rows"]

_LARGEST = 1 << 28  # bytes of names.json


class RenderedFolder(BaseDataset):
    """A finished folder of rendered rows; made by :func:`open_rendered`.

    Modalities are those that were rendered, as :class:`setsup.rendered.dataset.RenderedDataset` has them.

    Parameters
    ----------
    folder : Path
        The folder.
    layout : Layout
        What it holds.
    factors : FactorTable
        Its table.

    Attributes
    ----------
    folder : Path
        The folder.
    renderer_name : str
        Name of the renderer.
    recipe_key : str
        Digest of the key of the recipe.
    pair_factors : tuple of str
        Factors in which two views of one scene, at one time, agree.
    moving : tuple of str
        Factors with which things move in a scene, such as ``frame``.
    left_out : int
        Number of rows that could not be rendered, which ``failed.json`` in the folder lists.
    classes : dict of str to tuple of str
        For ``labels``, if the folder has some, the name of each class.

    """

    def __init__(self, folder: Path, layout: Layout, factors: FactorTable) -> None:
        self.name = f"rendered {layout.recipe}"
        self.folder = self._source = folder
        self.factors = factors
        self.modalities = dict(layout.modalities)
        self.renderer_name, self.pair_factors = layout.renderer, layout.pair_factors
        self.recipe_key, self.left_out, self.moving = layout.key, layout.left_out, layout.moving
        self.classes = {LABELS: layout.classes} if layout.classes else {}
        self._layout = layout
        self._maps: dict[str, Array] = {}
        self._names: dict[int, dict[int, str]] | None = None

    @of_row
    def camera(self, row: int) -> Camera:
        """Camera of a row.

        Raises
        ------
        DataError
            When what the files hold is not a camera.

        """
        index = one_row(row, len(self))
        numbers = {name: self._array(f"camera_{name}")[index] for name in CAMERA}
        try:
            return Camera(*self._layout.size, **numbers)
        except SetsupError as error:
            raise DamagedFile(f"{self.folder}, row {index}: {error}", FIX) from error

    @of_row
    def names(self, row: int) -> dict[int, str]:
        """Names of the numbers in the ``instances`` of a row.

        Raises
        ------
        DataError
            When ``names.json`` is damaged.

        """
        key = int(self._array("names")[one_row(row, len(self))])
        if self._names is None:
            self._names = _read_names(self.folder / NAMES)
        if key not in self._names:
            raise DamagedFile(f"{self.folder / NAMES} lacks the entry {key:016x} of row {row}", FIX)
        return dict(self._names[key])

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        return gather(self._array(name), rows, out)

    def _array(self, name: str) -> Array:
        if name not in self._maps:
            about, path = self._layout.arrays[name], self.folder / f"{name}.npy"
            about.check(path)
            self._maps[name] = about.map(path)
        check_mapped(self._maps[name])
        return self._maps[name]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the call that opens it."""
        return open_rendered, (self.folder,)


def open_rendered(folder: Path | str) -> RenderedFolder:
    """Open a folder that ``setsup render`` or :func:`setsup.rendered.writing.render` wrote.

    Parameters
    ----------
    folder : Path or str
        The folder.

    Returns
    -------
    RenderedFolder

    Raises
    ------
    DataError
        When it is none, is not finished, was written by a later version, or a file is missing, cut off or another.

    """
    folder = expanded(folder).absolute()
    if not folder.is_dir():
        state = "is not a folder" if folder.exists() else "does not exist"
        raise DataError(f"{folder} {state}; pass a folder of `setsup render`")
    layout = read_layout(folder)
    if (folder / PROGRESS).exists():
        raise DataError(f"{folder} is not finished: run the same `setsup render` command again to resume")
    for name, array in layout.arrays.items():
        array.check(folder / f"{name}.npy")
    return RenderedFolder(folder, layout, read_table(folder, layout))


def is_rendered(folder: Path | str) -> bool:
    """Whether a path is a folder that :func:`open_rendered` opens, or would if it were whole."""
    return (expanded(folder) / ABOUT).is_file()


def rendered_rows(folder: Path | str) -> tuple[int, int]:
    """Number of finished rows of a folder, and of all its rows; (0, 0) if it is not a rendering.

    Raises
    ------
    DataError
        When ``rendered.json`` is damaged.

    """
    folder = expanded(folder)
    if not is_rendered(folder):
        return 0, 0
    layout = read_layout(folder)
    try:
        state = np.fromfile(folder / PROGRESS, layout.entry)
    except FileNotFoundError:
        return layout.rows, layout.rows
    return int((state & layout.full == layout.full).sum()), layout.rows


def read_table(folder: Path, layout: Layout) -> FactorTable:
    """Read the factor table of a folder, and see that it is the one that was written.

    Raises
    ------
    DataError
        When it is missing, damaged or another.

    """
    path = folder / TABLE
    need_readable(path, f"the factor table of a rendered dataset; {FIX}")
    try:
        table = FactorTable.from_parquet(path)
        whole = len(table) == layout.rows and table.has_fingerprint(layout.factors)
    except SetsupError:
        raise
    except Exception as error:  # Arrow's readers of damaged files raise whatever they come across
        raise DamagedFile(f"{path} is damaged: {' '.join(str(error).split())[:200]}", FIX) from None
    if not whole:
        raise DamagedFile(f"{path} is not the table that {folder / ABOUT} describes", FIX)
    return table


def _read_names(path: Path) -> dict[int, dict[int, str]]:
    with reading(path, f"the names of instances; {FIX}"):
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is too large")
        content = {int(key, 16): names.items() for key, names in json.loads(path.read_bytes()).items()}
        by_key = {key: {int(number): str(name) for number, name in names} for key, names in content.items()}
    return by_key
