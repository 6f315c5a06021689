"""A preset: one experiment of a paper as plain, typed settings, from the data set to what is measured.

A preset says *what* is trained; on which devices, in which precision, with which seed is said when it is run. Most of
its parts may be settings of the user's own kind: any frozen dataclass with the one method that is asked for below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from setsup.checks import check_arguments
from setsup.errors import SetsupError

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule
    from PIL.Image import Image

    from setsup.datasets import Dataset
    from setsup.experiments.trained import TrainedRun
    from setsup.factors import FactorTable
    from setsup.loading.batch import Transform
    from setsup.samplers import Sampler

__all__ = ["Augmentation", "Data", "Evaluation", "Measured", "MethodConfig", "Preset", "SamplerConfig", "smoke"]

_OPTIONS = ("runs", "preset", "only", "root", "device", "json", "help")
"""Options of `setsup eval`, beside which those of evaluations stand under their names."""


class SamplerConfig(Protocol):
    """How sets are drawn: settings of a sampler."""

    def sampler(self, table: "FactorTable", seed: int) -> "Sampler":
        """The sampler of a run."""


class MethodConfig(Protocol):
    """What learns from them: settings of a method, networks included."""

    def method(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """The method of a run, a ``LightningModule`` with ``embed(batch) -> (sets, size, d)``.

        The table is that of the data which are trained on, for counts of classes, of rows or of groups; indices of
        batches are its rows, also where some of these data are embedded later. Initial weights come from the generator,
        or from torch's global one: the seed of the run determines both.
        What a step logs is averaged over devices: all of them log the same names, in the same order.
        Before a run is begun the first draw, of a drawing with ``shrunk()`` one of that, is given to ``loss(batch)``
        where the method has that, or embedded: a SetsupError raised there is said at once, and leaves no folder.
        """


class Augmentation(Protocol):
    """What is done to batches: settings of a transform."""

    def transform(self, seed: int) -> "Transform":
        """The transform of a run, as ``transform=`` of :func:`setsup.loader` takes it."""


class Evaluation(Protocol):
    """What is measured on a trained method."""

    def measure(self, trained: "TrainedRun") -> "Measured":
        """Measure it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one evaluation found.

    Attributes
    ----------
    values : mapping of str to float
        Numbers by name; reports take their mean and spread over seeds.
    curves : mapping of str to (x, y)
        Lines of a diagram by name.
    pictures : mapping of str to PIL image
        By the name of the file they are kept in.

    """

    values: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    pictures: Mapping[str, "Image"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Data:
    """Which data set a preset trains on.

    Attributes
    ----------
    name : str
        As for :func:`setsup.open`.
    split : str, optional
        Its rows are trained on.
    stand_in : str, optional
        Data set with the same factors for those who lack the published files; it is never taken silently.
    where : str, optional
        Expression over the factors: other rows are left out, and those that are kept are renumbered.
    options : tuple of (str, value)
        Options of the benchmark's own ``open``, such as ``(("size", (64, 64)),)``; not for the stand-in, nor for
        folders and shards, which were made with them.

    """

    name: str
    split: str | None = None
    stand_in: str | None = None
    where: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def open(self, root: Path | str | None = None, *, stand_in: bool = False, split: str | None = None) -> "Dataset":
        """Open it.

        Parameters
        ----------
        root : Path or str, optional
            As for :func:`setsup.open`.
        stand_in : bool
            Whether to open the stand-in in its place.
        split : str, optional
            Another split than that of the training.

        Raises
        ------
        DataError
            When files are missing or damaged; the message says how to get them.
        SetsupError
            When there is no stand-in.

        """
        from setsup import opening

        if not stand_in:
            kind = opening.find_kind(self.name)
            options = dict(self.options) if kind == "benchmark" else {}
            return opening.open(self.name, root, split or self.split, self.where, kind=kind, **options)
        if self.stand_in is None:
            raise SetsupError(f"nothing stands in for {self.name}: leave --stand-in out and fetch the published files")
        return opening.open(self.stand_in, None, split or self.split, self.where)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """One experiment.

    Attributes
    ----------
    name : str
        ``"<paper>/<figure or table>"``, such as ``"abc/fig3a"``.
    shows : str
        What the paper shows there, in one line.
    data : Data, optional
        What is trained on; none of the three for an experiment without a training, which is evaluated only.
    drawing : SamplerConfig, optional
        Settings of the sampler.
    learning : MethodConfig, optional
        Settings of the method.
    augmentation : str or Augmentation, optional
        Name of a recipe of :mod:`setsup.loading.transforms`, or settings of a transform.
    eval_transform : str or Augmentation, optional
        What is done to all that is embedded, by evaluations and by ``setsup embed``: as
        :func:`~setsup.loading.transforms.evaluation_transform` has it for the recipe of that name, or settings of a
        transform, of which nothing may be random. By default the recipe is that of the augmentation; where that is of
        your own, or there is none, images are embedded as they are.
    steps : int
        Optimiser steps.
    seeds : int
        Runs, with seeds 0, 1, 2 …, over which the paper's numbers are taken.
    checkpoint_every : int
        Steps that are lost at most when a run is killed.
    evaluations : mapping of str to Evaluation
        What ``setsup eval`` measures, by names that can stand in Python and on the command line.
    shrunk : bool
        Whether :func:`smoke` made it: what its runs find means nothing.
    digest : str, optional
        SHA-256 of the file of the user's own that holds it, as :func:`~setsup.experiments.find_preset` ran it.

    """

    name: str
    shows: str
    data: Data | None = None
    drawing: SamplerConfig | None = None
    learning: MethodConfig | None = None
    augmentation: str | Augmentation | None = None
    eval_transform: str | Augmentation | None = None
    steps: int = 0
    seeds: int = 1
    checkpoint_every: int = 100
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)
    shrunk: bool = False
    digest: str | None = None

    def __post_init__(self) -> None:
        """Check that it is whole."""
        parts = {"data": self.data, "drawing": self.drawing, "learning": self.learning}
        missing = [name for name, part in parts.items() if part is None]
        if missing and len(missing) < len(parts):
            raise SetsupError(f"{self.name} lacks {' and '.join(missing)}: give it data, drawing and learning, or none")
        if self.steps < 0 or self.seeds < 1 or self.checkpoint_every < 1:
            raise SetsupError(f"{self.name}: steps are 0 or more, seeds and checkpoint_every 1 or more")
        if bool(self.steps) is bool(missing):
            words = "1 or more where something learns" if self.steps == 0 else "0 where nothing learns"
            raise SetsupError(f"{self.name}: steps are {words}, not {self.steps}")
        for name in self.evaluations:
            if not name.isidentifier() or iskeyword(name) or name.startswith("_") or name in _OPTIONS:
                raise SetsupError(
                    f"{self.name} cannot call an evaluation {name!r}: names are words of letters, digits and _, and "
                    f"none of Python's nor of {', '.join(_OPTIONS)}"
                )


def smoke(preset: Preset) -> Preset:
    """The preset shrunk to seconds on a CPU: that it runs, not what it finds.

    Four steps; settings and evaluations that have a method ``shrunk()`` are replaced by what it returns.
    """
    check_arguments(smoke, locals())
    return replace(
        preset,
        steps=min(4, preset.steps),
        checkpoint_every=2,
        drawing=_shrunk(preset.drawing),
        learning=_shrunk(preset.learning),
        augmentation=_shrunk(preset.augmentation),
        eval_transform=_shrunk(preset.eval_transform),
        evaluations={name: _shrunk(evaluation) for name, evaluation in preset.evaluations.items()},
        shrunk=True,
    )


def _shrunk(settings: Any) -> Any:
    return settings.shrunk() if hasattr(settings, "shrunk") else settings
