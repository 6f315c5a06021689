"""Loops of torchdata and Hugging Face ``datasets``, by their own documented ways to resume."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.resume.data import ROWS, digests
from benchmarks.resume.job import Job
from benchmarks.resume.noise import SEED, change, pixels
from benchmarks.resume.plan import PASSES, PEER_STEPS

__all__ = ["BATCH", "Images", "datasets_loop", "nodes_loop", "stateful_loop", "write_array", "write_datasets"]

BATCH = ROWS // PEER_STEPS


def write_array(folder: Path) -> None:
    np.save(folder / "pixels.npy", pixels(ROWS))


# torchdata


class Images(torch.utils.data.Dataset[Any]):
    """Images with a random change, whose generator is a state of the worker."""

    def __init__(self, job: Job) -> None:
        self.pixels = np.load(job.folder / "pixels.npy")
        self.rank, self.generator = job.rank, torch.Generator()
        self.seeded = False

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitem__(self, row: int) -> tuple[int, Any]:
        if not self.seeded:
            worker = torch.utils.data.get_worker_info()
            self.generator.manual_seed(SEED + 100 * self.rank + (0 if worker is None else worker.id))
            self.seeded = True
        flip, light = torch.rand(2, generator=self.generator).tolist()
        return row, change(self.pixels[row], flip, light)

    def state_dict(self) -> dict[str, Any]:
        """What the loader keeps with each batch of a worker."""
        return {"generator": self.generator.get_state(), "seeded": self.seeded}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where the kept state was."""
        self.generator.set_state(state["generator"])
        self.seeded = state["seeded"]


def _sampler(job: Job, images: Images, alone: Any = torch.utils.data.RandomSampler) -> Any:
    """What torch has for one process, and for several."""
    if job.world == 1:
        return alone(images, generator=torch.Generator().manual_seed(SEED))
    return torch.utils.data.DistributedSampler(images, job.world, job.rank, shuffle=True, seed=SEED)


def stateful_loop(job: Job) -> None:
    """``StatefulDataLoader``, https://docs.pytorch.org/data/0.11/stateful_dataloader_tutorial.html.

    "If your dataset has worker-specific state (eg RNG transform state) you can add state_dict / load_state_dict methods
    to your dataset." With one rank the sampler is its own ``RandomSampler``, which ``shuffle=True`` would take too and
    whose generator is in the state; with torch's own a resumed second pass is another permutation.
    """
    from torchdata.stateful_dataloader import StatefulDataLoader
    from torchdata.stateful_dataloader.sampler import RandomSampler

    job.join()
    images, state = Images(job), job.load_own()
    sampler = _sampler(job, images, RandomSampler)
    loader = StatefulDataLoader(images, BATCH // job.world, sampler=sampler, num_workers=job.workers)
    if state is not None:
        loader.load_state_dict(state["loader"])
    for epoch in range(0 if state is None else state["epoch"], PASSES):
        if job.world > 1:
            sampler.set_epoch(epoch)
        for rows, found in loader:
            job.saw(digests(rows, found), epoch)
            job.save_own({"loader": loader.state_dict(), "epoch": epoch})


def nodes_loop(job: Job) -> None:
    """``torchdata.nodes``, https://docs.pytorch.org/data/0.11/migrate_to_nodes_from_utils.html.

    The pipeline of that page: a sampler of batches, ``ParallelMapper`` with processes, and ``Loader``, whose
    ``state_dict`` and ``load_state_dict`` it resumes by. With one rank the sampler is torch's ``RandomSampler``, as
    there; its state is its number of rows alone, so a resumed second pass is the permutation of a first one.
    """
    from torchdata import nodes

    job.join()
    images, state = Images(job), job.load_own()
    batches = torch.utils.data.BatchSampler(_sampler(job, images), BATCH // job.world, drop_last=False)
    epochs = _Epochs(batches)
    source = nodes.SamplerWrapper(epochs)

    def collate(rows: list[int]) -> Any:
        return torch.utils.data.default_collate([images[row] for row in rows])

    mapped = (
        nodes.ParallelMapper(source, collate, job.workers, method="process", multiprocessing_context="fork")
        if job.workers
        else nodes.Mapper(source, collate)
    )
    loader = nodes.Loader(mapped, restart_on_stop_iteration=False)
    if state is not None:
        loader.load_state_dict(state["loader"])
    for epoch in range(0 if state is None else state["epoch"], PASSES):
        for rows, _ in loader:
            job.saw(digests(rows), epoch)
            job.save_own({"loader": loader.state_dict(), "epoch": epoch})


class _Epochs:
    """Batches whose epoch ``SamplerWrapper`` sets, where the sampler below has one."""

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        return iter(self.batches)

    def set_epoch(self, epoch: int) -> None:
        if hasattr(self.batches.sampler, "set_epoch"):
            self.batches.sampler.set_epoch(epoch)


# Hugging Face datasets

SHARDS, BUFFER = 48, 16


def write_datasets(folder: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({"row": list(range(ROWS))}).save_to_disk(str(folder / "rows"))


def datasets_loop(job: Job) -> None:
    """``IterableDataset`` in ``StatefulDataLoader``, https://huggingface.co/docs/datasets/stream.

    "Resuming returns exactly where the checkpoint was saved except if .shuffle() is used: examples from shuffle buffers
    are lost when resuming and the buffers are refilled with new data." Its default of 1,000 examples would hold all
    rows here; the buffer has 16, of 48 shards with 4 rows each.
    """
    import datasets
    from datasets.distributed import split_dataset_by_node
    from torchdata.stateful_dataloader import StatefulDataLoader

    datasets.disable_progress_bars()
    state = job.load_own()
    rows = datasets.load_from_disk(str(job.folder / "rows")).to_iterable_dataset(num_shards=SHARDS)
    rows = split_dataset_by_node(rows.shuffle(seed=SEED, buffer_size=BUFFER), job.rank, job.world)
    loader = StatefulDataLoader(rows, BATCH // job.world, num_workers=job.workers)
    if state is not None:
        loader.load_state_dict(state["loader"])
    for epoch in range(0 if state is None else state["epoch"], PASSES):
        rows.set_epoch(epoch)
        for found in loader:
            job.saw(digests(found["row"]), epoch)
            job.save_own({"loader": loader.state_dict(), "epoch": epoch})
