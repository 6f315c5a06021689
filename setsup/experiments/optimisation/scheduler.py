"""Torch's interface to schedules: the rate and momentum of each parameter group, as functions of the step."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from setsup.errors import SetsupError
from setsup.experiments.optimisation.schedules import Schedule

__all__ = ["GroupScheduler"]


class GroupScheduler(LRScheduler):
    """Sets the rate, and where its schedule cycles it the momentum, of each parameter group."""

    def __init__(self, optimiser: Optimizer, schedules: Sequence[Schedule], total: int) -> None:
        self._schedules, self._total = list(schedules), total
        for schedule, group in zip(schedules, optimiser.param_groups, strict=True):
            if schedule.momentum_at(0, total) is not None and not {"momentum", "betas"} & group.keys():
                raise SetsupError(
                    f"{type(schedule).__name__} cycles the momentum, but {type(optimiser).__name__} has no "
                    "momentum; choose another optimiser, or set momentum=()"
                )
        super().__init__(optimiser)

    def get_lr(self) -> list[float | Tensor]:
        """Rates of this step; momenta are set at once, as torch's OneCycleLR does."""
        rates: list[float | Tensor] = []
        for schedule, base, group in zip(self._schedules, self.base_lrs, self.optimizer.param_groups, strict=True):
            rates.append(base * schedule.scale_at(self.last_epoch, self._total))
            momentum = schedule.momentum_at(self.last_epoch, self._total)
            if momentum is not None and "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            elif momentum is not None:
                group["momentum"] = momentum
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Plain values, as checkpoints hold: schedules are settings of the run."""
        return {name: value for name, value in super().state_dict().items() if name not in ("_schedules", "_total")}
