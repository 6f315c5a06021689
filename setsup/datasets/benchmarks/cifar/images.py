"""Images of 32 × 32 pixels in the files of CIFAR, mapped into memory, with one label or two.

Convention
----------
The Python version is a pickle a file, as Python 2 wrote it: a dictionary with ``data``, (n, 3072) uint8, and lists of
labels. The binary version has no header: for each image its labels, uint8, and the 3,072 values. Either way an image
is its red, green and blue channels, each stored row by row. Pickles are read without unpickling.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.inconsistent import count_mismatch, replaced
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality
from setsup.datasets.formats.pickled import PickledArray, read_pickle
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files import load_manifest
from setsup.files.archives.members import MemberIndex
from setsup.files.disk import need_regular, read_errors
from setsup.files.lfs import refuse_pointer
from setsup.files.mapped import MappedFile, check_mapped

__all__ = ["CifarImages", "file_names"]

_SIDE = 32
_PLANES = (3, _SIDE, _SIDE)
_BYTES = 3 * _SIDE**2
_BINARY = ".bin"
_TITLE = re.compile(r"(training|testing) batch (\d) of \d")


class _Batch(NamedTuple):
    """A file: its size, where its images are, and the labels by the keys of a pickle.

    `strides` in bytes, from one image to the next and from one number of an image to the next; `labels` (images,) int64
    each.
    """

    path: Path
    size: int
    start: int
    strides: tuple[int, int]
    labels: list[Places]


class CifarImages(BaseDataset):
    """Images of 32 × 32 pixels: those of the train files, followed by those of the test file.

    The factors are those of the labels, and ``split``. The only modality is ``image``, (32, 32, 3) uint8 sRGB, mapped
    from the files.

    Parameters
    ----------
    name : str
        Name of the dataset.
    members : MemberIndex
        The unpacked files.
    parts : mapping of str to sequence of str
        Files of ``train`` and ``test``, without ``.bin``.
    labels : mapping of str to str
        Names of factors of the manifest by the keys of their labels in a pickle, in the order of the binary files.

    Raises
    ------
    DataError
        When a file is missing or damaged, or does not have the published content.

    """

    def __init__(
        self, name: str, members: MemberIndex, parts: Mapping[str, Sequence[str]], labels: Mapping[str, str]
    ) -> None:
        self.name = name
        first = next(iter(parts.values()))[0]
        end = "" if first in members else _BINARY
        paths = {part: [_path(members, stem + end) for stem in stems] for part, stems in parts.items()}
        self.folder = self._source = next(iter(paths.values()))[0].parent
        read = _read_binary if end else _read_python
        batches = {part: [read(path, list(labels)) for path in files] for part, files in paths.items()}
        self._batches = [batch for files in batches.values() for batch in files]
        counts = [len(batch.labels[0]) for batch in self._batches]
        self._starts: Rows = np.cumsum([0, *counts])
        factors = _factors(name, list(labels.values()))
        for batch in self._batches:
            _check_labels(batch, factors)
        found = [np.concatenate(each) for each in zip(*(batch.labels for batch in self._batches), strict=True)]
        number = np.repeat(np.arange(len(parts)), [len(files) for files in batches.values()])
        split = Factor("split", Kind.NOMINAL, tuple(parts), role="split")
        self.factors = table_of([*zip(factors, found, strict=True), (split, np.repeat(number, counts))])
        self.modalities = {"image": Modality((_SIDE, _SIDE, 3), "uint8", color="srgb")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        maps, numbers = self._maps, np.searchsorted(self._starts, rows, side="right") - 1
        for number in np.unique(numbers).tolist():
            check_mapped(maps[number])
            here = np.flatnonzero(numbers == number)
            planes = maps[number][rows[here] - self._starts[number]].reshape(-1, *_PLANES)
            for channel in range(3):  # one by one, which is faster where the innermost axis is short
                out[here, ..., channel] = planes[:, channel]
        return out

    @per_process
    def _maps(self) -> list[Array]:
        return [_map(batch) for batch in self._batches]


def file_names(parts: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Expressions for the files of either version, for :class:`PackedRelease`."""
    return {rf"{stem}(?:\.bin)?$": stem for stems in parts.values() for stem in stems}


