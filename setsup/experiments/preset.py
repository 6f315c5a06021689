"""A preset: one experiment of a paper as plain, typed settings, from the dataset to what is measured.

A preset says *what* is trained; devices, precision and seed are chosen when it is run. Most of its parts may be
settings of the user's own kind: any frozen dataclass with the one method required below.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Protocol

from setsup.checks import check_arguments
from setsup.errors import SetsupError
from setsup.experiments.configs import Augmentation, MethodConfig, SamplerConfig
from setsup.experiments.data import Data
from setsup.experiments.trained import TrainedRun

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Evaluation", "Measured", "Preset", "smoke"]

_OPTIONS = ("runs", "preset", "only", "root", "device", "encoder", "json", "quiet", "help")
"""Options of `setsup eval`, next to which evaluations have options under their names."""

_NO_SETTING: Mapping[str, Any] = {"setting": False}
"""Marks fields that do not change what is trained."""


class Evaluation(Protocol):
    """What is measured on a trained method."""

    def measure(self, trained: TrainedRun) -> "Measured":
        """Measure it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Results of one evaluation.

    Attributes
    ----------
    values : mapping of str to float
        Numbers by name; reports take their mean and spread over seeds.
    curves : mapping of str to (x, y)
        Curves by name.
    pictures : mapping of str to PIL image
        Images, by the name of the file they are saved in.

    """

    values: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    pictures: Mapping[str, "Image"] = field(default_factory=dict)


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
        What is trained on; `data`, `sampler` and `method` are all None for an experiment that is only evaluated.
    sampler : SamplerConfig, optional
        Settings of the sampler.
    method : MethodConfig, optional
        Settings of the method.
    augmentation : str or Augmentation, optional
        Name of a recipe of :mod:`setsup.loading.transforms`, or settings of a transform.
    eval_transform : str or Augmentation, optional
        Applied to everything that evaluations and ``setsup embed`` embed: the name of a recipe, for
        :func:`~setsup.loading.transforms.evaluation_transform`, or settings of a transform without randomness. By
        default the recipe of the augmentation; with an augmentation of your own, or none, images are embedded as they
        are.
    steps : int
        Optimiser steps.
    seeds : int
        Number of runs, with seeds 0, 1, 2 …, that the paper averages.
    checkpoint_every : int
        Maximum number of steps lost when a run is killed.
    evaluations : mapping of str to Evaluation
        What ``setsup eval`` measures, by names that are valid in Python and on the command line.
    shrunk : bool
        Whether :func:`smoke` made it: results of its runs are meaningless.
    digest : str, optional
        SHA-256 of the user's own file that holds it, as :func:`~setsup.experiments.find_preset` ran it.

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
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict, metadata=_NO_SETTING)
    shrunk: bool = field(default=False, metadata=_NO_SETTING)
    digest: str | None = field(default=None, metadata=_NO_SETTING)

    def __post_init__(self) -> None:
        """Check that it is complete."""
        parts = {"data": self.data, "sampler": self.sampler, "method": self.method}
        missing = [name for name, part in parts.items() if part is None]
        if missing and len(missing) < len(parts):
            raise SetsupError(f"{self.name} lacks {' and '.join(missing)}: give it data, sampler and method, or none")
        if self.steps < 0 or self.seeds < 1 or self.checkpoint_every < 1:
            raise SetsupError(f"{self.name}: steps are 0 or more, seeds and checkpoint_every 1 or more")
        if bool(self.steps) is bool(missing):
            words = "1 or more with a method" if self.steps == 0 else "0 without a method"
            raise SetsupError(f"{self.name}: steps are {words}, not {self.steps}")
        for name in self.evaluations:
            if not name.isidentifier() or iskeyword(name) or name.startswith("_") or name in _OPTIONS:
                raise SetsupError(
                    f"{self.name} cannot name an evaluation {name!r}: names are made of letters, digits and _, and "
                    f"are neither keywords of Python nor {', '.join(_OPTIONS)}"
                )


def smoke(preset: Preset) -> Preset:
    """Shrink a preset to seconds on a CPU, to test that it runs; results are meaningless.

    It has four steps; settings and evaluations with a method ``shrunk()`` are replaced by what that returns.
    """
    check_arguments(smoke, locals())
    return replace(
        preset,
        steps=min(4, preset.steps),
        checkpoint_every=2,
        sampler=_shrunk(preset.sampler),
        method=_shrunk(preset.method),
        augmentation=_shrunk(preset.augmentation),
        eval_transform=_shrunk(preset.eval_transform),
        evaluations={name: _shrunk(evaluation) for name, evaluation in preset.evaluations.items()},
        shrunk=True,
    )


def _shrunk(settings: Any) -> Any:
    return settings.shrunk() if hasattr(settings, "shrunk") else settings
