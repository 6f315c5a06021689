"""Figure 5: information between views, over colour spaces and over the distance of patches; also in small.

Small are a quarter of the width, and data that ``docs/experiments/cmc_data.py`` makes. Colour spaces are compared on 32
× 32 pixels, by a probe of objects that are cut out of rendered rooms, and by the information between views of
photographs that scikit-image and scikit-learn bring; patches on rendered images.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import Constant, StepDecay
from setsup.experiments.preset import Preset
from setsup.experiments.report import Column, Report, Row
from setsup_papers.cmc.augmentations import PatchViews, ViewCrops
from setsup_papers.cmc.claims import falling_together, rising
from setsup_papers.cmc.experiments.parts import IMAGE, MADE, crop_views, report
from setsup_papers.cmc.experiments.stl10 import CATEGORIES, NCE, train_on_stl10
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.view_information import ViewsInformation

__all__ = ["PRESETS", "REPORTS", "SMALL_PRESETS", "SMALL_REPORTS", "SPACES"]

SPACES: Mapping[str, tuple[str, str]] = {
    "lab": ("L", "ab"),
    "ycbcr": ("Y", "CbCr"),
    "hsv": ("H", "SV"),
    "hed": ("H", "ED"),
    "luv": ("L", "uv"),
    "yuv": ("Y", "UV"),
    "xyz": ("X", "YZ"),
    "ydbdr": ("Y", "DbDr"),
    "ypbpr": ("Y", "PbPr"),
    "yiq": ("Y", "IQ"),
    "rgbcie": ("R", "GB"),
}
"""Colour spaces, with the views that they are split into."""

OFFSETS = (64, 128, 192, 256, 320, 384)
"""Distances of patches, pixels in x and in y."""

_FEWER = ViewsInformation(pairs=4_000, steps=600, batch=64, width=8)
"""Information between views in small experiments."""


def _shrink_preset(preset: Preset, name: str, shows: str, data: str, **changes: Any) -> Preset:
    """The same with a narrow encoder and a constant rate, in few steps on other data."""
    method: Any = preset.method
    narrow = replace(method, encoder="small", width=0.25, schedule=Constant(), **changes.pop("method", {}))
    return replace(
        preset,
        name=f"cmc/{name}-small",
        shows=f"{shows}, small",
        data=Data(data, modalities=IMAGE),
        missing={data: MADE},
        method=narrow,
        **changes,
    )


# -- colour spaces -----------------------------------------------------------------------------------------------------


def _space(space: str) -> Preset:
    views = SPACES[space]
    return train_on_stl10(
        f"fig5-{space}",
        f"figure 5, STL-10, {views[0]} and {views[1]} of {space}",
        replace(NCE, views=views),
        320,
        evaluations={"layers": CATEGORIES, "information": ViewsInformation()},
        **crop_views(64, "box", views=views, space=space),
    )


def _small_space(space: str) -> Preset:
    first, second = views = SPACES[space]
    crops = ViewCrops(views=views, size=32, crop="resized", area=(0.2, 1.0), flip=True, space=space)
    probe = LayerProbes(
        factor="shape",
        layers=("conv3",),
        pooled=(),
        dataset="test",
        epochs=20,
        decays=(12, 16),
        baselines=("untrained",),
    )
    return _shrink_preset(
        _space(space),
        f"colors-{space}",
        f"figure 5: {first} and {second} of {space}",
        "objects-train.npz",
        datasets={
            "test": Data("objects-test.npz", modalities=IMAGE),
            "photographs": Data("photographs.npz", modalities=IMAGE),
        },
        sampler=Images(size=64),
        method={"negatives": 1024},
        augmentation=crops,
        eval_transform=replace(crops, crop="whole", flip=False),
        steps=2_000,
        seeds=3,
        checkpoint_every=400,
        evaluations={"probe": probe, "information": replace(_FEWER, dataset="photographs")},
    )


def _spaces_report(name: str, shows: str, presets: str, columns: tuple[Column, ...], *, small: bool = False) -> Report:
    """Presets named ``{space}``; the first two columns are the information and the accuracy."""
    labels = {space: f"{space}: {first}, {second}" for space, (first, second) in SPACES.items()}
    information, accuracy = columns[0].key, columns[1].key
    return report(
        name,
        shows,
        "figure 5",
        ("information", accuracy.partition(":")[0]),
        small=small,
        rows=tuple(Row(presets.format(space=space), label) for space, label in labels.items()),
        columns=columns,
        claims=(
            falling_together(
                "The less information the views of a color space share, the better the features are (figure 5).",
                "the rank correlation of information and accuracy is −.5 or less",
                (information, accuracy),
                list(labels.values()),
            ),
        ),
    )


# -- distance of patches -----------------------------------------------------------------------------------------------


def _patches(offset: int) -> Preset:
    """Patches of 2K images; all of them are cut to one size, which a batch needs."""
    views = PatchViews(offset=offset)
    return Preset(
        name=f"cmc/fig5-d{offset}",
        shows=f"figure 5, DIV2K, patches {offset} px apart",
        data=Data("div2k", "train", where="scale == 1", options=(("crop", (640, 640)),), modalities=IMAGE),
        sampler=Images(size=100),
        method=replace(
            NCE,
            views=("patch_1", "patch_2"),
            objective="in_batch",
            schedule=StepDecay(factor=0.1, at=(30_000, 40_000)),
        ),
        augmentation=views,
        eval_transform=views,
        steps=50_000,
        checkpoint_every=1_000,
        evaluations={"information": ViewsInformation()},
    )


def _small_patches(offset: int) -> Preset:
    return _shrink_preset(
        _patches(offset),
        f"patches-d{offset}",
        f"figure 5 on rendered images: patches {offset} px apart",
        "images-2k",
        sampler=Images(size=16),
        steps=200,
        checkpoint_every=100,
        evaluations={"information": _FEWER},
    )


def _patches_report(name: str, shows: str, presets: str, *, small: bool = False) -> Report:
    """Presets named ``{offset}``."""
    labels = {offset: f"{offset} px" for offset in OFFSETS}
    return report(
        name,
        shows,
        "figure 5",
        ("information",),
        small=small,
        rows=tuple(Row(presets.format(offset=offset), label) for offset, label in labels.items()),
        columns=(Column("nats"),),
        claims=(
            rising(
                "Patches share less information the farther apart they are (figure 5).",
                "the rank correlation of nearness and information is .8 or more",
                "nats",
                list(labels.values())[::-1],
                least=0.8,
            ),
        ),
    )


PRESETS = [*map(_space, SPACES), *map(_patches, OFFSETS)]
SMALL_PRESETS = [*map(_small_space, SPACES), *map(_small_patches, OFFSETS)]

REPORTS = [
    _spaces_report(
        "fig5-colors",
        "information between views and accuracy, over color spaces, on STL-10",
        "cmc/fig5-{space}",
        (
            Column("information: nats", "nats"),
            Column("layers: conv5: accuracy", "conv5"),
            Column("layers: fc7: accuracy", "fc7"),
        ),
    ),
    _patches_report("fig5-patches", "information between patches of DIV2K over their distance", "cmc/fig5-d{offset}"),
]
SMALL_REPORTS = [
    _spaces_report(
        "colors",
        "information between views of photographs, and accuracy on rendered objects, over color spaces",
        "cmc/colors-{space}-small",
        (
            Column("information: nats", "nats"),
            Column("probe: conv3: accuracy", "accuracy"),
            Column("probe: untrained: conv3: accuracy", "untrained"),
        ),
        small=True,
    ),
    _patches_report(
        "patches",
        "information between patches of rendered images over their distance",
        "cmc/patches-d{offset}-small",
        small=True,
    ),
]
