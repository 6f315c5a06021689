"""Experiments of multi-view identifiability: pairs of views that share a stated subset of factors."""

from setsup.experiments.data import Data
from setsup.experiments.preset import Preset
from setsup.experiments.report import Report
from setsup_papers.multiview.measures import BlockRegressions
from setsup_papers.multiview.settings import BlockContrastSettings, SharedFactors

__all__ = ["PRESETS", "REPORTS"]


def _preset(name: str, shows: str, data: Data, sampler: SharedFactors, others: tuple[str, ...] = ()) -> Preset:
    """A block for each subset, and regressions of all factors that some subset has, or that are named."""
    factors = tuple(dict.fromkeys((*(name for subset in sampler.factors for name in subset), *others)))
    blocks = tuple("-".join(subset) for subset in sampler.factors)
    return Preset(
        name=name,
        shows=shows,
        data=data,
        sampler=sampler,
        method=BlockContrastSettings(blocks=blocks),
        steps=600,
        evaluations={"regressions": BlockRegressions(blocks=blocks, factors=factors)},
    )


PRESETS = [
    _preset(
        "multiview/shapes3d",
        "each block tells the factors that its pairs of views share, and no others",
        Data("shapes3d-procedural"),
        SharedFactors(
            subsets=("floor_hue+wall_hue", "wall_hue+object_hue", "object_hue+shape+scale"),
        ),
        ("orientation",),
    ),
    _preset(
        "multiview/3dident",
        "the same for continuous factors, which two views share up to a tolerance",
        Data("3dident", split="train", options=(("size", (64, 64)),)),
        SharedFactors(
            subsets=("hue+background_hue", "background_hue+spotlight_hue", "x+y"),
            tolerance=(("hue", 0.05), ("background_hue", 0.05), ("spotlight_hue", 0.05), ("x", 0.05), ("y", 0.05)),
        ),
        ("z", "spotlight"),
    ),
]
"""All experiments."""

REPORTS: list[Report] = []
"""The paper's tables are of other data: its numbers cannot stand beside these."""
