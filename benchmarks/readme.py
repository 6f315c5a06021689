"""Put the figures of the run that docs/benchmarks.json keeps into the README: ``python -m benchmarks.readme``."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.rows import number

__all__ = ["KEPT", "README", "filled", "table"]

CHECKOUT = Path(__file__).resolve().parents[1]
README, KEPT = CHECKOUT / "README.md", CHECKOUT / "docs" / "benchmarks.json"
BEGIN, END = "<!-- figures: python -m benchmarks.readme -->", "<!-- end of figures -->"


class Line(NamedTuple):
    """A line of the table: what it says, beside whom, and which rows of the run it is of, by patterns.

    Each row is (topic, what, against).
    """

    what: str
    beside: str
    rows: tuple[tuple[str, str, str], ...]


LINES = (
    Line(
        "a set of 32, `sampler[k]` at random k",
        "disent's state space",
        (("sets", r"set of 32, sampler\[k\] at random k", "disent.*"),),
    ),
    Line(
        "a set of 32, iterating; in blocks of 64 steps",
        "disent's state space",
        (("sets", "set of 32, iterating", "disent.*"), ("sets", "set of 32, blocks of 64 steps", "disent.*")),
    ),
    Line(
        "a set with one fixed factor, 480,000 rows; 10,000,000 rows",
        "ABC's published code, which filters the table for each set",
        (
            ("sets", "set of 32, 1 inactive, 480 k rows", "ABC.*"),
            ("sets", "set of 32, 1 inactive, 10 M rows", "ABC.*"),
        ),
    ),
    Line(
        "a domain batch of 8 × 32",
        "WILDS; pytorch-metric-learning",
        (("domains", ".*, blocks of 64", "WILDS.*"), ("domains", ".*, blocks of 64", "PML.*")),
    ),
    Line(
        "64 pairs that differ in 1 to 5 of 6 factors, blocks of 64; in 4, 240,000 rows with gaps",
        "disent's pair sampler; a numpy sieve",
        (
            ("pairs", "64 pairs, 1 to 5 .*, blocks of 64 steps", "disent.*"),
            ("pairs", "64 pairs, 4 of 6 .* with gaps, blocks", "numpy.*"),
        ),
    ),
    Line(
        "a 5-way 1-shot episode with 15 queries, blocks of 64; iterating",
        "easyfsl",
        (
            ("episodes", "5-way .* queries, blocks of 64", "easyfsl.*"),
            ("episodes", "5-way .* queries, iterating", "easyfsl.*"),
        ),
    ),
    Line(
        "a triplet by constraints, blocks of 64",
        "pytorch-metric-learning's triplets by label; a numpy sieve",
        (
            ("triplets", "triplet by constraints, .*, blocks of 64", "PML FixedSetOfTriplets"),
            ("triplets", "triplet by constraints, .*, blocks of 64", "numpy.*"),
        ),
    ),
    Line(
        "an anchor with a hard negative of 100 neighbours, blocks of 64",
        "numpy, one anchor at a time",
        (("neighbours", "hard negative, .*, blocks of 64", "numpy.*"),),
    ),
    Line(
        "128 of 480,000 rows by weight without repeats, `sampler[k]` at random k",
        "torch's `WeightedRandomSampler`",
        (("sets", "batch of 128 of 480 k rows by weight.*", "torch.*"),),
    ),
    Line(
        "group index of 10,000,000 rows by six factors, once",
        "pandas `groupby().indices`",
        (("groups", "index of 10 M rows, 480,000 groups", "pandas.*"),),
    ),
    Line(
        "a set of 256 images, in memory; memory-mapped",
        "`np.take` into a reused array",
        (("fetch", "set of 256, array in memory", ".*"), ("fetch", "set of 256, memory-mapped.*", ".*")),
    ),
    Line(
        "batches of 256 images in memory, loader to numpy",
        "`np.take` into a reused array",
        (("loading", "sets of 256 in memory, to numpy, a thread ahead", ".*"),),
    ),
    Line(
        "batches of 256 JPEG files of 160 × 160, two worker processes",
        "one process",
        (("loading", "sets of 256 JPEG files of 160 × 160, 2 processes", ".*"),),
    ),
    Line(
        "a room of 225,000 triangles, ray cast, all outputs: 64²; 256²",
        "pyrender (color, depth and ids)",
        (("rendering", "room, .*, 64², flat", "pyrender.*"), ("rendering", "room, .*, 256², flat", "pyrender.*")),
    ),
    Line(
        "a small scene, OpenGL, all outputs, 256²",
        "pyrender; a bare loop of moderngl",
        (("gl", "simple, .*, 256 × 256, .*", "pyrender.*"), ("gl", "simple, .*, 256 × 256, .*", "a bare.*")),
    ),
    Line(
        "8,192 exact correspondences in the same room",
        "the two ray casts in Embree alone",
        (("correspondence", "8,192 pixels at 256², room of 225 k triangles", ".*first hits, both ways"),),
    ),
    Line(
        "opening a zip of 500,000 files with a cached index: time; memory",
        "",
        (("archives", "500,000 files in a zip, index kept: .*", "limit"),),
    ),
    Line(
        "random sets of 64 files of 20 kB from a zip; from a tar",
        "the same files in a folder",
        (("archives", "random sets of 64 .* from a zip", ".*"), ("archives", "random sets of 64 .* from a tar", ".*")),
    ),
    Line("listing a tar for the first time", "tarfile", (("archives", "first listing of .* in a tar", "tarfile.*"),)),
    Line(
        "converting 60,000 rows of the published Shapes3D file",
        "h5py in slabs",
        (("convert", "60,000 rows.*", "h5py.*"),),
    ),
    Line(
        "ABC's pose recipe, 128 × 128, one thread; pairs for single pixels, 32 × 32",
        "OpenCV and numpy, one image at a time",
        (
            ("augment", "ABC pose: .*, 1 thread", "OpenCV.*"),
            ("augment", "single pixels, 2D: .*, 1 thread", "OpenCV.*"),
        ),
    ),
    Line(
        "DCoDR's recipe, 64 × 64, one thread",
        "one image at a time in Pillow; OpenCV",
        (("augment", "DCoDR: .*, 1 thread", "Pillow.*"), ("augment", "DCoDR: .*, 1 thread", "OpenCV.*")),
    ),
    Line("procedural images, one core", "", (("procedural", "random rows, 256 a fetch", ""),)),
)


def table(run: dict[str, Any]) -> str:
    """The machine, and those lines of the table of which the run has every row."""
    lines = ["| | setsup | baseline | ratio |", "|---|---|---|---|"]
    for line in LINES:
        found = [_found(run["rows"], *wanted) for wanted in line.rows]
        if not all(found):
            continue
        rows = [row for some in found for row in some]
        ours = "; ".join(dict.fromkeys(row["ours"] for row in rows))
        others = "; ".join(row["other"] for row in rows) if line.beside else ""
        ratios = "; ".join(f"{number(row['figure']['median'])} {row['unit']}" for row in rows) if line.beside else ""
        lines.append(f"| {line.what} | {ours} | {', '.join(filter(None, (line.beside, others)))} | {ratios} |")
    later = [f"Later ({other['topics']}): {other['on']}." for other in run.get("later", ())]
    return "\n".join([" ".join([f"Measured on: {run['about'][0]}.", *later]), "", *lines])


def _found(rows: list[dict[str, Any]], topic: str, what: str, against: str) -> list[dict[str, Any]]:
    """Rows of a topic whose words match."""
    return [
        row
        for row in rows
        if row["topic"] == topic and re.fullmatch(what, row["what"]) and re.fullmatch(against, row["against"])
        if not row["unit"].startswith("k ")  # a rate, which stands there already
    ]


def filled(text: str, run: dict[str, Any]) -> str:
    """The README with the table of a run."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(run)}\n{END}{after}"


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    README.write_text(filled(text, json.loads(KEPT.read_text(encoding="utf-8"))), encoding="utf-8")
