"""What a folder of rendered rows holds, and how that is written down.

Convention
----------
``rendered.json`` says what was drawn, and what each file holds, by which convention
(:mod:`setsup.rendered.description`); ``factors.parquet`` is the factor table; ``<modality>.npy`` has a row of the
modality for each row of the table, and ``camera_k.npy``, ``camera_rotation.npy`` and ``camera_translation.npy`` the
cameras in float64 (see :class:`setsup.scenes.Camera`). ``names.json`` has, by a key of 16 hexadecimal digits, what the
instances of a scene are called, and ``names.npy`` each row's key. All arrays are plain ``.npy`` files, whose header is
padded to a page, so that anybody can map them. While some rows are missing, ``rendered.progress`` has a bit for each
modality that is there: a byte a row, or four (little-endian) in a folder with a modality beyond the eighth of
:data:`setsup.rendered.modalities.KEPT`. ``failed.json`` lists rows that could not be rendered, and why; a finished
folder has one where these were left out, and says in ``rendered.json`` which rows were asked for.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from setsup.datasets.dataset import Modality
from setsup.errors import DamagedFile, DataError, RowError, SetsupError
from setsup.factors.column_storage import check_rows
from setsup.factors.table import FactorTable
from setsup.files import need_readable
from setsup.files.manifests.strict_yaml import Fields
from setsup.files.manifests.validators import any_text, digest, matching, text, texts, whole, words
from setsup.files.prepared import HEADER, npy_header
from setsup.rendered.description import CONVENTION, describe_files
from setsup.rendered.modalities import BITS, FORMS, KEPT, LABELS, describe, fits
from setsup.scenes import Recipe, Renderer

__all__ = [
    "ABOUT",
    "CAMERA",
    "FAILED",
    "FIX",
    "NAMES",
    "PARTS",
    "PROGRESS",
    "TABLE",
    "Layout",
    "Rendering",
    "RowArray",
    "one_row",
    "read_layout",
    "reading",
]

ABOUT, TABLE, NAMES, PROGRESS, PARTS, FAILED = (
    "rendered.json",
    "factors.parquet",
    "names.json",
    "rendered.progress",
    "names.parts",
    "failed.json",
)
CAMERA: Mapping[str, tuple[int, ...]] = {"k": (3, 3), "rotation": (3, 3), "translation": (3,)}
"""Shapes of a camera's arrays."""

FIX = "remove the folder and render it again, or copy it again"
"""What to do where a file is damaged: a folder that looks finished is not rendered again."""

_FORMAT = 1
_LARGEST = 1 << 20  # bytes of rendered.json


