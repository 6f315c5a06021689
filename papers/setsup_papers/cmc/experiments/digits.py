"""Halves of genuine MNIST digits: two views for the objectives and their numbers of negatives, small only."""

from collections.abc import Iterator
from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.image_batches import Images
from setsup.experiments.preset import Preset
from setsup.experiments.report import Column, Row
from setsup_papers.cmc.augmentations import Halves
from setsup_papers.cmc.claims import above, rising
from setsup_papers.cmc.experiments.parts import MOMENTUM, UNTRAINED, report
from setsup_papers.cmc.layer_probes import LayerProbes
from setsup_papers.cmc.settings import CMCSettings

__all__ = ["SMALL_PRESETS", "SMALL_REPORTS"]

_NEGATIVES = (16, 64, 256, 1024, 4096)
_OBJECTIVES = {"nce": "NCE", "softmax": "softmax"}
_ORIGINAL = ("original",)  # of `affine-mnist` the digits as they are, which have numbers


def _preset(name: str, shows: str, method: CMCSettings) -> Preset:
    probe = LayerProbes(
        factor="digit",
        layers=("fc4", "out"),
        pooled=(),
        dataset="test",
        epochs=20,
        decays=(12, 16),
        baselines=("untrained",),
    )
    return Preset(
        name=f"cmc/digits-{name}-small",
        shows=f"halves of digits: {shows}, small",
        data=Data("affine-mnist", "embedding", where="source < 10000 and member == 0", modalities=_ORIGINAL),
        datasets={"test": Data("affine-mnist", "test", where="member == 0", modalities=_ORIGINAL)},
        sampler=Images(size=64),
        method=method,
        augmentation=Halves(image="original"),
        eval_transform=Halves(image="original"),
        steps=2_400,
        seeds=3,
        checkpoint_every=400,
        evaluations={"probe": probe},
    )


def _presets() -> Iterator[Preset]:
    base = CMCSettings(views=("left", "right"), encoder="small", width=0.5, features=64, optimiser=MOMENTUM)
    for objective, title in _OBJECTIVES.items():
        for count in _NEGATIVES:
            method = replace(base, objective=objective, negatives=count)  # type: ignore[arg-type]
            yield _preset(f"{objective}-m{count}", f"{title}, {count:,} negatives", method)
    yield _preset("in-batch", "softmax within batches", replace(base, objective="in_batch"))


SMALL_PRESETS = list(_presets())

_ACCURACY = "out: accuracy"
_LABELS = {
    (objective, count): f"{title}, m = {count:,}" for objective, title in _OBJECTIVES.items() for count in _NEGATIVES
}
_MOST = _NEGATIVES[-1]

SMALL_REPORTS = [
    report(
        "digits",
        "linear probes of halves of digits over objectives and the number of negatives",
        "section 3.2 and figure 6",
        ("probe",),
        small=True,
        rows=(
            *(Row(f"cmc/digits-{objective}-m{count}-small", label) for (objective, count), label in _LABELS.items()),
            Row("cmc/digits-in-batch-small", "softmax within batches"),
            Row(f"cmc/digits-nce-m{_MOST}-small", "random", UNTRAINED),
        ),
        columns=(Column("fc4: accuracy", "last layer but one"), Column(_ACCURACY, "features")),
        claims=(
            above(
                "NCE gives better features than softmax over as many negatives (section 3.2).",
                f"accuracy of features at m = {_MOST:,} is higher",
                _ACCURACY,
                [(_LABELS["nce", _MOST], _LABELS["softmax", _MOST])],
            ),
            rising(
                "More negatives give better features (figure 6).",
                "the rank correlation of their number with the accuracy of NCE is .5 or more",
                _ACCURACY,
                [_LABELS["nce", count] for count in _NEGATIVES],
                least=0.5,
            ),
        ),
    )
]
