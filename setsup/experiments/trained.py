"""A trained method with the data it was trained on: what evaluations get."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SetsupError
from setsup.experiments.configs import MethodConfig, build_method
from setsup.experiments.data import Data
from setsup.factors import FactorTable
from setsup.samplers import EpochSampler

if TYPE_CHECKING:  # presets are listed without torch
    from lightning.pytorch import LightningModule

    from setsup.datasets import Dataset
    from setsup.loading.batch import Transform

__all__ = ["TrainedRun"]

Reals = npt.NDArray[np.float32]


@dataclass
class TrainedRun:
    """What an evaluation gets: the method of a run, and the data it was trained on.

    Attributes
    ----------
    name : str
        Of the preset.
    method : LightningModule
        Trained, in evaluation mode; one without weights for an experiment without training.
    seed : int
        Of the run; evaluations draw with it.
    folder : Path
        Of the run: long evaluations may keep intermediate results there.
    data : Data, optional
        What was trained on.
    config : MethodConfig, optional
        Settings of the method.
    root : Path or str, optional
        Folder of the published files.
    substitute : bool
        Whether the substitute dataset replaces the published one.
    device : str
        Where networks run.
    precision : str
        As in :class:`~setsup.experiments.RunConfig`.
    transform : callable of a batch, optional
        Applied to batches that are embedded.

    """

    name: str
    method: "LightningModule"
    seed: int
    folder: Path
    data: Data | None = None
    config: MethodConfig | None = None
    root: Path | str | None = None
    substitute: bool = False
    device: str = "cpu"
    precision: str = "float32"
    transform: "Transform | None" = None
    _embedded: dict[Any, Reals] = field(default_factory=dict, repr=False)

    @cached_property
    def dataset(self) -> "Dataset":
        """What was trained on."""
        return self.open()

    def open(self, split: str | None = None) -> "Dataset":
        """Open the dataset of the preset, in another split if one is named."""
        if self.data is None:
            raise SetsupError(f"{self.name} has no dataset")
        return self.data.open(self.root, substitute=self.substitute, split=split)

    @property
    def embedding(self) -> dict[str, Any]:
        """Options of :func:`embed` for this run."""
        return {"device": self.device, "precision": self.precision, "transform": self.transform}

    @cached_property
    def untrained(self) -> "LightningModule":
        """The same method with its initial weights."""
        if self.config is None:
            raise SetsupError(f"{self.name} trains nothing, so it has no method")
        return build_method(self.config, self.dataset.factors, self.seed).eval().to(self.device)

    def sample(self, count: int, table: FactorTable | None = None) -> npt.NDArray[np.int64]:
        """At most `count` rows of a table (by default the training data), without repeats, determined by the seed."""
        table = self.dataset.factors if table is None else table
        sampler = EpochSampler(table, min(count, len(table)), epochs=1, seed=self.seed)
        rows: npt.NDArray[np.int64] = sampler[0].indices[0]
        return rows

    def embed(self, dataset: "Dataset | None" = None, rows: npt.NDArray[np.int64] | None = None) -> Reals:
        """Embed rows of a dataset; by default all rows of the training data. Results are cached.

        Returns
        -------
        (n, d) float32
            Read-only, since all callers share it.

        """
        from setsup.experiments.embedding import embed

        dataset = self.dataset if dataset is None else dataset
        rows = np.arange(len(dataset)) if rows is None else np.asarray(rows)
        key = (self.method, dataset.name, dataset.factors.fingerprint, rows.tobytes())
        if key not in self._embedded:
            found = embed(self.method, dataset, rows, **self.embedding)
            found.flags.writeable = False
            self._embedded[key] = found
        return self._embedded[key]
