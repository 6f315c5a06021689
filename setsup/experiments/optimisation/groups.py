"""From optimisers and schedules as settings to what Lightning takes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from setsup.errors import SetsupError
from setsup.experiments.optimisation.optimisers import Optimiser
from setsup.experiments.optimisation.schedules import Constant, Schedule

if TYPE_CHECKING:
    from torch.nn import Parameter

__all__ = ["ParameterGroup", "optimise"]


class ParameterGroup(NamedTuple):
    """Parameters with an optimiser's options or a schedule of their own, such as those of a backbone.

    Attributes
    ----------
    parameters : iterable of torch.nn.Parameter
        Of the group.
    optimiser : Optimiser, optional
        Of the same class as that of all groups, with other values; by default that of all.
    schedule : Schedule, optional
        By default that of all groups.

    """

    parameters: "Iterable[Parameter]"
    optimiser: Optimiser | None = None
    schedule: Schedule | None = None


def optimise(
    parameters: "Iterable[Parameter] | Iterable[ParameterGroup]",
    optimiser: Optimiser,
    schedule: Schedule | None = None,
    *,
    steps: float | None = None,
) -> dict[str, Any]:
    """Build an optimiser with its schedule, as ``configure_optimizers`` of a method returns them.

    The rate of each step is a function of its number, so that a run resumes exactly. A method with several optimisers
    in manual optimisation returns a list of such dicts, and steps its schedulers itself.

    Parameters
    ----------
    parameters : iterable of torch.nn.Parameter, or of ParameterGroup
        What is trained.
    optimiser : Optimiser
        Settings of the optimiser.
    schedule : Schedule, optional
        Settings of the schedule; the rate is constant by default.
    steps : int, optional
        Total number of steps, ``self.trainer.estimated_stepping_batches`` in a method; for schedules that need it.

    Returns
    -------
    dict
        ``optimizer``, and unless all rates are constant ``lr_scheduler`` with the interval ``step``.

    Raises
    ------
    SetsupError
        When a schedule needs the number of steps and does not get it, cycles a momentum that the optimiser does not
        have, or the optimisers of groups are of different classes.

    Examples
    --------
    >>> import torch
    >>> from setsup.experiments.optimisation import SGD, Constant, ParameterGroup, StepDecay, optimise
    >>> backbone, head = torch.nn.Linear(8, 4), torch.nn.Linear(4, 2)
    >>> groups = [
    ...     ParameterGroup(backbone.parameters(), SGD(rate=0.01, momentum=0.9), Constant()),
    ...     ParameterGroup(head.parameters()),
    ... ]
    >>> found = optimise(groups, SGD(rate=0.1, momentum=0.9), StepDecay(every=2))
    >>> for step in range(2):
    ...     found["optimizer"].step()
    ...     found["lr_scheduler"]["scheduler"].step()
    >>> [round(group["lr"], 3) for group in found["optimizer"].param_groups]
    [0.01, 0.01]

    """
    from setsup.experiments.optimisation.scheduler import GroupScheduler

    groups = _as_groups(parameters)
    optimisers = [group.optimiser or optimiser for group in groups]
    schedules = [group.schedule or schedule or Constant() for group in groups]
    if other := next((type(own).__name__ for own in optimisers if type(own) is not type(optimiser)), None):
        raise SetsupError(
            f"a parameter group of {type(optimiser).__name__} cannot use {other}; use the same class for all groups, "
            "or several optimisers in the method"
        )
    built = optimiser.build(
        [{"params": list(group.parameters), **own.options()} for group, own in zip(groups, optimisers, strict=True)]
    )
    if all(isinstance(schedule, Constant) for schedule in schedules):
        return {"optimizer": built}
    total = _need_total(schedules, steps)
    return {
        "optimizer": built,
        "lr_scheduler": {"scheduler": GroupScheduler(built, schedules, total), "interval": "step"},
    }


def _as_groups(parameters: "Iterable[Parameter] | Iterable[ParameterGroup]") -> list[ParameterGroup]:
    listed: list[Any] = list(parameters)
    if not any(isinstance(item, ParameterGroup) for item in listed):
        return [ParameterGroup(listed)]
    if not all(isinstance(item, ParameterGroup) for item in listed):
        raise SetsupError("some parameters are in a ParameterGroup and others are not; put all parameters into groups")
    return listed


def _need_total(schedules: "list[Schedule]", steps: float | None) -> int:
    """The total number of steps; 0 where no schedule needs it."""
    needy = next((type(candidate).__name__ for candidate in schedules if candidate.needs_total), None)
    if steps is not None and 1 <= steps < float("inf"):
        return int(steps)
    if needy is not None:
        raise SetsupError(
            f"{needy} requires a finite number of steps, not {steps}; call optimise with "
            "steps=self.trainer.estimated_stepping_batches, in a Trainer(max_steps=…)"
        )
    return 0
