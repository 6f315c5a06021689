"""Checks of a training before it starts: its data and the factors that it names, then its first draw in the method.

Data and factors are checked without torch, so that a wrong name is reported at once.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from setsup.errors import SetsupError
from setsup.experiments.configs import MethodConfig, fit_to_batch
from setsup.experiments.training_data import TrainingData
from setsup.experiments.validation import Validation
from setsup.factors import FactorTable
from setsup.loading import Loader
from setsup.loading.batch import Transform

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

__all__ = ["check_draws", "fit_to_first_draw", "try_first_draw"]


def check_draws(data: TrainingData, method: MethodConfig | None) -> None:
    """Raise SetsupError where the sampler or the method of a training names factors that its data do not have.

    The sampler is built, and with it whatever it says of the data is checked; of a method, fields that say in their
    metadata that they name factors, ``field(metadata={"factors": True})``.
    """
    data.build_sampler()
    _check_factors(method, data.dataset.factors)


def _check_factors(settings: Any, table: FactorTable) -> None:
    for member in fields(settings) if is_dataclass(settings) else ():
        if member.metadata.get("factors"):
            for name in getattr(settings, member.name):
                table[name]  # FactorError names similar ones


def fit_to_first_draw(data: TrainingData, method: MethodConfig) -> MethodConfig:
    """Settings of a method, completed from the first draw of a training where they have ``fit_to``."""
    if not hasattr(method, "fit_to"):
        return method
    shrunk = getattr(data.sampler, "shrunk", None)
    batch: Any = None
    if shrunk is not None:
        with suppress(Exception):  # which may be due to the small draw alone
            small = replace(data, sampler=shrunk())
            batch = _first_batch(small, small.build_transform())
    if batch is None:
        batch = _first_batch(data, data.build_transform())
    return method if batch is None else fit_to_batch(method, batch)


def _first_batch(data: TrainingData, transform: Transform | None) -> Any:
    """The batch of the first draw, on the CPU; None where there is no draw."""
    sampler = data.build_sampler()
    return next(iter(Loader(data.dataset, sampler, transform=transform, modalities=data.modalities, workers=0)), None)


def try_first_draw(
    data: TrainingData,
    build: Callable[[], "LightningModule"],
    eval_transform: Transform | None,
    validation: Validation,
    *,
    evaluated: bool,
) -> None:
    """Pass the first draw of a training to a method of its own, on the CPU: SetsupError for what does not fit.

    It is embedded too, after `eval_transform`, where the run is validated by embeddings, or is to be `evaluated`.
    A shrunk draw, as `smoke` has it, comes first, and is enough if it fits: a full one may take gigabytes.
    """
    parts: Any = {"eval_transform": eval_transform, "validation": validation, "evaluated": evaluated}
    shrunk = getattr(data.sampler, "shrunk", None)
    if shrunk is not None:
        with suppress(Exception):  # which may be due to the small draw alone
            return _try(replace(data, sampler=shrunk()), build, **parts)
    _try(data, build, **parts)


def _try(
    data: TrainingData,
    build: Callable[[], "LightningModule"],
    eval_transform: Transform | None,
    validation: Validation,
    evaluated: bool,
) -> None:
    import torch

    from setsup.experiments.embedding_batch import check_embedded, choose_embedding
    from setsup.methods.rows import RowState

    batch = _first_batch(data, data.build_transform())
    if batch is None:
        return
    method: Any = build().eval()
    for part in method.modules():
        if isinstance(part, RowState):
            part.mark_seen()  # as if the draw had been trained on
    with torch.random.fork_rng(devices=[]), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Lightning, about logging without a Trainer
        for name in ("loss", "embed"):
            try:
                result = getattr(method, name)(batch)
                if name == "embed":
                    check_embedded(method, batch, result)
            except SetsupError:
                raise
            except Exception:  # no loss of a batch; or left to the training, which may be on another device
                continue
            break
        classifies = validation.every and (validation.knn or validation.probe)
        if evaluated or classifies:
            embeddings = _try_embedding(method, _first_batch(data, eval_transform))
            if embeddings and classifies:
                choose_embedding(method, validation.embedding, embeddings)


def _try_embedding(method: Any, batch: Any) -> "dict[str | None, torch.Tensor]":
    """Embed a draw as evaluations do, so that a missing key or another shape is reported before hours of training.

    Empty where that is left to the evaluation, which may be on another device.
    """
    from setsup.experiments.embedding_batch import embed_batch

    try:
        return embed_batch(method, batch)
    except SetsupError:
        raise
    except Exception:
        return {}
