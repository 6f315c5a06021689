"""A million samples in a hundred shards: a fresh process up to its first batch, and the memory of workers.

The shards are hundred names (hard links) of one tar of 10,000 samples, and the index tells of a million: every sample
has bytes of its own length, its own check and its own factors, and the page cache holds the tar once.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Spread, sized
from benchmarks.rows import Row, at_most
from setsup import FactorTable
from setsup.datasets import Dataset, Modality, fetch_request
from setsup.shards.layout import CATALOGUE, INDEX, Shard, parse_catalogue

__all__ = ["SAMPLES", "SHARDS", "first_batches", "memory", "write"]

TOPIC = "shards"
SHARDS, EACH = sized(100, 3), sized(10_000, 2_000)
SAMPLES = SHARDS * EACH
WORKERS, BATCHES = sized(8, 2), sized(200, 2)
PROCESSES = sized(6, 2)
SIDE = 16  # pixels


class _Squares(Dataset):
    """Squares of one grey each."""

    def __init__(self, factors: FactorTable) -> None:
        self.name = "squares"
        self.factors = factors
        self.modalities = {"image": Modality((SIDE, SIDE, 3), "uint8", color="srgb")}

    def fetch(self, indices: Any, modalities: Any = None) -> dict[str, npt.NDArray[Any]]:
        """Draw them."""
        rows, names = fetch_request(self, indices, modalities)
        found = np.broadcast_to((rows % 251).astype(np.uint8)[..., None, None, None], (*rows.shape, SIDE, SIDE, 3))
        return {name: found.copy() for name in names}


def write(folder: Path) -> None:
    """Write the shards below a folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from benchmarks.tables import random_table
    from setsup.shards.writing.writer import write_shards

    small = folder / "small"
    write_shards(_Squares(random_table(EACH)), small, format="npy", per_shard=EACH)
    catalogue = parse_catalogue((small / CATALOGUE).read_bytes(), "small")
    table = pq.read_table(small / INDEX)
    tar = small / catalogue.shards[0].name
    shards = []
    with pq.ParquetWriter(folder / INDEX, table.schema, compression="zstd") as writer:
        for number in range(SHARDS):
            rows = np.arange(number * EACH, (number + 1) * EACH)
            columns = {
                "__shard__": np.full(EACH, number, np.uint32),
                "__key__": [f"{row:07d}" for row in rows],
                "__source_row__": rows,
            }
            for name, values in columns.items():
                field = table.schema.field(name)
                table = table.set_column(table.schema.get_field_index(name), field, pa.array(values, field.type))
            writer.write_table(table)
            shards.append(replace(catalogue.shards[0], name=f"data-{number:05d}.tar"))
            os.link(tar, folder / shards[-1].name)
    content = (folder / INDEX).read_bytes()
    index = Shard(INDEX, SAMPLES, len(content), hashlib.sha256(content).hexdigest())
    (folder / CATALOGUE).write_text(replace(catalogue, shards=tuple(shards), index=index).to_json(), encoding="utf-8")


def first_batches(folder: Path) -> Iterator[Row]:
    """Start of a process to its first batch: the first time, when the index is converted, and again."""
    write(folder)
    for to, library in (("numpy", "pyarrow.parquet"), ("torch", "torch")):
        cache = folder / f"cache-{to}"
        run = f"from benchmarks.million import first; first({str(folder)!r}, {to!r})"
        times = [_seconds(run, cache) for _ in range(PROCESSES)]
        alone = Spread.of([_seconds(f"import {library}", cache) for _ in range(PROCESSES // 2)])
        for when, some in (("opened for the first time", times[:1]), ("opened before", times[1:])):
            found = Spread.of(some)
            what = f"process to its first batch, {SAMPLES:,} samples in {SHARDS} shards, to {to}, {when}"
            said = f"{found.median:.3g} s", f"a process that imports {library} alone", f"{alone.median:.3g} s"
            yield Row(TOPIC, what, *said, found, "s", at_most(3))


def _seconds(run: str, cache: Path) -> float:
    environment = {**os.environ, "SETSUP_CACHE": str(cache)}
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", run], check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def first(folder: str, to: str) -> None:
    """Open the shards, draw a set by its factors, and end."""
    next(_batches(folder, to=to))
    sys.stdout.flush()
    os._exit(0)  # what a trainer goes on with is not the end of the process


def _batches(folder: str, **options: Any) -> Iterator[dict[str, Any]]:
    import setsup
    from setsup.shards.opening import open_shards

    shards = open_shards(folder)
    sets = setsup.SetSampler(shards.factors, inactive=["wall_hue"], size=256, sets=1)
    return iter(setsup.loader(shards, sets, **options))


def memory(folder: Path) -> Iterator[Row]:
    """Proportional set size of eight workers, beside idle processes that imported torch."""
    found = {}
    for name, given in (("loaded", (str(folder), WORKERS)), ("idle", (WORKERS,))):
        module = "benchmarks.million" if name == "loaded" else "benchmarks.memory"
        command = [sys.executable, "-c", f"from {module} import {name}; {name}({given!r})"]
        environment = {**os.environ, "SETSUP_CACHE": str(folder / "cache-numpy")}
        done = subprocess.run(command, check=True, capture_output=True, env=environment)
        found[name] = json.loads(done.stdout)["workers"] / WORKERS
    what = f"proportional memory a worker, {SAMPLES:,} samples, {WORKERS} workers"
    said = f"{found['loaded']:.0f} MB", "idle process that imported torch", f"{found['idle']:.0f} MB"
    yield Row(TOPIC, what, *said, Spread.of([found["loaded"]]), "MB")


def loaded(given: tuple[str, int]) -> None:
    """Load with many workers until they have touched much of the index, and print their memory."""
    from benchmarks.memory import children, proportional

    folder, workers = given
    batches = _batches(folder, workers=workers, to="torch")
    for _ in range(BATCHES):
        next(batches)
    print(json.dumps({"workers": float(np.sum([proportional(pid) for pid in children()]))}), flush=True)
