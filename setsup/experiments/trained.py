"""A trained method, ready to embed what it is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from lightning.pytorch import LightningModule

from setsup.checks import check_arguments
from setsup.datasets import Dataset
from setsup.errors import RowError, SetsupError
from setsup.experiments.preset import Preset
from setsup.experiments.run import Run
from setsup.experiments.training import batch_has_it, eval_transform, fresh_method, load_weights
from setsup.factors import FactorTable
from setsup.factors.stored import check_rows
from setsup.loading import Loader
from setsup.loading.batch import Transform
from setsup.progress import progress
from setsup.samplers import Draw, EpochSampler, Sampler
from setsup.samplers.report import Entry, Report

__all__ = ["TrainedRun", "embed", "load_trained"]

Reals = npt.NDArray[np.float32]

_BATCH = 256


@dataclass
class TrainedRun:
    """What an evaluation gets: the method of a run, and the data it was trained for.

    Attributes
    ----------
    preset : Preset
        With what was changed for the run.
    method : LightningModule
        Trained, in evaluation mode; of an experiment without a training one without weights.
    seed : int
        Of the run; evaluations draw with it.
    folder : Path
        Of the run: long evaluations may keep there what they have so far.
    root : Path or str, optional
        Folder of the published files.
    stand_in : bool
        Whether the stand-in takes the place of the published data.
    device : str
        Where networks run.
    precision : str
        As in :class:`~setsup.experiments.RunConfig`.

    """

    preset: Preset
    method: LightningModule
    seed: int
    folder: Path
    root: Path | str | None = None
    stand_in: bool = False
    device: str = "cpu"
    precision: str = "float32"
    _kept: dict[Any, Reals] = field(default_factory=dict, repr=False)

    @cached_property
    def dataset(self) -> Dataset:
        """What was trained on."""
        return self.open()

    def open(self, split: str | None = None) -> Dataset:
        """The data set of the preset, in another split where one is named."""
        if self.preset.data is None:
            raise SetsupError(f"{self.preset.name} has no data set")
        return self.preset.data.open(self.root, stand_in=self.stand_in, split=split)

    @cached_property
    def embedding(self) -> dict[str, Any]:
        """How images are embedded, as options of :func:`embed`."""
        return {"device": self.device, "precision": self.precision, "transform": eval_transform(self.preset, self.seed)}

    @cached_property
    def untrained(self) -> LightningModule:
        """The same method with its initial weights."""
        return fresh_method(self.preset, self.dataset.factors, self.seed).eval().to(self.device)

    def sample(self, count: int, table: FactorTable | None = None) -> npt.NDArray[np.int64]:
        """At most so many rows of a table, of what was trained on by default, without repeats, the same for a seed."""
        table = self.dataset.factors if table is None else table
        order: npt.NDArray[np.int64] = EpochSampler(table, min(count, len(table)), epochs=1, seed=self.seed)[0].indices[
            0
        ]
        return order

    def embed(self, dataset: Dataset | None = None, rows: npt.NDArray[np.int64] | None = None) -> Reals:
        """Embeddings of rows of a data set, of all rows of what was trained on by default; computed once.

        Returns
        -------
        (n, d) float32
            Of all who ask, so it is read-only.

        """
        dataset = self.dataset if dataset is None else dataset
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows)
        key = (self.method, dataset.name, dataset.factors.fingerprint, rows.tobytes())
        if key not in self._kept:
            found = embed(self.method, dataset, rows, **self.embedding)
            found.flags.writeable = False
            self._kept[key] = found
        return self._kept[key]


def load_trained(
    run: Run, *, root: Path | str | None = None, device: str | None = None, preset: Preset | None = None
) -> TrainedRun:
    """The method of a run, with the weights of its checkpoint.

    Parameters
    ----------
    run : Run
        Trained, at least in part.
    root : Path or str, optional
        Folder of the published files; the one that the run was trained from by default.
    device : str, optional
        Where networks run: a GPU where there is one, by default.
    preset : Preset, optional
        One that trains the same, whose evaluations are asked for; the run's by default.

    Raises
    ------
    DataError
        When there is no checkpoint, or it is damaged.
    SetsupError
        When the weights are not those of the preset's networks.

    """
    check_arguments(load_trained, locals())
    # a preset that trains the same may say that the files lie elsewhere: what the run was given last counts
    preset = run.preset if preset is None else replace(preset, data=run.preset.data)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if preset.learning is None:
        return TrainedRun(preset, LightningModule(), run.seed, run.folder, device=device)
    root = root or run.description.get("root")
    run.state()  # says what is missing before anything is opened
    method = fresh_method(preset, run.factors(root), run.seed)
    load_weights(method, run)
    precision = run.description["how"]["precision"]
    return TrainedRun(preset, method.eval().to(device), run.seed, run.folder, root, run.stand_in, device, precision)


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
        What to embed. ``batch["indices"]`` are rows of it: a method that keeps something for each row it was trained
        on is given those same rows only with the dataset that it was trained on.
    rows : (n,) int64, optional
        Which rows; they may repeat. All of them by default.
    device : str
        Where the method is.
    precision : {"float32", "bf16"}
        Of convolutions and products.
    transform : callable of a batch, optional
        What is done to batches first, none of it random; a preset says it in ``eval_transform``.

    Returns
    -------
    (n, d) float32

    Raises
    ------
    SetsupError
        When the method gives anything but one vector for each image, asks for what batches do not have, or there is no
        such row.

    """
    check_arguments(embed, locals())
    once = _Rows(dataset.factors, np.arange(len(dataset)) if rows is None else rows)
    loader = Loader(dataset, once, transform=transform, to="torch" if device == "cpu" else device)
    found = []
    kind = torch.device(device).type
    with _evaluating(method), progress(len(once.rows), "embedding", "images") as advance, torch.inference_mode():
        for batch in loader:
            with torch.autocast(kind, torch.bfloat16, enabled=precision == "bf16"), batch_has_it(method, batch):
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
    """Evaluation mode for a while; parts may have had either mode before."""
    before = [(part, part.training) for part in method.modules()]
    method.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode
