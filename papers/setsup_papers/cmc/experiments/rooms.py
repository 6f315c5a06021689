"""Rooms, of NYU and rendered ones: figure 4 and tables 3, 4 and 7.

Rendered rooms stand for NYU where an experiment is to fit two cores, with exact depth, normals and classes: half the
width, crops of 64 × 64, batches of 64. They are two folders of ``setsup render room``, as the page on views says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from setsup.experiments.data import Data
from setsup.experiments.evaluation import Evaluation
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import StepDecay
from setsup.experiments.preset import Preset
from setsup.experiments.report import Claim, Column, Row
from setsup_papers.cmc.augmentations import ViewCrops
from setsup_papers.cmc.claims import above, between_random_and_supervised, rising
from setsup_papers.cmc.experiments.parts import (
    ADAM,
    IMAGE,
    MADE,
    SUPERVISED,
    UNTRAINED,
    count_steps,
    crop_views,
    decay_after,
    percentages,
    published,
    report,
)
from setsup_papers.cmc.experiments.stl10 import CATEGORIES
from setsup_papers.cmc.segmentation import Segmentation
from setsup_papers.cmc.settings import CMCSettings, CrossViewPredictionSettings

__all__ = ["PRESETS", "REPORTS", "SMALL_PRESETS", "SMALL_REPORTS"]

_VIEWS = ("L", "ab", "depth", "normals")
"""Views of rooms, in the order in which they are added."""

_TARGETS = ("depth", "normals", "labels")
"""What is predicted from L, or contrasted with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Variant:
    """An experiment of the paper: where that has it, what is trained, and which views are segmented from."""

    name: str
    place: str
    words: str
    method: CMCSettings | CrossViewPredictionSettings
    read: tuple[str, ...] = ("L",)
    baselines: tuple[Literal["untrained", "supervised"], ...] = ()


def _contrast(*views: str, **more: Any) -> CMCSettings:
    """Contrast of patches of rooms, with the first view in the core."""
    usual: dict[str, Any] = {"pairs": "core", "objective": "patch", "encoder": "nyu", "features": 256}
    return CMCSettings(views=views, optimiser=ADAM, **usual | more)


def _variants(labels: str) -> Iterator[_Variant]:
    """All of them, where classes are a modality of this name."""
    for count in range(1, len(_VIEWS) + 1):
        views = _VIEWS[:count]
        title = "L alone: local infomax" if count == 1 else f"{', '.join(views)}, core view L"
        yield _Variant(name=f"{count}-views", place="figure 4", words=title, method=_contrast(*views))
    yield _Variant(
        name="full",
        place="tables 3 and 7",
        words=f"{', '.join(_VIEWS)}, full graph",
        method=_contrast(*_VIEWS, pairs="full"),
        read=_VIEWS,
        baselines=("untrained", "supervised"),
    )
    for modality in _TARGETS:
        target = labels if modality == "labels" else modality
        title, where = f"L and {modality}", "table 4"
        contrast = _contrast("L", target)
        yield _Variant(name=f"contrast-{modality}", place=where, words=f"{title}, contrasted", method=contrast)
        error: Literal["cross_entropy", "l2"] = "cross_entropy" if modality == "labels" else "l2"
        prediction = CrossViewPredictionSettings(target=target, error=error, optimiser=ADAM)
        yield _Variant(name=f"predict-{modality}", place=where, words=f"{title}, predicted", method=prediction)


def _arrays(views: tuple[str, ...]) -> tuple[str, ...]:
    """Modalities of rooms from which views are made."""
    return ("image", *(view for view in views if view not in ("L", "ab")))


# -- NYU ---------------------------------------------------------------------------------------------------------------

_NYU_IMAGES = 795
_ON_STL10 = replace(
    CATEGORIES,
    layers=("conv5",),
    hidden=(0,),
    views=("L",),
    fit=None,
    split=None,
    fit_dataset="stl10_train",
    dataset="stl10_test",
    baselines=("untrained",),
)
"""Table 4: linear probes of STL-10."""


