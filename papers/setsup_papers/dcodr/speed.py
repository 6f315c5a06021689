"""How long an epoch of a training took, beside table 5 of DCoDR."""

from dataclasses import dataclass
from typing import ClassVar

from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.runs.checkpoint import callback_state, has_checkpoint, open_checkpoint, trained_steps
from setsup.experiments.trained_run import TrainedRun

__all__ = ["EpochTime"]

_HOUR = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTime:
    """Seconds per epoch of training, and hours for all epochs of the paper, on the machine of the run.

    Attributes
    ----------
    steps : int
        Number of steps of an epoch.
    epochs : int
        Number of epochs of the paper's training.

    """

    version: ClassVar[int] = 1

    steps: int
    epochs: int = 200

    def measure(self, trained: TrainedRun) -> Measured:
        """``seconds per step``, ``seconds per epoch``, ``images per second``, and ``hours`` of all epochs."""
        if not has_checkpoint(trained.folder):
            raise SetsupError(f"{trained.folder} has no completed steps; train the run first")
        state = open_checkpoint(trained.folder)[1]
        kept = callback_state(state)
        seconds = kept["seconds"] / trained_steps(state)
        return Measured(
            values={
                "seconds per step": seconds,
                "seconds per epoch": seconds * self.steps,
                "images per second": kept["images"] / kept["seconds"],
                "hours": seconds * self.steps * self.epochs / _HOUR,
            }
        )
