"""Experiments of contrastive multiview coding that fit two cores: all names end in ``-small``.

Rooms stand for NYU, with exact depth, normals and classes: half the width, crops of 64 × 64, batches of 64. They are
two folders of ``setsup render room``, as the page on views says. Halves of genuine MNIST digits are two views for the
objectives and their negatives. Colour spaces are compared at a quarter of the width, on 32 × 32 pixels: by a probe of
objects that are cut out of the rooms, and by the information between views of photographs that scikit-image and
scikit-learn bring. ``docs/experiments/cmc_data.py`` makes all of these but the digits.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import StepDecay
from setsup.experiments.preset import Preset
from setsup_papers.cmc.augmentations import Halves, PatchViews, ViewCrops
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.presets import (
    ADAM,
    MOMENTUM,
    OFFSETS,
    SPACES,
    VIEWS,
    arrays_of,
    contrast_patches,
    number_of_views,
)
from setsup_papers.cmc.segmentation import Segmentation
from setsup_papers.cmc.settings import CMCSettings, CrossViewPredictionSettings
from setsup_papers.cmc.view_information import ViewsInformation

__all__ = ["NEGATIVES", "PRESETS", "TARGETS"]

_MADE = (
    "make it by `python docs/experiments/cmc_data.py FOLDER` in a checkout of setsup, and train in FOLDER, or name "
    "such data by --data.name"
)
"""What to do where substitutes are missing."""

TARGETS = ("depth", "normals", "labels")
"""What is predicted from L, or contrasted with it."""

NEGATIVES = (16, 64, 256, 1024, 4096)
"""Numbers of negatives of halves of digits."""


def _decay(steps: int) -> StepDecay:
    """Decays of the paper's schedule for NYU, as shares of the steps."""
    return StepDecay(factor=0.2, at=tuple(round(steps * share / 30) for share in (20, 24, 28)))


# -- rooms -------------------------------------------------------------------------------------------------------------

_ROOM_STEPS, _DECODER_STEPS = 800, 300
_ROOM_ADAM = replace(ADAM, rate=3e-4)  # with the paper's 1e-3 some of these runs diverged, and did not recover


def _rooms(
    name: str,
    shows: str,
    method: CMCSettings | CrossViewPredictionSettings,
    read: tuple[str, ...] = ("L",),
    baselines: tuple[Literal["untrained", "supervised"], ...] = (),
) -> Preset:
    """Rooms with these views, segmented from some that are read; the baselines are measured by one of the presets."""
    train, test = (Data(f"rooms-{part}", modalities=arrays_of(method.views)) for part in ("train", "test"))
    crops = ViewCrops(views=method.views, size=64, flip=True)
    segmentation = Segmentation(
        views=read,
        dataset="test",
        size=64,
        steps=_DECODER_STEPS,
        baseline_steps=2 * _DECODER_STEPS,
        batch=32,
        baselines=baselines,
    )
    return Preset(
        name=f"cmc/rooms-{name}-small",
        shows=f"{shows}, small",
        data=train,
        missing={train.name: _MADE},
        datasets={"test": test},
        sampler=Images(size=64),
        method=method,
        augmentation=crops,
        eval_transform=replace(crops, size=None, flip=False),
        steps=_ROOM_STEPS,
        seeds=3,
        checkpoint_every=200,
        evaluations={"segmentation": segmentation},
    )


_contrast = partial(contrast_patches, width=0.5, projection=256, optimiser=_ROOM_ADAM, schedule=_decay(_ROOM_STEPS))


def _prediction(target: str) -> CrossViewPredictionSettings:
    """Classes of rooms are the 13 of NYU, objects, and 0."""
    return CrossViewPredictionSettings(
        target=target,
        width=0.5,
        error="cross_entropy" if target == "labels" else "l2",
        classes=15,
        optimiser=_ROOM_ADAM,
        schedule=_decay(_ROOM_STEPS),
    )


def _room_presets() -> Iterator[Preset]:
    for count in range(1, len(VIEWS) + 1):
        views, words = number_of_views(count)
        yield _rooms(f"{count}-views", f"figure 4 on rooms: {words}", _contrast(*views))
    yield _rooms(
        "full",
        f"tables 3 and 7 on rooms: {', '.join(VIEWS)}, full graph",
        _contrast(*VIEWS, pairs="full"),
        read=VIEWS,
        baselines=("untrained", "supervised"),
    )
    for target in TARGETS:
        shows = f"table 4 on rooms: L and {target}"
        yield _rooms(f"contrast-{target}", f"{shows}, contrasted", _contrast("L", target))
        yield _rooms(f"predict-{target}", f"{shows}, predicted", _prediction(target))


