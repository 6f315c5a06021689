"""What the orbit papers experiment on: digits, toys, faces and videos, each at the papers' size and at half the width.

The faces of Multi-PIE are under licence, and the videos of the paper are not public. Presets on both run on images of
the same form, such as those of :func:`setsup.datasets.benchmarks.multi_pie.write_substitute`, and orbits that
:func:`setsup_papers.orbits.datasets.video_orbits.extract` finds in videos of yours; results on these are not comparable
to the papers'.

Orbits of videos have no class. Those of the evaluation need the factor ``person``, and those of ``orbits/video-st`` in
training, too: add the column to a copy of ``orbits.csv`` beside it, with another that says which tracks are trained on,
and give it with ``--data.name orbits-of-people.csv --data.where "part == 'train'" --datasets.people.name
orbits-of-people.csv --datasets.people.where "part == 'test'"``. No track may be in both.
"""

from dataclasses import dataclass, replace
from typing import Any

from setsup.experiments.data import Data
from setsup.experiments.evaluation import Evaluation
from setsup_papers.orbits.evaluations import OneShot, SampleComplexity
from setsup_papers.orbits.settings import MembersOnDevice
from setsup_papers.orbits.verification import Verification

__all__ = ["BENCHMARKS", "Benchmark"]

_FIVE = ("oj", "ot", "oe", "ex", "st")
_IMAGE = ("image",)
_FACES = "recording == 1 and elevated == False"
"""Neutral faces from the 13 cameras at head height."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What is trained on, what an orbit is, and what is measured."""

    name: str
    end: str = ""  # of the names of its presets
    shows: str  # with {method} for the words of a method
    data: Data
    tests: dict[str, Data]
    orbit: tuple[str, ...]
    label: str
    canonical: str
    rendered: MembersOnDevice | None = None
    image: tuple[int, int, int]
    channels: tuple[int, ...]
    images: int  # of a batch
    steps: int  # the papers stop early, after steps that they do not tell
    checkpoint_every: int = 500
    methods: tuple[str, ...] = _FIVE
    repeated: tuple[str, ...] = ()  # methods that are trained with three seeds
    evaluations: dict[str, Evaluation]


