"""Table 6: actions of UCF-101 and HMDB-51."""

from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.optimisation import Adam
from setsup.experiments.preset import Preset
from setsup.experiments.report import Column, Row
from setsup_papers.cmc.actions import Actions
from setsup_papers.cmc.augmentations import Frames
from setsup_papers.cmc.claims import above
from setsup_papers.cmc.experiments.parts import count_steps, decay_after, percentages, published, report
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["PRESETS", "REPORTS"]

_IMAGES = 9_537
_FLOWS = {
    "v": ("V", "a frame and a later one", ("frame", "later")),
    "d": ("D", "a frame and the motion around it", ("frame", "flow_stack")),
    "vd": ("V + D", "a frame with both", ("frame", "later", "flow_stack")),
}
"""Rows of table 6: their labels, and what is contrasted."""


def _preset(name: str) -> Preset:
    label, title, views = _FLOWS[name]
    options = (("length", 16), ("size", (240, 320)))
    actions = Actions(baselines=("untrained",) if name == "vd" else ())
    crops = Frames(size=224)
    return Preset(
        name=f"cmc/ucf101-{name}",
        shows=f"table 6, UCF-101, {label}: {title}",
        data=Data("ucf101", "split1-train", options=(("flow", True), *options), modalities=("video", "flow")),
        datasets={"hmdb51": Data("hmdb51", options=options, modalities=("video",))},
        sampler=Images(size=128),
        method=CMCSettings(
            views=views,
            pairs="core",
            objective="in_batch",
            encoder="caffenet",
            shared=("frame", "later") if "later" in views else (),
            apart=("action", "group", "clip"),
            optimiser=Adam(rate=1e-3),
            schedule=decay_after((200, 250), 0.2, _IMAGES, 128),
        ),
        augmentation=crops,
        eval_transform=replace(crops, center=True),
        steps=count_steps(300, _IMAGES, 128),
        checkpoint_every=500,
        evaluations={"ucf": actions, "hmdb": replace(actions, dataset="hmdb51")},
    )


PRESETS = [*map(_preset, _FLOWS)]

_COLUMNS = {
    "ucf: accuracy": "UCF-101",
    "hmdb: accuracy": "HMDB-51",
    "ucf: untrained: accuracy": "UCF-101, random",
    "hmdb: untrained: accuracy": "HMDB-51, random",
}
_TABLE6 = {"V": (55.3, None, None, None), "D": (57.1, None, None, None), "V + D": (59.1, 26.7, 48.2, 19.5)}
_CITED6 = {
    "ImageNet labels": (67.7, 28.0),
    "VGAN": (52.1, None),
    "LT-Motion": (53.0, None),
    "TempCoh": (45.4, 15.9),
    "Shuffle and Learn": (50.2, 18.1),
    "Geometry": (55.1, 23.3),
    "OPN": (56.3, 22.1),
    "ST Order": (58.6, 25.0),
    "Cross and Learn": (58.7, 27.2),
}

REPORTS = [
    report(
        "table6",
        "actions of UCF-101 and HMDB-51, trained on UCF-101",
        "table 6",
        ("ucf", "hmdb"),
        rows=tuple(Row(f"cmc/ucf101-{name}", label) for name, (label, *_) in _FLOWS.items()),
        columns=tuple(Column(key, label) for key, label in _COLUMNS.items()),
        references=published(percentages(tuple(_COLUMNS), _TABLE6)),
        cited=percentages(tuple(_COLUMNS)[:2], _CITED6),
        claims=(
            above(
                "A later frame and motion together are better than each alone (table 6).",
                "accuracy on UCF-101 is higher",
                "ucf: accuracy",
                [("V + D", "V"), ("V + D", "D")],
            ),
        ),
    )
]
