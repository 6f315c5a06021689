"""Tables 1 and 2 and figure 6: linear probes on ImageNet, and on 100 of its classes over the number of negatives."""

from collections.abc import Iterator
from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.preset import Preset
from setsup.experiments.report import Column, Row
from setsup_papers.cmc.claims import above, rising
from setsup_papers.cmc.experiments.parts import (
    IMAGE,
    MOMENTUM,
    UNTRAINED,
    count_steps,
    crop_views,
    decay_after,
    percentages,
    published,
    report,
)
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["PRESETS", "REPORTS"]

_IMAGES = {"imagenet": 1_281_167, "imagenet-100": 126_689}
_PAPER_EPOCHS, _CODE_EPOCHS = (400, (250, 300, 350)), (240, (120, 160, 200))
"""Epochs of AlexNet, and those after which the rate decays."""

_RESNETS = {
    "resnet50": ("ResNet-50", "resnet50", 1.0, 280, 0.08),
    "resnet101": ("ResNet-101", "resnet101", 1.0, 200, 0.05),
    "resnet50x2": ("ResNet-50 of double width", "resnet50", 2.0, 156, 0.04),
}
"""Rows of table 2: what they are, the encoder and its width, images of a batch, learning rate."""

_NEGATIVES = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
"""Numbers of negatives of figure 6."""


def _probes(epochs: int = 160, decays: tuple[int, ...] = (100, 120, 140)) -> LayerProbes:
    return LayerProbes(factor="synset", split="val", epochs=epochs, decays=decays, baselines=("untrained",))


def _preset(
    name: str,
    shows: str,
    method: CMCSettings,
    batch: int,
    epochs: int,
    decays: tuple[int, ...],
    probes: LayerProbes,
    least: float = 0.2,
    data: str = "imagenet",
) -> Preset:
    images = _IMAGES[data]
    return Preset(
        name=f"cmc/{name}",
        shows=shows,
        data=Data(data, "train", options=(("size", (256, 256)),), modalities=IMAGE),
        sampler=Images(size=batch),
        method=replace(method, schedule=decay_after(decays, 0.1, images, batch)),
        steps=count_steps(epochs, images, batch),
        checkpoint_every=1_000,
        evaluations={"layers": probes},
        **crop_views(224, "resized", area=(least, 1.0)),
    )


def _presets() -> Iterator[Preset]:
    base = CMCSettings(optimiser=MOMENTUM)
    table = "table 1, ImageNet, AlexNet"
    yield _preset("imagenet-alexnet", table, base, 128, *_PAPER_EPOCHS, _probes())
    code = _probes(60, (30, 40, 50))
    method = replace(base, negatives=16_384)
    yield _preset("imagenet-alexnet-code", f"{table}, as the code has it", method, 128, *_CODE_EPOCHS, code)
    for name, (title, encoder, width, batch, rate) in _RESNETS.items():
        method = replace(base, encoder=encoder, width=width, optimiser=replace(MOMENTUM, rate=rate))  # type: ignore[arg-type]
        probes = replace(_probes(100, (60, 75, 90)), layers=("pool",), pooled=(), rate=50.0 if width > 1 else 30.0)
        shows = f"table 2, ImageNet, {title}"
        yield _preset(f"imagenet-{name}", shows, method, batch, 280, (160, 200, 240), probes, least=0.08)
    for end, title, epochs, probes in (
        ("", "", _PAPER_EPOCHS, _probes()),
        ("-code", ", as the code trains", _CODE_EPOCHS, code),
    ):
        for count in _NEGATIVES:
            shows = f"figure 6, ImageNet-100, {count:,} negatives{title}"
            method = replace(base, negatives=count)
            yield _preset(f"fig6-m{count}{end}", shows, method, 128, *epochs, probes, data="imagenet-100")


PRESETS = list(_presets())

_CONV = tuple(f"conv{number}: accuracy" for number in range(1, 6))
_TABLE1 = {"CMC": (18.4, 33.5, 38.1, 40.4, 42.6), "random": (11.6, 17.1, 16.9, 16.3, 14.1)}
_CITED1 = {
    "ImageNet labels": (19.3, 36.3, 44.2, 48.3, 50.5),
    "Data-Init": (17.5, 23.0, 24.5, 23.2, 20.6),
    "Context": (16.2, 23.3, 30.2, 31.7, 29.6),
    "Colorization": (13.1, 24.8, 31.0, 32.6, 31.8),
    "Jigsaw": (19.2, 30.1, 34.7, 33.9, 28.3),
    "BiGAN": (17.7, 24.5, 31.0, 29.9, 28.0),
    "SplitBrain": (17.7, 29.3, 35.4, 35.2, 32.8),
    "Counting": (18.0, 30.6, 34.3, 32.5, 25.7),
    "Inst-Dis": (16.8, 26.5, 31.8, 34.1, 35.6),
    "RotNet": (18.8, 31.7, 38.7, 38.2, 36.5),
    "DeepCluster": (12.9, 29.2, 38.2, 39.8, 36.1),
    "AET": (19.3, 32.8, 40.6, 39.7, 37.7),
}
_TABLE2 = {"ResNet-50": (64.1,), "ResNet-101": (65.0,), "ResNet-50 of double width": (68.4,)}
_LABELS6 = {count: f"{count:,} negatives" for count in _NEGATIVES}

REPORTS = [
    report(
        "table1",
        "linear probes of layers of AlexNet on ImageNet",
        "table 1",
        ("layers",),
        rows=(
            Row("cmc/imagenet-alexnet", "CMC"),
            Row("cmc/imagenet-alexnet-code", "CMC, settings of the code"),
            Row("cmc/imagenet-alexnet", "random", UNTRAINED),
        ),
        columns=tuple(Column(key, key.partition(":")[0]) for key in _CONV),
        references=published(percentages(_CONV, _TABLE1)),
        cited=percentages(_CONV, _CITED1),
        claims=(
            above(
                "Contrastive features are above random ones in the last layer (table 1).",
                "accuracy of conv5 is higher",
                _CONV[-1],
                [("CMC", "random")],
            ),
        ),
    ),
    report(
        "table2",
        "linear probes of ResNets on ImageNet",
        "table 2",
        ("layers",),
        rows=tuple(Row(f"cmc/imagenet-{name}", title) for name, (title, *_) in _RESNETS.items()),
        columns=(Column("pool: accuracy", "accuracy"),),
        references=published(percentages(("pool: accuracy",), _TABLE2)),
    ),
    *(
        report(
            f"fig6{end}",
            f"accuracy on ImageNet-100 over the number of negatives{after}",
            "figure 6",
            ("layers",),
            rows=tuple(Row(f"cmc/fig6-m{count}{end}", label) for count, label in _LABELS6.items()),
            columns=(Column(_CONV[-1], "conv5"),),
            references=published(
                {label: {_CONV[-1]: 0.603 if count == 4096 else "figure only"} for count, label in _LABELS6.items()}
            ),
            claims=(
                rising(
                    "More negatives give better features (figure 6).",
                    "the rank correlation of their number with the accuracy is .5 or more",
                    _CONV[-1],
                    list(_LABELS6.values()),
                    least=0.5,
                ),
            ),
        )
        for end, after in (("", ""), ("-code", ", trained as by the code"))
    ),
]
