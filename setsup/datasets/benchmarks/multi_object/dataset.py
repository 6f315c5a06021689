"""Images of Multi-Object Datasets, from the release's gzipped TFRecord files."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.prepared_images import PreparedImages, prepare_command
from setsup.datasets.benchmarks.multi_object.forms import Form
from setsup.datasets.benchmarks.multi_object.records import nest, read_images, read_objects
from setsup.datasets.cached_arrays import cached_table
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.per_process import per_process
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.files import cache_folder, find_root
from setsup.files.disk import need_readable
from setsup.files.prepare import Fill

__all__ = ["MultiObjectImages", "find_file", "prepare_images"]

_SMALL = 1 << 25  # bytes of a file that is read at once, without preparation
_BLOCK = 1 << 22  # pixels that are converted at once
_EDITION = 2


class MultiObjectImages(PreparedImages):
    """Images of several objects, whose factors are nested per image.

    Factors are ``objects``, the number of visible objects, and the number of objects of each level (``shape_1``, …).
    Modalities: ``image``, (height, width, 3) uint8 sRGB, or (height, width, 1) grayscale in the version ``binarized``
    of Multi-dSprites; ``instances``, (height, width) int8, the number of each pixel's object, −1 for the background;
    in Objects Room ``labels``, (height, width) uint8, the part of the background or 4 for an object; and, for the
    visible objects of the image in the order of the release, padded to the largest number: int8 codes of the levels of
    :attr:`objects`, −1 as padding, and float32 numbers as published, NaN as padding.

    Parameters
    ----------
    file : Path or str
        The TFRecord file.
    form : Form
        The features of its examples.
    name : str
        Name of the benchmark.
    root : Path or str, optional
        Root passed by the user, for the command in messages.
    version : str, optional
        Version passed by the user, for the same.

    Raises
    ------
    DataError
        The file is damaged, of another version, or too large to be read without ``setsup prepare``.

    """

    def __init__(
        self, file: Path | str, form: Form, name: str, root: Path | str | None = None, version: str = ""
    ) -> None:
        file = Path(file).absolute()
        self.name, self._form = name, form
        command = prepare_command(name, root, version) if _large(file) else None
        self._nested = nest(_objects(file, form, name, command))
        counts = [count for level in form.levels for count in self._nested.level_counts([level], f"{level}_")]
        self.factors = table_of([self._nested.count_factor(), *counts])
        most, color = self._nested.most, "srgb" if form.channels == 3 else "grey"
        self.modalities = {
            "image": Modality((*form.size, form.channels), "uint8", color=color),
            "instances": Modality(form.size, "int8"),
            **({"labels": Modality(form.size, "uint8")} if form.backgrounds > 1 else {}),
            **{level: Modality((most,), "int8") for level in form.levels},
        }
        for modality, columns in form.modalities.items():
            last = () if isinstance(columns, str) else (len(columns),)
            self.modalities[modality] = Modality((most, *last), "float32", unit="pixel" if modality == "pixel" else "")
        super().__init__(file, root, (len(self.factors), *form.size, form.channels + 1), version)

    @property
    def objects(self) -> FactorTable:
        """The table of all objects, image after image."""
        return self._nested.table

    def _open_container(self) -> "_Records":
        return _Records(self.file, self._form, self._prepared.shape)

    def _read_all(self, rows: Rows, out: Mapping[str, Any]) -> dict[str, Array]:
        found: dict[str, Array] = {}
        pixels: Array | None = None
        for name, array in out.items():
            if name in self._form.levels:
                found[name] = self._nested.nested(name, rows)
            elif name in self._form.modalities:
                found[name] = self._numbers(self._form.modalities[name], rows)
            else:
                pixels = self._pixels(rows) if pixels is None else pixels
                array[...] = self._of_pixels(name, pixels)
                found[name] = array
        return found

    def _of_pixels(self, name: str, pixels: Array) -> Array:
        if name == "image":
            return pixels[..., :-1]
        if name == "labels":
            return np.minimum(pixels[..., -1], self._form.backgrounds)
        return np.maximum(pixels[..., -1].astype(np.int8) - self._form.backgrounds, -1)

    def _numbers(self, columns: str | tuple[str, ...], rows: Rows) -> Array:
        if isinstance(columns, str):
            return self._nested.nested(columns, rows)
        return np.stack([self._nested.nested(each, rows) for each in columns], axis=-1)

    def _pixels(self, rows: Rows) -> Array:
        if _large(self.file) or self._prepared.find() is not None:
            return self._take(rows, None)
        return gather(self._whole, rows)

    @per_process
    def _whole(self) -> Array:
        """Images and masks of a small file."""
        return np.stack(list(read_images(self.file, self._form)))


def find_file(name: str, root: Path | str | None, form: Form) -> Path:
    """Find the file of a form in the root of a benchmark, or in the folder that the bucket has."""
    names = (form.file, f"{form.folder}/{form.file}")
    folder = find_root(name, root, [names])
    return next(folder / each for each in names if os.path.exists(folder / each))


def prepare_images(name: str, root: Path | str | None, form: Form) -> list[Path]:
    """Read a file once: factors into the cache folder, images and masks into an array next to the file."""
    file = find_file(name, root, form)
    _objects(file, form, name, None)
    return MultiObjectImages(file, form, name, root).prepare()


def _large(file: Path) -> bool:
    need_readable(file, "records")
    return file.stat().st_size > _SMALL


def _objects(file: Path, form: Form, name: str, command: str | None) -> FactorTable:
    """Table of all objects, out of the cache; made where no `command` has to be run first."""
    state = file.stat()
    key = repr((_EDITION, form.file, str(file.resolve()), state.st_size, state.st_mtime_ns))
    digest = sha256(os.fsencode(key)).hexdigest()[:32]

    def make() -> FactorTable:
        if command is not None:
            raise DataError(f"{file} can only be read sequentially; run {command} once to convert it")
        return read_objects(file, form)

    return cached_table(cache_folder() / "indexes" / name / f"{digest}.arrow", make)


class _Records:
    """Images and masks in a file of records."""

    check = None
    packed = True
    mapped = False

    def __init__(self, file: Path, form: Form, shape: tuple[int, ...]) -> None:
        self._file, self._form, self.shape = file, form, shape
        self.block_rows = max(1, _BLOCK // (form.size[0] * form.size[1]))

    def take(self, rows: Rows, out: Any = None) -> Array:
        """Read rows out of the whole file."""
        return gather(np.stack(list(read_images(self._file, self._form))), rows, out)

    @contextmanager
    def rows(self) -> Iterator[Fill]:
        """Read blocks in their order."""
        images, position = read_images(self._file, self._form), 0

        def fill(start: int, stop: int, out: Array) -> None:
            nonlocal position
            wanted = islice(images, start - position, stop - position)
            for slot, image in zip(range(stop - start), wanted, strict=False):
                out[slot] = image
                position = start + slot + 1
            if position != stop:
                raise DataError(f"{self._file} was replaced while it was being read; run the command again")

        yield fill
