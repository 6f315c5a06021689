"""Experiments of single-pixel contrast on coloured digits, a preset each; those ending in ``-small`` fit two cores.

A small one has widths of 16, 32 and 32 channels with one block each, 2,000 steps of 64 images, and a classifier of
1,500 steps on features of every second row and column of 10,000 digits.
"""

from collections.abc import Iterator
from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.preset import Preset
from setsup.experiments.validation import Validation
from setsup_papers.pixels.colors import ColorSwap, PixelLabels
from setsup_papers.pixels.settings import ColoredPairs, PixelContrastSettings

__all__ = ["FEATURES", "LONG", "NORMS", "PAPER", "PRESETS", "WEIGHTS"]

PAPER = '"Stable single-pixel contrastive learning for semantic and geometric tasks", arXiv 2512.04970'

NORMS = ("inf", "l1", "l2")
WEIGHTS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, 0.0)
"""λ of the sweep."""

FEATURES = (4, 8, 16, 32)
"""Features per pixel of the other sweep, of which each run is longer."""

LONG = 0.1
"""λ of five further runs for each norm, which are as long."""


def named(norm: str, within: float) -> str:
    """Name of a cell of the grid, without ``-small``."""
    return f"pixels/colors-{norm}-{round(100 * within):03d}"


def _cell(norm: str, within: float) -> Preset:
    """Of the paper's size."""
    return Preset(
        name=named(norm, within),
        shows=f"first experiment, colors of digits: λ = {within:g}, {norm}",
        data=Data("colored-mnist", "train", options=(("recipe", "pixels"),)),
        sampler=Images(size=128),
        augmentation=ColoredPairs(),
        method=PixelContrastSettings(within=within, norm=norm),  # type: ignore[arg-type]
        steps=30_000,
        seeds=10,
        clip_value=3.0,
        checkpoint_every=500,
        validation=Validation(every=1_000, split="validation"),
        evaluations={"labels": PixelLabels(), "swap": ColorSwap(norm=norm)},  # type: ignore[arg-type]
    )


def _small(preset: Preset) -> Preset:
    """The same, narrower, on fewer images."""
    labels = PixelLabels(steps=1_500, images=10_000, test=4_000, stride=2)
    return replace(
        preset,
        name=f"{preset.name}-small",
        shows=f"{preset.shows}, small",
        sampler=Images(size=64),
        method=replace(preset.method, widths=(16, 32, 32), blocks=(1, 1, 1)),  # type: ignore[type-var]
        steps=2_000,
        seeds=3,
        checkpoint_every=200,
        validation=replace(preset.validation, every=500),
        evaluations={**preset.evaluations, "labels": labels},
    )


def _longer(preset: Preset, end: str, title: str, seeds: int) -> Preset:
    """The same with 100,000 steps, and 30,000 of the classifier."""
    return replace(
        preset,
        name=f"{preset.name}-{end}",
        shows=f"{preset.shows}, {title}",
        steps=100_000,
        seeds=seeds,
        evaluations={**preset.evaluations, "labels": PixelLabels(steps=30_000)},
    )


def _presets() -> Iterator[Preset]:
    for norm in NORMS:
        for within in WEIGHTS:
            full = _cell(norm, within)
            yield full
            yield _small(full)
    whole = _cell("inf", 1.0)
    for features in FEATURES:
        method = replace(whole.method, features=features)  # type: ignore[type-var]
        yield _longer(replace(whole, method=method), f"d{features}", f"{features} features", 1)
    for norm in NORMS:
        yield _longer(_cell(norm, LONG), "long", "100,000 steps", 5)


PRESETS = list(_presets())
"""All experiments."""
