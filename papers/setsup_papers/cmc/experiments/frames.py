"""Frames of rendered rooms in which objects move, and their exact flow: not an experiment of the paper.

The paper contrasts frames of UCF-101 with flow of TV-L1 (table 6). Rendered frames have exact flow, and classes of
their pixels, by which features of frames are measured.
"""

from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import StepDecay
from setsup.experiments.preset import Preset
from setsup_papers.cmc.augmentations import FrameFlow
from setsup_papers.cmc.experiments.parts import ADAM
from setsup_papers.cmc.segmentation import Segmentation
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["PRESETS"]

_RENDER = "setsup render room --frames 24 --moving 5 --rooms 24 --size 96 128"
_STEPS = 800

PRESETS = [
    Preset(
        name="cmc/frames-small",
        shows="a frame of a rendered room with moving objects, and its exact flow, small",
        data=Data("frames-train", modalities=("image", "exact_flow")),
        missing={
            "frames-train": f'render it by `{_RENDER} --where "room < 20" --modalities image exact_flow labels --out '
            "frames-train`, or name such a folder by --data.name",
            "frames-test": f'render it by `{_RENDER} --where "room >= 20" --modalities image exact_flow labels --out '
            "frames-test`, or name such a folder by --datasets.test.name",
        },
        datasets={"test": Data("frames-test", modalities=("image", "exact_flow", "labels"))},
        sampler=Images(size=64),
        method=CMCSettings(
            views=("image", "flow"),
            pairs="core",
            objective="patch",
            encoder="nyu",
            features=256,
            width=0.5,
            projection=256,
            apart=("room",),
            optimiser=replace(ADAM, rate=3e-4),  # as on rendered rooms
            schedule=StepDecay(factor=0.2, at=(533, 640, 747)),
        ),
        augmentation=FrameFlow(size=64, flip=True),
        eval_transform=FrameFlow(),
        steps=_STEPS,
        seeds=3,
        checkpoint_every=200,
        evaluations={
            "segmentation": Segmentation(
                dataset="test", size=64, steps=300, baseline_steps=300, batch=32, baselines=("untrained",)
            )
        },
    )
]
