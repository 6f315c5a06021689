"""Families of figures S4 and S5: one thing changed in ABC's look-up, and in its regression, of the poses of cars.

The figures name what is changed. Which values it has, and on which category, is [unclear]. Amounts of the augmentation
are multiples of those of the paper's size, also in small runs, whose own are half of them. Moves that are larger than
the margin of the images need a larger one, which the published images have; what the substitute's margin, a tenth, does
not reach is background.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from setsup.experiments.data import Data
from setsup.experiments.preset import Preset
from setsup_papers.abc.pose.data import PoseAugmentation
from setsup_papers.abc.pose.presets import PRESETS as TABLES

__all__ = ["CHANGES", "PRESETS", "Change", "ablations"]

REAL = (0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of real images, each with titration and without."""

SIMILARITIES: dict[str, tuple[float, ...]] = {
    "cosine": (0.02, 0.05, 0.1, 0.2, 0.5),
    "l2": (0.1, 0.3, 1.0),
    "l2sq": (0.1, 1.0, 10.0),
}
"""Temperatures of each similarity."""

AMPLITUDES, MOVES, SIZES = (0.0, 0.5, 1.0, 2.0), (0.0, 0.05, 0.1, 0.2), (8, 16, 32, 64)
"""Factors of all amounts of the augmentation but the move; moves; sizes of sets."""

_MARGIN = 0.1
"""Of images for training, as a share of the box."""

_MOST_HUE = 0.5
"""Half a turn either way."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is changed: the end of a preset's name, its words, its family, and new values of one part."""

    end: str
    words: str
    family: str
    part: Literal["sampler", "augmentation", "method"]
    values: Mapping[str, Any]
    titrated: bool = False


def _amplified(factor: float) -> dict[str, float]:
    """All amounts of the augmentation but the move, times a factor."""
    usual = PoseAugmentation()
    return {
        "brightness": factor * usual.brightness,
        "hue": min(_MOST_HUE, factor * usual.hue),
        "noise": factor * usual.noise,
        "sobel": factor * usual.sobel,
    }


CHANGES = (
    Change("real-0", "no real images", "real", "sampler", {"real": 0.0}, titrated=True),
    *(Change(f"real-{p:g}", f"{p:.0%} real, titrated", "real", "sampler", {"real": p}, titrated=True) for p in REAL),
    *(
        Change(f"constant-{p:g}", f"{p:.0%} real from the beginning", "real", "sampler", {"real": p, "every": None})
        for p in REAL
    ),
    *(
        Change(
            f"{name}-{temperature:g}",
            f"{name}, temperature {temperature:g}",
            "similarity",
            "method",
            {"similarity": name, "temperature": temperature},
        )
        for name, temperatures in SIMILARITIES.items()
        for temperature in temperatures
    ),
    *(
        Change(
            f"augmentation-{x:g}", f"{x:g} × the paper-size augmentation", "augmentation", "augmentation", _amplified(x)
        )
        for x in AMPLITUDES
    ),
    *(Change(f"move-{move:g}", f"moves of up to {move:g}", "move", "augmentation", {"move": move}) for move in MOVES),
    *(Change(f"size-{size}", f"sets of {size}", "size", "sampler", {"size": size}) for size in SIZES),
)
"""All of both figures."""


def ablations(preset: Preset, figure: str, every: int) -> Iterator[Preset]:
    """A preset with one thing changed, for all changes of a figure; titration has steps of so many."""
    for change in CHANGES:
        values = {**change.values, "every": every} if change.titrated else change.values
        part: Any = getattr(preset, change.part)
        changed: dict[str, Any] = {change.part: replace(part, **values)}
        if values.get("move", 0) > _MARGIN and preset.data is not None:
            changed["data"] = _with_margin(preset.data, values["move"])
        yield replace(
            preset,
            name=f"abc/{figure}-{change.end}",
            shows=f"figure {figure.removeprefix('fig')}, cars: {change.words}",
            **changed,
        )


def _with_margin(data: Data, margin: float) -> Data:
    return replace(data, options=tuple((dict(data.options) | {"margin": margin}).items()))


def _presets() -> Iterator[Preset]:
    whole = {preset.name: preset for preset in TABLES}
    for figure, name, every, seeds in (("figS4", "abc/table1-cars", 4_000, 8), ("figS5", "abc/table2-cars", 6_000, 10)):
        yield from ablations(replace(whole[name], seeds=seeds), figure, every)


PRESETS = list(_presets())
"""Both figures at the paper's size, with its seeds."""
