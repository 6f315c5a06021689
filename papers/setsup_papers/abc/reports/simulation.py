"""The report of figure S3: the simulation of random points."""

from itertools import pairwise

from setsup.experiments.report import Claim, Column, Means, Report, Row
from setsup_papers.abc.measures import LossOverDimensions
from setsup_papers.abc.presets import PAPER

__all__ = ["REPORTS"]

_ROW = "random points"
_SIZES = LossOverDimensions().sizes


def _grows(means: Means) -> tuple[bool | None, str]:
    """Whether the best number of dimensions never falls from a size to the next, and ends higher than it starts."""
    best = {size: means.get(_ROW, {}).get(f"best of {size}") for size in _SIZES}
    known = {size: spread.mean for size, spread in best.items() if spread is not None}
    if len(known) < 2:
        return None, "needs at least two sizes"
    optima = list(known.values())
    falls = [0.0, *(before - after for before, after in pairwise(optima))]
    listed = (
        f"sets of {size}: {dimensions:g}" + (f" (falls by {less:g})" if less > 0 else "")
        for (size, dimensions), less in zip(known.items(), falls, strict=True)
    )
    return max(falls) <= 0 and optima[0] < optima[-1], ", ".join(listed)


REPORTS = [
    Report(
        name="abc/figS3",
        shows="simulation: the loss of random points over their dimensions, by the size of sets",
        source=f"figure S3 of {PAPER}",
        evaluations=("simulation",),
        rows=(Row("abc/figS3", _ROW),),
        columns=tuple(Column(f"best of {size}", f"sets of {size}") for size in _SIZES),
        unit="number of dimensions with the least loss",
        digits=0,
        references={"the paper": {(_ROW, f"best of {size}"): "figure only" for size in _SIZES}},
        claims=(
            Claim(
                says="The number of dimensions with the least loss grows with the size of sets (figure S3).",
                tested="it never falls from a size to the next, and ends higher than it starts",
                criterion=_grows,
            ),
        ),
        x_label="dimensions",
        y_label="least loss, by that of one dimension",
    )
]
