"""Table of the resume matrix, from the cells that ``python -m benchmarks.resume`` kept."""

import json
from pathlib import Path
from typing import Any

LINES = {"rows": "`setsup.batch_sampler`", "bytes": "`setsup.loader` with augmentations", "peer": "its own loader"}


def table(path: Path) -> str:
    """One line per way, summed over its cells, and what was measured with; or how to measure."""
    if not path.is_file():
        return "!!! note\n\n    No results came with this build. Run `python -m benchmarks.resume`."
    kept = json.loads(path.read_text(encoding="utf-8"))
    ways: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in kept["cells"].values():
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
