"""Sweeps over settings: their points, and the table of their results."""

import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote

from setsup.errors import SetsupError, did_you_mean
from setsup_cli.output import show_table
from setsup_cli.parsing.parser import Subcommand, parse
from setsup_cli.parsing.settings import short_names
from setsup_cli.parsing.values import write_value
from setsup_cli.runs import number
from setsup_cli.training.train_args import NO_SETTINGS, Asked

__all__ = ["Point", "read_points", "show_points", "summarise"]

_LONGEST = 200  # bytes in the name of a folder, below the limit of disks


class Point(NamedTuple):
    """A point of a sweep: values of settings by dotted names, and what is trained there."""

    values: Mapping[str, Any]
    asked: Asked


def read_points(asked: Asked, options: Any) -> list[Point]:
    """Points of the product of all sweeps, such as ``method.temperature=0.1,0.2``; one without a sweep."""
    from setsup.experiments.settings import flatten

    if not options.sweep:
        return [Point({}, asked)]
    known = {name: value for name, value in flatten(asked.preset).items() if name not in NO_SETTINGS}
    short = short_names(asked.preset, NO_SETTINGS)
    known |= {name: known[names[0]] for name, names in short.items()}
    swept: dict[str, list[Any]] = {}
    sets: set[str] = set()
    for word in options.sweep:
        name, equals, texts = word.partition("=")
        name = name.removeprefix("--").replace("-", "_")
        if not (name and equals and texts):
            raise SetsupError(f"--sweep must be SETTING=VALUE,VALUE,… such as steps=500,1000, not {word!r}")
        if name not in known:
            raise SetsupError(f"--sweep {word}: unknown setting {name!r}{did_you_mean(name, known)}")
        for setting in short.get(name, [name]):
            if setting in sets:
                raise SetsupError(
                    f"--sweep {setting}=… is specified twice; list all values of the setting, separated by commas"
                )
            sets.add(setting)
        # a value of several words is separated by spaces
        several = isinstance(known[name], list)
        values = [_read(name, text.split(" ") if several else [text], options) for text in texts.split(",")]
        swept[name] = [value for at, value in enumerate(values) if value not in values[:at]]
    points = []
    for combined in product(*swept.values()):
        point = dict(zip(swept, combined, strict=True))
        settings = {setting: value for name, value in point.items() for setting in short.get(name, [name])}
        points.append(Point(point, asked.change(settings, _folder(point))))
    return points


def _read(name: str, words: Sequence[str], options: Any) -> Any:
    """A value as the option of its setting reads it."""
    parsed = parse(Subcommand("train", type(options), "", options.preset or ""), [f"--{name}", *words])
    return reduce(getattr, name.split("."), parsed)


def _folder(point: Mapping[str, Any]) -> str:
    """Name of the folder of a point."""
    text = quote(",".join(f"{name}={write_value(value)}" for name, value in point.items()), safe=" !=<>()'\",+:@[]|&")
    if len(text.encode()) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 9]}-{zlib.crc32(text.encode()):08x}"


def summarise(point: Point, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Results of a point for JSON: mean and standard deviation over seeds of each metric that all runs end with."""
    done = [run["metrics"] for run in runs if "error" not in run]
    names = [name for name in done[0] if all(name in values for values in done)] if done else []
    metrics = {name: _spread([values[name] for values in done]) for name in names}
    return {"values": dict(point.values), "folder": str(point.asked.out), "metrics": metrics, "runs": list(runs)}


def _spread(values: Sequence[float | None]) -> dict[str, Any]:
    finite = [value for value in values if value is not None]
    mean = statistics.fmean(finite) if len(finite) == len(values) else None
    std = statistics.stdev(finite) if mean is not None and len(finite) > 1 else None
    return {"mean": mean, "std": std, "runs": len(values)}


def show_points(points: Sequence[Mapping[str, Any]]) -> None:
    """Print a table of the points with their last metrics."""
    settings = list(points[0]["values"])
    metrics = list(dict.fromkeys(name for point in points for name in point["metrics"]))
    rows = [
        [*(write_value(value) for value in point["values"].values()), _count(point), *_cells(point, metrics)]
        for point in points
    ]
    show_table([*settings, "runs", *metrics], rows, right=("runs", *metrics))


def _count(point: Mapping[str, Any]) -> str:
    failed = sum("error" in run for run in point["runs"])
    return f"{len(point['runs'])}" + (f", {failed} failed" if failed else "")


def _cells(point: Mapping[str, Any], metrics: Sequence[str]) -> Iterator[str]:
    for name in metrics:
        spread = point["metrics"].get(name)
        if spread is None:
            yield "–"
        else:
            yield number(spread["mean"]) + (f" ± {spread['std']:.2g}" if spread["std"] is not None else "")
