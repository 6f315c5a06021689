"""Held-out data of a validation: draws for the loss, and rows for neighbours and probes."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from lightning.pytorch import LightningModule

from setsup import evaluation
from setsup.datasets import Dataset
from setsup.errors import DataError, FactorError, SetsupError, did_you_mean, imported
from setsup.evaluation.probes import fit_standardized
from setsup.experiments.configs import SamplerConfig, build_transform
from setsup.experiments.data import explain_missing, shared_modalities
from setsup.experiments.trained_run import TrainedRun
from setsup.experiments.training_rows import find_origin, find_training_rows
from setsup.experiments.validation import Validation
from setsup.factors import FactorTable
from setsup.loading import Loader
from setsup.loading.batch import Transform
from setsup.random import fold, permute, stream_key
from setsup.samplers import Sampler

__all__ = ["SEED", "HeldOut", "open_held_out"]

SEED = stream_key(0, "validation")
"""Of all runs, so that their validations compare."""

Rows = npt.NDArray[np.int64]
Reals = npt.NDArray[np.float32]

_PENALTY = 1e-4  # of logistic_probe
_STILL = 1e-4  # gradient that ends a fit: coarser than there, for one that is made again and again


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What is measured on, for what is `asked`, and the training rows that it is compared with.

    `trained` is the method at its start, with the data that it is trained on.
    `training_rows` has the row of the training data for each row, -1 for images that are not trained on; `fit` are rows
    of the training data and `test` of the held-out data, none of which are the same images.
    """

    asked: Validation
    trained: TrainedRun
    dataset: Dataset
    sampler: Sampler | None
    transform: Transform | None
    training_rows: Rows
    fit: Rows
    test: Rows

    def _run(self, method: LightningModule, device: str, precision: str) -> TrainedRun:
        """The method as evaluations get it now: nothing that it embedded before is kept; its data are open."""
        run = replace(self.trained, method=method, device=device, precision=precision, _embedded={})
        run.dataset = self.trained.dataset
        return run

    def batches(self, device: torch.device) -> Iterator[dict[str, Any]]:
        """The draws, always the same; indices are rows of the training data, -1 for images that are not among them."""
        if self.sampler is None:
            return iter(())
        rows = torch.from_numpy(self.training_rows)

        def prepare(batch: dict[str, Any]) -> dict[str, Any]:
            indices = batch["indices"]
            batch = {**batch, "indices": rows[indices.cpu()].to(indices.device)}
            return batch if self.transform is None else self.transform(batch)

        to = "torch" if device.type == "cpu" else str(device)
        names = shared_modalities(self.trained.data, self.dataset)
        options: dict[str, Any] = {"modalities": names, "transform": prepare, "workers": "thread", "to": to}
        return islice(Loader(self.dataset, self.sampler, **options), self.asked.draws)

    def accuracies(self, method: LightningModule, device: str, precision: str) -> dict[str, float]:
        """Accuracies of neighbours and probes, such as ``knn/shape``; NaN where they have none."""
        asked, trained = self.asked, self.trained.dataset
        if not (asked.knn or asked.probe):
            return {}
        run = self._run(method, device, precision)
        fit = run.embed_vectors(trained, self.fit, asked.embedding)
        test = run.embed_vectors(self.dataset, self.test, asked.embedding)
        accuracies = {}
        for kind, names in (("knn", asked.knn), ("probe", asked.probe)):
            for name in names:
                labels = trained.factors.codes(name, self.fit)
                wanted = _codes(trained.factors, self.dataset.factors, name, self.test)
                accuracies[f"{kind}/{name}"] = math.nan
                # no label is known, or embeddings are not finite: a reason to stop no training
                with suppress(DataError):
                    accuracies[f"{kind}/{name}"] = (
                        evaluation.accuracy(test, fit, wanted, labels, asked.k, metric=asked.metric).value
                        if kind == "knn"
                        else _probe(fit, labels, test, wanted)
                    )
        return accuracies


def open_held_out(asked: Validation, trained: TrainedRun, sampler: SamplerConfig) -> HeldOut:
    """Open what a method is validated on, next to the dataset that it is trained on."""
    dataset, held_out = trained.dataset, _open(asked, trained)
    for name in (*asked.knn, *asked.probe):
        _need_levels(name, dataset.factors, "the training data")
        _need_levels(name, held_out.factors, "the validation data")
    training_rows = find_training_rows(
        held_out, np.arange(len(held_out)), dataset.name, dataset.factors, lambda: dataset
    )
    fit, test = _split_rows(training_rows, _images(dataset, held_out), asked.rows)
    if (asked.knn or asked.probe) and not (len(fit) and len(test)):
        raise SetsupError(
            f"{len(dataset)} row cannot be divided into rows to fit and rows to validate; draw from more rows"
        )
    return HeldOut(
        asked,
        trained,
        held_out,
        _build_sampler(sampler, held_out) if asked.draws else None,
        build_transform(trained.augmentation, held_out, SEED),
        training_rows,
        fit,
        test,
    )


