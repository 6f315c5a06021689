"""From rows to batches of one size: each row is read once, and its results are written where they belong."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from setsup import random
from setsup.arrays import Array, Reals, Rows, Words
from setsup.checks import check_memory
from setsup.datasets.dataset import Dataset
from setsup.datasets.images import parallel
from setsup.datasets.modality import Modality
from setsup.datasets.originals import OpenImage, Original
from setsup.errors import DataError, SetsupError
from setsup.loading.resizing.kinds import (
    PIXELS,
    homographies,
    move_boxes,
    move_intrinsics,
    move_points,
    resize_map,
    resized_modality,
)
from setsup.loading.resizing.resizes import Place, Resize

__all__ = ["ResizedRows"]

_NO_SLOT = np.array([2**64 - 1], dtype=np.uint64)  # the number of what stands for a whole set, which no position has

Image = OpenImage | Array
Reader = Callable[[int], Image]


@dataclass(frozen=True)
class ResizedRows:
    """Rows of a dataset brought to one size; `kinds` by modality."""

    dataset: Dataset
    resize: Resize
    kinds: Mapping[str, str]

    @cached_property
    def modalities(self) -> dict[str, Modality]:
        """What the modalities of results are, with an axis of copies where there are any."""
        found = {}
        for name, kind in self.kinds.items():
            modality = resized_modality(kind, self.dataset.modalities[name], self.resize.shape)
            if self.resize.copies is not None and kind != "unchanged":
                shape = (self.resize.copies, *modality.shape)
                modality = Modality(shape, modality.dtype, modality.unit, modality.color)
            found[name] = modality
        return found

    @property
    def buffered(self) -> dict[str, Modality]:
        """Modalities whose results are written into arrays that a loader may reuse: those with pixels."""
        return {name: modality for name, modality in self.modalities.items() if self.kinds[name] in PIXELS}

    def check_memory(self, shape: tuple[int, ...]) -> None:
        """SetsupError where the batch of a shape of rows does not fit into memory, before it is allocated."""
        results = math.prod(shape) * (self.resize.copies or 1)
        pixels = sum(
            math.prod(_known_sides(each.shape)) * np.dtype(each.dtype).itemsize for each in self.buffered.values()
        )  # with an axis of copies
        numbers = 8 * (8 + 6 * self.resize.draws)  # a box; random numbers as words and as floats
        sides = " × ".join(map(str, self.resize.shape))
        check_memory(
            results * numbers + math.prod(shape) * pixels,
            f"a batch of {math.prod(shape):,} rows resized to {sides} pixels",
            f"the size or copies of {type(self.resize).__name__}, or the rows of a draw",
            SetsupError,
        )

    def fetch(self, rows: Rows, step: int, out: Mapping[str, Array] | None = None) -> dict[str, Any]:
        """Modalities of rows (sets, size), or of canonical rows (sets,), and ``homographies`` by modality.

        `out`: arrays to write modalities with pixels into, optional.
        """
        shape, flat = rows.shape, rows.reshape(-1)
        if out is None:
            self.check_memory(shape)
        lead = shape if self.resize.copies is None else (*shape, self.resize.copies)
        places = np.empty((len(flat), self.resize.copies or 1, 8))
        pixels = {name: kind for name, kind in self.kinds.items() if kind in PIXELS}
        filled = {name: self._room(name, lead, (out or {}).get(name)) for name in pixels}
        self._fill(flat, self._numbers(step, shape), places, filled)
        matrices = homographies(places)
        moving = {name: kind for name, kind in self.kinds.items() if kind not in PIXELS}
        fetched = self.dataset.fetch(flat, tuple(moving)) if moving else {}
        batch: dict[str, Any] = {}
        for name, kind in self.kinds.items():
            if kind in PIXELS:
                batch[name] = filled[name]
            elif kind == "unchanged":
                batch[name] = fetched[name].reshape(*shape, *fetched[name].shape[1:])
            elif kind == "intrinsics":
                batch[name] = _with_lead(move_intrinsics(fetched[name], matrices), lead)
            else:
                move = move_points if kind == "points" else move_boxes
                moved, inside = move(fetched[name], matrices, self.resize.shape)
                batch[name], batch[f"{name}_inside"] = _with_lead(moved, lead), _with_lead(inside, lead)
        of = [name for name, kind in self.kinds.items() if kind != "unchanged"]
        batch["homographies"] = {name: _with_lead(matrices, lead).copy() for name in of}
        return batch

    def _numbers(self, step: int, shape: tuple[int, ...]) -> Reals:
        """Random numbers of all results, (n, copies, draws)."""
        keys: Words = random.seeds(self.resize.seed, str(self.resize.stream), step, shape)
        if len(shape) == 1:
            keys = random.fold(keys[:, None], _NO_SLOT)
        counts = (self.resize.copies or 1, self.resize.draws)
        for count in counts:
            keys = random.fold(keys[..., None], np.arange(count, dtype=np.uint64))
        return random.uniform(keys).reshape(math.prod(shape), *counts)

    def _room(self, name: str, lead: tuple[int, ...], out: Array | None) -> Array:
        modality = self.modalities[name]
        if out is None:
            own: Any = self.resize.shape + self.dataset.modalities[name].shape[2:]
            out = np.empty((*lead, *_known_sides(own)), modality.dtype)
        return out

    def _fill(self, rows: Rows, numbers: Reals, places: Reals, filled: Mapping[str, Array]) -> None:
        """Write all results with pixels, and where they show their images, `places` (n, copies, 8)."""
        distinct, inverse = np.unique(rows, return_inverse=True)
        slots = np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1]) if len(rows) else []
        readers = {name: self._reader(name, distinct) for name in filled}
        copies = self.resize.copies or 1
        flat = {
            name: array.reshape(len(rows), copies, *array.shape[-self._axes(name) :]) for name, array in filled.items()
        }
        drawn = numbers.tolist()

        def work(turn: int) -> None:
            images = {name: read(turn) for name, read in readers.items()}
            height, width = self._common_size(images, int(distinct[turn]))
            for slot in slots[turn].tolist():
                for copy in range(copies):
                    place = self.resize.place(drawn[slot][copy], height, width)
                    places[slot, copy] = *place.box, place.row, place.column, place.rows, place.columns
                    for name, image in images.items():
                        self._write(name, image, place, flat[name][slot, copy])

        parallel(work, range(len(distinct)))

    def _axes(self, name: str) -> int:
        return len(self.dataset.modalities[name].shape)

    def _reader(self, name: str, rows: Rows) -> Reader:
        """What reads the image or map of a modality of one of some rows, by number."""
        kind, shape = self.kinds[name], self.dataset.modalities[name].shape
        read = getattr(self.dataset, "originals", None) if kind == "color" else None
        encoded: list[Original] | None = None if read is None else read(rows, name)
        if encoded is not None:
            return lambda turn: encoded[turn].open()
        wrap: Callable[[Array], Image] = OpenImage.of_array if kind == "color" else np.asarray
        if None in shape[:2]:
            return lambda turn: wrap(self.dataset.fetch(rows[turn : turn + 1], [name])[name][0])
        arrays = self.dataset.fetch(rows, [name])[name]
        return lambda turn: wrap(arrays[turn])

    def _common_size(self, images: Mapping[str, Image], row: int) -> tuple[int, int]:
        """Height and width of a row's image, which its other modalities share."""
        sizes = {
            name: (image.height, image.width) if isinstance(image, OpenImage) else image.shape[:2]
            for name, image in images.items()
        }
        first, *others = sizes
        for name in others:
            if sizes[name] != sizes[first]:
                here, there = (f"{sizes[n][0]} × {sizes[n][1]}" for n in (first, name))
                raise DataError(
                    f"row {row} of {self.dataset.name}: {first!r} is {here} pixels (height × width), but {name!r} is "
                    f"{there}; modalities that are resized together must have the same size; repair the row, or leave "
                    f"{name!r} out with modalities=[…]"
                )
        height, width = sizes[first]
        return int(height), int(width)

    def _write(self, name: str, image: Image, place: Place, slot: Array) -> None:
        if (place.rows, place.columns) != slot.shape[:2]:
            fill = self.resize.fill_of(name, self.kinds[name])
            slot[...] = round(fill * 255) if self.kinds[name] == "color" else fill
        region = slot[place.row : place.row + place.rows, place.column : place.column + place.columns]
        if isinstance(image, OpenImage):
            region[...] = image.cut(place.box, (place.rows, place.columns), self.resize.interpolation)
        else:
            region[...] = resize_map(image, place, self.kinds[name])


def _known_sides(shape: tuple[int | None, ...]) -> tuple[int, ...]:
    """A shape whose channels may be any number: images are then decoded to three."""
    return tuple(3 if side is None else side for side in shape)


def _with_lead(array: Array, lead: tuple[int, ...]) -> Array:
    """An array (n, copies, …) with the axes of a batch."""
    return array.reshape(*lead, *array.shape[2:])
