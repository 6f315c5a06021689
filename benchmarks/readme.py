"""Put figures of the run that docs/benchmarks.json keeps into the README: ``python -m benchmarks.readme``."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rows import number

__all__ = ["KEPT", "LINES", "README", "filled", "table"]

CHECKOUT = Path(__file__).resolve().parents[1]
README, KEPT = CHECKOUT / "README.md", CHECKOUT / "docs" / "benchmarks.json"
BEGIN, END = "<!-- figures: python -m benchmarks.readme -->", "<!-- end of figures -->"


class Line(NamedTuple):
    """A line of the table, and the row of the run that it shows: its topic and patterns of its words."""

    what: str
    peer: str
    topic: str
    row: str
    against: str


LINES = (
    Line(
        "a set of 32 rows, iterating over the sampler",
        "disent's state space",
        "sets",
        "set of 32, iterating",
        "disent.*",
    ),
    Line(
        "a batch of 8 domains × 32 rows, iterating over the sampler",
        "WILDS",
        "domains",
        "batch of 8 .*, iterating",
        "WILDS.*",
    ),
    Line(
        "256 images of 64 × 64 pixels in memory, to torch",
        "torch's `DataLoader` without workers",
        "loading",
        "sets of 256 in memory, to torch",
        "torch DataLoader, .* and its labels at a time, 0 workers",
    ),
    Line(
        "256 arrays of 64 × 64 pixels from shards, in random order",
        "Hugging Face `datasets`, arrays stored as bytes",
        "shards",
        "random sets of 256, raw npy, 24 shards",
        "datasets: bytes, .*",
    ),
    Line(
        "DCoDR's augmentations of 128 images of 64 × 64 pixels",
        "OpenCV, one image at a time",
        "augment",
        "DCoDR: 128 .*, 1 thread",
        "OpenCV.*",
    ),
    Line(
        "a view of a room with 225,000 triangles, 256 × 256 pixels, on a CPU, by Embree with depth and normals",
        "pyrender on software OpenGL, with depth and instance ids",
        "rendering",
        "room, .*, 256², flat",
        "pyrender.*",
    ),
)
_TOPICS = {line.topic for line in LINES}


def table(run: dict[str, Any]) -> str:
    """The table of those lines of which the run has the row, and the machines on which it was measured."""
    lines = ["| | setsup | peer | ratio |", "|---|---|---|---|"]
    for line in LINES:
        rows = [row for row in run["rows"] if _shows(line, row)]
        for row in rows[:1]:
            ratio = f"{number(row['figure']['median'])} {row['unit']}"
            lines.append(f"| {line.what} | {row['ours']} | {line.peer}: {row['other']} | {ratio} |")
    machines = [run["about"][0]]
    for later in run.get("later", ()):  # of its topics only those that the table has
        names = [name for name in re.split(", | and ", later["topics"]) if name.startswith(tuple(_TOPICS))]
        if names:
            machines.append(f"{' and '.join(names)}: {later['on']}")
    return "\n".join([*lines, "", "Measured on", "", *(f"- {machine}" for machine in machines)])


def _shows(line: Line, row: dict[str, Any]) -> bool:
    return bool(
        row["topic"] == line.topic
        and re.fullmatch(line.row, row["what"])
        and re.fullmatch(line.against, row["against"])
    )


def filled(text: str, run: dict[str, Any]) -> str:
    """The README with the table of a run."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(run)}\n{END}{after}"


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(filled(text, json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")
