"""The batches that a run was trained on: draws and augmentations are functions of the step, so nothing was logged."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.checks import check_integer
from setsup.errors import DataError, SetsupError, advice
from setsup.experiments.runs.run import Run
from setsup.experiments.runs.run_folder import open_run
from setsup.samplers.sampler import Shard
from setsup.samplers.steps import after_steps, pass_end

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.loading.batch import Batch
    from setsup.samplers import Draw, Sampler

__all__ = ["Rerun", "StepBatch", "rerun", "trained_on"]


@dataclass(frozen=True, slots=True, eq=False)
class StepBatch:
    """The batch of one device in one training step.

    Attributes
    ----------
    step : int
        The step, from 1 on as in ``metrics.jsonl``.
    rank, world : int
        The device, and how many trained together in that step.
    number : int
        Step of the sampler that was drawn.
    draw : Draw
        Its draw: rows of `dataset`.
    batch : dict
        The batch after the augmentation, tensors on the CPU.
    dataset : Dataset
        What was trained on.
    sampler : Sampler
        What drew: ``sampler[number]`` is `draw`, unless a finite sampler had ended before.

    """

    step: int
    rank: int
    world: int
    number: int
    draw: "Draw"
    batch: "Batch"
    dataset: "Dataset"
    sampler: "Sampler"


def trained_on(
    run: Run | Path | str, step: int, *, rank: int = 0, part: int = 0, root: Path | str | None = None
) -> StepBatch:
    """Reproduce the batch of a training step: its rows, and its images with the same augmentation.

    It is bit for bit what the method got, if that ran on a CPU with the same versions of the libraries; on a GPU,
    images that an augmentation changed there differ by rounding. Steps that a killed run lost are those that were
    trained in their place.

    Parameters
    ----------
    run : Run, Path or str
        A run, or its folder.
    step : int
        From 1 to the steps of the preset: as in ``metrics.jsonl``, whose line `step` is measured on this batch. A step
        that is not trained yet is what the last session would be trained on.
    rank : int
        The device, of those that trained together in that step.
    part : int
        Where a step accumulates the gradients of several draws, which of them.
    root : Path or str, optional
        Folder of the data; the one of the training by default.

    Raises
    ------
    SetsupError
        When the step, device or part does not exist, or the run trains nothing.
    DataError
        When the data are not here, or are not those that were trained on.

    Examples
    --------
    >>> trained_on("runs/abc/shapes3d/seed-0", 120).draw.indices.shape  # doctest: +SKIP
    (2, 32)

    """
    return rerun(run, root).batch(step, rank, part)


@dataclass(frozen=True, slots=True, eq=False)
class Rerun:
    """A run whose data are open: batches of any of its steps."""

    run: Run
    dataset: "Dataset"
    sampler: "Sampler"
    transform: Any
    modalities: tuple[str, ...] | None

    def batch(self, step: int, rank: int = 0, part: int = 0) -> StepBatch:
        """The batch of a step, as :func:`trained_on` gives it."""
        from setsup.loading import loader

        run, accumulate = self.run, self.run.preset.accumulate
        step = check_integer(step, f"the step of {run.folder}", SetsupError, 1, run.preset.steps)
        before, world = _draws_before(run, step, self.sampler.length)
        rank = check_integer(rank, f"the rank, of {world} in step {step},", SetsupError, 0, world - 1)
        part = check_integer(part, f"the part, of {accumulate} draws per step,", SetsupError, 0, accumulate - 1)
        number = after_steps(before, part, world, self.sampler.length)
        options: dict[str, Any] = {"modalities": self.modalities, "transform": self.transform}
        batches = loader(self.dataset, self.sampler, rank=rank, world=world, start=number, workers=0, **options)
        batch = next(iter(batches))
        share = Shard(self.sampler, rank, world, number, end=pass_end(number, self.sampler.length))
        return StepBatch(step, rank, world, number + rank, share[0], batch, self.dataset, self.sampler)


def rerun(run: Run | Path | str, root: Path | str | None = None) -> Rerun:
    """Open the data of a run once, for the batches of several steps; errors are those of :func:`trained_on`."""
    run = run if isinstance(run, Run) else open_run(run)
    if run.preset.method is None:
        raise SetsupError(
            f"{run.preset.name} trains nothing, so its steps have no batches; choose a run whose preset has a method"
        )
    data = run.preset.open_training(run.seed, root or run.description.get("root"), substitute=run.substitute)
    _check_same(run, data.dataset)
    transform = data.build_transform()
    return Rerun(run, data.dataset, data.build_sampler(), transform, data.modalities)


def _draws_before(run: Run, step: int, length: int | None) -> tuple[int, int]:
    """Draws of all devices before a step, and how many devices there were in it."""
    worlds = run.draws_per_step
    starts = [0, *(int(session["from_step"]) for session in run.description.get("later", ())), step - 1]
    draws, world = 0, worlds[0]
    for (start, stop), devices in zip(pairwise(starts), worlds, strict=True):
        steps = max(min(stop, step - 1) - start, 0) * run.preset.accumulate
        draws = after_steps(draws, steps, devices, length)
        world = devices if start <= step - 1 else world
    return draws, world


def _check_same(run: Run, dataset: "Dataset") -> None:
    """DataError where the run keeps another factor table than that of the data."""
    kept = run.folder / "factors.parquet"
    if kept.exists() and not dataset.factors.has_fingerprint(run.factors().fingerprint):
        raise DataError(
            f"{dataset.name} differs from the training data of {run.folder}: the factors do not match "
            f"{kept.name}; open the original data, or pass {advice('root=', '--root')}"
        )
