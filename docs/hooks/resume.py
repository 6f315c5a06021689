"""Table of the resume matrix, from the cells that ``python -m benchmarks.resume`` kept."""

import json
from pathlib import Path
from typing import Any

LINES = {"rows": "`setsup.batch_sampler`", "bytes": "`setsup.loader` with augmentations"}
PEER_LINES = {"changed": "other ranks and workers", "same": "the same ranks and workers"}


def table(path: Path) -> str:
    """One line per way, summed over its cells, and what was measured with; or how to measure."""
    if not path.is_file():
        return "!!! note\n\n    No results came with this build. Run `python -m benchmarks.resume`."
    kept = json.loads(path.read_text(encoding="utf-8"))
    ways: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in kept["cells"].values():
        if cell["line"] in LINES:
            ways.setdefault((cell["way"], cell["line"]), []).append(cell)
    rows = [
        "| run | fed by | cells | rows lost | rows twice | images that differ | repeated to even out ranks |",
        "|---|---|--:|--:|--:|--:|--:|",
        *(_line(way, LINES.get(line, line), cells) for (way, line), cells in ways.items()),
    ]
    about = "\n".join(f"- {line}" for line in kept["about"])
    return "\n".join(rows) + f"\n\nMeasured with:\n\n{about}"


def _line(way: str, line: str, cells: list[dict[str, Any]]) -> str:
    counted = [cell for cell in cells if "lost" in cell]
    sums = [
        str(sum(cell[what] for cell in counted)) if counted else "" for what in ("lost", "twice", "differ", "evened")
    ]
    if cells[0]["line"] == "rows":
        sums[2] = ""  # there are no images
    if len(counted) < len(cells):
        offered = sum("not offered" in cell for cell in cells)
        failed = len(cells) - len(counted) - offered
        notes = [f"{offered} not offered"] * bool(offered) + [f"{failed} failed"] * bool(failed)
        return f"| {way} | {line} | {len(counted)} of {len(cells)} ({', '.join(notes)}) | {' | '.join(sums)} |"
    return f"| {way} | {line} | {len(cells)} | {' | '.join(sums)} |"


def peers(path: Path) -> str:
    """One line per other library and kind of resumption, with what each does not offer in words."""
    if not path.is_file():
        return "!!! note\n\n    No results came with this build. Run `python -m benchmarks.resume`."
    kept = json.loads(path.read_text(encoding="utf-8"))
    ways: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in kept["cells"].values():
        if cell["line"] in PEER_LINES:
            ways.setdefault((cell["way"], cell["line"]), []).append(cell)
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
    about = "\n".join(f"- {line}" for line in kept["about"])
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
            about,
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
