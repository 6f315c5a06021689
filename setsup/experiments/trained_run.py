"""A trained method with the data it was trained on: what evaluations get."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.datasets import names
from setsup.errors import DataError, SetsupError, did_you_mean
from setsup.experiments.configs import Augmentation, MethodConfig, build_eval_transform, build_method
from setsup.experiments.data import Data, explain_missing, is_lost, shared_modalities
from setsup.experiments.result_cache import PartStore, check_part, computed_items
from setsup.experiments.training_rows import find_training_rows
from setsup.factors import FactorTable
from setsup.html import block, never_raises, table
from setsup.samplers import EpochSampler

if TYPE_CHECKING:  # presets are listed without torch
    from lightning.pytorch import LightningModule

    from setsup.datasets import Dataset
    from setsup.loading.batch import Transform

__all__ = ["TrainedRun"]

Reals = npt.NDArray[np.float32]

_CACHED = 1 << 30  # bytes of embeddings that are kept


@dataclass
class TrainedRun:
    """The input of an evaluation: the method of a run, and its training data.

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
        Folder of the published files, or of the substitute.
    substitute : bool
        Whether the substitute dataset replaces the published one.
    device : str
        Where networks run.
    precision : str
        As in :class:`~setsup.experiments.RunConfig`.
    datasets : mapping of str to Data
        The preset's further datasets.
    missing : mapping of str to str
        What to do where one of them is not there, by its name.
    eval_transform, augmentation : str or Augmentation, optional
        Of the preset; they determine what is applied to batches that are embedded.
    table : FactorTable, optional
        Of the data that were trained on, where these are not opened yet.
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
    datasets: Mapping[str, Data] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    eval_transform: str | Augmentation | None = None
    augmentation: str | Augmentation | None = None
    table: FactorTable | None = None
    store: PartStore | None = None
    _embedded: dict[Any, tuple["Dataset", Reals]] = field(default_factory=dict, repr=False)
    _opened: dict[Any, "Dataset"] = field(default_factory=dict, repr=False)

    @never_raises
    def _repr_html_(self) -> str:
        """Show where the run comes from in a notebook; nothing is opened."""
        numbers = sum(weights.numel() for weights in self.method.parameters())
        rows = [("method", f"{type(self.method).__name__}, {numbers:,} parameters"), ("seed", str(self.seed))]
        if self.data is not None:
            rows.append(("dataset", f"{self.data.name}{', its substitute' if self.substitute else ''}"))
        rows += [("folder", str(self.folder)), ("device", f"{self.device}, {self.precision}")]
        return block(f"TrainedRun {self.name}", table((), rows))

    @cached_property
    def dataset(self) -> "Dataset":
        """What was trained on."""
        return self.open()

    def open(self, name: str | None = None, *, split: str | None = None) -> "Dataset":
        """Open a dataset of the preset; the same one each time.

        Parameters
        ----------
        name : str, optional
            One of the preset's ``datasets``; what was trained on by default. The folder that the run was given for the
            published files is that of the training data; other data are where ``setsup fetch`` puts them.
        split : str, optional
            Another split than the preset's.

        """
        if self.data is None:
            raise SetsupError(f"{self.name} has no dataset, because its preset has no data")
        if (name, split) not in self._opened:
            self._opened[name, split] = self._open(self.data, name, split)
        return self._opened[name, split]

    def _open(self, trained_on: Data, name: str | None, split: str | None) -> "Dataset":
        if name is None:
            try:
                return trained_on.open(self.root, substitute=self.substitute, split=split)
            except DataError as error:
                if not is_lost(trained_on.name) or self.substitute:
                    raise
                raise DataError(
                    f"{trained_on.name} does not exist: the path is relative to the folder where the run was "
                    "started; run the command there, or pass the data after the run, as in `setsup embed "
                    f"{self.folder} FILE`"
                ) from error
        if name not in self.datasets:
            hint = (
                did_you_mean(name, self.datasets)
                or f"; pass one of its `datasets`, or open a split with open(split={name!r})"
            )
            raise SetsupError(f"{self.name} has no dataset named {name!r}{hint}")
        data = self.datasets[name]
        root = self.root if data.name == trained_on.name else None
        substitute = self.substitute and data.substitute is not None
        with explain_missing(f"{name!r} of {self.name}", data.name, {} if substitute else self.missing):
            return data.open(root, substitute=substitute, split=split)

    def transform(self, dataset: "Dataset") -> "Transform | None":
        """Return the transform of batches that are embedded."""
        return build_eval_transform(self.eval_transform, self.augmentation, dataset, self.seed)

    def embedding(self, dataset: "Dataset") -> dict[str, Any]:
        """Options of :func:`embed` for this run and a dataset."""
        options = {"device": self.device, "precision": self.precision, "transform": self.transform(dataset)}
        return {**options, "training_rows": self.training_rows, "modalities": shared_modalities(self.data, dataset)}

    @cached_property
    def untrained(self) -> "LightningModule":
        """The same method with its initial weights."""
        if self.config is None:
            raise SetsupError(f"{self.name} trains nothing, so it has no method")
        from setsup.methods.rows import RowState

        method = build_method(self.config, self.dataset.factors, self.seed).eval().to(self.device)
        for part in method.modules():
            if isinstance(part, RowState) and part.has_initial:
                part.mark_seen()  # initial values are those of this method
        return method

    def sample(self, count: int, table: FactorTable | None = None) -> npt.NDArray[np.int64]:
        """At most `count` rows of a table (by default the training data), without repeats, determined by the seed."""
        table = self.dataset.factors if table is None else table
        sampler = EpochSampler(table, min(count, len(table)), epochs=1, seed=self.seed)
        rows: npt.NDArray[np.int64] = sampler[0].indices[0]
        return rows

    def training_rows(self, dataset: "Dataset", rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Find the rows of the training data that rows of a dataset correspond to, (n,); -1 for images of other data.

        They are known for the training data, and for selections from the same dataset, such as another split.
        """
        table = self.dataset.factors if self.table is None else self.table
        return find_training_rows(dataset, rows, self._trained_on, table, lambda: self.dataset)

    @cached_property
    def _trained_on(self) -> str | None:
        """Name of the dataset of the training; None where that is not a benchmark, and cannot be opened."""
        name = None if self.data is None else self.data.substitute if self.substitute else self.data.name
        if name is None or name in names():
            return name
        try:
            return self.dataset.name
        except SetsupError:
            return None

    def embed(
        self,
        dataset: "Dataset | None" = None,
        rows: npt.NDArray[np.int64] | None = None,
        name: str | None = None,
    ) -> Reals:
        """Embed rows of a dataset; by default all rows of the training data. Results of less than 1 GiB are cached.

        Parameters
        ----------
        dataset : Dataset, optional
            The training data by default.
        rows : (n,) int64, optional
            All by default.
        name : str, optional
            Which embedding, if the method gives several; by default ``all``, if that is one of them.

        Returns
        -------
        (n, …) float32
            One vector (n, d) or map (n, h, w, d) per row; read-only, since all callers share it.

        """
        from setsup.experiments.embedding import embed

        dataset, rows = self._rows(dataset, rows)
        key = (self.method, id(dataset), rows.tobytes(), name)  # two datasets may have one name and equal factors
        if key in self._embedded:
            return self._embedded[key][1]
        embedded = embed(self.method, dataset, rows, name=name, **self.embedding(dataset))
        embedded.flags.writeable = False
        if embedded.nbytes < _CACHED:
            self._embedded[key] = dataset, embedded  # kept, so that no other one gets its id
        return embedded

    def embed_vectors(
        self,
        dataset: "Dataset | None" = None,
        rows: npt.NDArray[np.int64] | None = None,
        name: str | None = None,
    ) -> Reals:
        """Embed as :meth:`embed` does, (n, d): SetsupError where a method gives maps, for evaluations of vectors."""
        return need_vectors(self.embed(dataset, rows, name), self.method, name)

    def embed_batches(
        self,
        dataset: "Dataset | None" = None,
        rows: npt.NDArray[np.int64] | None = None,
        name: str | None = None,
    ) -> Iterator[Reals]:
        """Embed as :meth:`embed` does, (k, …) float32 of some rows after the others: for maps of many rows."""
        from setsup.experiments.embedding import embed_batches

        dataset, rows = self._rows(dataset, rows)
        return embed_batches(self.method, dataset, rows, name=name, **self.embedding(dataset))

    def _rows(
        self, dataset: "Dataset | None", rows: npt.NDArray[np.int64] | None
    ) -> "tuple[Dataset, npt.NDArray[np.int64]]":
        dataset = self.dataset if dataset is None else dataset
        return dataset, np.arange(len(dataset)) if rows is None else np.asarray(rows)

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
        """Return results of several items with equal settings, such as factors; missing ones are computed together.

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


def need_vectors(embedded: Reals, method: "LightningModule", name: str | None = None) -> Reals:
    """Embeddings of a method, by that name, as they are; SetsupError where they are no vectors (n, d)."""
    if embedded.ndim != 2:
        form = " × ".join(map(str, embedded.shape[1:]))
        raise SetsupError(
            f"{type(method).__name__}.embed returns {f'{name!r} as ' if name else ''}{form} numbers per image, "
            "but this evaluation requires one vector per image; return the mean over positions under another "
            "name, and set embedding to that name"
        )
    return embedded
