"""Datasets in containers with slow random access, which ``setsup prepare`` converts once."""

import logging
import shlex
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.copying import gather
from setsup.datasets.per_process import per_process
from setsup.errors import DataError
from setsup.files.prepare import Check, Fill, prepare_array
from setsup.files.prepared import PreparedArray
from setsup.progress import progress

__all__ = ["Container", "PreparedImages", "Take", "convert", "prepare_command"]

Take = Callable[[Rows, Array | None], Array]
"""``take(rows, out)`` reads rows, into `out` or as a new array."""

_log = logging.getLogger("setsup")


class Container(Protocol):
    """An array in an open file: where `packed`, it can only be read sequentially; where `mapped`, rows are copied."""

    shape: tuple[int, ...]
    block_rows: int

    @property
    def check(self) -> Check | None:
        """Function that compares a converted block with the container."""
        ...

    @property
    def packed(self) -> bool:
        """Whether rows can only be read sequentially."""
        ...

    @property
    def mapped(self) -> bool:
        """Whether the array is uncompressed in the file, and is mapped into memory."""
        ...

    def take(self, rows: Rows, out: Any = None) -> Array:
        """Read any rows."""
        ...

    def rows(self) -> AbstractContextManager[Fill]:
        """Open the array to read it block by block; the file is closed at the end."""
        ...


class PreparedImages(BaseDataset):
    """Images of one container, read from the array made by :meth:`prepare` if it exists and is up to date.

    `shape` is that of the array in the container, (rows, ...); `version` is that of :func:`prepare_command`.
    """

    def __init__(self, file: Path, root: Path | str | None, shape: tuple[int, ...], version: str = "") -> None:
        self.file = self._source = file
        self._command = prepare_command(self.name, root, version)
        self._prepared = PreparedArray(file, "images", shape, "uint8")

    @abstractmethod
    def _open_container(self) -> Container:
        """Open the container, whose array has the right dtype and, except for the number of rows, the right shape."""

    def prepare(self) -> list[Path]:
        """Convert the images to an array that is mapped into memory; does nothing if they are mapped already."""
        container = self._same()
        if container.mapped:
            return []
        with container.rows() as fill:
            path = convert(self._prepared, self.name, container.block_rows, self._filling(fill), container.check)
        del self._take  # from now on the array is read
        return [path]

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        return self._take(rows, out)

    def _filling(self, fill: Fill) -> Fill:
        """Add checks to the function that reads the blocks of a conversion."""
        return fill

    @per_process
    def _take(self) -> Take:
        prepared = self._prepared.open()
        if prepared is not None:
            return partial(gather, prepared)
        container = self._same()
        outdated = self._prepared.outdated()
        why = f"{outdated} was created from another version of the file" if outdated else ""
        if container.packed:
            raise DataError(
                f"{self.file} can only be read sequentially{f' ({why})' if why else ''}; run {self._command} once to "
                "convert it"
            )
        if not container.mapped:
            _log.warning(
                "reading images directly from %s is slow (%s); run %s once to convert it",
                *(self.file, why or "many images share a compressed block", self._command),
            )
        return container.take

    def _same(self) -> Container:
        container = self._open_container()
        if container.shape != self._prepared.shape:
            raise replaced(self.file)
        return container


def prepare_command(name: str, root: Path | str | None, version: str = "") -> str:
    """Command that prepares a dataset, or a version that is not the default one, for messages."""
    of_version = f" --option version={version}" if version else ""
    return f"`setsup prepare {name}{of_version}{'' if root is None else f' --root {shlex.quote(str(root))}'}`"


def convert(array: PreparedArray, what: str, block: int, fill: Fill, check: Check | None = None) -> Path:
    """Convert an array in blocks of rows, with a progress bar."""
    with progress(array.shape[0], f"preparing {what}", "rows") as advance:
        return prepare_array(array, block, fill, check, advance)