class Rendering(Protocol):
    """What the files of a rendered dataset need to know of it: a :class:`~setsup.rendered.dataset.RenderedDataset`."""

    recipe: Recipe
    factors: FactorTable
    modalities: dict[str, Modality]
    available: dict[str, Modality]
    renderer: str | Renderer
    classes: dict[str, tuple[str, ...]]

    @property
    def renderer_name(self) -> str:
        """Name of the renderer, never ``"auto"``."""
        ...

    @property
    def kept_factors(self) -> tuple[str, ...]:
        """Factors that two rows of a folder share which show one scene at one time."""
        ...

    @property
    def moving(self) -> tuple[str, ...]:
        """Factors with which things move in a scene."""
        ...

    def bound(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Rows that are left out when the given rows are."""
        ...

    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class RowArray:
    """A ``.npy`` file with an array for each row."""

    rows: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize

    @property
    def header(self) -> bytes:
        """What the file begins with."""
        return npy_header((self.rows, *self.shape), self.dtype)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return HEADER + self.rows * self.row_bytes

    def check(self, path: Path) -> None:
        """Refuse a file that is another; its header is compared, never parsed."""
        need_readable(path, f"an array of a rendered dataset; {FIX}")
        try:
            with path.open("rb") as file:
                size, header = os.fstat(file.fileno()).st_size, file.read(HEADER)
        except OSError as error:
            raise DamagedFile.unreadable(path, error) from error
        if header != self.header:
            raise DamagedFile(
                f"{path} is not the array of shape {(self.rows, *self.shape)} and dtype {self.dtype} that {ABOUT} "
                "in the same folder describes",
                FIX,
            )
        if size != self.size:
            raise DamagedFile(
                f"{path} is {'truncated' if size < self.size else 'too long'}: it has {size:,} bytes, not "
                f"{self.size:,}",
                FIX,
            )

    def map(self, path: Path) -> npt.NDArray[Any]:
        """Map the rows into memory, read-only and unchecked."""
        return np.asarray(np.memmap(path, np.dtype(self.dtype), "r", HEADER, (self.rows, *self.shape)))


@dataclass(frozen=True)
class Layout:
    """What a folder holds: equal layouts, equal bytes.

    `size` (height, width); `asked` (rows, fingerprint) or None; `classes` of the labels, where it has some; `moving`
    factors, with which things move in a scene.
    """

    recipe: str
    key: str
    renderer: str
    size: tuple[int, int]
    rows: int
    factors: str
    pair_factors: tuple[str, ...]
    modalities: Mapping[str, Modality]
    setsup: str
    asked: tuple[int, str] | None = None
    classes: tuple[str, ...] = ()
    moving: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Rendering, renderer: str, modalities: Iterable[str]) -> "Layout":
        """Layout of the folder of a dataset."""
        names = set(modalities)
        return cls(
            recipe=dataset.recipe.name,
            key=hashlib.sha256(dataset.recipe.key.encode()).hexdigest(),
            renderer=renderer,
            size=(int(dataset.recipe.size[0]), int(dataset.recipe.size[1])),
            rows=len(dataset),
            factors=dataset.factors.fingerprint,
            pair_factors=dataset.kept_factors,
            modalities={name: dataset.available[name] for name in KEPT if name in names},
            setsup=version("setsup"),
            classes=dataset.classes[LABELS] if LABELS in names else (),
            moving=dataset.moving,
        )

    @cached_property
    def arrays(self) -> dict[str, RowArray]:
        """Arrays by the names of their files, without ``.npy``."""
        kept = {
            name: RowArray(self.rows, tuple(side or 0 for side in modality.shape), modality.dtype)
            for name, modality in self.modalities.items()
        }
        cameras = {f"camera_{name}": RowArray(self.rows, shape, "float64") for name, shape in CAMERA.items()}
        return {**kept, **cameras, "names": RowArray(self.rows, (), "uint64")}

    @property
    def size_on_disk(self) -> int:
        """Bytes of all arrays."""
        return sum(array.size for array in self.arrays.values())

    @property
    def left_out(self) -> int:
        """Number of requested rows that could not be rendered."""
        return 0 if self.asked is None else self.asked[0] - self.rows

    @property
    def full(self) -> int:
        """Bits of a row that is whole."""
        return sum(BITS[name] for name in self.modalities)

    @property
    def entry(self) -> np.dtype[Any]:
        """Dtype of a row in the progress file; folders without new modalities have that of earlier versions."""
        return np.dtype("u1" if self.full < 1 << 8 else "<u4")

    def to_json(self) -> str:
        """Text of ``rendered.json``."""
        content = {
            "setsup": self.setsup,
            "format": _FORMAT,
            "recipe": self.recipe,
            "key": self.key,
            "renderer": self.renderer,
            "size": list(self.size),
            "rows": self.rows,
            "factors": self.factors,
            **({} if self.asked is None else {"asked": list(self.asked)}),
            "pair_factors": list(self.pair_factors),
            **({"moving": list(self.moving)} if self.moving else {}),
            "modalities": {name: modality.to_dict() for name, modality in self.modalities.items()},
            **({"classes": list(self.classes)} if self.classes else {}),
            "convention": dict(CONVENTION),
            "files": describe_files(self.arrays),
        }
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def one_row(row: npt.ArrayLike, rows: int) -> int:
    """Check the number of a single row."""
    index = check_rows(row, rows)
    if index.ndim:
        raise RowError(f"row must be a single row number, not an array of shape {index.shape}")
    return int(index)


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Say what is wrong with a file of JSON that cannot be read, or does not hold what is expected there."""
    need_readable(path, what)
    try:
        yield
    except OSError as error:
        raise DamagedFile.unreadable(path, error) from error
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError, SetsupError) as error:
        raise DamagedFile(f"{path} is damaged: {error}", FIX) from None


