"""Count the batches that break what their sampler's documentation promises: ``python -m benchmarks.sampler_audit``.

Each sampler draws an epoch, or a thousand batches, from labels of every number of classes, skew, batch size and number
of ranks, five seeds each. Every cell is kept in a file as soon as it is counted, and an interrupted run resumes with
the cells that are left. Cells are counted again where the version of a library, or of what wraps it for ranks, the
draws of setsup or the code of the audit differ. `--shrink` shows in seconds that all runs.
"""

import argparse
import ast
import datetime
import hashlib
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
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
from setsup.errors import SetsupError
from setsup.files import written

__all__ = ["KEPT", "audit", "code_digest", "count", "main"]

KEPT = Path(__file__).resolve().parents[1] / "docs" / "sampler-audit.json"
CODE = Path(__file__).parent / "audit"
SEEDS, SHRUNK_ROWS = range(5), 509
REFUSALS = (AssertionError, ValueError, RuntimeError, SetsupError)
"""How samplers refuse labels or arguments."""


def count(line: Line, cell: Cell, seeds: Iterable[int] = SEEDS, rows: int = ROWS) -> list[int] | str:
    """Batches of a cell, and those that break each promise of the family; or why the sampler refuses the cell."""
    totals = np.zeros(1 + len(FAMILIES[line.family]), dtype=int)
    for seed in seeds:
        task = Task(cell, seed, rows)
        try:
            drawn = Drawn.of(line.draw(task))
        except REFUSALS as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0][:64]
        totals += [len(drawn), *(PROMISES[name].count(drawn, task) for name in FAMILIES[line.family])]
    return totals.tolist() if totals[0] else "no batch"


def audit(
    path: Path | None,
    lines: Sequence[Line],
    left_out: dict[str, str],
    say: Callable[[str], None],
    *,
    only: Sequence[str] = (),
    shrunk: bool = False,
) -> dict[str, Any]:
    """Count every cell that the file lacks, of all samplers or those whose names have ``only``; what the file has then.

    What an earlier run kept of samplers that do not load now stays.
    """
    seeds, rows, cells = (range(1), SHRUNK_ROWS, SHRUNK) if shrunk else (SEEDS, ROWS, CELLS)
    size = {"rows": rows, "seeds": len(seeds), "code": code_digest()}
    before = {} if path is None else _earlier(path, size)
    entries = [_entry(line, before) for line in lines]
    names = {_place(entry)[:2] for entry in entries}
    here = [
        datetime.datetime.now(datetime.UTC).date().isoformat(),
        f"Python {platform.python_version()}, numpy {np.__version__}",
    ]
    found: dict[str, Any] = {
        "size": size,
        "promises": {name: _plain(promise) for name, promise in PROMISES.items()},
        "families": {family: list(names) for family, names in FAMILIES.items()},
        "left_out": left_out,
        "lines": [*entries, *(entry for place, entry in before.items() if place[:2] not in names)],
    }
    for line, entry in zip(lines, entries, strict=True):
        if only and not any(name in line.name for name in only):
            continue
        for cell in cells:
            if str(cell) not in entry["cells"]:
                entry["cells"][str(cell)] = count(line, cell, seeds, rows)
                if here not in entry["counted"]:
                    entry["counted"].append(here)
                _write(path, found)
        for text in shown(found, entry):
            say(text)
    _write(path, found)
    return found


def code_digest(folder: Path = CODE) -> str:
    """Digest of what draws and counts: the code of the audit without comments and docstrings.

    Sentences of promises and summaries are no part of it; which function counts a promise is.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.glob("*.py")):
        if path.stem not in ("promises", "summary"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
            digest.update(f"{path.stem}: {ast.unparse(tree)}\n".encode())
    for name, promise in PROMISES.items():
        digest.update(f"{name}: {promise.count.__name__}\n".encode())
    return digest.hexdigest()


def _is_text(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)


def _earlier(path: Path, size: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    """What an earlier run kept of each sampler, where it counted the same."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    same = kept.get("size") == size and kept.get("families") == {name: list(of) for name, of in FAMILIES.items()}
    return {_place(entry): entry for entry in kept["lines"]} if same else {}


def _plain(promise: Promise) -> dict[str, str]:
    return {"says": promise.says, "where": promise.where, "means": promise.means, "short": promise.short}


def _entry(line: Line, before: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """What is kept of a sampler, as far as it was counted with the same versions.

    ``counted`` has the days on which its cells were counted, with the versions of Python and numpy.
    """
    entry = {
        "name": line.name,
        "ranks": line.ranks,
        "version": line.version,
        "dependency": line.dependency,
        "family": line.family,
        "own": list(line.own),
    }
    earlier = before.get(_place(entry), {"counted": [], "cells": {}})
    return {**entry, "counted": earlier["counted"], "cells": earlier["cells"]}


def _place(entry: dict[str, Any]) -> tuple[str, ...]:
    return entry["name"], entry["ranks"], entry["version"], entry["dependency"], entry["family"]


def _write(path: Path | None, found: dict[str, Any]) -> None:
    """Write what was found, a sampler on a line."""
    if path is None:
        return

    def one(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    counted = [entry for entry in found["lines"] if entry["cells"]]
    values = {name: one(value) for name, value in found.items() if name != "lines"}
    values["lines"] = "[\n" + ",\n".join(map(one, counted)) + "\n]"
    with written(path) as part:
        part.write_text(
            "{\n" + ",\n".join(f"{one(name)}: {text}" for name, text in values.items()) + "\n}\n", encoding="utf-8"
        )


def main(argv: list[str] | None = None) -> int:
    """Count the cells that are left, and print the shares of each sampler."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sampler_audit", description=__doc__)
    parser.add_argument("samplers", nargs="*", metavar="SAMPLER", help="only samplers whose names contain one of these")
    parser.add_argument("--json", type=Path, default=KEPT, metavar="FILE", help=f"where cells are kept: {KEPT}")
    parser.add_argument("--shrink", action="store_true", help="two cells of a small table, kept nowhere")
    options = parser.parse_args(argv)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers, about others still
        others, left_out = peer_lines()
        lines = [*our_lines(), *others]
        path = None if options.shrink else options.json
        audit(path, lines, left_out, print, only=options.samplers, shrunk=options.shrink)
    for name, why in left_out.items():
        print(f"left out: {name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
