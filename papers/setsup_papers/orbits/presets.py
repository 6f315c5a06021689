"""Experiments of the orbit papers on digits, a preset each; those whose names end in ``-small`` fit two cores.

A small one has half the width, 5,000 orbits, batches of 128, and is tested on 2,000 digits with their 32 copies.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from setsup.experiments.data import YOURS, Data
from setsup.experiments.preset import Preset
from setsup_papers.orbits.evaluations import OneShot
from setsup_papers.orbits.orbit_map import OrbitMap
from setsup_papers.orbits.settings import MembersOnDevice, OrbitBatches, OrbitJointSettings

__all__ = ["COMPARED", "METHODS", "PAPER", "PRESETS", "Method", "batches_of"]

PAPER = (
    '"Trading robust representations for sample complexity through self-supervised visual experience", NeurIPS 2018, '
    'with "Discriminate-and-rectify encoders", arXiv 1703.04775'
)


@dataclass(frozen=True, slots=True)
class Method:
    """A column of table 2: its words, its objective, and whether triplets are of classes."""

    shows: str
    settings: OrbitJointSettings
    supervised: bool = False


def _method(objective: str, *, transformer: bool = False) -> OrbitJointSettings:
    return OrbitJointSettings(objective=objective, orbit=("source",), transformer=transformer)  # type: ignore[arg-type]


METHODS: dict[str, Method] = {
    "oj": Method("orbit joint loss", _method("joint")),
    "ot": Method("orbit triplets", _method("triplet")),
    "oe": Method("rectification to canonical images", _method("rectification")),
    "ex": Method("exemplar: a class for each orbit", _method("exemplar")),
    "ae": Method("autoencoder", _method("autoencoder")),
    "st": Method("supervised triplets of classes", _method("triplet"), supervised=True),
    "ot-stn": Method("orbit triplets, spatial transformer first", _method("triplet", transformer=True)),
    "st-stn": Method(
        "supervised triplets, spatial transformer first", _method("triplet", transformer=True), supervised=True
    ),
}
"""Methods of table 2 by the end of their presets' names; AE is not in the table."""

COMPARED = ("oj", "ot", "ex")
"""Methods that single-factor comparisons are made of."""

_SMALL_BATCH = (("source",), "member == 0", 128)

_GROUPED = ("joint", "triplet")
"""Objectives whose batches are some members of each orbit; others get images drawn independently."""


