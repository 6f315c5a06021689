"""Validation during a training, which the training does not notice: loss, neighbours and probes of held-out data."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import nn

from setsup import evaluation
from setsup.datasets import Dataset
from setsup.datasets.dataset import Selection
from setsup.errors import FactorError, SetsupError, near, need
from setsup.evaluation.probes import probe_accuracy
from setsup.experiments.configs import SamplerConfig, build_eval_transform, build_transform
from setsup.experiments.embedding import embed
from setsup.experiments.preset import Preset
from setsup.experiments.validation import Validation
from setsup.factors import FactorTable
from setsup.loading import Loader
from setsup.loading.batch import Transform
from setsup.random import fold, permute, stream_key
from setsup.samplers import Sampler

__all__ = ["ValidationCallback", "build_validation"]

Rows = npt.NDArray[np.int64]

_PREFIX = "validation/"
_SEED = stream_key(0, "validation")  # of all runs, so that their validations compare


@dataclass(frozen=True, slots=True)
class _HeldOut:
    """What is measured on, and the training rows that it is compared with.

    `training_rows` has the row of the training data for each row, -1 for images that are not trained on; `fit` are rows
    of the training data and `test` of the held-out data, none of which are the same images.
    """

    trained: Dataset
    dataset: Dataset
    sampler: Sampler | None
    transform: Transform | None
    eval_transform: Transform | None
    training_rows: Rows
    fit: Rows
    test: Rows


def build_validation(
    preset: Preset,
    sampler: SamplerConfig,
    method: LightningModule,
    dataset: Dataset,
    seed: int,
    *,
    root: Path | str | None = None,
    substitute: bool = False,
    precision: str = "float32",
) -> "ValidationCallback | None":
    """Build the validation of a preset, None where it has none; SetsupError for what cannot be measured."""
    asked = preset.validation
    if not asked.every:
        return None
    if asked.draws and (
        not callable(getattr(type(method), "loss", None)) or isinstance(getattr(method, "loss", None), nn.Module)
    ):
        raise SetsupError(
            f"{type(method).__name__} has no method loss(batch), whose value validation measures: give it one, which "
            "returns a number, or measure knn or probe alone with --validation.draws 0"
        )
    if asked.probe:
        need("--validation.probe needs", "sklearn")
    held_out = _open(preset, dataset, root, substitute)
    for name in (*asked.knn, *asked.probe):
        _need_levels(name, dataset.factors, "the training data")
        _need_levels(name, held_out.factors, "the validation data")
    training_rows = _find_rows(held_out, dataset)
    fit, test = _split_rows(len(dataset), training_rows, asked.rows)
    if (asked.knn or asked.probe) and not (len(fit) and len(test)):
        raise SetsupError(f"{len(dataset)} row is too few to fit on some rows and validate on others: draw from more")
    found = _HeldOut(
        dataset,
        held_out,
        _build_sampler(sampler, held_out) if asked.draws else None,
        build_transform(preset.augmentation, _SEED),
        build_eval_transform(preset.eval_transform, preset.augmentation, seed),
        training_rows,
        fit,
        test,
    )
    return ValidationCallback(asked, found, precision)


def _build_sampler(sampler: SamplerConfig, held_out: Dataset) -> Sampler:
    try:
        return sampler.build(held_out.factors, _SEED)
    except SetsupError as error:
        raise SetsupError(
            f"validation cannot draw from its rows as the training does ({error}): choose others, or measure knn or "
            "probe alone with --validation.draws 0"
        ) from error


class ValidationCallback(Callback):
    """Measures held-out data every so many steps, and logs it as metrics of the step.

    It comes before what writes metrics and checkpoints, so that no checkpoint has a step whose validation is missing.
    All ranks measure the same draws and rows, since a method may gather tensors from all of them in its loss; the
    results of the first rank count, where running statistics are those of the checkpoint.
    """

    def __init__(self, asked: Validation, held_out: _HeldOut, precision: str = "float32") -> None:
        self._asked, self._held_out, self._precision = asked, held_out, precision
        self._at = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Count from where the run resumes."""
        self._at = trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Measure when it is due; of several steps in one batch, one may be."""
        before, self._at = self._at, trainer.global_step
        if self._at // self._asked.every == before // self._asked.every:
            return
        found = {_PREFIX + name: value for name, value in self._measure(trainer, pl_module).items()}
        if trainer.world_size > 1:
            found = trainer.strategy.broadcast(found)
        for name, value in found.items():
            pl_module.log(name, value, on_step=True, on_epoch=False)

    def _measure(self, trainer: Trainer, method: LightningModule) -> dict[str, float]:
        device = trainer.strategy.root_device
        with _undisturbed(method, device) as logged:
            found = {}
            if self._held_out.sampler is not None:
                batches = self._batches(self._held_out.sampler, device)
                with torch.no_grad(), trainer.precision_plugin.val_step_context():
                    losses = [_loss(method, batch, number) for number, batch in enumerate(batches)]
                # what the method logs in its loss, with a mean over the draws that logged it
                found = {name: _mean(values) for name, values in logged.items()} | {"loss": _mean(losses)}
            if self._asked.knn or self._asked.probe:
                found |= self._accuracies(method, str(device))
        return found

    def _batches(self, sampler: Sampler, device: torch.device) -> Iterator[dict[str, Any]]:
        """The draws, always the same; indices are rows of the training data, -1 for images that are not among them."""
        held_out = self._held_out

        def prepare(batch: dict[str, Any]) -> dict[str, Any]:
            rows = torch.as_tensor(held_out.training_rows, device=batch["indices"].device)
            batch = {**batch, "indices": rows[batch["indices"]]}
            return batch if held_out.transform is None else held_out.transform(batch)

        to = "torch" if device.type == "cpu" else str(device)
        loader = Loader(held_out.dataset, sampler, transform=prepare, workers="thread", to=to)
        return islice(iter(loader), self._asked.draws)

    def _accuracies(self, method: LightningModule, device: str) -> dict[str, float]:
        asked, held_out = self._asked, self._held_out
        options: dict[str, Any] = {
            "device": device,
            "precision": self._precision,
            "transform": held_out.eval_transform,
        }
        fit, test = (
            embed(method, dataset, rows, **options)
            for dataset, rows in ((held_out.trained, held_out.fit), (held_out.dataset, held_out.test))
        )
        finite = bool(np.isfinite(fit).all() and np.isfinite(test).all())  # where a run may continue without
        found = {}
        for what, names in (("knn", asked.knn), ("probe", asked.probe)):
            for name in names:
                labels = held_out.trained.factors.codes(name, held_out.fit)
                wanted = _codes(held_out.trained.factors, held_out.dataset.factors, name, held_out.test)
                if not finite:
                    accuracy = math.nan
                elif what == "knn":
                    accuracy = evaluation.accuracy(test, fit, wanted, labels, asked.k, metric=asked.metric).value
                else:
                    accuracy = probe_accuracy(fit, labels, test, wanted)
                found[f"{what}/{name}"] = accuracy
        return found


def _loss(method: Any, batch: dict[str, Any], number: int) -> float:
    """The loss of a draw, under noise that is always the same."""
    torch.manual_seed(int(fold(_SEED, number)))
    loss = method.loss(batch)
    if not isinstance(loss, torch.Tensor | float | int) or (isinstance(loss, torch.Tensor) and loss.numel() != 1):
        raise SetsupError(
            f"{type(method).__name__}.loss gave {type(loss).__name__} {tuple(getattr(loss, 'shape', ()))}, and "
            "validation measures one number: return the loss alone"
        )
    return float(loss)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan


@contextmanager
def _undisturbed(method: LightningModule, device: torch.device) -> Iterator[dict[str, list[float]]]:
    """Evaluation mode for a while; then modes, buffers, untrained parameters and random numbers are as before.

    Yields what the method logs meanwhile, which is no metric of the training.
    """
    logged: dict[str, list[float]] = {}

    def log(name: str, value: Any, *_: Any, **__: Any) -> None:
        if isinstance(value, torch.Tensor | float | int):
            logged.setdefault(name, []).append(float(value))

    modes = [(part, part.training) for part in method.modules()]
    kept = [
        (held, name, value, value.detach().clone())
        for part in method.modules()
        for held in (part._buffers, part._parameters)
        for name, value in held.items()
        if value is not None and not value.requires_grad
    ]
    devices = [device] if device.type == "cuda" else []
    method.eval()
    method.__dict__["log"] = log
    try:
        with torch.random.fork_rng(devices=devices):
            yield logged
    finally:
        del method.__dict__["log"]
        for part, mode in modes:
            part.training = mode
        for held, name, value, content in kept:
            held[name] = value  # where the method put another tensor in its place
            with torch.no_grad():
                value.copy_(content)


def _open(preset: Preset, dataset: Dataset, root: Path | str | None, substitute: bool) -> Dataset:
    """Open what is measured on."""
    asked, data = preset.validation, preset.data
    if asked.dataset is not None:
        further = getattr(preset, "datasets", {})
        if asked.dataset not in further:
            raise SetsupError(
                f"{preset.name} has no further dataset {asked.dataset!r} to validate on{near(asked.dataset, further)}"
            )
        data = further[asked.dataset]
    elif asked.split is None and asked.where is None:
        return dataset
    return asked.data(data).open(root, substitute=substitute)  # type: ignore[union-attr]


def _need_levels(name: str, table: FactorTable, of: str) -> None:
    if name not in table:
        raise FactorError(f"validation names the factor {name!r}, which {of} do not have{near(name, table.names)}")
    if table[name].continuous:
        raise SetsupError(
            f"validation names the factor {name!r}, which is continuous, and neighbours and probes tell levels apart: "
            "bin it, or measure it with an evaluation of the preset"
        )


def _find_rows(dataset: Dataset, trained: Dataset) -> Rows:
    """Row of the training data for each row of a dataset, -1 for images that are not trained on."""
    (source, rows), (other, among) = _source(dataset), _source(trained)
    if source is not other and (source.name, source.factors.fingerprint) != (other.name, other.factors.fingerprint):
        return np.full(len(rows), -1)
    found = np.full(len(other), -1)
    found[among] = np.arange(len(among))
    return np.asarray(found[rows])


def _source(dataset: Dataset) -> tuple[Dataset, Rows]:
    """The dataset that a selection reads, and which of its rows."""
    if isinstance(dataset, Selection):
        return dataset.source, dataset.rows
    return dataset, np.arange(len(dataset))


def _split_rows(trained: int, training_rows: Rows, most: int) -> tuple[Rows, Rows]:
    """Training rows to fit on, and held-out rows to test on, without the same image among both."""
    other, same = np.flatnonzero(training_rows < 0), np.flatnonzero(training_rows >= 0)
    # images that are not trained on come first; of those that are, half at most, so that others are left to fit on
    test = other[_some(len(other), most, 0)]
    test = np.concatenate([test, same[_some(len(same), min(most - len(test), -(-len(same) // 2)), 1)]])
    fit = _some(trained, most + len(test), 2)
    return fit[~np.isin(fit, training_rows[test])][:most], test


def _some(count: int, most: int, key: int) -> Rows:
    """At most so many of 0 … count − 1, always the same."""
    found: Rows = permute(fold(_SEED, key), max(count, 1), np.arange(min(count, most)))
    return found


def _codes(trained: FactorTable, table: FactorTable, name: str, rows: Rows) -> Rows:
    """Codes of a factor as the training data number its levels, -1 where these lack one."""
    codes = np.asarray(table.codes(name, rows))
    levels, known = table[name].levels or (), trained[name].levels or ()
    if levels == known:
        return codes
    places = np.array([*(known.index(level) if level in known else -1 for level in levels), -1])
    return np.asarray(places[codes])
