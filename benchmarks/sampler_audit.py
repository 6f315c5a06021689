"""Count the batches that break what their sampler's documentation promises: ``python -m benchmarks.sampler_audit``.

Each sampler draws an epoch, or a thousand batches, from labels of every number of classes, skew, batch size and number
of ranks, five seeds each. Every cell is kept in a file as soon as it is counted, and a run that was interrupted goes on
with the others; cells of another version of a library are counted again. `--shrink` shows in seconds that all runs.
"""

import argparse
import datetime
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.audit.counters import Drawn
from benchmarks.audit.lines import Line
from benchmarks.audit.our_lines import our_lines
from benchmarks.audit.peer_lines import peer_lines
from benchmarks.audit.promises import FAMILIES, PROMISES, Promise
from benchmarks.audit.summary import shown
from benchmarks.audit.tasks import CELLS, ROWS, SHRUNK, Cell, Task
from setsup.files import written

__all__ = ["KEPT", "audit", "count", "main"]

KEPT = Path(__file__).resolve().parents[1] / "docs" / "sampler-audit.json"
SEEDS, SHRUNK_ROWS = range(5), 509
REFUSALS = (AssertionError, ValueError, RuntimeError)
"""How samplers refuse labels or arguments; setsup's errors are ValueErrors."""


def count(line: Line, cell: Cell, seeds: Iterable[int] = SEEDS, rows: int = ROWS) -> list[int] | str:
    """Batches of a cell, and those that break each promise of the family; or why the sampler refuses the cell."""
    totals = np.zeros(1 + len(FAMILIES[line.family]), dtype=int)
    for seed in seeds:
        task = Task(cell, seed, rows)
        try:
            drawn = Drawn.of(line.draw(task))
        except REFUSALS as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0][:160]
        totals += [len(drawn), *(PROMISES[name].count(drawn, task) for name in FAMILIES[line.family])]
    return totals.tolist() if totals[0] else "no batch"


def audit(
    path: Path | None, lines: Iterable[Line], left_out: dict[str, str], shrunk: bool, say: Callable[[str], None]
) -> dict[str, Any]:
    """Count every cell that the file lacks; what the file has then."""
    seeds, rows, cells = (range(1), SHRUNK_ROWS, SHRUNK) if shrunk else (SEEDS, ROWS, CELLS)
    kept = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.is_file() else {}
    size = {"rows": rows, "seeds": len(seeds)}
    before = {_place(entry): entry for entry in kept.get("lines", ())} if kept.get("size") == size else {}
    found: dict[str, Any] = {
        "about": f"Python {platform.python_version()}, numpy {np.__version__}",
        "size": size,
        "promises": {name: _plain(promise) for name, promise in PROMISES.items()},
        "families": FAMILIES,
        "left_out": left_out,
        "lines": [],
    }
    for line in lines:
        entry = _entry(line, before)
        found["lines"].append(entry)
        for cell in cells:
            if str(cell) not in entry["cells"]:
                entry["cells"][str(cell)] = count(line, cell, seeds, rows)
                _write(path, found)
        _write(path, found)
        for text in shown(found, entry):
            say(text)
    return found


def _plain(promise: Promise) -> dict[str, str]:
    return {"says": promise.says, "where": promise.where, "means": promise.means, "short": promise.short}


def _entry(line: Line, before: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """What is kept of a sampler, as far as it was counted with the same version."""
    entry = {
        "name": line.name,
        "ranks": line.ranks,
        "version": line.version,
        "family": line.family,
        "own": list(line.own),
    }
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    earlier = before.get(_place(entry))
    return {**entry, "on": earlier["on"], "cells": earlier["cells"]} if earlier else {**entry, "on": today, "cells": {}}


def _place(entry: dict[str, Any]) -> tuple[str, ...]:
    return entry["name"], entry["ranks"], entry["version"], entry["family"]


def _write(path: Path | None, found: dict[str, Any]) -> None:
    """Write what was found, a sampler on a line."""
    if path is None:
        return

    def one(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    values = {name: one(value) for name, value in found.items() if name != "lines"}
    values["lines"] = "[\n" + ",\n".join(map(one, found["lines"])) + "\n]"
    with written(path) as part:
        part.write_text(
            "{\n" + ",\n".join(f"{one(name)}: {text}" for name, text in values.items()) + "\n}\n", encoding="utf-8"
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampler_audit", description=__doc__)
    parser.add_argument("samplers", nargs="*", metavar="SAMPLER", help="only samplers whose names contain one of these")
    parser.add_argument("--json", type=Path, default=KEPT, metavar="FILE", help=f"where cells are kept: {KEPT}")
    parser.add_argument("--shrink", action="store_true", help="two cells of a small table, kept nowhere")
    options = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers, about others still
        others, left_out = peer_lines()
        lines = [*our_lines(), *others]
        if options.samplers:
            lines = [line for line in lines if any(name in line.name for name in options.samplers)]
        audit(None if options.shrink else options.json, lines, left_out, options.shrink, print)
    for name, why in left_out.items():
        print(f"left out: {name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
