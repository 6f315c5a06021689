"""Trains what a command asks for: seeds, and points of a sweep, in sequence or side by side."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from setsup.errors import SetsupError
from setsup_cli.output import say, show_json
from setsup_cli.parsing.values import write_value
from setsup_cli.suggestions import advise_command
from setsup_cli.training.describing import (
    describe,
    describe_begin,
    describe_plan,
    describe_result,
    plan_json,
    speaks,
)
from setsup_cli.training.sweep import Point, show_points, summarise
from setsup_cli.training.train_args import Asked, Training
from setsup_cli.training.trainings import check, check_draws, check_parallel, default_parallel, train_beside, train_one

if TYPE_CHECKING:
    from setsup.experiments import Run
    from setsup.experiments.runs.run import Progress

__all__ = ["check_points", "plan_points", "train_points"]


def train_points(asked: Asked, points: Sequence[Point], options: Any) -> int:
    """Train and print; errors in any point of a sweep are found before the first one is trained."""
    trainings = [point.asked.training(seed) for point in points for seed in asked.seeds]
    processes = options.parallel or default_parallel(trainings[0])
    check_parallel(trainings[0], processes if options.parallel is None else options.parallel)
    verbose = speaks() and not options.json
    heading = [*describe(asked), ""]
    if options.sweep or processes > 1:
        _check_all(points, asked.seeds)
    if processes > 1 and len(trainings) > 1:
        runs = _train_beside(trainings, processes, heading, verbose)
    else:
        runs = _train_in_sequence(points, asked.seeds, heading, verbose, bool(options.sweep))
    each = [summarise(point, part) for point, part in zip(points, _parts(runs, len(asked.seeds)), strict=True)]
    about = {"preset": asked.preset.name, "shows": asked.preset.shows, "changed": dict(asked.changed)}
    if options.json and speaks():
        show_json(about | ({"sweep": each} if options.sweep else {"runs": runs}))
    elif verbose and options.sweep:
        say()
        show_points(each)
    trained = [run["folder"] for run in runs if "error" not in run]
    if verbose and trained:
        advise_command(options, _next(asked, trained))
    failed = [
        f"{training.folder}: {run['error']}" for training, run in zip(trainings, runs, strict=True) if "error" in run
    ]
    if failed:
        more = f" (and {len(failed) - 1} more runs failed)" if len(failed) > 1 else ""
        raise SetsupError(f"{failed[0]}{more}")
    return 0


def _next(asked: Asked, folders: Sequence[str]) -> list[str]:
    """Words of the command that evaluates runs, or embeds by the first one."""
    return ["setsup", "eval", *folders] if asked.preset.evaluations else ["setsup", "embed", folders[0]]


def plan_points(asked: Asked, points: Sequence[Point], as_json: bool) -> int:
    """Check everything, and print what would be trained."""
    check_lines: list[str] = []
    plans = []
    for point in points:
        for seed in asked.seeds:
            training = point.asked.training(seed)
            plan = check(training)
            if plan is not None:
                plans.append({"values": dict(point.values), **plan_json(plan)})
                check_lines += describe_plan(training, plan)
    if as_json:
        show_json({"preset": asked.preset.name, "changed": dict(asked.changed), "runs": plans})
        return 0
    for line in (*describe(asked), "", "would train (nothing was written):", *check_lines):
        say(line)
    return 0


def check_points(points: Sequence[Point], seed: int) -> None:
    """Check what needs no torch, which takes much longer to import: data, and factors that are named."""
    for point in points:
        with _naming(point):
            check_draws(point.asked.training(seed))


def _check_all(points: Sequence[Point], seeds: Sequence[int]) -> None:
    """Check the data and the method of each point, and the folder of each run."""
    for point in points:
        for seed in seeds:
            with _naming(point):
                check(point.asked.training(seed), data=seed == seeds[0])


@contextmanager
def _naming(point: Point) -> Iterator[None]:
    """Name the point of a sweep in an error."""
    try:
        yield
    except SetsupError as error:
        if not point.values:
            raise
        raise type(error)(f"{_name(point)}: {error}") from error


def _train_in_sequence(
    points: Sequence[Point], seeds: Sequence[int], heading: Sequence[str], verbose: bool, sweep: bool
) -> list[dict[str, Any]]:
    """Train one after the other; in a sweep, one that fails does not keep others from being trained."""
    results: list[dict[str, Any]] = []
    for point in points:
        for seed in seeds:
            lines = [] if results else list(heading)
            if sweep and seed == seeds[0]:
                lines.append(_name(point))
            results.append(_train_and_print(point.asked.training(seed), lines, verbose, sweep))
    return results


def _train_and_print(training: Training, heading: Sequence[str], verbose: bool, sweep: bool) -> dict[str, Any]:
    begun: list[str] = []

    def begin(run: "Run", before: "Progress") -> None:
        begun.extend([*heading, *describe_begin(run, before)])
        if verbose:
            for line in begun:
                say(line)

    try:
        result = train_one(training, begin)
    except SetsupError as error:
        if not (sweep and begun) or training.config.devices * training.config.nodes > 1:
            raise
        result = {"folder": str(training.folder), "seed": training.seed, "error": str(error)}
    if verbose:
        for line in _result(result):
            say(line)
    return result


def _train_beside(
    trainings: Sequence[Training], processes: int, heading: Sequence[str], verbose: bool
) -> list[dict[str, Any]]:
    if verbose:
        for line in (*heading, f"{len(trainings)} runs, {min(processes, len(trainings))} at a time"):
            say(line)
    results = train_beside(trainings, processes)
    for training, run in zip(trainings, results, strict=True):
        if "error" in run:
            run |= {"folder": str(training.folder), "seed": training.seed}
        if verbose:
            for line in (f"seed {training.seed}: {training.folder}", *_result(run)):
                say(line)
    return results


def _result(result: dict[str, Any]) -> Iterator[str]:
    return iter([f"  failed: {result['error']}"]) if "error" in result else describe_result(result)


def _parts(runs: Sequence[Any], length: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(runs), length):
        yield runs[start : start + length]


def _name(point: Point) -> str:
    return ", ".join(f"{name}={write_value(value)}" for name, value in point.values.items())
