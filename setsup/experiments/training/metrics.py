"""Metrics of a run: a line of JSON per step, and a table when the run is finished."""

import csv
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from setsup.experiments.runs.json_files import finite
from setsup.files.atomic import written
from setsup.files.disk import disk_errors

__all__ = ["append_lines", "mean_over_draws", "truncate_lines", "write_csv"]


def append_lines(metrics: Path, steps: Iterable[tuple[int, Mapping[str, float]]]) -> None:
    """Append the metrics of some steps, so that no checkpoint outlives the lines of its steps."""
    with disk_errors(metrics), metrics.open("a", encoding="utf-8") as lines:
        for step, values in steps:
            lines.write(json.dumps({"step": step, **{name: finite(value) for name, value in values.items()}}) + "\n")
        lines.flush()
        os.fsync(lines.fileno())


def mean_over_draws(
    logged: Iterable[tuple[int, Iterable[str], set[str]]], values: Iterable[float]
) -> list[tuple[int, dict[str, float], set[str]]]:
    """Each step with its metrics, and with the names of those that loggers get.

    The names come with the step of each draw, all values one after the other; a metric of several draws of a step is
    their mean.
    """
    collected: dict[int, tuple[dict[str, list[float]], set[str]]] = {}
    left = iter(values)
    for step, names, names_shown in logged:
        kept, shown = collected.setdefault(step, ({}, set()))
        for name in names:
            kept.setdefault(name, []).append(next(left))
        shown |= names_shown
    return [
        (step, {name: sum(some) / len(some) for name, some in kept.items()}, shown)
        for step, (kept, shown) in collected.items()
    ]


def truncate_lines(metrics: Path, steps: int) -> None:
    """Drop lines of steps after `steps`, and an incomplete line that a killed run left."""
    kept = []
    if metrics.exists():
        for line in metrics.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                if json.loads(line)["step"] > steps:
                    break
            except (ValueError, TypeError, KeyError):
                break
            kept.append(line)
    with written(metrics) as part:
        part.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def write_csv(metrics: Path) -> None:
    """Write the metrics as CSV too, for spreadsheets."""
    rows: list[dict[str, Any]] = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with written(metrics.with_suffix(".csv")) as part, part.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(rows)
