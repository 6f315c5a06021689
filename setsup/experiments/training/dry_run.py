"""What would be trained: all checks of a training, and nothing written."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import torch
from lightning.pytorch import LightningModule

from setsup.experiments.preset import Preset
from setsup.experiments.runs.run_folder import check_begin
from setsup.experiments.training.config import RunConfig
from setsup.experiments.training.preparing import prepare
from setsup.experiments.training.trainer import build_trainer, quiet

__all__ = ["Plan", "dry_run"]


class Plan(NamedTuple):
    """What a training would do; `dataset` is None where there is nothing to train.

    `rows` counts the rows of the data, `draw` is (sets, size) of a draw, `images` names what is read of each row with
    shape (None where it varies) and dtype, `parameters` and `trained` count numbers in the method's networks, and
    `steps` those after `from_step`. `fetches` names published weights that it would download first, and that are not
    checked here.
    """

    folder: Path
    seed: int
    steps: int
    from_step: int
    dataset: str | None = None
    rows: int = 0
    draw: tuple[int, ...] = ()
    images: Mapping[str, tuple[tuple[int | None, ...], str]] | None = None
    parameters: int = 0
    trained: int = 0
    fetches: str | None = None


def dry_run(
    preset: Preset,
    folder: Path,
    *,
    seed: int = 0,
    root: Path | str | None = None,
    substitute: bool = False,
    config: RunConfig | None = None,
) -> Plan:
    """Check all that :func:`train` checks before it starts, with the first draw passed through the method.

    Nothing is downloaded.
    """
    config = config or RunConfig()
    if preset.method is None:
        check_begin(folder, preset, seed, root=root, substitute=substitute, config=asdict(config))
        return Plan(folder, seed, 0, 0)
    prepared = prepare(preset, folder, seed, config, root=root, substitute=substitute, fetch=False)
    preset, data, dataset = prepared.preset, prepared.data, prepared.data.dataset
    with quiet():
        build_trainer(preset.steps, preset.accumulate, folder, config, [])
    done = check_begin(folder, preset, seed, **prepared.about).progress().steps
    fetched = data.modalities or dataset.modalities
    return Plan(
        folder,
        seed,
        max(preset.steps - done, 0),
        done,
        dataset.name,
        len(dataset),
        tuple(data.build_sampler()[0].indices.shape),
        {name: (modality.shape, modality.dtype) for name, modality in dataset.modalities.items() if name in fetched},
        _count(prepared.method),
        _count(prepared.method, trained=True),
        prepared.fetches,
    )


def _count(method: LightningModule, *, trained: bool = False) -> int:
    """Numbers in the parameters of a method, without those whose shape is not known yet."""
    kept = [parameter for parameter in method.parameters() if not torch.nn.parameter.is_lazy(parameter)]
    return sum(parameter.numel() for parameter in kept if parameter.requires_grad or not trained)
