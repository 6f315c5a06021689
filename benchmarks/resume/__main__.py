"""Fill the matrix: ``python -m benchmarks.resume [WAY …] [--line rows] [--limit N] [--json FILE]``; it resumes."""

import argparse
import importlib.metadata
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: ranks share the cores
warnings.simplefilter("ignore")

from benchmarks.machine import machine  # noqa: E402
from benchmarks.resume.plan import cells  # noqa: E402
from benchmarks.resume.run import run_cell  # noqa: E402
from benchmarks.resume.ways import PLAIN, WAYS  # noqa: E402
from setsup.files import written  # noqa: E402

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the cells that the file lacks, each written as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description="Kill and resume, counted.")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"all by default: {', '.join(_names())}")
    parser.add_argument("--line", choices=("rows", "bytes"), help="batch_sampler or loader; both by default")
    parser.add_argument("--limit", type=int, metavar="N", help="run at most N cells")
    parser.add_argument("--json", type=Path, default=Path("resume.json"), metavar="FILE", help="where cells are kept")
    options = parser.parse_args(argv)
    if unknown := set(options.ways) - set(_names()):
        parser.error(f"unknown way {', '.join(sorted(unknown))}; choose from {', '.join(_names())}")
    asked = [key for key in WAYS if (not options.ways or key[0] in options.ways) and options.line in (None, key[1])]
    kept: dict[str, Any] = {"about": [], "cells": {}}
    if options.json.exists():
        kept = json.loads(options.json.read_text(encoding="utf-8"))
    missing = [cell for cell in cells(asked) if "lost" not in kept["cells"].get(cell.name, {})]
    if missing:
        kept["about"] = [machine(), _versions()]
    for cell in missing[: options.limit]:
        key = cell.way, cell.line
        found = run_cell(cell, WAYS[key], "numpy" if key in PLAIN else "torch")
        kept["cells"][cell.name] = {**cell.to_dict(), **found}
        with written(options.json) as part:
            part.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(cell.name, f"-> {cell.to_ranks}x{cell.to_workers}", "after", cell.stop, found, flush=True)
    wrong = [
        name
        for name, cell in kept["cells"].items()
        if "failed" in cell or any(cell.get(what) for what in ("lost", "twice", "differ"))
    ]
    return int(bool(wrong))


def _names() -> list[str]:
    return list(dict.fromkeys(way for way, _ in WAYS))


def _versions() -> str:
    names = ("setsup", "torch", "torchdata", "lightning", "accelerate", "transformers", "sentence-transformers", "ray")
    found = {dist.metadata["Name"].lower(): dist.version for dist in importlib.metadata.distributions()}
    return ", ".join(f"{name} {found[name]}" for name in names if name in found)


if __name__ == "__main__":
    sys.exit(main())
