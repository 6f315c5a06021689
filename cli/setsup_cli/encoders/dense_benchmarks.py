"""Benchmarks of pixel features with protocols of their own, as ``setsup report dense`` measures them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from setsup.datasets.keypoint_pairs import has_keypoints
from setsup.errors import DataError, advised_for_command
from setsup.files.expand_user import expanded
from setsup_cli.encoders.pixel_encoders import PixelEncoder, open_pixel_encoders

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.experiments.evaluations.measured import BenchmarkResults, Encode, Example

__all__ = ["BENCHMARKS", "Benchmark", "Found", "find_benchmark", "measure_benchmark", "name_source", "refuse_options"]


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
        Name of the kind, in results.
    fits : callable
        Whether a dataset is of this kind.
    module : str
        Module of :mod:`setsup.experiments.evaluations` with ``METHOD``, ``choose``, ``content``, ``describe``,
        ``measure``, ``main_value`` and ``examples``.
    unit : str
        What is measured one after another, for the progress bar.
    step : bool
        Whether ``choose`` has the argument ``step``, the distance of grid points.

    """

    name: str
    fits: Callable[[Any], bool]
    module: str
    unit: str
    step: bool = False

    def load(self) -> Any:
        """Import the module."""
        return import_module(f"setsup.experiments.evaluations.{self.module}")


BENCHMARKS = (
    Benchmark("keypoints", has_keypoints, "keypoint_transfer", "pair"),
    Benchmark("planes", _has_homographies, "homography_matching", "pair", step=True),
    Benchmark("tracks", _has_tracks, "point_tracking", "video", step=True),
)
"""Kinds of benchmarks; a dataset is of the first one that fits it."""

_VIEWS_ONLY = {"scene": None, "spread": None, "queries": "1024", "step": 4, "overlaps": None}


def find_benchmark(dataset: "Dataset") -> Benchmark | None:
    """The kind of benchmark that a dataset is; None for views of scenes."""
    return next((benchmark for benchmark in BENCHMARKS if benchmark.fits(dataset)), None)


def refuse_options(options: Any, dataset: "Dataset", benchmark: Benchmark) -> None:
    """Raise DataError for options that a benchmark's protocol does not have."""
    for name, default in _VIEWS_ONLY.items():
        if getattr(options, name) != default and not (benchmark.step and name == "step"):
            raise DataError(
                f"--{name} does not apply to {dataset.name}, which is measured by its own protocol; leave out --{name}"
            )


def name_source(options: Any, dataset: "Dataset") -> list[str]:
    """A line that says which data were measured, where the name of the dataset does not."""
    given = [str(options.dataset), *(() if options.where is None else (f"where {options.where}",))]
    return [] if given == [dataset.name] else [f"data: {', '.join(given)}"]


@dataclass(frozen=True, slots=True)
class Found:
    """Results of encoders, lines of the report, and a function that returns examples for the sheet of an encoder."""

    results: "BenchmarkResults"
    encoders: list[PixelEncoder]
    lines: list[str]
    examples: "Callable[[PixelEncoder, int], list[Example]]"


def measure_benchmark(options: Any, dataset: "Dataset", benchmark: Benchmark) -> Found:
    """Measure all encoders, except those whose values are already in the folder of the report."""
    from setsup.experiments.evaluations.measured import BenchmarkResults, Measured
    from setsup.experiments.result_cache import PartStore, digest, digest_arrays
    from setsup.progress import progress

    module = benchmark.load()
    with advised_for_command({"where": "--where"}):
        step = {"step": options.step} if benchmark.step else {}
        task = module.choose(dataset, most=options.pairs, seed=options.seed, where=options.where, **step)
    # all, before anything is measured; features of patches, which the modules interpolate themselves
    encoders = list(open_pixel_encoders(options, dataset, grid=True))
    data = {"dataset": dataset.name, "table": dataset.factors.fingerprint, **task.about}
    if options.out is not None:
        data["content"] = digest_arrays(module.content(dataset, task))
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
    about = {"benchmark": benchmark.name, "dataset": dataset.name, "source": str(options.dataset)}
    about |= {"split": options.split, "where": options.where, "seed": options.seed}
    results = BenchmarkResults(
        about={**about, **settings, f"{benchmark.unit}s": len(task)},
        main=module.main_value(first),
        measured=measured,
        weights={one.label: one.described.removeprefix("weights: ") for one in encoders},
    )
    lines = [*name_source(options, dataset), *module.describe(task, options.features)]
    if options.longest is not None:
        lines.append(
            f"images were resized (bicubic) to {options.longest:,} pixels along their longer side for encoding"
        )

    def examples(encoder: PixelEncoder, count: int) -> "list[Example]":
        found: list[Example] = module.examples(dataset, encode(encoder), task, options.features, count)
        return found

    return Found(results, encoders, lines, examples)
