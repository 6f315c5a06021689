"""Multi-dSprites: a million images of two to five sprites, from the release's gzipped TFRecord file."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setsup.arrays import Array, Rows
from setsup.checks import check_choice
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.nested_objects import NestedObjects
from setsup.datasets.adapters.prepared_images import PreparedImages, prepare_command
from setsup.datasets.benchmarks.multi_dsprites.records import COLORS, SIDE, VERSIONS, read_images, read_objects
from setsup.datasets.cached_arrays import cached_table
from setsup.datasets.copying import gather
from setsup.datasets.dataset import Modality
from setsup.datasets.per_process import per_process
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.files import cache_folder, find_root
from setsup.files.disk import need_readable
from setsup.files.prepare import Fill

__all__ = ["MultiDsprites", "open", "prepare"]

_NAME = "multi-dsprites"
_SMALL = 1 << 25  # bytes of a file that is read at once, without preparation
_BLOCK = 1024
_EDITION = 1

Version = Literal["binarized", "colored_on_grayscale", "colored_on_colored"]


class MultiDsprites(PreparedImages):
    """Images of several sprites, whose factors are nested per image.

    Factors are ``objects``, the number of sprites, and the number of sprites of each shape (``shape_1``, …).
    Modalities: ``image``, (64, 64, 3) uint8 sRGB, or (64, 64, 1) grayscale in the version ``binarized``; ``instances``,
    (64, 64) int8, the number of each pixel's sprite, −1 for the background; and, for the sprites of the image in the
    order of the release, padded to the largest number: ``shape``, int8, code of the level of :attr:`objects`, −1 as
    padding, and ``x``, ``y``, ``orientation``, ``scale`` and ``color`` (RGB), float32 as published, NaN as padding.

    Parameters
    ----------
    file : Path or str
        ``multi_dsprites_<version>.tfrecords``.
    version : str
        One of the three versions.
    root : Path or str, optional
        Root passed by the user, for the command in messages.

    Raises
    ------
    DataError
        The file is damaged, of another version, or too large to be read without ``setsup prepare``.

    """

    name = _NAME

    def __init__(self, file: Path | str, version: str, root: Path | str | None = None) -> None:
        file = Path(file).absolute()
        self._version = version
        _, channels = VERSIONS[version]
        table = _objects(file, version, prepare_command(_NAME, root) if _large(file) else None)
        starts = np.flatnonzero(table.codes("object") == 0)
        self._nested = NestedObjects(table, np.diff(np.append(starts, len(table))))
        self.factors = table_of([self._nested.count_factor(), *self._nested.level_counts(["shape"], "shape_")])
        most = self._nested.most
        self.modalities = {
            "image": Modality((SIDE, SIDE, channels), "uint8", color="srgb" if channels == 3 else "grey"),
            "instances": Modality((SIDE, SIDE), "int8"),
            "shape": Modality((most,), "int8"),
            **{name: Modality((most,), "float32") for name in ("x", "y", "orientation", "scale")},
            "color": Modality((most, 3), "float32"),
        }
        super().__init__(file, root, (len(starts), SIDE, SIDE, channels + 1))

    @property
    def objects(self) -> FactorTable:
        """The table of all sprites, image after image."""
        return self._nested.table

    def _open_container(self) -> "_Records":
        return _Records(self.file, self._version, self._prepared.shape)

    def _read_all(self, rows: Rows, out: Mapping[str, Any]) -> dict[str, Array]:
        columns = {name: self._column(name, rows) for name in out if name not in ("image", "instances")}
        if len(columns) < len(out):
            pixels = self._pixels(rows)
            for name in ("image", "instances"):
                if name in out:
                    out[name][...] = pixels[..., :-1] if name == "image" else pixels[..., -1].astype(np.int8) - 1
                    columns[name] = out[name]
        return columns

    def _column(self, name: str, rows: Rows) -> Array:
        if name == "color":
            return np.stack([self._nested.nested(each, rows) for each in COLORS], axis=-1)
        return self._nested.nested(name, rows)

    def _pixels(self, rows: Rows) -> Array:
        if _large(self.file) or self._prepared.find() is not None:
            return self._take(rows, None)
        return gather(self._whole, rows)

    @per_process
    def _whole(self) -> Array:
        """Images and masks of a small file."""
        return np.stack(list(read_images(self.file, self._version)))


def open(root: Path | str | None = None, version: Version = "colored_on_grayscale") -> MultiDsprites:
    """Open one version of Multi-dSprites, as the TFRecord file of its release.

    `version`: ``binarized`` has 2 or 3 white sprites on black, ``colored_on_grayscale`` 2 to 5 colored ones on grey,
    ``colored_on_colored`` 1 to 4 on a color. A file of more than 32 MB, such as the published ones, is first read by
    ``setsup prepare multi-dsprites``, option ``version`` as here.

    References
    ----------
    .. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

    """
    return MultiDsprites(_file(root, version), version, root)


def prepare(root: Path | str | None = None, version: Version = "colored_on_grayscale") -> list[Path]:
    """Read a version once: factors into the cache folder, images and masks into an array next to the file.

    The array has 16 GB for a million images. Works block by block; an interrupted run resumes.
    Parameters and errors are those of :func:`open`.
    """
    file = _file(root, version)
    _objects(file, version, None)
    return MultiDsprites(file, version, root).prepare()


def _file(root: Path | str | None, version: Version) -> Path:
    check_choice(version, list(VERSIONS), "version", DataError)
    name = f"multi_dsprites_{version}.tfrecords"
    names = (name, f"multi_dsprites/{name}")
    folder = find_root(_NAME, root, [names])
    return next(folder / each for each in names if os.path.exists(folder / each))


def _large(file: Path) -> bool:
    need_readable(file, "records")
    return file.stat().st_size > _SMALL


def _objects(file: Path, version: str, command: str | None) -> FactorTable:
    """Table of all objects, out of the cache; made where no `command` has to be run first."""
    state = file.stat()
    key = repr((_EDITION, version, str(file.resolve()), state.st_size, state.st_mtime_ns))
    digest = sha256(os.fsencode(key)).hexdigest()[:32]

    def make() -> FactorTable:
        if command is not None:
            raise DataError(f"{file} can only be read sequentially; run {command} once to convert it")
        return read_objects(file, version)

    return cached_table(cache_folder() / "indexes" / _NAME / f"{digest}.arrow", make)


class _Records:
    """Images and masks in a file of records."""

    block_rows = _BLOCK
    check = None
    packed = True
    mapped = False

    def __init__(self, file: Path, version: str, shape: tuple[int, ...]) -> None:
        self._file, self._version, self.shape = file, version, shape

    def take(self, rows: Rows, out: Any = None) -> Array:
        """Read rows out of the whole file."""
        return gather(np.stack(list(read_images(self._file, self._version))), rows, out)

    @contextmanager
    def rows(self) -> Iterator[Fill]:
        """Read blocks in their order."""
        images, position = read_images(self._file, self._version), 0

        def fill(start: int, stop: int, out: Array) -> None:
            nonlocal position
            wanted = islice(images, start - position, stop - position)
            for slot, image in zip(range(stop - start), wanted, strict=False):
                out[slot] = image
                position = start + slot + 1
            if position != stop:
                raise DataError(f"{self._file} was replaced while it was being read; run the command again")

        yield fill
