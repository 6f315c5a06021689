"""Checks of a training before it starts: its data and the factors that it names, then its first draw in the method.

Data and factors are checked without torch, so that a wrong name is reported at once.
"""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.datasets import Dataset
from setsup.errors import SetsupError
from setsup.experiments.configs import (
    MethodConfig,
    SamplerConfig,
    build_eval_transform,
    build_transform,
    fit_to_batch,
)
from setsup.experiments.preset import Preset
from setsup.factors import FactorTable
from setsup.loading import Loader

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

__all__ = ["check_draws", "fit_to_first_draw", "try_first_draw"]


def check_draws(preset: Preset, seed: int, *, root: Path | str | None = None, substitute: bool = False) -> None:
    """Raise SetsupError where the data of a preset do not open, or a part of it names factors that they do not have.

    Its sampler is built, and with it whatever it says of the data is checked; of a method, fields that say in their
    metadata that they name factors, ``field(metadata={"factors": True})``.
    """
    if preset.data is None or preset.sampler is None:
        return
    dataset = preset.open_data(root, substitute=substitute)
    preset.sampler.build(dataset, seed)
    _check_factors(preset.method, dataset.factors)


def _check_factors(settings: Any, table: FactorTable) -> None:
    for member in fields(settings) if is_dataclass(settings) else ():
        if member.metadata.get("factors"):
            for name in getattr(settings, member.name):
                table[name]  # FactorError names similar ones


def fit_to_first_draw(
    preset: Preset, sampler: SamplerConfig, method: MethodConfig, dataset: Dataset, seed: int
) -> MethodConfig:
    """Settings of a method, completed from the first draw of a preset where they have ``fit_to``."""
    if not hasattr(method, "fit_to"):
        return method
    shrunk = getattr(sampler, "shrunk", None)
    batch: Any = None
    if shrunk is not None:
        with suppress(Exception):  # which may be due to the small draw alone
            batch = next(iter(_batches(preset, shrunk(), dataset, seed)), None)
    if batch is None:
        batch = next(iter(_batches(preset, sampler, dataset, seed)), None)
    return method if batch is None else fit_to_batch(method, batch)


def _batches(preset: Preset, config: SamplerConfig, dataset: Dataset, seed: int) -> Loader:
    """Batches of a training, on the CPU."""
    sampler, transform = config.build(dataset, seed), build_transform(preset.augmentation, dataset, seed)
    modalities = None if preset.data is None else preset.data.modalities
    return Loader(dataset, sampler, transform=transform, modalities=modalities, workers=0)


def try_first_draw(
    preset: Preset, sampler: SamplerConfig, build: Callable[[], "LightningModule"], dataset: Dataset, seed: int
) -> None:
    """Pass the first draw of a preset to a method of its own, on the CPU: SetsupError for what does not fit.

    A shrunk draw, as `smoke` has it, comes first, and is enough if it fits: a full one may take gigabytes.
    """
    shrunk = getattr(sampler, "shrunk", None)
    if shrunk is not None:
        with suppress(Exception):  # which may be due to the small draw alone
            return _try(preset, shrunk(), build, dataset, seed)
    _try(preset, sampler, build, dataset, seed)


def _try(
    preset: Preset, config: SamplerConfig, build: Callable[[], "LightningModule"], dataset: Dataset, seed: int
) -> None:
    import torch

    from setsup.experiments.embedding_batch import check_embedded, choose_embedding
    from setsup.methods.rows import RowState

    batch = next(iter(_batches(preset, config, dataset, seed)), None)
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
        # built without evaluations, too: embeddings of the run will need it
        transform = build_eval_transform(preset.eval_transform, preset.augmentation, dataset, seed)
        classifies = preset.validation.every and (preset.validation.knn or preset.validation.probe)
        if preset.evaluations or classifies:
            modalities = None if preset.data is None else preset.data.modalities
            options: Any = {"modalities": modalities, "transform": transform, "workers": 0}
            embeddings = _try_embedding(method, Loader(dataset, config.build(dataset, seed), **options))
            if embeddings and classifies:
                choose_embedding(method, preset.validation.embedding, embeddings)


def _try_embedding(method: Any, batches: Loader) -> "dict[str | None, torch.Tensor]":
    """Embed a draw as evaluations do, so that a missing key or another shape is reported before hours of training.

    Empty where that is left to the evaluation, which may be on another device.
    """
    from setsup.experiments.embedding_batch import embed_batch

    batch = next(iter(batches))
    try:
        return embed_batch(method, batch)
    except SetsupError:
        raise
    except Exception:
        return {}
