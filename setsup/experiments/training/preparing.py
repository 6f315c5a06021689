"""Everything that a training needs, opened and built before its folder is made."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lightning.pytorch import LightningModule

from setsup.datasets import Dataset
from setsup.errors import DataError, SetsupError, require_modules
from setsup.experiments.configs import MethodConfig, build_eval_transform, build_method, fit_to_dataset
from setsup.experiments.initial_weights import InitialWeights, read_initial, start_from, unfetched
from setsup.experiments.preset import Preset
from setsup.experiments.runs.checkpoint import has_checkpoint
from setsup.experiments.runs.run_folder import check_begin
from setsup.experiments.settings import difference, flatten
from setsup.experiments.training.checks import need_runnable
from setsup.experiments.training.config import RunConfig
from setsup.experiments.training.counting import StepCounter
from setsup.experiments.training.monitoring.held_out import HeldOut
from setsup.experiments.training.monitoring.loggers import need_logger
from setsup.experiments.training.monitoring.validation import open_validation
from setsup.experiments.training.preflight import fit_to_first_draw, try_first_draw
from setsup.experiments.training_data import TrainingData
from setsup.experiments.weights import build_trained
from setsup.loading.lightning import LightningBatches

__all__ = ["Prepared", "build_batches", "prepare"]


class Prepared(NamedTuple):
    """What is trained: `preset` with the place of its initial weights, and with its method completed from the data.

    `about` is what :func:`begin` takes besides preset, folder and seed. `fetches` names published weights that are not
    here yet, and that were left out.
    """

    preset: Preset
    data: TrainingData
    batches: LightningBatches
    method: LightningModule
    counter: StepCounter
    held_out: HeldOut | None
    about: Mapping[str, Any]
    fetches: str | None


def prepare(
    preset: Preset,
    folder: Path,
    seed: int,
    config: RunConfig,
    *,
    root: Path | str | None = None,
    substitute: bool = False,
    fetch: bool = True,
) -> Prepared:
    """Open the data of a preset, build its batches and its method, and try these: SetsupError for what does not fit.

    Without `fetch`, published weights that are not here yet are left out, and nothing is downloaded.
    """
    settings = preset.method
    if settings is None:
        raise SetsupError(f"{preset.name} trains nothing; choose a preset with a method")
    for name in config.log:
        need_logger(name)
    if isinstance(preset.augmentation, str):
        require_modules(f"the augmentation {preset.augmentation!r} needs", "kornia")
    begun = has_checkpoint(folder)
    fetches = None if fetch else unfetched(preset)
    initial = None if fetches is not None else _read_initial(preset, folder, seed, substitute)
    if initial is not None:
        preset = replace(preset, initial_run=str(initial.path))
    data = preset.open_training(seed, root, substitute=substitute)
    # to start processes takes longer than a shrunk training
    workers = "thread" if preset.shrunk and config.workers == "auto" else config.workers
    data = replace(data, sampler=fit_to_dataset(data.sampler, data.dataset))
    batches = build_batches(data, workers)
    asked, settings = preset, fit_to_first_draw(data, settings)
    preset = replace(preset, method=settings, sampler=data.sampler)
    from_data = {name: before for name, (before, _) in difference(flatten(asked), flatten(preset)).items()}
    build = partial(_build, settings, data.dataset, seed, None if begun else initial)
    about: dict[str, Any] = {"root": root, "substitute": substitute, "config": asdict(config), "from_data": from_data}
    about["initial"] = None if initial is None else initial.digest
    if not begun or not _continues(folder, preset, seed, **about):
        # built without evaluations, too: embeddings of the run will need it
        transform = build_eval_transform(preset.eval_transform, preset.augmentation, data.dataset, seed)
        try_first_draw(data, build, transform, preset.validation, evaluated=bool(preset.evaluations))
    method, counter = build(), StepCounter(preset.accumulate)
    need_runnable(method, preset.accumulate)
    table = data.dataset.factors
    trained = build_trained(preset, method, seed, folder, root=root, substitute=substitute, table=table)
    trained.dataset = data.dataset
    held_out = open_validation(preset.validation, trained, data.sampler)
    return Prepared(preset, data, batches, method, counter, held_out, about, fetches)


def _continues(folder: Path, preset: Preset, seed: int, **about: Any) -> bool:
    """Whether the run in a folder is of these settings; those of another run are checked before that is said."""
    try:
        check_begin(folder, preset, seed, **about)
    except SetsupError:
        return False
    return True


def build_batches(data: TrainingData, workers: int | str) -> LightningBatches:
    """Build the batches that are trained on."""
    options: dict[str, Any] = {"modalities": data.modalities, "transform": data.build_transform(), "workers": workers}
    return LightningBatches(data.dataset, data.build_sampler(), **options)


def _read_initial(preset: Preset, folder: Path, seed: int, substitute: bool) -> InitialWeights | None:
    """Weights to start from; a run that has begun does not need them any more."""
    try:
        return read_initial(preset, folder, seed, substitute)
    except DataError:
        if has_checkpoint(folder):
            return None
        raise


def _build(config: MethodConfig, dataset: Dataset, seed: int, initial: InitialWeights | None = None) -> LightningModule:
    method = build_method(config, dataset.factors, seed)
    if initial is not None:
        start_from(method, initial)
    return method
