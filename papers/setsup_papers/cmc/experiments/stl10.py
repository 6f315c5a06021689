"""Table 5: classification of STL-10."""

from dataclasses import replace
from typing import Any

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.preset import Preset
from setsup.experiments.report import Column, Row
from setsup_papers.cmc.claims import above
from setsup_papers.cmc.experiments.parts import (
    ADAM,
    IMAGE,
    MOMENTUM,
    count_steps,
    crop_views,
    decay_after,
    percentages,
    published,
    report,
)
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["CATEGORIES", "NCE", "PRESETS", "REPORTS", "train_on_stl10"]

_IMAGES = 105_000

CATEGORIES = LayerProbes(
    factor="category",
    layers=("conv5", "fc7"),
    pooled=(),
    hidden=(0, 200),
    fit="train",
    split="test",
    epochs=100,
    decays=(60, 80),
    rate=ADAM.rate,
    betas=ADAM.betas,
)
_STRIDED = replace(CATEGORIES, layers=("conv5",), strided=(16, 8))  # dense layers read crops of 64 only

_BASE = CMCSettings(encoder="stl10", features=64, temperature=0.1)
_PATCH = replace(_BASE, objective="patch", optimiser=ADAM, schedule=decay_after((120, 160), 0.2, _IMAGES, 128))
NCE = replace(_BASE, optimiser=MOMENTUM, schedule=decay_after((200, 240, 280), 0.1, _IMAGES, 128))
"""The method of memory banks."""


def train_on_stl10(name: str, shows: str, method: CMCSettings, epochs: int, **more: Any) -> Preset:
    """An experiment on STL-10."""
    usual: dict[str, Any] = {"evaluations": {"layers": CATEGORIES}, **crop_views(64, "box")}
    return Preset(
        name=f"cmc/{name}",
        shows=shows,
        data=Data("stl10", "cmc", modalities=IMAGE),
        sampler=Images(size=128),
        method=method,
        steps=count_steps(epochs, _IMAGES, 128),
        checkpoint_every=1_000,
        **usual | more,
    )


PRESETS = [
    train_on_stl10(
        "stl10-patch",
        "table 5, STL-10, patches within batches",
        _PATCH,
        200,
        evaluations={"layers": replace(CATEGORIES, baselines=("untrained",)), "strided": _STRIDED},
    ),
    train_on_stl10("stl10-nce", "table 5, STL-10, NCE with memory banks", NCE, 320),
]

_COLUMNS = {
    "layers: conv5: accuracy": "conv5",
    "layers: conv5 MLP: accuracy": "conv5, MLP",
    "layers: fc7: accuracy": "fc7",
    "layers: fc7 MLP: accuracy": "fc7, MLP",
    "strided: conv5 strided: accuracy": "strided",
    "strided: conv5 strided MLP: accuracy": "strided, MLP",
}
_TABLE5 = {
    "CMC, patches": (76.65, 80.14, 79.25, 80.11, 82.58, 83.43),
    "CMC, NCE": (83.28, 84.64, 86.66, 86.88, None, None),
}
_CITED5 = {
    "AE": (None, 62.19, None, 55.78, None, None),
    "NAT": (None, 64.32, None, 61.43, None, None),
    "BiGAN": (None, 71.53, None, 67.18, None, None),
    "SplitBrain": (None, 72.35, None, 63.15, None, None),
    "DIM": (None, 72.57, None, 70.00, None, 78.21),
    "CPC": (None, None, None, None, None, 77.81),
    "supervised": (68.70, None, None, None, None, None),
}

REPORTS = [
    report(
        "table5",
        "classification of STL-10",
        "table 5",
        ("layers", "strided"),
        rows=(Row("cmc/stl10-patch", "CMC, patches"), Row("cmc/stl10-nce", "CMC, NCE")),
        columns=tuple(Column(key, label) for key, label in _COLUMNS.items()),
        references=published(percentages(tuple(_COLUMNS), _TABLE5)),
        cited=percentages(tuple(_COLUMNS), _CITED5),
        claims=(
            above(
                "Memory banks are better than patches within batches (table 5).",
                "linear accuracy of conv5 is higher",
                "layers: conv5: accuracy",
                [("CMC, NCE", "CMC, patches")],
            ),
        ),
    )
]