def batches_of(
    method: Method, orbit: tuple[str, ...], canonical: str, images: int, label: str = "digit"
) -> OrbitBatches:
    """Batches of so many images: eight of each orbit, or of each drawn class, or independent ones."""
    if method.supervised:
        return OrbitBatches(orbit=(label,), sets=images // 8, size=8, values="independent")
    if method.settings.objective in _GROUPED:
        return OrbitBatches(orbit=orbit, sets=images // 8, size=8, canonical=canonical)
    named = canonical if method.settings.objective == "rectification" else None
    return OrbitBatches(orbit=orbit, sets=images, size=1, canonical=named, values="independent")


def _digits(name: str, method: Method, shows: str, data: Data, test: Data) -> Preset:
    """Of the paper's size: the whole embedding set, batches of 256."""
    orbit = ("digit",) if method.supervised else ("source",)
    return Preset(
        name=name,
        shows=f"{shows}: {method.shows}",
        data=data,
        datasets={"test": test},
        sampler=batches_of(method, ("source",), "member == 0", 256),
        method=replace(method.settings, orbit=orbit, image=(1, 40, 40)),
        augmentation=MembersOnDevice(),
        eval_transform=MembersOnDevice(),
        steps=60_000,
        seeds=1,
        checkpoint_every=500,
        evaluations={"oneshot": OneShot(dataset="test", split=None, original="member == 0")},
    )


def _small(preset: Preset, method: Method, where: str, tested: str) -> Preset:
    """The same at half the width, on 5,000 orbits."""
    assert preset.data is not None
    sampler = batches_of(method, *_SMALL_BATCH)
    return replace(
        preset,
        name=f"{preset.name}-small",
        shows=f"{preset.shows}, small",
        data=replace(preset.data, where=where),
        datasets={"test": replace(preset.datasets["test"], where=tested)},
        sampler=sampler,
        method=replace(preset.method, channels=(8, 16, 32, 64)),  # type: ignore[type-var]
        steps=1_000,
        seeds=3 if preset.name in [f"orbits/mnist-{end}" for end in (*COMPARED, "oe")] else 1,
        checkpoint_every=200,
    )


def _data(preset: Preset, **changes: Any) -> dict[str, Any]:
    """Other options of the data, of the training and of the test."""
    options = tuple(sorted(changes.items()))
    assert preset.data is not None
    tests = {name: replace(data, options=options) for name, data in preset.datasets.items()}
    return {"data": replace(preset.data, options=options), "datasets": tests}


def _compared(preset: Preset) -> Iterator[Preset]:
    """The small preset with one thing changed, by what that is."""
    settings, batches = preset.method, preset.sampler
    assert isinstance(settings, OrbitJointSettings)
    assert isinstance(batches, OrbitBatches)
    assert preset.data is not None
    joint, grouped = settings.objective == "joint", settings.objective in _GROUPED
    changes: dict[str, dict[str, Any]] = {
        "orbits-20000": {"data": replace(preset.data, where="source < 20000")},
        "orbits-1250": {"data": replace(preset.data, where="source < 1250")},
        "steps-250": {"steps": 250},
        "steps-4000": {"steps": 4_000},
        "width-full": {"method": replace(settings, channels=(16, 32, 64, 128))},
        "shift-6": _data(preset, translation=6.0),
        # an exemplar network gets orbits' members together, the others two members in place of eight
        "batch": {
            "sampler": replace(batches, sets=64, size=2) if grouped else batches_of(METHODS["ot"], *_SMALL_BATCH)
        },
    }
    if grouped:
        changes["raw-code"] = {"method": replace(settings, normalise=False, margin=1.0)}
    if joint:
        changes["rectified-more"] = {"method": replace(settings, weights=(1.0, 10.0))}
        changes["switches"] = {"method": replace(settings, unpooling="switches")}
    for name, change in changes.items():
        yield replace(preset, name=f"{preset.name}-{name}", shows=f"{preset.shows}, {name.replace('-', ' ')}", **change)


def _mapped(preset: Preset, pixels: bool) -> Preset:
    """With the map of figure 2: two orbits of each digit; pixels, which are the same for all methods, once."""
    shown = OrbitMap(dataset="test", split=None, baselines=("pixels",) if pixels else ())
    return replace(preset, evaluations={**preset.evaluations, "map": shown})


def _presets() -> Iterator[Preset]:
    for end, method in METHODS.items():
        data = [Data("affine-mnist", split, modalities=("original",)) for split in ("embedding", "test")]
        full = _digits(f"orbits/mnist-{end}", method, "table 2, affine MNIST", *data)
        small = _small(full, method, "source < 5000", "source < 62000")
        if end in COMPARED:
            yield _mapped(full, pixels=end == "oj")
            yield _mapped(small, pixels=end == "oj")
            yield from _compared(small)
        else:
            yield from (full, small)
    for end in ("oj", "ot", "oe", "ex", "st"):
        method = METHODS[end]
        data = [Data("even-odd", split, modalities=("original",)) for split in ("embedding", "evaluation")]
        full = _digits(f"orbits/even-odd-{end}", method, "table 2, trained on even digits, tested on odd ones", *data)
        yield full
        # 5,000 of the even digits, and 2,000 of the odd ones
        yield _small(full, method, "source < 10150", "source < 63943")


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
"""Experiments on digits, and that on orbits of one's own."""
