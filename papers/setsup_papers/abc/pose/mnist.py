"""Figures 5 and S7 of ABC beside the methods of figure S7: style of MNIST's digits over steps and seconds of training.

The paper says of these baselines that the exclusive code of Sanchez et al. has 64 dimensions in place of 8, and that a
group of ML-VAE is as large as a set; how long they are trained it does not say. [unclear]
"""

from dataclasses import replace
from typing import Any

from setsup.experiments.configs import MethodConfig
from setsup.experiments.data import Data
from setsup.experiments.preset import Preset
from setsup.experiments.report import Chart, Claim, Column, Means, Report, Row
from setsup.experiments.sets import Sets
from setsup_papers.abc.pose.baseline_settings import (
    CCVAESettings,
    ExclusiveInformationSettings,
    SharedInformationSettings,
)
from setsup_papers.abc.pose.style_curves import StyleOverTraining
from setsup_papers.abc.presets import PAPER
from setsup_papers.abc.presets import PRESETS as ABC_PRESETS
from setsup_papers.abc.reports.mnist import STYLE
from setsup_papers.dcodr.baseline_settings import MLVAESettings

__all__ = ["PRESETS", "REPORTS"]

_SEEDS = 3
_STEPS = 2_000
"""Of each baseline, four times those of ABC. [unclear]"""

_ABC, _CC_VAE, _ML_VAE, _SANCHEZ = "ABC", "CC-VAE", "ML-VAE", "Sanchez et al."
_SHARED = "abc/figS7-sanchez-shared"

_MEASURES = (
    "withheld_slant",
    "withheld_thickness",
    "slant",
    "thickness",
    "across_slant",
    "across_thickness",
    "noisy_accuracy",
    "withheld_variance",
)
"""Measures of which there are curves."""


def _preset(name: str, shows: str, method: MethodConfig, sampler: Sets, **more: Any) -> Preset:
    parts: dict[str, Any] = {"steps": _STEPS, "seeds": _SEEDS, "evaluations": {"training": StyleOverTraining()}}
    return Preset(
        name=name,
        shows=f"figure S7: style of digits over the training of {shows}",
        data=Data("mnist", "train"),
        sampler=sampler,
        method=method,
        **parts | more,
    )


def _presets() -> list[Preset]:
    pairs = Sets(inactive=("digit",), size=2, sets=64, where="digit != 9")
    stacks = Sets(inactive=("digit",), size=64, where="digit != 9")
    of_abc = next(preset for preset in ABC_PRESETS if preset.name == "abc/mnist")
    return [
        replace(
            of_abc,
            name="abc/figS7",
            shows="figures 5 and S7: style of digits over the training of ABC",
            seeds=_SEEDS,
            evaluations={"training": StyleOverTraining()},
        ),
        _preset("abc/figS7-cc-vae", _CC_VAE, CCVAESettings(), pairs),
        _preset("abc/figS7-ml-vae", _ML_VAE, MLVAESettings(domain=("digit",)), stacks),
        _preset(_SHARED, f"the first stage of {_SANCHEZ}", SharedInformationSettings(), pairs, evaluations={}),
        _preset("abc/figS7-sanchez", _SANCHEZ, ExclusiveInformationSettings(), pairs, initial_run=_SHARED),
    ]


def _best(means: Means) -> tuple[bool | None, str]:
    """Whether ABC's neighbours across digits agree most in slant and thickness."""
    keys = ("across_slant", "across_thickness")
    sums = {row: sum(values[key].mean for key in keys) for row, values in means.items() if set(keys) <= set(values)}
    if _ABC not in sums or len(sums) < 2:
        return None, "needs runs of ABC and of another method"
    best = max(sums, key=lambda row: sums[row])
    listed = ", ".join(f"{row} {value / 2:.2f}" for row, value in sums.items())
    miss = "" if best == _ABC else f" ({best} is {(sums[best] - sums[_ABC]) / 2:.2f} above ABC)"
    return best == _ABC, f"mean of both correlations: {listed}{miss}"


PRESETS = _presets()
"""ABC's run is that of ``abc/mnist``."""

REPORTS = [
    Report(
        name="abc/figS7",
        shows="style of digits over steps and seconds, beside CC-VAE, ML-VAE and Sanchez et al.",
        source=f"figures 5 and S7 of {PAPER}: images only, the measures are ours",
        evaluations=("training",),
        rows=(
            Row("abc/figS7", _ABC),
            Row("abc/figS7-cc-vae", _CC_VAE),
            Row("abc/figS7-ml-vae", _ML_VAE),
            Row("abc/figS7-sanchez", _SANCHEZ),
        ),
        columns=(
            *(Column(key, STYLE[key]) for key in _MEASURES),
            Column("seconds", "seconds of training", unit="s"),
        ),
        digits=2,
        claims=(
            Claim(
                says="Of all methods, ABC's neighbours across digits are the most similar in style (figure S7).",
                tested="the mean of the correlations of slant and thickness is the largest at the end of training",
                criterion=_best,
            ),
        ),
        charts=tuple(
            Chart(f"{key} over {axis}", STYLE[key], f"{axis} of training" if axis == "seconds" else axis, log_x=True)
            for key in _MEASURES
            for axis in ("steps", "seconds")
        ),
    )
]
"""The report of both figures."""