def _shrink(benchmark: Benchmark, **changes: Any) -> Benchmark:
    """The same at half the width, with what else differs."""
    half = tuple(channels // 2 for channels in benchmark.channels)
    return replace(benchmark, end="-small", channels=half, **changes)


def _resize(benchmark: Benchmark, side: int) -> dict[str, Any]:
    """Changes of a benchmark whose images are read at another size."""

    def resized(data: Data) -> Data:
        return replace(data, options=(("size", (side, side)),))

    tests = {name: resized(data) for name, data in benchmark.tests.items()}
    return {"data": resized(benchmark.data), "tests": tests, "image": (3, side, side)}


# -- digits ------------------------------------------------------------------------------------------------------------


def _digits(name: str, split: str, where: str | None = None) -> Data:
    return Data(name, split, where=where, modalities=("original",))


_MNIST = Benchmark(
    name="mnist",
    shows="table 2, affine MNIST: {method}",
    data=_digits("affine-mnist", "embedding"),
    tests={"test": _digits("affine-mnist", "test")},
    orbit=("source",),
    label="digit",
    canonical="member == 0",
    rendered=MembersOnDevice(),
    image=(1, 40, 40),
    channels=(16, 32, 64, 128),
    images=256,
    steps=60_000,
    methods=("oj", "ot", "oe", "ex", "ae", "st", "ot-stn", "st-stn"),
    evaluations={"oneshot": OneShot(dataset="test", split=None, original="member == 0")},
)
_MNIST_SMALL = _shrink(
    _MNIST,
    shows=f"{_MNIST.shows}, small",
    data=_digits("affine-mnist", "embedding", "source < 5000"),
    tests={"test": _digits("affine-mnist", "test", "source < 62000")},  # 2,000 digits
    images=128,
    steps=1_000,
    checkpoint_every=200,
    repeated=("oj", "ot", "ex", "oe"),
)

_EVEN_ODD = replace(
    _MNIST,
    name="even-odd",
    shows="table 2, trained on even digits, tested on odd ones: {method}",
    data=_digits("even-odd", "embedding"),
    tests={"test": _digits("even-odd", "evaluation")},
    methods=_FIVE,
)
_EVEN_ODD_SMALL = replace(
    _MNIST_SMALL,
    name="even-odd",
    shows=f"{_EVEN_ODD.shows}, small",
    data=_digits("even-odd", "embedding", "source < 10150"),  # 5,000 of the even digits
    tests={"test": _digits("even-odd", "evaluation", "source < 63943")},  # 2,000 of the odd ones
    methods=_FIVE,
    repeated=(),
)

# -- toys --------------------------------------------------------------------------------------------------------------


def _toys(split: str) -> Data:
    return Data("smallnorb", split, where="camera == 'left'", modalities=_IMAGE)


_ONE_SHOT = OneShot(
    factor="category",
    orbit=("category", "instance", "lighting"),
    group=("category", "instance"),
    splits=1000,
    validation=0.4,  # two of the five toys of each category are for validation, three for the test
    dataset="test",
    split=None,
)
_NORB = Benchmark(
    name="norb",
    shows="table 2, SmallNORB: {method}",
    data=_toys("train"),
    tests={"test": _toys("test")},
    orbit=_ONE_SHOT.orbit,
    label="category",
    canonical="elevation == 30 and azimuth == 0",
    image=(1, 96, 96),  # SmallNORB has no option for the size of its images
    channels=(32, 64, 128, 256),
    images=256,
    steps=20_000,
    evaluations={"oneshot": _ONE_SHOT, "oneshot_validation": replace(_ONE_SHOT, part="validation")},
)
_NORB_SMALL = _shrink(
    _NORB,
    shows="table 2, SmallNORB, small: {method}",
    images=64,
    steps=400,
    checkpoint_every=100,
    evaluations={"oneshot": replace(_ONE_SHOT, splits=100)},
)

# -- faces -------------------------------------------------------------------------------------------------------------


def _sessions(chosen: str) -> Data:
    return Data("multi-pie", where=f"{chosen} and {_FACES}", options=(("size", (128, 128)),), modalities=_IMAGE)


_SHOTS = ("subject", "session", "shot")
_MULTI_PIE = Benchmark(
    name="multi-pie",
    shows="table 2, Multi-PIE, first split of sessions: {method}",
    data=_sessions("session <= 2"),
    tests={"held": _sessions("session == 3"), "test": _sessions("session == 4")},
    orbit=_SHOTS,
    label="subject",
    canonical="camera == '05_1'",
    image=(3, 128, 128),
    channels=(64, 128, 256, 512),
    images=72,
    steps=60_000,
    evaluations={
        "verification": Verification(orbit=_SHOTS, dataset="test"),
        "verification_validation": Verification(orbit=_SHOTS, dataset="held"),
    },
)
_MULTI_PIE_SMALL = _shrink(
    _MULTI_PIE,
    **_resize(_MULTI_PIE, 48),
    shows="table 2, Multi-PIE, first split of sessions, small, images of 48 x 48: {method}",
    steps=400,
    checkpoint_every=100,
    evaluations={"verification": _MULTI_PIE.evaluations["verification"]},
)

# -- videos ------------------------------------------------------------------------------------------------------------

_VIDEOS = Data("video-orbits", options=(("size", (96, 96)),), modalities=_IMAGE)
_VIDEO = Benchmark(
    name="video",
    shows="labelled faces against accuracy, videos of yours: {method}",
    data=_VIDEOS,
    tests={"people": _VIDEOS},
    orbit=("track",),
    label="person",
    canonical="canonical == True",
    image=(3, 96, 96),
    channels=(64, 128, 256, 512),
    images=128,
    steps=60_000,
    evaluations={"samples": SampleComplexity(factor="person", orbit=("track",), dataset="people", split=None)},
)
_VIDEO_SMALL = _shrink(
    _VIDEO,
    **_resize(_VIDEO, 48),
    shows="labelled faces against accuracy, videos of yours, small, images of 48 x 48: {method}",
    images=72,
    steps=400,
    checkpoint_every=100,
)

BENCHMARKS = (
    (_MNIST, _MNIST_SMALL),
    (_EVEN_ODD, _EVEN_ODD_SMALL),
    (_NORB, _NORB_SMALL),
    (_MULTI_PIE, _MULTI_PIE_SMALL),
    (_VIDEO, _VIDEO_SMALL),
)
"""Each of the papers' size, and small."""