def _factors(name: str, wanted: Sequence[str]) -> list[Factor]:
    """Factors of labels by the manifest, whose levels are in the order of the codes."""
    listed = {factor.name: factor for factor in load_manifest(name).factors}
    levels = {each: factor.levels for each, factor in listed.items() if isinstance(factor.levels, tuple)}
    return [Factor(each, Kind.NOMINAL, levels[each], within=listed[each].within) for each in wanted]


def _path(members: MemberIndex, name: str) -> Path:
    path = members.path(members.place(name))
    if path is None:  # an archive, which the release refuses
        raise DamagedFile(f"{name} is in an archive", "unpack it")
    refuse_pointer(path)
    need_regular(path)
    return path


def _open(path: Path) -> MappedFile:
    with read_errors(path):
        if not path.stat().st_size:
            raise DamagedFile(f"{path} is empty; expected images and labels")
        return MappedFile.open(path)


def _read_binary(path: Path, keys: Sequence[str]) -> _Batch:
    content, stride = _open(path), len(keys) + _BYTES
    size = len(content)
    if size % stride:
        raise DamagedFile(
            f"{path} has {size:,} bytes; expected a positive multiple of {stride:,}, the size of a record"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, stride)
    labels = [records[:, number].astype(np.int64) for number in range(len(keys))]
    return _Batch(path, size, len(keys), (stride, 1), labels)


def _read_python(path: Path, keys: Sequence[str]) -> _Batch:
    content = _open(path)
    found = read_pickle(content, path, fortran=True)
    data = found.get("data") if isinstance(found, dict) else None
    if not isinstance(data, PickledArray) or data.dtype != np.uint8 or data.shape[1:] != (_BYTES,) or not data.shape[0]:
        raise DamagedFile(f"{path} has no array 'data' of dtype uint8 and shape (n, {_BYTES})")
    _check_batch(found.get("batch_label"), path)
    labels = [_listed(found.get(key), key, data.shape[0], path) for key in keys]
    strides = (_BYTES, 1) if data.order == "C" else (1, data.shape[0])
    return _Batch(path, len(content), data.start, strides, labels)


def _check_batch(told: Any, path: Path) -> None:
    """Refuse a file that its own title, such as "training batch 3 of 5", says to be another one."""
    title = _TITLE.fullmatch(told) if isinstance(told, str) else None
    number = path.name.rpartition("data_batch_")[2]
    if title and (path.name.startswith("test") != (title[1] == "testing") or (number.isdigit() and number != title[2])):
        raise DamagedFile(f"{path} contains the {told}, which belongs into another file")


def _listed(values: Any, key: str, count: int, path: Path) -> Places:
    """Labels of a list of a pickle."""
    if not isinstance(values, list) or not all(type(value) is int and 0 <= value < 1 << 31 for value in values):
        raise DamagedFile(f"{path} has no list {key!r} of labels")
    if len(values) != count:
        raise count_mismatch(f"{path}: 'data'", count, repr(key), len(values))
    return np.array(values, np.int64)


def _check_labels(batch: _Batch, factors: Sequence[Factor]) -> None:
    for factor, labels in zip(factors, batch.labels, strict=True):
        last = len(factor.levels or ()) - 1
        wrong = (labels < 0) | (labels > last)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DamagedFile(f"{batch.path}: the {factor.name} of image {row} is {labels[row]}; expected 0 to {last}")


def _map(batch: _Batch) -> Array:
    """Images of a file, (n, 3072)."""
    with read_errors(batch.path):
        if batch.path.stat().st_size != batch.size:
            raise replaced(batch.path)
        content = MappedFile.open(batch.path)
    return np.ndarray((len(batch.labels[0]), _BYTES), np.uint8, content, batch.start, batch.strides)
