"""Experiments of "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240), a preset each.

Settings that the text leaves open are those of the authors' published code.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from setsup.experiments.data import Data
from setsup.experiments.evaluation import Evaluation
from setsup.experiments.evaluations import Accuracy, Components, FactorInformation, NoiseSweep
from setsup.experiments.preset import Preset
from setsup.experiments.sets import Sets
from setsup_papers.abc.measures import DigitStyle, LossOverDimensions
from setsup_papers.abc.settings import ABCSettings

__all__ = ["FACTORS", "INACTIVE", "PAPER", "PRESETS", "WORDS"]

PAPER = '"Learning ABCs: Approximate Bijective Correspondence", arXiv 2103.03240'

FACTORS = ("wall_hue", "object_hue", "floor_hue", "scale", "shape", "orientation")
"""In the order in which the paper reports them."""

INACTIVE = {1: ("wall_hue",), 2: ("wall_hue", "floor_hue"), 3: ("wall_hue", "floor_hue", "object_hue")}
WORDS = {1: "the wall's hue", 2: "the hues of wall and floor", 3: "all hues"}
"""Inactive factors of the experiments with so many hues, and what they are called."""


def _shapes3d(
    name: str,
    shows: str,
    hues: int,
    evaluations: Mapping[str, Evaluation],
    *,
    size: int = 32,
    unconstrained: int = 0,
) -> Preset:
    """Two sets of 32 from all 480,000 images, 2,000 steps."""
    return Preset(
        name=f"abc/{name}",
        shows=shows,
        data=Data("shapes3d", substitute="shapes3d-procedural"),
        sampler=Sets(inactive=INACTIVE[hues], size=size, unconstrained=unconstrained),
        method=ABCSettings(encoder="shapes3d"),
        steps=2_000,
        seeds=10,
        evaluations=evaluations,
    )


_COMPONENTS: Mapping[str, Evaluation] = {"components": Components(factors=FACTORS)}
_INFORMATION: Mapping[str, Evaluation] = {"information": FactorInformation(factors=FACTORS, estimator="mine")}
_NOISE: Mapping[str, Evaluation] = {"noise": NoiseSweep(factors=FACTORS, estimator="mine", steps=20_000)}
_ACCURACY: Mapping[str, Evaluation] = {"accuracy": Accuracy(factors=FACTORS)}


def _figures_3_and_4() -> Iterator[Preset]:
    for letter, after, hues in (("a", "c", 1), ("b", "d", 3)):
        yield _shapes3d(f"fig3{letter}", f"two components of the embeddings, {WORDS[hues]} inactive", hues, _COMPONENTS)
        yield _shapes3d(f"fig3{after}", f"information under noise, {WORDS[hues]} inactive", hues, _NOISE)
    for figure, measure, evaluations in (("4", "information", _INFORMATION), ("S1", "accuracy", _ACCURACY)):
        for letter, hues in (("a", 1), ("b", 2), ("c", 3)):
            shows = f"{measure}, {WORDS[hues]} inactive"
            yield _shapes3d(f"fig{figure}{letter}", shows, hues, evaluations)
            yield _shapes3d(
                f"fig{figure}{letter}-random", f"{shows} in one of two sets", hues, evaluations, unconstrained=1
            )
    for size in (4, 16, 64, 256, 1024):
        yield _shapes3d(f"fig4d-{size}", f"information with sets of {size}", 1, _INFORMATION, size=size)


def _figure_s2() -> Iterator[Preset]:
    """The paper does not say which temperatures."""
    for hues in (1, 3):
        for temperature in (0.1, 1.0, 10.0):
            name, shows = f"figS2-{hues}-{temperature:g}", f"{WORDS[hues]} inactive, temperature {temperature:g}"
            preset = _shapes3d(name, f"information under noise, {shows}", hues, _NOISE)
            yield replace(preset, method=ABCSettings(encoder="shapes3d", temperature=temperature))


_AUGMENTATION = replace(
    _shapes3d("augmentation", "augmented hues in place of a second set", 1, _INFORMATION),
    sampler=Sets(inactive=(), sets=1),
    augmentation="abc-shapes3d",
    method=ABCSettings(encoder="shapes3d", objective="augmentation"),
)

_S3 = Preset(
    name="abc/figS3",
    shows="simulation: the loss of random points over their dimensions, for sizes of sets",
    evaluations={"simulation": LossOverDimensions()},
)

_MNIST = Preset(
    name="abc/mnist",
    shows="figures 5 and S7: style across digits, and of a digit never trained on",
    data=Data("mnist", "train"),
    sampler=Sets(inactive=("digit",), size=64, where="digit != 9"),
    method=ABCSettings(encoder="mnist", rate=1e-4),
    steps=500,
    seeds=5,
    evaluations={"style": DigitStyle()},
)

PRESETS = [*_figures_3_and_4(), *_figure_s2(), _S3, _AUGMENTATION, _MNIST]
"""All experiments."""
