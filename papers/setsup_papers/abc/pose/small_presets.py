"""Experiments of ABC's tables 1 and 2, and of figures S4 and S5, that fit two cores, a preset each.

A small one has the encoder of ABC's experiments on Shapes3D, for boxes of 64 × 64 pixels and without weights of
ImageNet, one pair of sets per step, and 1,500 steps; the steps of titration and learning rate are shortened with them.
An encoder that starts from nothing stayed at the loss of chance for hundreds of steps with the whole amounts of the
augmentation, or the paper's rate: small presets have half of these amounts, and three times the rate; ten times for
CC-VAE, and that of ML-VAE as it is. Chairs before random backgrounds stayed there for 1,500 steps, and fell back to it
when the training had begun before black: theirs stay black.
Only the features of ResNet50-V2 want published weights.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from setsup.experiments.configs import Augmentation
from setsup.experiments.data import Data
from setsup.experiments.preset import Preset
from setsup.experiments.sets import Sets
from setsup_papers.abc.pose.ablations import ablations
from setsup_papers.abc.pose.baseline_settings import CCVAESettings
from setsup_papers.abc.pose.data import PoseAugmentation, PoseCrop, PoseSets
from setsup_papers.abc.pose.presets import CATEGORIES, table_1, table_2
from setsup_papers.abc.pose.presets import PRESETS as WHOLE
from setsup_papers.abc.pose.settings import PoseABCSettings, PoseFeaturesSettings, SphericalRegressionSettings

__all__ = ["PRESETS", "STEPS", "shrink_preset"]

STEPS = 1_500
"""Of those with more at the paper's size."""
_BOX = 64
_RATE = 3e-4
_AMOUNTS = ("move", "brightness", "hue", "noise", "sobel")
_SEEDS = 3


def shrink_preset(preset: Preset) -> Preset:
    """The same for two cores."""
    assert preset.data is not None
    return replace(
        preset,
        name=f"{preset.name}-small",
        shows=f"{preset.shows}, small",
        data=_boxed(preset.data),
        datasets={name: _boxed(data) for name, data in preset.datasets.items()},
        sampler=_fewer(preset.sampler, preset.steps),
        method=_narrow(preset.method, preset.steps),
        augmentation=_reduced(preset.augmentation, dict(preset.data.options)["category"]),
        eval_transform=PoseCrop(size=_BOX),
        initial_run=preset.initial_run if isinstance(preset.method, PoseFeaturesSettings) else None,
        steps=min(preset.steps, STEPS),
        seeds=_SEEDS if preset.name in ("abc/table1-cars", "abc/table1-cars-no-real") else 1,
        checkpoint_every=100,
    )


def _boxed(data: Data) -> Data:
    """The same with small boxes."""
    options = dict(data.options) | {"size": (_BOX, _BOX)}
    return replace(data, options=tuple(options.items()))


def _fewer(sampler: Any, steps: int) -> Any:
    """One pair of sets, with the titration of a shorter training; as many images for generative baselines."""
    if isinstance(sampler, PoseSets):
        every = None if sampler.every is None else _shorter(sampler.every, steps)
        return replace(sampler, pairs=1, every=every)
    assert isinstance(sampler, Sets)
    return replace(sampler, sets=64 // sampler.size)


def _narrow(method: Any, steps: int) -> Any:
    """A small encoder, with a rate at which it trains; networks of ML-VAE stay as they are."""
    if isinstance(method, PoseABCSettings | SphericalRegressionSettings):
        halve = None if method.halve_every is None else _shorter(method.halve_every, steps)
        return replace(method, encoder="small", rate=_RATE, halve_every=halve)
    if isinstance(method, PoseFeaturesSettings):
        return replace(method, image=(_BOX, _BOX))
    if isinstance(method, CCVAESettings):
        return replace(method, rate=1e-3)
    return method


def _reduced(augmentation: Any, category: str) -> Augmentation:
    """Small boxes, half of the amounts, and black behind chairs."""
    if isinstance(augmentation, PoseAugmentation):
        amounts = {name: getattr(augmentation, name) / 2 for name in _AMOUNTS}
        backgrounds = 0 if category == "chair" else augmentation.backgrounds
        return replace(augmentation, size=_BOX, backgrounds=backgrounds, **amounts)
    assert isinstance(augmentation, PoseCrop)
    return replace(augmentation, size=_BOX)


def _shorter(every: int, steps: int) -> int:
    """Steps between two changes in a training of so many steps, in a small one."""
    return round(every * STEPS / steps)


def _presets() -> Iterator[Preset]:
    for table in (table_1, table_2):
        for plural in CATEGORIES:
            yield from map(shrink_preset, table(plural))
    whole = next(preset for preset in WHOLE if preset.name == "abc/table1-cars")
    for preset in ablations(shrink_preset(whole), "figS4", _shorter(4_000, whole.steps)):
        yield replace(preset, name=f"{preset.name}-small", shows=f"{preset.shows}, small", seeds=1)


PRESETS = list(_presets())
"""All small experiments."""
