"""Experiments of the orbit papers on toys, faces and videos; those whose names end in ``-small`` fit two cores.

The faces of Multi-PIE are under licence, and the videos of the paper are not public. Both kinds of presets run on other
images of the same form, such as those of :func:`setsup.datasets.benchmarks.multi_pie.write_substitute`, and orbits that
:func:`setsup_papers.orbits.datasets.video_orbits.extract` finds in videos of yours; results on these are not comparable
to the papers'.

Orbits of videos have no class. Those of the evaluation need the factor ``person``, and those of ``orbits/video-st`` in
training, too: add the column to a copy of ``orbits.csv`` beside it, with another that says which tracks are trained on,
and give it with ``--data.name orbits-of-people.csv --data.where "part == 'train'" --datasets.people.name
orbits-of-people.csv --datasets.people.where "part == 'test'"``. No track may be in both.

A small preset has half the width. Those of faces have images of 48 x 48 pixels, and batches of 72; those of toys have
batches of 64, and are tested with 100 re-splits. SmallNORB has no option for the size of its images.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from setsup.experiments.data import Data
from setsup.experiments.preset import Evaluation, Preset
from setsup_papers.orbits.evaluations import OneShot, SampleComplexity
from setsup_papers.orbits.presets import METHODS, Method, batches_of
from setsup_papers.orbits.verification import Verification

__all__ = ["PRESETS"]

_ENDS = ("oj", "ot", "oe", "ex", "st")
_IMAGE = ("image",)
_HALF = (32, 64, 128, 256)
_FACES = "recording == 1 and elevated == False"
"""Neutral faces from the 13 cameras at head height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Experiments on one dataset: what is trained on, what an orbit is, and what is measured."""

    name: str
    shows: str
    data: Data
    tests: dict[str, Data]
    orbit: tuple[str, ...]
    canonical: str
    label: str
    images: int  # of a batch
    image: tuple[int, int, int]
    channels: tuple[int, ...]
    steps: int  # the papers stop early, after steps that they do not tell
    evaluations: dict[str, Evaluation]


def _norb() -> Iterator[_Kind]:
    data = {split: Data("smallnorb", split, where="camera == 'left'", modalities=_IMAGE) for split in ("train", "test")}
    # two of the five toys of each category are for validation, three for the test
    oneshot = OneShot(
        factor="category",
        orbit=("category", "instance", "lighting"),
        group=("category", "instance"),
        splits=1000,
        validation=0.4,
        dataset="test",
        split=None,
    )
    full = _Kind(
        name="orbits/norb",
        shows="table 2, SmallNORB",
        data=data["train"],
        tests={"test": data["test"]},
        orbit=("category", "instance", "lighting"),
        canonical="elevation == 30 and azimuth == 0",
        label="category",
        images=256,
        image=(1, 96, 96),
        channels=(32, 64, 128, 256),
        steps=20_000,
        evaluations={"oneshot": oneshot, "oneshot_validation": replace(oneshot, part="validation")},
    )
    yield full
    evaluations = {"oneshot": replace(oneshot, splits=100)}
    yield _small(full, (1, 96, 96), images=64, channels=(16, 32, 64, 128), evaluations=evaluations)


def _multi_pie() -> Iterator[_Kind]:
    def sessions(chosen: str) -> Data:
        return Data("multi-pie", where=f"{chosen} and {_FACES}", options=(("size", (128, 128)),), modalities=_IMAGE)

    orbit = ("subject", "session", "shot")
    full = _Kind(
        name="orbits/multi-pie",
        shows="table 2, Multi-PIE, first split of sessions",
        data=sessions("session <= 2"),
        tests={"held": sessions("session == 3"), "test": sessions("session == 4")},
        orbit=orbit,
        canonical="camera == '05_1'",
        label="subject",
        images=72,
        image=(3, 128, 128),
        channels=(64, 128, 256, 512),
        steps=60_000,
        evaluations={
            "verification": Verification(orbit=orbit, dataset="test"),
            "verification_validation": Verification(orbit=orbit, dataset="held"),
        },
    )
    yield full
    yield _small(full, (3, 48, 48), evaluations={"verification": Verification(orbit=orbit, dataset="test")})


def _video() -> Iterator[_Kind]:
    data = Data("video-orbits", options=(("size", (96, 96)),), modalities=_IMAGE)
    full = _Kind(
        name="orbits/video",
        shows="labelled faces against accuracy, videos of yours",
        data=data,
        tests={"people": data},
        orbit=("track",),
        canonical="canonical == True",
        label="person",
        images=128,
        image=(3, 96, 96),
        channels=(64, 128, 256, 512),
        steps=60_000,
        evaluations={"samples": SampleComplexity(factor="person", orbit=("track",), dataset="people", split=None)},
    )
    yield full
    yield _small(full, (3, 48, 48), images=72)


def _small(kind: _Kind, image: tuple[int, int, int], **changes: Any) -> _Kind:
    """The same at half the width for some hundred steps, with images of another size where the dataset has some."""

    def resized(data: Data) -> Data:
        return replace(data, options=(("size", image[1:]),)) if data.options else data

    pixels = f", images of {image[1]} x {image[2]}" if kind.image != image else ""
    found = replace(
        kind,
        name=f"{kind.name}-small",
        shows=f"{kind.shows}, small{pixels}",
        data=resized(kind.data),
        tests={name: resized(data) for name, data in kind.tests.items()},
        image=image,
        channels=_HALF,
        steps=400,
    )
    return replace(found, **changes)


def _preset(kind: _Kind, end: str, method: Method) -> Preset:
    head, small, _ = kind.name.partition("-small")
    orbit = (kind.label,) if method.supervised else kind.orbit
    return Preset(
        name=f"{head}-{end}{small}",
        shows=f"{kind.shows}: {method.shows}",
        data=kind.data,
        datasets=kind.tests,
        sampler=batches_of(method, kind.orbit, kind.canonical, kind.images, kind.label),
        method=replace(method.settings, orbit=orbit, image=kind.image, channels=kind.channels),
        steps=kind.steps,
        seeds=1,
        checkpoint_every=100 if small else 500,
        evaluations=kind.evaluations,
    )


def _presets() -> Iterator[Preset]:
    for kinds in (_norb, _multi_pie, _video):
        for kind in kinds():
            for end in _ENDS:
                yield _preset(kind, end, METHODS[end])


PRESETS = list(_presets())
"""Experiments on toys, faces and videos."""