def read_layout(folder: Path) -> Layout:
    """Read ``rendered.json``."""
    path = folder / ABOUT
    with reading(path, "a folder that `setsup render` wrote"), path.open("rb") as file:
        content = json.loads(file.read(_LARGEST))
    fields = Fields(content, path)
    made, kind = fields.need("setsup", text), fields.need("format", whole)
    if kind != _FORMAT:
        raise DataError(
            f"{path} has format {kind}, written by setsup {made}, but this version reads format {_FORMAT}; use "
            f"setsup {made}, or render again"
        )
    size = fields.need("size", _size)
    modalities = {name: _modality(name, part, size) for name, part in fields.named("modalities").items()}
    layout = Layout(
        recipe=fields.need("recipe", text),
        key=fields.need("key", digest(64)),
        renderer=fields.need("renderer", text),
        size=size,
        rows=fields.need("rows", _rows),
        factors=fields.need("factors", digest(32)),
        pair_factors=fields.need("pair_factors", _names),
        modalities=modalities,
        setsup=made,
        asked=fields.get("asked", _asked),
        classes=fields.get("classes", _classes) or (),
        moving=fields.get("moving", _names) or (),
    )
    for name in ("convention", "files"):  # words for readers; folders of earlier versions have none
        fields.get(name, texts)
    fields.done()
    if layout.asked is not None and layout.left_out < 1:
        raise fields.wrong("asked", f"more than {layout.rows:,}, the number of rows in the folder", layout.asked[0])
    if not modalities or list(modalities) != [name for name in KEPT if name in modalities]:
        raise fields.wrong("modalities", f"some of {', '.join(KEPT)}, in this order", list(modalities))
    if bool(layout.classes) != (LABELS in modalities):
        raise fields.wrong(
            "classes", f"names of classes if the folder has {LABELS}, and none otherwise", list(layout.classes)
        )
    return layout


def _modality(name: str, fields: Fields, size: tuple[int, int]) -> Modality:
    dtype = fields.need("dtype", matching("uint8|float32|int32|float64", "uint8, float32, int32 or float64"))
    shape = fields.need("shape", _shape)
    unit, color = (fields.need(key, any_text) for key in ("unit", "color"))
    fields.done()
    modality = Modality(shape, dtype, unit, color)
    if name in FORMS and not fits(name, modality, size):
        wanted = describe(name, size)
        raise fields.wrong("shape", f"{list(wanted.shape)} of {wanted.dtype} for {name}", list(shape))
    return modality


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("a list of names")
    return words(value)


def _classes(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if not 2 <= len(names) <= 256:
        raise ValueError("a list of 2 to 256 names")
    return names


def _rows(value: Any) -> int:
    if whole(value) < 1:
        raise ValueError("an integer, 1 or more")
    return int(value)


def _asked(value: Any) -> tuple[int, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError("[rows, fingerprint]")
    return _rows(value[0]), digest(32)(value[1])


def _shape(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(0 < whole(side) <= 1 << 15 for side in value):
        raise ValueError("a list of integers, each 1 … 32,768")
    return tuple(value)


def _size(value: Any) -> tuple[int, int]:
    shape = _shape(value)
    if len(shape) != 2:
        raise ValueError("[height, width]")
    return shape[0], shape[1]
