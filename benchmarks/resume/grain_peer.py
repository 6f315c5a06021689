"""grain, by ``ElasticIterator`` over a file of ArrayRecord.

Its workers are spawned and import this module, which therefore imports neither torch nor setsup.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.resume.noise import SEED, SIDE, change, pixels

if TYPE_CHECKING:
    from benchmarks.resume.job import Job

__all__ = ["loop", "write"]

Sample = dict[str, Any]


def write(folder: Path, rows: int) -> None:
    """One record for each row: its number, and the bytes of its image."""
    from array_record.python import array_record_module

    writer = array_record_module.ArrayRecordWriter(str(folder / "rows.array_record"), "group_size:1")
    for row, image in enumerate(pixels(rows)):
        writer.write(row.to_bytes(4, "little") + image.tobytes())
    writer.close()


def loop(job: "Job", batch: int, passes: int) -> None:
    """Resume as https://google-grain.readthedocs.io has it for ``grain.experimental.ElasticIterator``.

    "State of any shard can be used to restore the state of all of the shards after changes in sharding and global batch
    size." ``MapDataset.random_map``: "the ``transform`` is called with the element and a ``np.random.Generator``
    instance that should be used inside the ``transform`` to preserve determinism".
    """
    import grain
    from grain.experimental import ElasticIterator

    from benchmarks.resume.data import digests

    # workers import the main module again, which here is the command with all its libraries
    sys.modules["__main__"] = ModuleType("__main__")
    source = grain.sources.ArrayRecordDataSource([str(job.folder / "rows.array_record")])
    rows = len(source)
    dataset = grain.MapDataset.source(source).seed(SEED).map(_read).shuffle().random_map(_change)
    dataset = dataset.repeat(passes).map_with_index(_Numbered(rows))
    batches = ElasticIterator(
        dataset,
        batch,
        grain.sharding.ShardOptions(job.rank, job.world),
        multiprocessing_options=grain.MultiprocessingOptions(num_workers=job.workers) if job.workers else None,
    )
    iterator = iter(batches)
    if (state := job.load()) is not None:
        iterator.set_state(state)
    for found in iterator:
        (number,) = set(np.asarray(found["pass"]).tolist())
        job.saw(digests(found["row"], found["image"]), number)
        job.save(iterator.get_state())


def _read(record: bytes) -> Sample:
    image = np.frombuffer(record, np.uint8, offset=4).reshape(SIDE, SIDE, 3)
    return {"row": int.from_bytes(record[:4], "little"), "image": image}


def _change(sample: Sample, rng: np.random.Generator) -> Sample:
    return {**sample, "image": change(sample["image"], rng.random(), rng.random())}


class _Numbered:
    """The pass of each sample, which its position gives."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __call__(self, index: int, sample: Sample) -> Sample:
        return {**sample, "pass": index // self.rows}
