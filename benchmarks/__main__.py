"""Run the benchmarks and print one table: ``python -m benchmarks [sets fetch …] [--full] [--json FILE]``."""

import argparse
import importlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.machine import machine, versions
from benchmarks.measure import on_one_core
from benchmarks.peers import report
from benchmarks.rows import Row, show

TOPICS = (
    "sets",
    "domains",
    "groups",
    "fetch",
    "archives",
    "decoding",
    "video",
    "loading",
    "augment",
    "procedural",
    "derived",
    "rendering",
    "correspondence",
    "shards",
    "remote",
    "convert",
    "prepared",
    "nyu",
    "records",
    "losses",
    "mine",
    "training",
)
ANY_CORE = {"augment", "convert", "decoding", "loading", "mine"}
"""Topics that may use every core they like; all others keep to one."""


def main() -> None:
    options = _options()
    progress, out = Console(stderr=True), Console(width=None if Console().is_terminal else 200)
    about = [machine(), versions(), *report()]
    with tempfile.TemporaryDirectory(prefix="setsup-bench-") as folder:
        os.environ["SETSUP_CACHE"] = folder  # an index from an earlier run would spare what is to be measured
        rows = [row for topic in options.topics for row in _measured(topic, options.full, progress)]
    show(rows, out)
    for line in about:
        out.print(line, highlight=False, markup=False)
    if options.json:
        found = {"about": about, "full": options.full, "rows": [row.to_dict() for row in rows]}
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _measured(topic: str, full: bool, progress: Console) -> Sequence[Row]:
    module = importlib.import_module(f"benchmarks.{topic}")
    if topic in ANY_CORE:
        return _collected(module.rows(full), progress)
    with on_one_core():
        return _collected(module.rows(full), progress)


def _collected(rows, progress: Console) -> list[Row]:
    found = []
    for row in rows:
        said = f"{row.topic}: {row.what}: {row.figure.median:.3g} {row.unit} {row.verdict}"
        progress.print(said, highlight=False, markup=False, soft_wrap=True)
        found.append(row)
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory, side by side.")
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=f"all by default: {', '.join(TOPICS)}")
    parser.add_argument("--full", action="store_true", help="also 100 M rows and the full-size conversion (minutes)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there as well")
    options = parser.parse_args()
    if unknown := set(options.topics) - set(TOPICS):
        parser.error(f"unknown topic {', '.join(sorted(unknown))}; there are {', '.join(TOPICS)}")
    options.topics = options.topics or list(TOPICS)
    return options


if __name__ == "__main__":
    main()
