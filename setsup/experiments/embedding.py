"""Embeddings of rows of a dataset by a method."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from lightning.pytorch import LightningModule

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.errors import RowError, SetsupError
from setsup.factors import FactorTable
from setsup.factors.stored import check_rows
from setsup.loading import Loader
from setsup.loading.batch import Transform
from setsup.progress import progress
from setsup.samplers import Draw, Sampler
from setsup.samplers.report import Entry, Report

__all__ = ["embed", "explain_missing_key"]

Reals = npt.NDArray[np.float32]

_BATCH = 256


def embed(
    method: Any,
    dataset: Dataset,
    rows: npt.NDArray[np.int64] | None = None,
    *,
    device: str = "cpu",
    precision: str = "float32",
    transform: Transform | None = None,
) -> Reals:
    """Embed rows of a dataset, in their order, with the method in evaluation mode.

    Parameters
    ----------
    method : LightningModule
        With ``embed(batch) -> (sets, size, d)``.
    dataset : Dataset
        What to embed. ``batch["indices"]`` are rows of it: a method that keeps something for each training row gets
        those same rows only with the dataset it was trained on.
    rows : (n,) int64, optional
        Which rows; they may repeat. All of them by default.
    device : str
        Where the method is.
    precision : {"float32", "bf16", "fp16"}
        Of convolutions and products; on a CPU float32 takes the place of ``fp16``.
    transform : callable of a batch, optional
        Applied to batches first, without randomness; a preset has it as ``eval_transform``.

    Returns
    -------
    (n, d) float32

    Raises
    ------
    SetsupError
        When the method returns anything but one vector per image, asks for a key that batches do not have, or a row
        does not exist.

    """
    check_arguments(embed, locals())
    once = _Rows(dataset.factors, np.arange(len(dataset)) if rows is None else rows)
    loader = Loader(dataset, once, transform=transform, to="torch" if device == "cpu" else device)
    found = []
    kind = torch.device(device).type
    with _evaluating(method), progress(len(once.rows), "embedding", "images") as advance, torch.inference_mode():
        for batch in loader:
            with _autocast(kind, precision), explain_missing_key(method, batch):
                embedded = method.embed(batch)
            mask = batch["mask"]
            if embedded.ndim != 3 or embedded.shape[:2] != mask.shape:
                raise SetsupError(
                    f"{type(method).__name__}.embed gave {tuple(embedded.shape)} for {tuple(mask.shape)} images: it "
                    "gives one vector for each image, (sets, size, d)"
                )
            kept = embedded.float()[mask]
            found.append(kept.cpu().numpy())
            advance(len(kept))
    return np.concatenate(found)


def _autocast(kind: str, precision: str) -> torch.autocast:
    """The precision of a training, on a kind of device; many operators have no float16 on a CPU."""
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    return torch.autocast(kind, dtype, enabled=precision == "bf16" or (precision == "fp16" and kind != "cpu"))


@contextmanager
def explain_missing_key(method: LightningModule, batch: Mapping[str, Any]) -> Iterator[None]:
    """Raise SetsupError where a method asks an evaluation's batch for a key it does not have."""
    try:
        yield
    except KeyError as error:
        (name,) = error.args[:1] or (None,)
        if not isinstance(name, str) or name in batch:
            raise
        raise SetsupError(
            f"{type(method).__name__}.embed asks for {name!r}, which batches of evaluations do not have "
            f"({', '.join(batch)}): give the preset an eval_transform that makes it, without randomness"
        ) from error


class _Rows(Sampler):
    """Given rows of a table, in their order, one batch after the other; the last one is padded."""

    def __init__(self, table: FactorTable, rows: npt.ArrayLike) -> None:
        self.table, self.rows = table, check_rows(rows, len(table))
        if not len(self.rows):
            raise RowError("there is no row to embed: name one or more")
        if self.rows.ndim != 1:
            raise RowError(f"rows to embed are (n,) row numbers, not of the shape {self.rows.shape}: ravel them")
        self.arguments = {"rows": self.rows}
        self._size = min(_BATCH, len(self.rows))
        self.length = -(-len(self.rows) // self._size)

    def draws(self, steps: npt.NDArray[np.int64]) -> Draw:
        """Draws of any steps as one block; indices (steps, 1, size)."""
        positions = steps[:, None, None] * self._size + np.arange(self._size)
        return Draw(self.rows[positions % len(self.rows)], mask=positions < len(self.rows))

    def report(self) -> Report:
        """What will be drawn."""
        return Report(f"{len(self.rows):,} given rows", [Entry("nothing", 1, 1, len(self.rows), len(self.rows))], [])


@contextmanager
def _evaluating(method: LightningModule) -> Iterator[None]:
    """Evaluation mode for a while; each part returns to its own mode."""
    before = [(part, part.training) for part in method.modules()]
    method.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode
