"""Whether a run may be trained longer: whether it then equals a run that was trained so long from the start."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from setsup.errors import SetsupError
from setsup.experiments.runs.checkpoint import has_checkpoint, open_checkpoint
from setsup.experiments.runs.run import Run

__all__ = ["need_continuable"]

_TOTALS = {"total_steps": "OneCycleLR", "T_max": "CosineAnnealingLR", "power": "PolynomialLR"}
"""Values in the state of torch's schedulers whose shape depends on how long they last."""


def need_continuable(run: Run, before: int) -> None:
    """Raise SetsupError unless a run that was started with `before` steps may have those of its preset.

    Schedules of torch are known from the checkpoint, others by their property ``needs_total``. A function of a user's
    own, as of ``LambdaLR``, does not say whether it depends on the number of steps.
    """
    steps, done = run.preset.steps, run.progress().steps
    if steps < done:
        raise SetsupError(
            f"{run.folder} has been trained for {done:,} steps, more than the requested {steps:,}; pass --steps {done} "
            "or more, or another --out"
        )
    if not has_checkpoint(run.folder):
        return
    schedulers = open_checkpoint(run.folder)[1].get("lr_schedulers")
    names = [*_settings_with_total(run.preset, ""), *_schedulers_with_total(schedulers)]
    if names:
        raise SetsupError(
            f"{run.folder} was started with steps={before:,} and cannot continue with steps={steps:,}, because "
            f"{names[0]} depends on the number of steps; pass --steps {before}, or another --out"
        )


def _settings_with_total(settings: Any, name: str) -> Iterator[str]:
    """Settings of a preset that say that they depend on the number of steps."""
    if not is_dataclass(settings):
        return
    if getattr(settings, "needs_total", False):
        yield f"{name} ({type(settings).__name__})" if name else type(settings).__name__
    for item in fields(settings):
        if item.metadata.get("setting", True):
            yield from _settings_with_total(getattr(settings, item.name), f"{name}.{item.name}" if name else item.name)


def _schedulers_with_total(states: Any) -> Iterator[str]:
    """Schedulers of torch in a checkpoint that depend on the number of steps, those within others too."""
    for state in states if isinstance(states, list) else ():
        if not isinstance(state, Mapping):
            continue
        if (kind := next((scheduler for key, scheduler in _TOTALS.items() if key in state), None)) is not None:
            yield f"the scheduler {kind} of the method"
        elif "total_iters" in state and state.get("end_factor", 1.0) < state.get("start_factor", 0.0):
            yield "the scheduler LinearLR of the method"
        yield from _schedulers_with_total(state.get("_schedulers"))
