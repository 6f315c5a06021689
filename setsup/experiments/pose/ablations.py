"""Families of figures S4 and S5: one thing changed in ABC's look-up, and in its regression, of the poses of cars.

The figures name what is changed. Which values it has, and on which category, is [unclear].
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from setsup.experiments.pose.data import PoseAugmentation, PoseSets
from setsup.experiments.pose.presets import PRESETS as TABLES
from setsup.experiments.preset import Preset

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

_MOST_HUE = 0.5


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is changed: the end of a preset's name, its words, and its family."""

    end: str
    words: str
    family: str


CHANGES = (
    Change("real-0", "no real images", "real"),
    *(Change(f"real-{share:g}", f"{share:.0%} real, titrated", "real") for share in REAL),
    *(Change(f"constant-{share:g}", f"{share:.0%} real from the beginning", "real") for share in REAL),
    *(
        Change(f"{name}-{temperature:g}", f"{name}, temperature {temperature:g}", "similarity")
        for name, temperatures in SIMILARITIES.items()
        for temperature in temperatures
    ),
    *(Change(f"augmentation-{factor:g}", f"augmentation × {factor:g}", "augmentation") for factor in AMPLITUDES),
    *(Change(f"move-{move:g}", f"moves of up to {move:g}", "move") for move in MOVES),
    *(Change(f"size-{size}", f"sets of {size}", "size") for size in SIZES),
)
"""All of both figures."""


def ablations(preset: Preset, figure: str, every: int) -> Iterator[Preset]:
    """A preset with one thing changed, for all changes of a figure; titration has steps of so many."""
    for change in CHANGES:
        yield replace(
            preset,
            name=f"abc/{figure}-{change.end}",
            shows=f"figure {figure.removeprefix('fig')}, cars: {change.words}",
            **_changed(preset, change.end, every),
        )


def _changed(preset: Preset, end: str, every: int) -> dict[str, Any]:
    sampler, augmentation, method = preset.sampler, preset.augmentation, preset.method
    assert isinstance(sampler, PoseSets)
    assert isinstance(augmentation, PoseAugmentation)
    name, _, amount = end.partition("-")
    value = float(amount)
    if name in ("real", "constant"):
        return {"sampler": replace(sampler, real=value, every=every if name == "real" else None)}
    if name == "augmentation":
        return {"augmentation": scaled(augmentation, value)}
    if name == "move":
        return {"augmentation": replace(augmentation, move=value)}
    if name == "size":
        return {"sampler": replace(sampler, size=int(value))}
    changed: Any = method
    return {"method": replace(changed, similarity=name, temperature=value)}


def scaled(augmentation: PoseAugmentation, factor: float) -> PoseAugmentation:
    """The same with all amounts but the move times a factor; hue turns at most half a turn either way."""
    return replace(
        augmentation,
        brightness=factor * augmentation.brightness,
        hue=min(_MOST_HUE, factor * augmentation.hue),
        noise=factor * augmentation.noise,
        sobel=factor * augmentation.sobel,
    )


def _presets() -> Iterator[Preset]:
    whole = {preset.name: preset for preset in TABLES}
    for figure, name, every, seeds in (("figS4", "abc/table1-cars", 4_000, 8), ("figS5", "abc/table2-cars", 6_000, 10)):
        yield from ablations(replace(whole[name], seeds=seeds), figure, every)


PRESETS = list(_presets())
"""Both figures at the paper's size, with its seeds."""
