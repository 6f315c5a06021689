"""Experiments of the orbit papers: methods on benchmarks; those whose names end in ``-small`` fit two cores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from setsup.experiments.data import YOURS, Data
from setsup.experiments.preset import Preset
from setsup_papers.orbits.benchmarks import BENCHMARKS, Benchmark
from setsup_papers.orbits.orbit_map import OrbitMap
from setsup_papers.orbits.settings import OrbitBatches, OrbitJointSettings

__all__ = ["COMPARED", "METHODS", "PRESETS", "Method"]


@dataclass(frozen=True, slots=True)
class Method:
    """A column of table 2: its words, its objective, and whether triplets are of classes."""

    shows: str
    objective: str
    supervised: bool = False
    transformer: bool = False

    @property
    def grouped(self) -> bool:
        """Whether batches are some members of each orbit; other methods get images drawn independently."""
        return self.objective in ("joint", "triplet")


METHODS: dict[str, Method] = {
    "oj": Method("orbit joint loss", "joint"),
    "ot": Method("orbit triplets", "triplet"),
    "oe": Method("rectification to canonical images", "rectification"),
    "ex": Method("exemplar: a class for each orbit", "exemplar"),
    "ae": Method("autoencoder", "autoencoder"),
    "st": Method("supervised triplets of classes", "triplet", supervised=True),
    "ot-stn": Method("orbit triplets, spatial transformer first", "triplet", transformer=True),
    "st-stn": Method("supervised triplets, spatial transformer first", "triplet", supervised=True, transformer=True),
}
"""Methods of table 2 by the end of their presets' names; AE is not in the table."""

COMPARED = ("oj", "ot", "ex")
"""Methods that single-factor comparisons are made of."""


def _batches(method: Method, benchmark: Benchmark) -> OrbitBatches:
    """Eight images of each orbit, or of each drawn class, or independent ones; as many in all for each method."""
    images, orbit, canonical = benchmark.images, benchmark.orbit, benchmark.canonical
    if method.supervised:
        return OrbitBatches(orbit=(benchmark.label,), sets=images // 8, size=8, values="independent")
    if method.grouped:
        return OrbitBatches(orbit=orbit, sets=images // 8, size=8, canonical=canonical)
    named = canonical if method.objective == "rectification" else None
    return OrbitBatches(orbit=orbit, sets=images, size=1, canonical=named, values="independent")


def _preset(benchmark: Benchmark, end: str) -> Preset:
    """A method, by the end of its name, on a benchmark of either size."""
    method = METHODS[end]
    return Preset(
        name=f"orbits/{benchmark.name}-{end}{benchmark.end}",
        shows=benchmark.shows.format(method=method.shows),
        data=benchmark.data,
        datasets=benchmark.tests,
        sampler=_batches(method, benchmark),
        method=OrbitJointSettings(
            objective=method.objective,  # type: ignore[arg-type]
            orbit=(benchmark.label,) if method.supervised else benchmark.orbit,
            transformer=method.transformer,
            image=benchmark.image,
            channels=benchmark.channels,
        ),
        augmentation=benchmark.rendered,
        eval_transform=benchmark.rendered,
        steps=benchmark.steps,
        seeds=3 if end in benchmark.repeated else 1,
        checkpoint_every=benchmark.checkpoint_every,
        evaluations=benchmark.evaluations,
    )


def _map(preset: Preset, pixels: bool) -> Preset:
    """With the map of figure 2: two orbits of each digit; pixels, which are the same for all methods, once."""
    shown = OrbitMap(dataset="test", split=None, baselines=("pixels",) if pixels else ())
    return replace(preset, evaluations={**preset.evaluations, "map": shown})


def _shift(preset: Preset, translation: float) -> dict[str, Any]:
    """Digits that are moved farther, in the training and in the test."""
    options = (("translation", translation),)
    tests = {name: replace(data, options=options) for name, data in preset.datasets.items()}
    return {"data": replace(preset.data, options=options), "datasets": tests}  # type: ignore[type-var]


def _compare(preset: Preset, benchmark: Benchmark, method: Method) -> Iterator[Preset]:
    """The small preset with one thing changed, by what that is."""
    data: Any = preset.data
    batches: Any = preset.sampler
    settings: Any = preset.method
    changes: dict[str, dict[str, Any]] = {
        "orbits-20000": {"data": replace(data, where="source < 20000")},
        "orbits-1250": {"data": replace(data, where="source < 1250")},
        "steps-250": {"steps": 250},
        "steps-4000": {"steps": 4_000},
        "width-full": {"method": replace(settings, channels=(16, 32, 64, 128))},
        "shift-6": _shift(preset, 6.0),
        # an exemplar network gets orbits' members together, the others two members in place of eight
        "batch": {
            "sampler": replace(batches, sets=64, size=2) if method.grouped else _batches(METHODS["ot"], benchmark)
        },
    }
    if method.grouped:
        changes["raw-code"] = {"method": replace(settings, normalise=False, margin=1.0)}
    if method.objective == "joint":
        changes["rectified-more"] = {"method": replace(settings, weights=(1.0, 10.0))}
        changes["switches"] = {"method": replace(settings, unpooling="switches")}
    for name, change in changes.items():
        yield replace(preset, name=f"{preset.name}-{name}", shows=f"{preset.shows}, {name.replace('-', ' ')}", **change)


def _presets() -> Iterator[Preset]:
    for full, small in BENCHMARKS:
        for end in full.methods:
            presets = [_preset(benchmark, end) for benchmark in (full, small)]
            if full.name == "mnist" and end in COMPARED:
                yield from (_map(preset, pixels=end == "oj") for preset in presets)
                yield from _compare(presets[1], small, METHODS[end])
            else:
                yield from presets


_OWN = Preset(
    name="orbit-joint",
    shows="your own orbits: --data.name, --orbit and --canonical, and --method.objective triplet without the last",
    data=Data(YOURS, modalities=("image",)),
    missing={
        YOURS: "name them and their orbits, as in `setsup train orbit-joint --data.name photos.csv --orbit "
        'object --canonical "yaw == 0"`'
    },
    sampler=OrbitBatches(orbit=("source",), sets=16, size=8),
    method=OrbitJointSettings(orbit=("source",)),
    steps=5_000,
)

PRESETS = [*_presets(), _OWN]
"""Experiments of the papers, and that on orbits of one's own."""
