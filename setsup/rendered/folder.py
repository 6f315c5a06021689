"""Rendered data sets on disk: folders that ``setsup render`` wrote, mapped into memory."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Dataset, fetch_request, gather, of_row
from setsup.errors import DamagedFile, DataError, SetsupError
from setsup.factors.table import FactorTable
from setsup.files import need_readable
from setsup.files.expand_user import expanded
from setsup.files.mapped import check_mapped
from setsup.rendered.layout import ABOUT, FIX, NAMES, PROGRESS, TABLE, Layout, one_row, read_layout
from setsup.scenes import Camera

__all__ = ["RenderedFolder", "drawn_rows", "is_rendered", "open_rendered", "read_table"]

Array = npt.NDArray[Any]

_LARGEST = 1 << 28  # bytes of names.json


class RenderedFolder(Dataset):
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
        What drew.
    pair_factors : tuple of str
        Factors in which two views of one scene agree.
    left_out : int
        Rows that were to be drawn and could not be, which ``failed.json`` in the folder lists.

    """

    def __init__(self, folder: Path, layout: Layout, factors: FactorTable) -> None:
        self.name = f"rendered {layout.recipe}"
        self.folder, self.factors = folder, factors
        self.modalities = dict(layout.modalities)
        self.renderer_name, self.pair_factors = layout.renderer, layout.pair_factors
        self.left_out = layout.left_out
        self._layout = layout
        self._maps: dict[str, Array] = {}
        self._names: dict[int, dict[int, str]] | None = None

    def fetch(self, indices: npt.ArrayLike, modalities: Iterable[str] | None = None) -> dict[str, Array]:
        """Arrays of the given rows; see :meth:`setsup.datasets.Dataset.fetch`."""
        rows, names = fetch_request(self, indices, modalities)
        return {name: gather(self._array(name), rows) for name in names}

    def fetch_into(self, indices: npt.ArrayLike, out: Mapping[str, Array]) -> None:
        """Copy rows into arrays; see :meth:`setsup.datasets.Dataset.fetch_into`."""
        rows, names = fetch_request(self, indices, tuple(out))
        for name in names:
            gather(self._array(name), rows, out[name])

    @of_row
    def camera(self, row: int) -> Camera:
        """Camera of a row, as it was when the row was drawn.

        Raises
        ------
        DataError
            When what the files hold is no camera.

        """
        index = one_row(row, len(self))
        numbers = {name: self._array(f"camera_{name}")[index] for name in ("k", "rotation", "translation")}
        try:
            return Camera(*self._layout.size, **numbers)
        except SetsupError as error:
            raise DamagedFile(f"{self.folder}, row {index}: {error}", FIX) from error

    @of_row
    def names(self, row: int) -> dict[int, str]:
        """What each number in the ``instances`` of a row is.

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

    def _array(self, name: str) -> Array:
        if name not in self._maps:
            about, path = self._layout.arrays[name], self.folder / f"{name}.npy"
            about.check(path)
            self._maps[name] = about.map(path)
        check_mapped(self._maps[name])
        return self._maps[name]

    def __repr__(self) -> str:
        """Show the folder and the number of rows."""
        return f"RenderedFolder({str(self.folder)!r}, {len(self):,} rows)"

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
        state = "is no folder" if folder.exists() else "is not there"
        raise DataError(f"{folder} {state}; give one of `setsup render`")
    layout = read_layout(folder)
    if (folder / PROGRESS).exists():
        raise DataError(f"{folder} is not finished: give the same `setsup render` command again, and it goes on")
    for name, array in layout.arrays.items():
        array.check(folder / f"{name}.npy")
    return RenderedFolder(folder, layout, read_table(folder, layout))


def is_rendered(folder: Path | str) -> bool:
    """Whether a path is a folder that :func:`open_rendered` opens, or would if it were whole."""
    return (expanded(folder) / ABOUT).is_file()


def drawn_rows(folder: Path | str) -> tuple[int, int]:
    """How many rows of a folder are there, and how many there will be; (0, 0) where nothing was begun.

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
        state = np.fromfile(folder / PROGRESS, np.uint8)
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
    need_readable(path, "the factor table of a rendered data set")
    try:
        table = FactorTable.from_parquet(path)
        whole = len(table) == layout.rows and table.has_fingerprint(layout.factors)
    except SetsupError:
        raise
    except Exception as error:  # Arrow's readers of damaged files raise whatever they come across
        raise DamagedFile(f"{path} is damaged: {' '.join(str(error).split())[:200]}", FIX) from None
    if not whole:
        raise DamagedFile(f"{path} is not the table of which {folder / ABOUT} tells", FIX)
    return table


def _read_names(path: Path) -> dict[int, dict[int, str]]:
    need_readable(path, "what instances are called")
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError("it is too large")
        content = json.loads(path.read_bytes())
        return {int(key, 16): {int(number): str(name) for number, name in one.items()} for key, one in content.items()}
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedFile(f"{path} is damaged: {error}", FIX) from None
