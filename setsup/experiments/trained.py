"""A trained method with the data it was trained on: what evaluations get."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.errors import SetsupError
from setsup.experiments.configs import MethodConfig, build_method
from setsup.experiments.data import Data
from setsup.experiments.parts import PartStore, check_part, computed_items
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
    store : PartStore, optional
        Where :meth:`part` keeps results; without it, as outside of :func:`~setsup.experiments.evaluate`, nothing is
        kept.

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
    store: PartStore | None = None
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

    def part(self, name: str, settings: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Result of a part of an evaluation: computed once for the same weights and settings, and kept.

        An evaluation that takes long divides its work into parts. If it is interrupted, the parts that were done are
        not computed again. Within :func:`~setsup.experiments.evaluate` results are files below
        ``evaluation/NAME`` of the run folder, which may be removed at any time. They belong to the weights, the seed
        and the precision of the run, the settings of its data and method, the transform of the evaluation, and the
        class of the evaluation with its attribute ``version``, if it has one: raise that when its results change.

        Parameters
        ----------
        name : str
            Of letters, digits, ``-`` and ``_``.
        settings : mapping
            All else that the result depends on: rows, factors, options of estimators. JSON values, or arrays.
        compute : callable
            Called without arguments if there is no such result. It returns numbers, strings, lists, mappings of
            strings, or arrays.

        Returns
        -------
        JSON value
            Arrays and tuples are lists, also of a result that was just computed. Floats are exact.

        Raises
        ------
        SetsupError
            When the name, a setting or the result is of another kind.
        DataError
            When the folder cannot be written.

        Examples
        --------
        >>> from lightning.pytorch import LightningModule
        >>> trained = TrainedRun("mine/example", LightningModule(), seed=0, folder=Path("run"))
        >>> trained.part("norm", {"order": 2}, lambda: np.linalg.norm([3.0, 4.0]))
        5.0

        """
        return self.parts(name, settings, ("",), lambda _: {"": compute()})[""]

    def parts(
        self,
        name: str,
        settings: Mapping[str, Any],
        items: Sequence[str],
        compute: Callable[[Sequence[str]], Mapping[str, Any]],
    ) -> dict[str, Any]:
        """Results of several items with equal settings, such as factors: those that are not kept are computed together.

        Parameters
        ----------
        name, settings
            As for :meth:`part`; the settings do not depend on the items.
        items : sequence of str
            What results are asked for.
        compute : callable
            Called with the items that have no result, if there are any; it returns a mapping with all of them.

        Returns
        -------
        dict of str to JSON value
            In the order of the items.

        Examples
        --------
        >>> from lightning.pytorch import LightningModule
        >>> trained = TrainedRun("mine/example", LightningModule(), seed=0, folder=Path("run"))
        >>> trained.parts("lengths", {}, ["hue", "shape"], lambda names: {name: len(name) for name in names})
        {'hue': 3, 'shape': 5}

        """
        check_part(name)
        if self.store is not None:
            return self.store.parts(name, settings, items, compute)
        return computed_items(compute, items)
