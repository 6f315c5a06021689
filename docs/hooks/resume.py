"""Table of the resume matrix, from the cells that ``python -m benchmarks.resume`` kept."""

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

LINES = {"rows": "`setsup.batch_sampler`", "bytes": "`setsup.loader` with augmentations"}
PEER_LINES = {"changed": "other ranks and workers", "same": "the same ranks and workers"}
NONE = "!!! note\n\n    No results came with this build. Run `python -m benchmarks.resume`."

Ways = dict[tuple[str, str], list[dict[str, Any]]]
"""Cells of each way and line."""


def table(path: Path) -> str:
    """One line per way, summed over its cells, and what they were measured with; or how to measure."""
    kept, ways = _read(path, LINES)
    if not ways:
        return NONE
    rows = [
        "| run | fed by | cells | rows lost | rows twice | images that differ | batches moved |"
        " repeated to even out ranks |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
        *(_line(way, LINES.get(line, line), cells) for (way, line), cells in ways.items()),
    ]
    return "\n".join(rows) + f"\n\nMeasured with:\n\n{_measured(kept, ways)}"


def _read(path: Path, lines: Collection[str]) -> tuple[dict[str, Any], Ways]:
    """What the file has, and its cells of some lines."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"with": [], "cells": {}}
    ways: Ways = {}
    for cell in kept["cells"].values():
        if cell["line"] in lines:
            ways.setdefault((cell["way"], cell["line"]), []).append(cell)
    return kept, ways


def _line(way: str, line: str, cells: list[dict[str, Any]]) -> str:
    counted = [cell for cell in cells if "lost" in cell]
    sums = [
        str(sum(cell[what] for cell in counted)) if counted else "" for what in ("lost", "twice", "differ", "evened")
    ]
    sums.insert(3, _moved(counted))
    if cells[0]["line"] == "rows":
        sums[2] = ""  # there are no images
    return f"| {way} | {line} | {_cells(cells, counted)} | {' | '.join(sums)} |"


def _moved(counted: list[dict[str, Any]]) -> str:
    """Batches in another order or pass; an earlier count compared rows alone, over the whole run."""
    compared = [cell["moved"] for cell in counted if "moved" in cell]
    if not compared:
        return "not compared" if counted else ""
    return str(sum(compared)) + (f" in {len(compared)} cells" if len(compared) < len(counted) else "")


def _measured(kept: dict[str, Any], ways: Ways) -> str:
    """Each machine and commit with the number of its cells, and each set of versions."""
    counts = Counter(cell["with"] for cells in ways.values() for cell in cells)
    lines = [f"{kept['with'][index][0]}; cells: {number}" for index, number in sorted(counts.items())]
    versions = dict.fromkeys(kept["with"][index][1] for index in sorted(counts))
    return "\n".join(f"- {line}" for line in [*lines, *versions])


def peers(path: Path) -> str:
    """One line per other library and kind of resumption, with what each does not offer in words."""
    kept, ways = _read(path, PEER_LINES)
    if not ways:
        return NONE
    rows = [
        "| library | resumed on | cells | cells with either | rows lost | rows twice | images that differ |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    whys = []
    for (way, line), cells in sorted(ways.items()):
        for cell in cells:
            if why := cell.get("not offered"):
                whys.append(f"{way}: {why}.")
            elif "failed" in cell:
                whys.append(f"{way}: {_failure(cell)}")
        counted = [cell for cell in cells if "lost" in cell]
        rows.append(f"| {way} | {PEER_LINES[line]} | {_cells(cells, counted)} | {' | '.join(_peer_sums(counted))} |")
    return "\n".join(
        [
            *rows,
            "",
            "Not offered or failed:",
            "",
            *(f"- {why}" for why in dict.fromkeys(whys)),
            "",
            "Measured with:",
            "",
            _measured(kept, ways),
        ]
    )


def _failure(cell: dict[str, Any]) -> str:
    """What ended a cell, in the library's own words."""
    last = cell["failed"].strip().splitlines()[-1].replace("`", "'")
    before, after = (f"{cell[to + 'ranks']} × {cell[to + 'workers']}" for to in ("", "to_"))
    return f"from {before} to {after} ranks × workers: `{last}`"


def _cells(cells: list[dict[str, Any]], counted: list[dict[str, Any]]) -> str:
    words = {"not offered": "not offered", "failed": "failed", "missing": "not installed"}
    notes = [f"{number} {word}" for key, word in words.items() if (number := sum(key in cell for cell in cells))]
    return f"{len(counted)} of {len(cells)} ({', '.join(notes)})" if notes else str(len(cells))


def _peer_sums(counted: list[dict[str, Any]]) -> list[str]:
    if not counted:
        return [""] * 4
    uneven = str(sum(bool(cell["lost"] or cell["twice"]) for cell in counted))
    sums = [str(sum(cell[what] for cell in counted)) for what in ("lost", "twice")]
    differ = [cell["differ"] for cell in counted]
    return [uneven, *sums, "not offered" if isinstance(differ[0], dict) else str(sum(differ))]
