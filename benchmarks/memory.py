"""What the memory of the loader's workers is measured with; each function runs in a process of its own."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import sized
from benchmarks.tables import random_table
from setsup import FactorTable, SetSampler, loader
from setsup.datasets import Dataset, Modality, fetch_request

__all__ = ["children", "idle", "loaded", "proportional", "write"]

BATCHES, SETS, SIZE = sized(200, 2), 64, 1024


class Numbers(Dataset):
    """A large table, and next to nothing to fetch."""

    def __init__(self, factors: FactorTable) -> None:
        self.name = "numbers"
        self.factors = factors
        self.modalities = {"number": Modality((), "int64")}

    def fetch(self, indices: Any, modalities: Iterable[str] | None = None) -> dict[str, Any]:
        """The row numbers themselves."""
        rows, names = fetch_request(self, indices, modalities)
        return dict.fromkeys(names, rows)


def write(given: tuple[str, int]) -> None:
    """Write a table of random rows."""
    path, rows = given
    random_table(rows).save(path)


def loaded(given: tuple[str, int]) -> None:
    """Load from a table with many workers, until they have touched 13 M rows all over it, and print their memory."""
    path, workers = given
    numbers = Numbers(FactorTable.open(path))
    sets = SetSampler(numbers.factors, inactive=[], size=SIZE, sets=SETS)
    batches = iter(loader(numbers, sets, workers=workers, to="torch"))
    for _ in range(BATCHES):
        next(batches)
    _print(children())


def idle(given: tuple[int]) -> None:
    """Print the memory of as many processes that imported torch and wait."""
    said = "import torch, sys; print(flush=True); sys.stdin.read()"
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen([sys.executable, "-c", said], **pipes) for _ in range(given[0])]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    time.sleep(1)
    _print(process.pid for process in processes)
    for process in processes:
        process.communicate()


def children() -> list[int]:
    """Processes that this one started."""
    tasks = Path("/proc/self/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text(encoding="utf-8").split()]


def _print(pids: Iterable[int]) -> None:
    print(json.dumps({"workers": float(np.sum([proportional(pid) for pid in pids]))}))


def proportional(pid: int) -> float:
    """Proportional set size in MB: pages that several processes share count a share in each."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"the system does not tell the memory of process {pid}")
