"""Counting: what a step of a training is, whatever the number of its optimisers."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer

from setsup.errors import SetsupError
from setsup.experiments.runs.checkpoint import COUNTER, trained_steps

__all__ = ["StepCounter"]


class StepCounter(Callback):
    """Counts the draws that each rank has trained on, and steps of so many draws.

    Lightning's `global_step` counts the steps of each optimiser. It comes first among callbacks, so that the others
    read the present count.
    """

    def __init__(self, accumulate: int = 1) -> None:
        self._accumulate = accumulate
        self.draws = 0

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self.draws // self._accumulate

    @property
    def within_step(self) -> bool:
        """Whether a step has begun that lacks draws: there are gradients that no checkpoint holds."""
        return self.draws % self._accumulate != 0

    @property
    def state_key(self) -> str:
        """Name of the state in checkpoints."""
        return COUNTER

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Keep Lightning from ending the training by its own count where that is another one."""
        if not pl_module.automatic_optimization:
            trainer.fit_loop.epoch_loop.max_steps = -1  # CheckpointCallback ends it

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a draw."""
        self.draws += 1

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        """Take over the count of earlier versions, where it is that of one optimiser."""
        if COUNTER not in checkpoint["callbacks"] and len(checkpoint["optimizer_states"]) > 1:
            raise SetsupError(
                "the checkpoint was written by an earlier version, which counted the steps of each optimiser; train "
                "again in another folder"
            )
        checkpoint["callbacks"][COUNTER] = {"steps": trained_steps(checkpoint)}

    def state_dict(self) -> dict[str, Any]:
        """Steps, for the checkpoint: it is written at the end of one."""
        return {"steps": self.steps}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue counting."""
        self.draws = state_dict["steps"] * self._accumulate
