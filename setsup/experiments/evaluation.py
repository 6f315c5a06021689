"""An evaluation, which a preset lists, and what it measures; :mod:`setsup.experiments.evaluations` has general ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from setsup.experiments.trained_run import TrainedRun

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Evaluation", "Measured"]


class Evaluation(Protocol):
    """What a preset lists under `evaluations`; :mod:`setsup.experiments.evaluations` has those of any method."""

    def measure(self, trained: TrainedRun) -> "Measured":
        """Evaluate a trained method."""


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
