"""The report of figures 5 and S7: the style of handwritten digits."""

import math

from setsup.experiments.report import Claim, Column, Means, Report, Row
from setsup.experiments.report.criteria import rises, within
from setsup_papers.abc.presets import PAPER

__all__ = ["REPORTS", "STYLE"]

_TRAINED, _UNTRAINED, _PIXELS = "ABC", "untrained", "pixels"
_HARDLY = 0.2
"""Accuracy up to which one digit of ten counts as hardly known."""
_NOISE = math.sqrt(8)
"""How far noise of σ = √τ = 1 spreads in the 8 dimensions of MNIST's embeddings."""
STYLE = {
    "withheld_variance": "nines: 2 components' share",
    "withheld_slant": "nines: R² of slant",
    "withheld_thickness": "nines: R² of thickness",
    "slant": "all digits: R² of slant",
    "thickness": "all digits: R² of thickness",
    "across_slant": "neighbours: slant",
    "across_thickness": "neighbours: thickness",
    "noisy_accuracy": "digit of 25 noisy neighbours",
    "accuracy": "digit of nearest neighbour",
    "spread": "spread of embeddings",
}
"""Names of the measures of :class:`~setsup_papers.abc.digits.DigitMeasures` in reports."""


def _left_out(means: Means) -> tuple[bool | None, str]:
    """Whether noise hides digits, and not everything: a network that has collapsed tells nothing."""
    hidden, numbers = within(("noisy_accuracy",), most=_HARDLY, label=STYLE.__getitem__)(means)
    far, how_far = within(("spread",), least=_NOISE, label=STYLE.__getitem__)(means)
    return (None, numbers) if hidden is None or far is None else (hidden and far, f"{numbers}; {how_far}")


def _better(says: str, tested: str, *keys: str) -> Claim:
    """The claim that training raises some values."""
    return Claim(
        says=says,
        tested=f"{tested} better than without training",
        rows=(_TRAINED, _UNTRAINED),
        criterion=rises(keys, _UNTRAINED, _TRAINED, label=STYLE.__getitem__),
    )


REPORTS = [
    Report(
        name="abc/mnist",
        shows="style across digits, and of a digit never trained on",
        source=f"figures 5 and S7 of {PAPER}: images only, the measures are ours; R² is from 2 components",
        evaluations=("style",),
        rows=(
            Row("abc/mnist", _TRAINED, "trained: "),
            Row("abc/mnist", _UNTRAINED, "untrained: "),
            Row("abc/mnist", _PIXELS, "pixels: "),
        ),
        columns=tuple(Column(key, title, unit="σ" if key == "spread" else "") for key, title in STYLE.items()),
        digits=3,
        claims=(
            _better(
                "The embeddings of a digit that was never trained on, the nine, are arranged by its style (figure 5).",
                "two components of the nines predict slant and thickness",
                "withheld_slant",
                "withheld_thickness",
            ),
            _better(
                "The nearest neighbours among other digits have the same style (figures 5 and S7).",
                "slant and thickness of query and neighbour agree",
                "across_slant",
                "across_thickness",
            ),
            Claim(
                says="The inactive factor, the digit, is not represented (figure 5).",
                tested=f"25 neighbours under noise of σ = √τ name no more than {_HARDLY} of the digits, "
                "where embeddings spread further than the noise",
                rows=(_TRAINED,),
                criterion=_left_out,
            ),
        ),
    )
]