def _nyu(variant: _Variant) -> Preset:
    """A variant at the paper's size."""
    transferred, views = variant.place == "table 4", variant.method.views
    segmentation = Segmentation(
        views=variant.read,
        labels="labels13",
        split="test",
        steps=count_steps(200, _NYU_IMAGES, 64),
        baseline_steps=count_steps(1_000, _NYU_IMAGES, 64),
        baselines=variant.baselines,
    )
    measured: dict[str, Evaluation] = {"layers": _ON_STL10} if transferred else {"segmentation": segmentation}
    stl10 = {f"stl10_{split}": Data("stl10", split, modalities=IMAGE) for split in ("train", "test")}
    return Preset(
        name=f"cmc/nyu-{variant.name}",
        shows=f"{variant.place}, NYU{' to STL-10' if transferred else ''}: {variant.words}",
        data=Data("nyu", "train", modalities=_arrays(views)),
        datasets=stl10 if transferred else {},
        sampler=Images(size=128),
        method=replace(variant.method, schedule=decay_after((2_000, 2_400, 2_800), 0.2, _NYU_IMAGES, 128)),
        steps=count_steps(3_000, _NYU_IMAGES, 128),
        checkpoint_every=500,
        evaluations=measured,
        **crop_views(128, "box", views=views),
    )


# -- rendered rooms ----------------------------------------------------------------------------------------------------

_STEPS, _DECODER_STEPS = 800, 300
_RATE = 3e-4
"""With the paper's 1e-3 some of these runs diverged, and did not recover."""


def _rooms(variant: _Variant) -> Preset:
    """A variant on rendered rooms, at half the width; all are measured by segmentation."""
    method, views = variant.method, variant.method.views
    train, test = (Data(f"rooms-{part}", modalities=_arrays(views)) for part in ("train", "test"))
    crops = ViewCrops(views=views, size=64, flip=True)
    # the schedule of the paper in few steps; classes of rooms are the 13 of NYU, objects, and 0
    decay = StepDecay(factor=0.2, at=tuple(round(_STEPS * share / 30) for share in (20, 24, 28)))
    own: dict[str, Any] = {"projection": 256} if isinstance(method, CMCSettings) else {"classes": 15}
    return Preset(
        name=f"cmc/rooms-{variant.name}-small",
        shows=f"{variant.place} on rooms: {variant.words}, small",
        data=train,
        missing={train.name: MADE},
        datasets={"test": test},
        sampler=Images(size=64),
        method=replace(method, width=0.5, optimiser=replace(ADAM, rate=_RATE), schedule=decay, **own),
        augmentation=crops,
        eval_transform=replace(crops, size=None, flip=False),
        steps=_STEPS,
        seeds=3,
        checkpoint_every=200,
        evaluations={
            "segmentation": Segmentation(
                views=variant.read,
                dataset="test",
                size=64,
                steps=_DECODER_STEPS,
                baseline_steps=2 * _DECODER_STEPS,
                batch=32,
                baselines=variant.baselines,
            )
        },
    )


PRESETS = [*map(_nyu, _variants("labels13"))]
SMALL_PRESETS = [*map(_rooms, _variants("labels"))]

# -- reports -----------------------------------------------------------------------------------------------------------

_NYU, _ROOMS = "cmc/nyu-{}", "cmc/rooms-{}-small"
"""Names of presets of both sizes."""

_IOU, _PIXELS = Column("L: mIoU", "mIoU"), Column("L: pixel accuracy", "pixel accuracy")
_EACH_VIEW = tuple(Column(f"{view}: {value}") for value in ("mIoU", "pixel accuracy") for view in _VIEWS)
_COUNTS = {1: "1 view", 2: "2 views", 3: "3 views", 4: "4 views"}
_ACCURACY = "conv5: accuracy"

_TABLE3 = {"random": (45.5, 21.4), "core view": (57.1, 34.1), "full graph": (57.0, 34.4), "supervised": (57.8, 35.9)}
_TABLE4 = {
    "random": (25.2,),
    "prediction, L to depth": (55.5,),
    "prediction, L to normals": (58.4,),
    "prediction, L to labels": (57.7,),
    "contrast, L and depth": (58.3,),
    "contrast, L and normals": (60.1,),
    "contrast, L and labels": (59.2,),
}
_TABLE7 = {  # mIoU of each view, and pixel accuracy
    "random": (21.4, 15.6, 30.1, 29.5, 45.5, 37.7, 51.1, 50.5),
    "CMC": (34.4, 26.1, 39.2, 37.8, 57.0, 49.6, 59.4, 57.8),
    "supervised": (35.9, 29.6, 41.0, 41.5, 57.8, 52.6, 59.1, 59.6),
}

