"""Embeddings of rows of a dataset by a method."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.errors import RowError, SetsupError
from setsup.experiments.embedding_batch import choose_embedding, embed_batch, evaluation_mode, need_no_lookup
from setsup.factors import FactorTable
from setsup.factors.column_storage import check_rows
from setsup.loading import Loader
from setsup.loading.batch import Transform
from setsup.progress import progress
from setsup.samplers import Draw, Sampler
from setsup.samplers.report import Entry, Report

__all__ = ["GivenRows", "embed", "embed_all", "embed_batches", "precision_context"]

Reals = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
RowNumbers = Callable[[Dataset, Rows], Rows]

_BATCH = 256
_BYTES = 1 << 25  # of images of a batch, so that batches of large images are smaller


def embed(
    method: Any,
    dataset: Dataset,
    rows: Rows | None = None,
    *,
    name: str | None = None,
    out: Reals | None = None,
    device: str = "cpu",
    precision: str = "float32",
    transform: Transform | None = None,
    training_rows: RowNumbers | None = None,
    modalities: Sequence[str] | None = None,
) -> Reals:
    """Embed rows of a dataset, in their order, with the method in evaluation mode.

    Parameters
    ----------
    method : LightningModule
        With ``embed(batch)``, which gives a vector (sets, size, d), a map (sets, size, h, w, d) or any other
        (sets, size, …) for each image, or several of them by name, such as ``{"L": …, "ab": …}``.
    dataset : Dataset
        What to embed.
    rows : (n,) int64, optional
        Which rows; they may repeat. All of them by default.
    name : str, optional
        Which embedding, if the method gives several; by default ``all``, if that is one of them.
    out : (n, …) float32, optional
        Where to write them, such as an ``np.memmap`` for maps that do not fit in memory.
    device : str
        Where the method is.
    precision : {"float32", "bf16", "fp16"}
        Of convolutions and products; on a CPU float32 takes the place of ``fp16``.
    transform : callable of a batch, optional
        Applied to batches first, without randomness; a preset has it as ``eval_transform``.
    training_rows : callable of (dataset, rows), optional
        Gives the rows of the training data, (n,) int64, that rows of a dataset are, -1 for images of other data: they
        are ``batch["indices"]``, for methods that keep something for each row they were trained on. By default the
        rows themselves, as for the training data.
    modalities : sequence of str, optional
        What to fetch of the dataset; everything by default.

    Returns
    -------
    (n, …) float32
        `out` if it was given.

    Raises
    ------
    SetsupError
        When the method gives anything else, gives several embeddings without ``all`` and none is named, asks for a key
        that batches do not have, looks up a row that it was not trained on, or a row does not exist.

    Examples
    --------
    >>> import torch, setsup
    >>> from lightning.pytorch import LightningModule
    >>> class Colours(LightningModule):
    ...     def embed(self, batch):
    ...         images = batch["image"].float()
    ...         return {"mean": images.mean((-2, -1)), "coarse": images[..., ::32, ::32]}
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> embed(Colours(), shapes, np.arange(5), name="coarse").shape
    (5, 3, 2, 2)

    """
    check_arguments(embed, locals())
    count = len(dataset) if rows is None else len(rows)
    if out is not None and (len(out) != count or out.dtype != np.float32 or not out.flags.writeable):
        raise SetsupError(
            f"out must be a writable float32 array of {count:,} rows, not "
            f"{'' if out.flags.writeable else 'read-only '}{out.dtype} of shape {out.shape}"
        )

    def allocate(shape: tuple[int, ...]) -> Reals:
        if out is None:
            return np.empty(shape, np.float32)
        if out.shape != shape:
            raise SetsupError(
                f"out must have the shape {shape} of the embeddings of {type(method).__name__}, not {out.shape}"
            )
        return out

    embeddings, at = out, 0
    for embedded in _batches(method, dataset, rows, device, precision, transform, training_rows, modalities):
        part = embedded[choose_embedding(method, name, embedded)]
        if embeddings is None or at == 0:
            embeddings = allocate((count, *part.shape[1:]))
        _write(embeddings, at, part, method)
        at += len(part)
    return np.empty((0,), np.float32) if embeddings is None else embeddings  # there is a row, or an error was raised


def embed_batches(
    method: Any,
    dataset: Dataset,
    rows: Rows | None = None,
    *,
    name: str | None = None,
    device: str = "cpu",
    precision: str = "float32",
    transform: Transform | None = None,
    training_rows: RowNumbers | None = None,
    modalities: Sequence[str] | None = None,
) -> Iterator[Reals]:
    """Embed as :func:`embed` does, and yield (k, …) float32 for some rows after the others: for maps of many rows."""
    check_arguments(embed_batches, locals())
    for embedded in _batches(method, dataset, rows, device, precision, transform, training_rows, modalities):
        yield embedded[choose_embedding(method, name, embedded)]


def embed_all(
    method: Any,
    dataset: Dataset,
    rows: Rows | None,
    allocate: Callable[[str | None, tuple[int, ...]], Reals],
    **options: Any,
) -> dict[str | None, Reals]:
    """Embed all that a method gives, by name, or None for the only one, into arrays that `allocate` makes.

    Options are those of :func:`embed_batches`, but for the name.
    """
    count, at = len(dataset) if rows is None else len(rows), 0
    arrays: dict[str | None, Reals] = {}
    for embedded in _batches(method, dataset, rows, **options):
        for name, part in embedded.items():
            if name not in arrays:
                arrays[name] = allocate(name, (count, *part.shape[1:]))
            _write(arrays[name], at, part, method)
        at += len(next(iter(embedded.values())))
    return arrays


def _batches(
    method: Any,
    dataset: Dataset,
    rows: Rows | None,
    device: str = "cpu",
    precision: str = "float32",
    transform: Transform | None = None,
    training_rows: RowNumbers | None = None,
    modalities: Sequence[str] | None = None,
) -> Iterator[dict[str | None, Reals]]:
    once = GivenRows(dataset, np.arange(len(dataset)) if rows is None else rows)
    numbers = once.rows if training_rows is None else training_rows(dataset, once.rows)
    to = "torch" if device == "cpu" else device
    loader = Loader(dataset, once, modalities=modalities, transform=transform, to=to)
    kind, unchecked = torch.device(device).type, bool((numbers < 0).any())
    with evaluation_mode(method), progress(len(once.rows), "embedding", "images") as advance:
        for batch in loader:
            if numbers is not once.rows:
                here = once.of_step(numbers, int(batch["step"]))
                batch["indices"] = torch.from_numpy(here).to(batch["indices"].device)
            with torch.inference_mode(), precision_context(kind, precision):
                embedded = embed_batch(method, batch)
                if unchecked and (batch["indices"] < 0).any():
                    need_no_lookup(method, batch, embedded)
                    unchecked = False
                kept = {name: value.float()[batch["mask"]].cpu().numpy() for name, value in embedded.items()}
            yield kept
            advance(len(next(iter(kept.values()))))


def precision_context(kind: str, precision: str) -> torch.autocast:
    """The precision of a training, on a kind of device; many operators have no float16 on a CPU."""
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(kind, dtype, enabled=precision == "bf16" or (precision == "fp16" and kind != "cpu"))


def _write(array: Reals, at: int, part: Reals, method: Any) -> None:
    """Write embeddings of some rows behind those before them."""
    if array.shape[1:] != part.shape[1:]:
        raise SetsupError(
            f"{type(method).__name__}.embed returned an embedding of shape {part.shape[1:]} for row {at} of the rows "
            f"to embed, but of shape {array.shape[1:]} for earlier rows; return embeddings of the same shape for all "
            "rows"
        )
    array[at : at + len(part)] = part


class GivenRows(Sampler):
    """Given rows of a dataset, in their order, one batch of at most so many after the other; the last one is padded."""

    def __init__(self, dataset: Dataset, rows: npt.ArrayLike, most: int = _BATCH) -> None:
        self.table: FactorTable = dataset.factors
        self.rows = check_rows(rows, len(self.table))
        if not len(self.rows):
            raise RowError("rows must contain at least one row number")
        if self.rows.ndim != 1:
            raise RowError(
                f"rows must be a one-dimensional array of row numbers, not of shape {self.rows.shape}; flatten it "
                "with rows.ravel()"
            )
        self.arguments = {"rows": self.rows}
        self._size = min(most, max(1, _BYTES // _bytes(dataset)), len(self.rows))
        self.length = -(-len(self.rows) // self._size)

    def draws(self, steps: npt.NDArray[np.int64]) -> Draw:
        """Draws of any steps as one block; indices (steps, 1, size)."""
        positions = self._positions(steps)
        return Draw(self.rows[positions % len(self.rows)], mask=positions < len(self.rows))

    def of_step(self, numbers: Rows, step: int) -> Rows:
        """Numbers (n,) of the rows, as the batch of a step has the rows."""
        return np.asarray(numbers[self._positions(np.array([step]))[0] % len(self.rows)])

    def _positions(self, steps: npt.NDArray[np.int64]) -> Rows:
        return steps[:, None, None] * self._size + np.arange(self._size)

    def report(self) -> Report:
        """What will be drawn."""
        return Report(f"{len(self.rows):,} given rows", [Entry("nothing", 1, 1, len(self.rows), len(self.rows))], [])


def _bytes(dataset: Dataset) -> int:
    """Bytes of one row, without lengths that differ between rows."""
    sizes = [
        np.dtype(modality.dtype).itemsize * int(np.prod([size or 1 for size in modality.shape]))
        for modality in dataset.modalities.values()
    ]
    return max(1, sum(sizes))
