"""A preset: one experiment of a paper as plain, typed settings, from the dataset to what is measured.

A preset says *what* is trained; devices, precision and seed are chosen when it is run. Most of its parts may be
settings of the user's own kind: any frozen dataclass with the one method required below.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.checks import check_arguments
from setsup.errors import SetsupError
from setsup.experiments.configs import Augmentation, MethodConfig, SamplerConfig
from setsup.experiments.data import Data, explain_missing
from setsup.experiments.evaluation import Evaluation
from setsup.experiments.training_data import TrainingData
from setsup.experiments.validation import Validation

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["Preset", "smoke"]

_OPTIONS = (
    "runs",
    "preset",
    "only",
    "checkpoint",
    "again",
    "root",
    "device",
    "encoder",
    "json",
    "quiet",
    "verbose",
    "help",
)
"""Options of `setsup eval`, next to which evaluations have options under their names."""

_NO_SETTING: Mapping[str, Any] = {"setting": False}
"""Marks fields that do not change what is trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """An experiment: data, sampler, method, training and evaluations, as plain settings.

    Attributes
    ----------
    name : str
        ``"<paper>/<figure or table>"``, such as ``"abc/fig3a"``.
    shows : str
        What the paper shows there, in one line.
    data : Data, optional
        What is trained on; `data`, `sampler` and `method` are all None for an experiment that is only evaluated.
    sampler : SamplerConfig, optional
        Settings of the sampler.
    method : MethodConfig, optional
        Settings of the method.
    augmentation : str or Augmentation, optional
        Name of a recipe, as listed by :func:`setsup.methods.recipes.recipes`, or settings of a transform.
    eval_transform : str or Augmentation, optional
        Transform of images for evaluations and ``setsup embed``: the name of a recipe, whose
        :func:`~setsup.methods.recipes.evaluation_transform` is applied, or settings of a transform without randomness.
        By default, the recipe of the augmentation is used; with your own augmentation, or none, images are embedded
        unchanged.
    steps : int
        Optimiser steps.
    seeds : int
        Number of runs, with seeds 0, 1, 2 …, that the paper averages.
    checkpoint_every : int
        Number of steps between checkpoints: a killed run loses at most this many steps.
    initial_run : str, optional
        Initial weights, for example for the second stage of a method: the folder of a finished run, a file of weights,
        a name of :mod:`setsup.methods.networks.published`, or the name of a preset, whose run with the same seed must
        be in the same folder of runs. They are loaded by the method's ``load_initial(weights)`` if it has one, else by
        ``load_state_dict``.
    datasets : mapping of str to Data
        Further datasets, by names of your choice such as ``"gallery"``, for evaluations: ``trained.open("gallery")``.
    accumulate : int
        Number of draws per device whose gradients are averaged for each optimiser step.
    clip_norm : float, optional
        Maximum norm of the gradient, over all parameters of an optimiser; larger gradients are scaled down.
    clip_value : float, optional
        Maximum absolute value of the gradient's elements; larger ones are clipped. Cannot be combined with `clip_norm`.
    validation : Validation
        What is measured on held-out data during training; nothing by default.
    evaluations : mapping of str to Evaluation
        What ``setsup eval`` measures, by names that are valid in Python and on the command line.
    missing : mapping of str to str
        What to do where a dataset is not there, by its name, for the error message; such as what makes a folder that
        nobody published.
    shrunk : bool
        Whether :func:`smoke` made it: results of its runs are meaningless.
    digest : str, optional
        SHA-256 of the user's own file that holds it, as :func:`~setsup.experiments.find_preset` ran it.
    file : str, optional
        Absolute path of that file.

    """

    name: str = field(metadata=_NO_SETTING)
    shows: str = field(metadata=_NO_SETTING)
    data: Data | None = None
    sampler: SamplerConfig | None = None
    method: MethodConfig | None = None
    augmentation: str | Augmentation | None = None
    eval_transform: str | Augmentation | None = None
    steps: int = 0
    seeds: int = 1
    checkpoint_every: int = 100
    initial_run: str | None = None
    datasets: Mapping[str, Data] = field(default_factory=dict)
    accumulate: int = 1
    clip_norm: float | None = None
    clip_value: float | None = None
    validation: Validation = field(default_factory=Validation)
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict, metadata=_NO_SETTING)
    missing: Mapping[str, str] = field(default_factory=dict, metadata=_NO_SETTING)
    shrunk: bool = field(default=False, metadata=_NO_SETTING)
    digest: str | None = field(default=None, metadata=_NO_SETTING)
    file: str | None = field(default=None, metadata=_NO_SETTING)

    def __post_init__(self) -> None:
        """Check that it is complete."""
        _need_methods(self)
        parts = {"data": self.data, "sampler": self.sampler, "method": self.method}
        missing = [name for name, part in parts.items() if part is None]
        if missing and len(missing) < len(parts):
            raise SetsupError(
                f"{self.name} must set all of data, sampler and method, or none of these; missing: "
                f"{' and '.join(missing)}"
            )
        if self.steps < 0 or self.seeds < 1 or self.checkpoint_every < 1:
            raise SetsupError(
                f"{self.name}: steps must be 0 or more, and seeds and checkpoint_every 1 or more, not "
                f"steps={self.steps}, seeds={self.seeds} and checkpoint_every={self.checkpoint_every}"
            )
        if bool(self.steps) is bool(missing):
            expected = "1 or more with a method" if self.steps == 0 else "0 without a method"
            raise SetsupError(f"{self.name}: steps must be {expected}, not {self.steps}")
        _need_optimisation(self)
        if self.initial_run is not None and missing:
            raise SetsupError(f"{self.name} trains nothing, so it cannot have an initial_run; omit it")
        if self.validation.every and missing:
            raise SetsupError(f"{self.name} trains nothing, so there is nothing to validate; omit validation")
        for kind, names in (("an evaluation", self.evaluations), ("a dataset", self.datasets)):
            for name in names:
                if not name.isidentifier() or iskeyword(name) or name.startswith("_") or name in _OPTIONS:
                    raise SetsupError(
                        f"{self.name} cannot use the name {name!r} for {kind}: names may contain only letters, digits "
                        f"and _, and must not be Python keywords or one of {', '.join(_OPTIONS)}"
                    )

    def open_data(self, root: Path | str | None = None, *, substitute: bool = False) -> "Dataset":
        """Open the training data.

        Parameters
        ----------
        root : Path or str, optional
            As for :func:`setsup.open`.
        substitute : bool
            Whether to open the substitute dataset instead.

        Raises
        ------
        SetsupError, DataError
            As :meth:`Data.open` does, with what `missing` says; when the preset trains nothing.

        """
        if self.data is None:
            raise SetsupError(f"{self.name} trains nothing; choose a preset with a method")
        with explain_missing(self.name, self.data.name, {} if substitute else self.missing):
            return self.data.open(root, substitute=substitute)

    def open_training(self, seed: int, root: Path | str | None = None, *, substitute: bool = False) -> TrainingData:
        """Open what is trained on, with the settings that make the batches of a run.

        Parameters
        ----------
        seed : int
            Of the run: its sampler and augmentation are built with it.
        root, substitute
            As for :meth:`open_data`.

        Raises
        ------
        SetsupError, DataError
            As :meth:`open_data` does.

        Examples
        --------
        >>> from setsup.experiments import find_preset
        >>> find_preset("abc/fig3a").open_training(0, substitute=True).build_sampler()[0].indices.shape
        (2, 32)

        """
        dataset = self.open_data(root, substitute=substitute)
        if self.data is None or self.sampler is None:  # a preset with data has a sampler
            raise SetsupError(f"{self.name} trains nothing; choose a preset with a method")
        return TrainingData(dataset, self.sampler, self.augmentation, self.data.modalities, seed)