_MORE_VIEWS = rising(
    "Features of L are better the more views there are (figure 4).",
    "the rank correlation of the number of views with mIoU is .8 or more",
    _IOU.key,
    list(_COUNTS.values()),
    least=0.8,
)
_NEARLY_SUPERVISED = between_random_and_supervised(_IOU.key, "full graph", "random", "supervised", "table 3")
_ABOVE_RANDOM = tuple(
    above(
        f"Features of {view} are above random ones (table 7).", "mIoU is higher", f"{view}: mIoU", [("CMC", "random")]
    )
    for view in _VIEWS
)


def _contrast_wins(column: Column) -> Claim:
    """That contrast is better than prediction, by a column."""
    return above(
        "Contrasting views gives better features than predicting one from the other (table 4).",
        f"{column.label} is higher for each second view",
        column.key,
        [(f"contrast, L and {target}", f"prediction, L to {target}") for target in _TARGETS],
    )


def _counts(presets: str) -> list[Row]:
    return [Row(presets.format(f"{count}-views"), label) for count, label in _COUNTS.items()]


def _between(presets: str, *rows: Row) -> tuple[Row, ...]:
    """Rows between random features and supervised ones, which the full graph measures."""
    full = presets.format("full")
    return Row(full, "random", UNTRAINED), *rows, Row(full, "supervised", SUPERVISED)


def _targets(presets: str, random: str) -> tuple[Row, ...]:
    """Prediction and contrast of each second view; a preset that measures random features."""
    return (
        Row(presets.format(random), "random", UNTRAINED),
        *(Row(presets.format(f"predict-{target}"), f"prediction, L to {target}") for target in _TARGETS),
        *(Row(presets.format(f"contrast-{target}"), f"contrast, L and {target}") for target in _TARGETS),
    )


_TABLE3_SHARES = percentages((_PIXELS.key, _IOU.key), _TABLE3)

REPORTS = [
    report(
        "fig4",
        "segmentation of NYU from L over the number of views",
        "figure 4",
        ("segmentation",),
        rows=tuple(_counts(_NYU)),
        columns=(_PIXELS, _IOU),
        references=published({_COUNTS[4]: _TABLE3_SHARES["core view"]}),
        claims=(_MORE_VIEWS,),
    ),
    report(
        "table3",
        "segmentation of NYU from L, four views",
        "table 3",
        ("segmentation",),
        rows=_between(_NYU, Row("cmc/nyu-4-views", "core view"), Row("cmc/nyu-full", "full graph")),
        columns=(_PIXELS, _IOU),
        references=published(_TABLE3_SHARES),
        claims=(_NEARLY_SUPERVISED,),
    ),
    report(
        "table4",
        "contrasting and predicting a second view of NYU, classification of STL-10",
        "table 4",
        ("layers",),
        rows=_targets(_NYU, "contrast-depth"),
        columns=(Column(_ACCURACY, "accuracy"),),
        references=published(percentages((_ACCURACY,), _TABLE4)),
        cited=percentages((_ACCURACY,), {"supervised": (65.1,)}),
        claims=(_contrast_wins(Column(_ACCURACY, "accuracy")),),
    ),
    report(
        "table7",
        "segmentation of NYU from each view, full graph",
        "table 7",
        ("segmentation",),
        rows=_between(_NYU, Row("cmc/nyu-full", "CMC")),
        columns=_EACH_VIEW,
        references=published(percentages(tuple(column.key for column in _EACH_VIEW), _TABLE7)),
        claims=_ABOVE_RANDOM,
    ),
]
SMALL_REPORTS = [
    report(
        "rooms",
        "segmentation of rendered rooms from L over the number of views",
        "figure 4 and table 3",
        ("segmentation",),
        small=True,
        rows=_between(_ROOMS, *_counts(_ROOMS), Row(_ROOMS.format("full"), "full graph")),
        columns=(_IOU, _PIXELS),
        claims=(_MORE_VIEWS, _NEARLY_SUPERVISED),
    ),
    report(
        "rooms-views",
        "segmentation of rendered rooms from each view, full graph",
        "table 7",
        ("segmentation",),
        small=True,
        rows=_between(_ROOMS, Row(_ROOMS.format("full"), "CMC")),
        columns=_EACH_VIEW,
        claims=_ABOVE_RANDOM,
    ),
    report(
        "rooms-prediction",
        "contrasting and predicting a second view of rendered rooms",
        "table 4",
        ("segmentation",),
        small=True,
        rows=_targets(_ROOMS, "full"),
        columns=(_IOU, _PIXELS),
        claims=(_contrast_wins(_IOU),),
    ),
]
