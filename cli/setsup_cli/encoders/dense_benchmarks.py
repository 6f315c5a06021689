"""Benchmarks of pixel features with protocols of their own, as ``setsup report dense`` measures them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from setsup.errors import DataError, advised_for_command
from setsup.files.expand_user import expanded
from setsup_cli.encoders.pixel_encoders import PixelEncoder, open_pixel_encoders

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.experiments.evaluations.measured import BenchmarkResults, Encode, Example

__all__ = ["BENCHMARKS", "Benchmark", "Found", "find_benchmark", "measure_benchmark", "refuse_options"]


def _has_keypoints(dataset: Any) -> bool:
    from setsup.datasets.keypoint_pairs import has_keypoints

    return has_keypoints(dataset)


def _has_homographies(dataset: Any) -> bool:
    return hasattr(dataset, "homography") and {"scene", "view"} <= set(dataset.factors.names)


def _has_tracks(dataset: Any) -> bool:
    return hasattr(dataset, "video_tracks") and {"video", "frame"} <= set(dataset.factors.names)


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A kind of benchmark.

    Attributes
    ----------
    name : str
        Of the kind, in results.
    fits : callable
        Whether a dataset is one.
    module : str
        Module of :mod:`setsup.experiments.evaluations` with ``METHOD``, ``choose``, ``describe``, ``measure``,
        ``main_value`` and ``examples``.
    unit : str
        What is measured one after the other.
    grid : bool
        Whether ``encode`` returns features of patches in any case, since the module interpolates them itself.
    step : bool
        Whether ``choose`` takes the distance of grid points.

    """

    name: str
    fits: Callable[[Any], bool]
    module: str
    unit: str
    grid: bool = False
    step: bool = False

    def load(self) -> Any:
        """Import the module."""
        return import_module(f"setsup.experiments.evaluations.{self.module}")


BENCHMARKS = (
    Benchmark("keypoints", _has_keypoints, "keypoint_transfer", "pair", grid=True),
    Benchmark("planes", _has_homographies, "homography_matching", "pair", grid=True, step=True),
    Benchmark("tracks", _has_tracks, "point_tracking", "video", grid=True, step=True),
)
"""Kinds of benchmarks; the first one that fits a dataset counts."""

_VIEWS_ONLY = {"scene": None, "spread": None, "queries": "1024", "step": 4, "overlaps": None}


def find_benchmark(dataset: "Dataset") -> Benchmark | None:
    """The kind of benchmark that a dataset is; None for views of scenes."""
    return next((benchmark for benchmark in BENCHMARKS if benchmark.fits(dataset)), None)


def refuse_options(options: Any, dataset: "Dataset", benchmark: Benchmark) -> None:
    """Refuse options that a benchmark's protocol does not have."""
    for name, default in _VIEWS_ONLY.items():
        if benchmark.step and name == "step":
            continue
        if getattr(options, name) != default:
            raise DataError(
                f"--{name} does not apply to {dataset.name}, which is measured by its own protocol; leave out --{name}"
            )


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured: results, the encoders, lines of the report, and examples of an encoder for its sheet."""

    results: "BenchmarkResults"
    encoders: list[PixelEncoder]
    lines: list[str]
    examples: "Callable[[PixelEncoder, int], list[Example]]"


def measure_benchmark(options: Any, dataset: "Dataset", benchmark: Benchmark) -> Found:
    """Measure all encoders; those whose values are in the folder of the report are not measured again."""
    from setsup.experiments.evaluations.measured import BenchmarkResults, Measured
    from setsup.experiments.result_cache import PartStore, digest
    from setsup.progress import progress

    module = benchmark.load()
    with advised_for_command({"where": "--where"}):
        grid_step = {"step": options.step} if benchmark.step else {}
        task = module.choose(dataset, most=options.pairs, seed=options.seed, where=options.where, **grid_step)
    grid = benchmark.grid or options.features == "grid"
    encoders = list(open_pixel_encoders(options, dataset, grid=grid))  # all, before anything is measured
    opened = {"option": options.option, "image": options.image}
    data = {"dataset": dataset.name, "table": dataset.factors.fingerprint, **opened, **task.about}
    settings = {"features": options.features, "longest": options.longest}
    measured: dict[str, list[Measured]] = {}

    def encode(encoder: PixelEncoder) -> "Encode":
        return encoder.encode(dataset.name, options.longest)

    with progress(len(encoders) * len(task), f"measuring {dataset.name}", benchmark.unit) as advance:
        for encoder in encoders:

            def compute(items: Sequence[str], encoder: PixelEncoder = encoder) -> Mapping[str, Any]:
                found = module.measure(dataset, encode(encoder), task, options.features, advance)
                return {items[0]: [list(one) for one in found]}

            if options.out is None:
                values = compute(["values"])["values"]
            else:
                store = PartStore(expanded(options.out) / "parts", encoder.about | {"method": module.METHOD})
                known = data | settings | {"encoder": digest(encoder.about)}
                values = store.parts(benchmark.name, known, ["values"], compute)["values"]
            measured[encoder.label] = [Measured(*one) for one in values]
    first = next(iter(measured.values()))
    about = {"benchmark": benchmark.name, "dataset": dataset.name, "split": options.split, "seed": options.seed}
    results = BenchmarkResults(
        about={**about, **settings, f"{benchmark.unit}s": len(task)},
        main=module.main_value(first),
        measured=measured,
        weights={one.label: one.described.removeprefix("weights: ") for one in encoders},
    )
    lines = module.describe(task, options.features)
    if options.longest is not None:
        lines.append(
            f"images were resized (bicubic) to {options.longest:,} pixels along their longer side for encoding"
        )

    def examples(encoder: PixelEncoder, count: int) -> "list[Example]":
        found: list[Example] = module.examples(dataset, encode(encoder), task, options.features, count)
        return found

    return Found(results, encoders, lines, examples)
