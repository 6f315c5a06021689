"""Fill the matrix: ``python -m benchmarks.resume [WAY …] [--line rows] [--limit N] [--json FILE]``; it resumes.

A way is one of ``ways.py``, or another library of ``peers.py``.
"""

import argparse
import importlib.metadata
import json
import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: ranks share the cores
warnings.simplefilter("ignore")

from benchmarks.machine import machine  # noqa: E402
from benchmarks.resume.peers import PEERS, missing  # noqa: E402
from benchmarks.resume.plan import LINES, Cell, cells, peer_cells  # noqa: E402
from benchmarks.resume.run import run_cell, run_peer  # noqa: E402
from benchmarks.resume.ways import PLAIN, WAYS  # noqa: E402
from setsup.files import written  # noqa: E402

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the cells that the file lacks, then those of an earlier count; each is written when it is done."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description="Kill and resume, counted.")
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"all by default: {', '.join(_names())}")
    parser.add_argument(
        "--line",
        choices=("rows", "bytes", *LINES),
        help="batch_sampler or loader; in other libraries other ranks and workers, or the same; all by default",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="run at most N cells")
    parser.add_argument("--json", type=Path, default=Path("resume.json"), metavar="FILE", help="where cells are kept")
    options = parser.parse_args(argv)
    if unknown := set(options.ways) - set(_names()):
        parser.error(f"unknown way {', '.join(sorted(unknown))}; choose from {', '.join(_names())}")
    asked = [key for key in WAYS if (not options.ways or key[0] in options.ways) and options.line in (None, key[1])]
    kept: dict[str, Any] = {"with": [], "cells": {}}
    if options.json.exists():
        kept = json.loads(options.json.read_text(encoding="utf-8"))
    here = [machine(with_load=False), _versions()]  # counts do not depend on the load
    others = [name for name in PEERS if not options.ways or name in options.ways]
    planned = cells(asked)
    planned += [cell for name in others for cell in peer_cells(name) if options.line in (None, cell.line)]
    left = [cell for cell in planned if not _is_counted(cell, kept["cells"].get(cell.name, {}))]
    left.sort(key=lambda cell: cell.name in kept["cells"])
    if left and here not in kept["with"]:
        kept["with"].append(here)
    for cell in left[: options.limit]:
        found = _found(cell)
        if "missing" in found and cell.name in kept["cells"]:
            print(f"{cell.name} stays as it was counted elsewhere: {found['missing']}", flush=True)
            continue
        kept["cells"][cell.name] = {**cell.to_dict(), **found, "with": kept["with"].index(here)}
        with written(options.json) as part:
            part.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(cell.name, f"-> {cell.to_ranks}x{cell.to_workers}", "after", cell.stop, found, flush=True)
    wrong = [
        name
        for name, cell in kept["cells"].items()
        if cell["way"] not in PEERS
        and ("failed" in cell or any(cell.get(what) for what in ("lost", "twice", "differ", "moved")))
    ]
    return int(bool(wrong))


def _is_counted(cell: Cell, kept: Mapping[str, Any]) -> bool:
    """Whether a cell is there as it is planned and counted today: an earlier count of a way has no ``moved``."""
    count = "lost" if cell.way in PEERS else "moved"
    return bool({count, "not offered"} & set(kept)) and cell.to_dict().items() <= kept.items()


def _found(cell: Cell) -> dict[str, Any]:
    """Counts of a cell, or why it has none."""
    if cell.way not in PEERS:
        key = cell.way, cell.line
        found = run_cell(cell, WAYS[key], "numpy" if key in PLAIN else "torch")
        why = found.get("failed", "").strip().rpartition("\n")[2]
        return {"missing": why} if why.startswith("ModuleNotFoundError") else found
    peer = PEERS[cell.way]
    if why := missing(peer):
        return {"missing": why}
    return run_peer(cell, peer)


def _names() -> list[str]:
    return list(dict.fromkeys([way for way, _ in WAYS] + list(PEERS)))


def _versions() -> str:
    names = ("setsup", "torch", "torchdata", "lightning", "accelerate", "transformers", "sentence-transformers", "ray")
    names += ("grain", "webdataset", "mosaicml-streaming", "litdata", "datasets")
    found = {dist.metadata["Name"].lower(): dist.version for dist in importlib.metadata.distributions()}
    return ", ".join(f"{name} {found[name]}" for name in names if name in found)


if __name__ == "__main__":
    sys.exit(main())
