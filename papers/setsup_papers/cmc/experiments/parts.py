"""What experiments of contrastive multiview coding have in common: optimisers, epochs as steps, crops, and reports.

Epochs are steps here: as many as take the images of the data once. Where the published code differs from the text, the
text is followed, and presets whose names end in ``-code`` have the values of the code.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from setsup.experiments.optimisation import SGD, Adam, StepDecay
from setsup.experiments.report import Report
from setsup.experiments.report.report import Reference
from setsup_papers.cmc.augmentations import ViewCrops

__all__ = [
    "ADAM",
    "IMAGE",
    "MADE",
    "MOMENTUM",
    "PAPER",
    "SUPERVISED",
    "UNTRAINED",
    "count_steps",
    "crop_views",
    "decay_after",
    "percentages",
    "published",
    "report",
]

PAPER = '"Contrastive multiview coding", arXiv 1906.05849'

MOMENTUM = SGD(rate=0.03, momentum=0.9, weight_decay=1e-4)
"""The optimiser of memory banks."""

ADAM = Adam(rate=1e-3, betas=(0.5, 0.999))
"""The optimiser of patches, and of predictions across views."""

IMAGE = ("image",)

MADE = (
    "make it by `python docs/experiments/cmc_data.py FOLDER` in a checkout of setsup, and train in FOLDER, or name "
    "such data by --data.name"
)
"""What to do where the data of small experiments are missing."""

UNTRAINED, SUPERVISED = "untrained: ", "supervised: "
"""What names of values of baselines begin with."""


def count_steps(epochs: int, images: int, batch: int) -> int:
    """Steps of so many epochs."""
    return round(epochs * images / batch)


def decay_after(epochs: tuple[int, ...], factor: float, images: int, batch: int) -> StepDecay:
    """Decays after these epochs: the code lowers the rate in the epoch after the one that it lists."""
    return StepDecay(factor=factor, at=tuple(count_steps(epoch, images, batch) for epoch in epochs))


def crop_views(size: int, crop: str, **more: Any) -> dict[str, Any]:
    """Augmentation, and the same from the middle of images."""
    training = ViewCrops(size=size, crop=crop, flip=True, **more)  # type: ignore[arg-type]
    return {"augmentation": training, "eval_transform": replace(training, crop="center", flip=False)}


def percentages(keys: tuple[str, ...], rows: Mapping[str, tuple[float | None, ...]]) -> dict[str, dict[str, Reference]]:
    """Percentages of a table as shares by row and column; None for what the table leaves empty."""
    return {
        label: {key: round(value / 100, 6) for key, value in zip(keys, values, strict=True) if value is not None}
        for label, values in rows.items()
    }


def published(rows: Mapping[str, Mapping[str, Reference]]) -> dict[str, dict[tuple[str, str], Reference]]:
    """What the paper publishes by row and column, as references of a report."""
    return {"the paper": {(label, key): value for label, values in rows.items() for key, value in values.items()}}


def report(
    name: str, shows: str, source: str, evaluations: tuple[str, ...], *, small: bool = False, **more: Any
) -> Report:
    """A report on runs on the paper's data, or on small ones on others."""
    return Report(
        name=f"cmc/{name}{'-small' if small else ''}",
        shows=f"{shows}, small" if small else shows,
        source=f"as {source} of {PAPER}: not the paper's data, nor its size" if small else f"{source} of {PAPER}",
        evaluations=evaluations,
        digits=3,
        **more,
    )
