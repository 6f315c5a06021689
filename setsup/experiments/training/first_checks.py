"""Checks of a training that need no torch, so that a wrong name is reported at once."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from setsup.experiments.preset import Preset
from setsup.factors import FactorTable

__all__ = ["check_draws"]


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