# -- halves of digits --------------------------------------------------------------------------------------------------

_DIGIT_STEPS = 2_400
_PROBE = LayerProbes(
    factor="digit",
    layers=("fc4", "out"),
    pooled=(),
    dataset="test",
    epochs=20,
    decays=(12, 16),
    baselines=("untrained",),
)


def _digits(name: str, shows: str, method: CMCSettings) -> Preset:
    return Preset(
        name=f"cmc/digits-{name}-small",
        shows=f"halves of digits: {shows}, small",
        # of `affine-mnist` the digits as they are, which have numbers
        data=Data("affine-mnist", "embedding", where="source < 10000 and member == 0", modalities=("original",)),
        datasets={"test": Data("affine-mnist", "test", where="member == 0", modalities=("original",))},
        sampler=Images(size=64),
        method=method,
        augmentation=Halves(image="original"),
        eval_transform=Halves(image="original"),
        steps=_DIGIT_STEPS,
        seeds=3,
        checkpoint_every=400,
        evaluations={"probe": _PROBE},
    )


def _digit_presets() -> Iterator[Preset]:
    base = CMCSettings(
        views=("left", "right"),
        encoder="small",
        width=0.5,
        features=64,
        optimiser=MOMENTUM,
    )
    for objective, words in (("nce", "NCE"), ("softmax", "softmax")):
        for count in NEGATIVES:
            method = replace(base, objective=objective, negatives=count)  # type: ignore[arg-type]
            yield _digits(f"{objective}-m{count}", f"{words}, {count:,} negatives", method)
    yield _digits("in-batch", "softmax within batches", replace(base, objective="in_batch"))


# -- colour spaces -----------------------------------------------------------------------------------------------------

_COLOR_STEPS = 2_000


def _colors(space: str) -> Preset:
    views = SPACES[space]
    crops = ViewCrops(views=views, size=32, crop="resized", area=(0.2, 1.0), flip=True, space=space)
    return Preset(
        name=f"cmc/colors-{space}-small",
        shows=f"figure 5: {views[0]} and {views[1]} of {space}, small",
        data=Data("objects-train.npz", modalities=("image",)),
        missing={"objects-train.npz": _MADE},
        datasets={
            "test": Data("objects-test.npz", modalities=("image",)),
            "photographs": Data("photographs.npz", modalities=("image",)),
        },
        sampler=Images(size=64),
        method=CMCSettings(
            views=views,
            encoder="small",
            width=0.25,
            features=64,
            negatives=1024,
            temperature=0.1,
            optimiser=MOMENTUM,
        ),
        augmentation=crops,
        eval_transform=replace(crops, crop="whole", flip=False),
        steps=_COLOR_STEPS,
        seeds=3,
        checkpoint_every=400,
        evaluations={
            "probe": LayerProbes(
                factor="shape",
                layers=("conv3",),
                pooled=(),
                dataset="test",
                epochs=20,
                decays=(12, 16),
                baselines=("untrained",),
            ),
            "information": ViewsInformation(dataset="photographs", pairs=4_000, steps=600, batch=64, width=8),
        },
    )


# -- distance of patches -----------------------------------------------------------------------------------------------


def _patches(offset: int) -> Preset:
    views = PatchViews(offset=offset)
    return Preset(
        name=f"cmc/patches-d{offset}-small",
        shows=f"figure 5 on rendered images: patches {offset} px apart, small",
        data=Data("images-2k", modalities=("image",)),
        missing={"images-2k": _MADE},
        sampler=Images(size=16),
        method=CMCSettings(
            views=("patch_1", "patch_2"),
            objective="in_batch",
            encoder="small",
            width=0.25,
            features=64,
            temperature=0.1,
            optimiser=MOMENTUM,
        ),
        augmentation=views,
        eval_transform=views,
        steps=200,
        seeds=1,
        checkpoint_every=100,
        evaluations={"information": ViewsInformation(pairs=4_000, steps=600, batch=64, width=8)},
    )


PRESETS = [*_room_presets(), *_digit_presets(), *map(_colors, SPACES), *map(_patches, OFFSETS)]
"""Small experiments."""