def _open(asked: Validation, trained: TrainedRun) -> Dataset:
    """Open what is measured on; further datasets as evaluations open them."""
    data, root, substitute = trained.data, trained.root, trained.substitute
    if data is None or (asked.dataset is None and asked.split is None and asked.where is None):
        return trained.dataset
    if asked.dataset is None:
        return asked.data(data).open(root, substitute=substitute)
    if asked.dataset not in trained.datasets:
        hint = did_you_mean(asked.dataset, trained.datasets)
        raise SetsupError(f"{trained.name} has no dataset named {asked.dataset!r} for validation{hint}")
    other = trained.datasets[asked.dataset]
    root = root if other.name == data.name else None
    substitute = substitute and other.substitute is not None
    with explain_missing(f"{asked.dataset!r} of {trained.name}", other.name, {} if substitute else trained.missing):
        return asked.data(other).open(root, substitute=substitute)


def _build_sampler(sampler: SamplerConfig, held_out: Dataset) -> Sampler:
    try:
        return sampler.build(held_out, SEED)
    except SetsupError as error:
        raise SetsupError(
            f"validation cannot draw from its rows as training does ({error}); choose other rows, or compute only knn "
            "or probe with --validation.draws 0"
        ) from error


def _need_levels(name: str, table: FactorTable, of: str) -> None:
    if name not in table:
        raise FactorError(
            f"validation uses the factor {name!r}, which {of} do not have{did_you_mean(name, table.names)}"
        )
    if table[name].continuous:
        raise SetsupError(
            f"validation requires factors with levels for knn and probe, but {name!r} is continuous; bin the "
            "factor, or measure it with an evaluation of the preset"
        )


def _split_rows(training_rows: Rows, images: tuple[Rows, Rows], most: int) -> tuple[Rows, Rows]:
    """Training rows to fit on, and held-out rows to test on, without the same image among both.

    `images` are numbers of the images of the training and of the held-out data, which may repeat.
    """
    other, same = np.flatnonzero(training_rows < 0), np.flatnonzero(training_rows >= 0)
    # images that are not trained on come first; of those that are, half at most, so that others are left to fit on
    test = other[_some(len(other), most, 0)]
    test = np.concatenate([test, same[_some(len(same), min(most - len(test), -(-len(same) // 2)), 1)]])
    of_fit, of_test = images
    repeats = len(of_fit) // max(1, len(np.unique(of_fit))) + 1
    fit = _some(len(of_fit), most + repeats * len(test), 2)
    return fit[~np.isin(of_fit[fit], of_test[test])][:most], test


def _images(dataset: Dataset, held_out: Dataset) -> tuple[Rows, Rows]:
    """Numbers of the images of both: equal ones are rows of one dataset that both are selected from."""
    (known, of_fit), (source, of_test) = find_origin(dataset), find_origin(held_out)
    same = source.name == known.name and source.factors.has_fingerprint(known.factors.fingerprint)
    return of_fit, of_test if same else of_test + len(known)


def _some(count: int, most: int, key: int) -> Rows:
    """At most so many of 0 … count − 1, always the same."""
    rows: Rows = permute(fold(SEED, key), count, np.arange(min(count, most)))
    return rows


def _codes(trained: FactorTable, table: FactorTable, name: str, rows: Rows) -> Rows:
    """Codes of a factor as the training data number its levels, -1 where these lack one."""
    codes = np.asarray(table.codes(name, rows))
    levels, known = table[name].levels or (), trained[name].levels or ()
    if levels == known:
        return codes
    places = np.array([*(known.index(level) if level in known else -1 for level in levels), -1])
    return np.asarray(places[codes])


def _probe(fit: Reals, labels: Rows, test: Reals, wanted: Rows) -> float:
    """Accuracy of a logistic regression on rows that it was not fitted to; rows without a label take no part."""
    known, tested = labels >= 0, wanted >= 0
    if not (tested.any() and known.any() and np.isfinite(fit).all() and np.isfinite(test).all()):
        return math.nan
    if len(np.unique(labels[known])) == 1:
        return float((wanted[tested] == labels[known][0]).mean())
    linear = imported("sklearn.linear_model", "train")
    model = linear.LogisticRegression(C=1 / (_PENALTY * known.sum()), tol=_STILL, max_iter=1_000)
    fitted = fit_standardized(model, fit[known].astype(np.float64), labels[known])
    predicted = fitted.predict(test[tested].astype(np.float64))
    return float((predicted == wanted[tested]).mean())