def _need_methods(preset: Preset) -> None:
    """Check that each part has the method that is called, before anything is opened."""
    calls = {"data": "open(root)", "sampler": "build(dataset, seed)", "method": "build(table, generator)"}
    calls |= dict.fromkeys(("augmentation", "eval_transform"), "build(dataset, seed)")
    parts = [(name, getattr(preset, name), call) for name, call in calls.items()]
    parts += [(f"evaluation {name!r}", part, "measure(trained)") for name, part in preset.evaluations.items()]
    for name, part, call in parts:
        if part is None or (isinstance(part, str) and name in ("augmentation", "eval_transform")):
            continue
        if isinstance(part, type):
            raise SetsupError(f"{preset.name}: {name} must be an instance of {part.__name__}, not the class itself")
        if not callable(getattr(part, call.partition("(")[0], None)):
            raise SetsupError(f"{preset.name}: {name} must have a method {call}, but {type(part).__name__} has none")


def _need_optimisation(preset: Preset) -> None:
    """Check how gradients are accumulated and clipped."""
    if preset.accumulate < 1:
        raise SetsupError(f"{preset.name}: accumulate must be 1 or more (draws per step), not {preset.accumulate}")
    given = {name: value for name in ("clip_norm", "clip_value") if (value := getattr(preset, name)) is not None}
    for name, value in given.items():
        if not (math.isfinite(value) and value > 0):
            raise SetsupError(
                f"{preset.name}: {name} must be above 0, or None to leave gradients unchanged, not {value}"
            )
    if len(given) > 1:
        raise SetsupError(
            f"{preset.name}: gradients can be clipped by norm or by value, not both; set clip_norm or clip_value"
        )


def smoke(preset: Preset) -> Preset:
    """Shrink a preset to seconds on a CPU, to test that it runs; results are meaningless.

    It has four steps of at most two draws; settings and evaluations with a method ``shrunk()`` are replaced by what
    that returns.
    """
    check_arguments(smoke, locals())
    return replace(
        preset,
        steps=min(4, preset.steps),
        checkpoint_every=2,
        accumulate=min(2, preset.accumulate),
        sampler=_shrunk(preset.sampler),
        method=_shrunk(preset.method),
        augmentation=_shrunk(preset.augmentation),
        eval_transform=_shrunk(preset.eval_transform),
        validation=_shrunk(preset.validation),
        evaluations={name: _shrunk(evaluation) for name, evaluation in preset.evaluations.items()},
        shrunk=True,
    )


def _shrunk(settings: Any) -> Any:
    return settings.shrunk() if hasattr(settings, "shrunk") else settings
