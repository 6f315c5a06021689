"""Loops that people write themselves, each fed by ``setsup.batch_sampler`` (rows) and by ``setsup.loader`` (bytes).

Every loop trains a model of one layer, logs what arrived before it trains on it, and saves its
position after each step.
"""

from itertools import islice
from typing import Any

import torch

from benchmarks.resume.data import (
    ROWS,
    batch_digests,
    digests,
    make_batches,
    make_loader,
)
from benchmarks.resume.job import Job
from benchmarks.resume.plan import DRAWS, PASSES

__all__ = [
    "Rows",
    "left_of",
    "numpy_bytes",
    "numpy_rows",
    "stateful_bytes",
    "stateful_rows",
    "torch_bytes",
    "torch_rows",
]


class Rows(torch.utils.data.Dataset[int]):
    """A dataset whose items are their own numbers."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, row: int) -> int:
        return row


def _step(model: Any, optimizer: Any, rows: Any) -> None:
    optimizer.zero_grad()
    model(torch.as_tensor(rows).reshape(-1, 1).float()).mean().backward()
    optimizer.step()


def _model(job: Job, state: Any) -> tuple[Any, Any]:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    if state is not None:
        model.load_state_dict(state["model"])
    return model, torch.optim.SGD(model.parameters(), 1e-6)


def left_of(job: Job, delivered: int) -> int:
    """Batches of each rank until all passes are trained."""
    return -(-(DRAWS * PASSES - delivered) // job.world)


# plain torch, and torchdata


def torch_rows(job: Job) -> None:
    job.join()
    batches, state = make_batches(), job.load()
    model, optimizer = _model(job, state)
    if state is not None:
        batches.load_state_dict(state["batches"])
    loader = torch.utils.data.DataLoader(Rows(), batch_sampler=batches, num_workers=job.workers)
    for epoch in range(batches.state_dict()["pass"], PASSES):
        batches.set_epoch(epoch)
        for number, rows in enumerate(loader, 1):
            job.saw(digests(rows), epoch)
            _step(model, optimizer, rows)
            job.save({"model": model.state_dict(), "batches": batches.state_dict(delivered=number)})


def torch_bytes(job: Job) -> None:
    job.join()
    batches, state = make_loader(rank=job.rank, world=job.world, workers=job.workers), job.load()
    model, optimizer = _model(job, state)
    if state is not None:
        batches.load_state_dict(state["batches"])
    _train_on(job, batches, model, optimizer)


def _train_on(job: Job, batches: Any, model: Any, optimizer: Any) -> None:
    for batch in islice(batches, left_of(job, batches.state_dict()["delivered"])):
        job.saw(batch_digests(batch))
        _step(model, optimizer, batch["indices"])
        job.save({"model": model.state_dict(), "batches": batches.state_dict()})


def stateful_rows(job: Job) -> None:
    from torchdata.stateful_dataloader import StatefulDataLoader

    job.join()
    batches, state = make_batches(), job.load()
    model, optimizer = _model(job, state)
    loader = StatefulDataLoader(Rows(), batch_sampler=batches, num_workers=job.workers)
    if state is not None and state["workers"] == job.workers:
        loader.load_state_dict(state["loader"])
    elif state is not None:  # its own state is one of as many workers
        batches.load_state_dict(state["batches"])
    for epoch in range(0 if state is None else state["epoch"], PASSES):
        for number, rows in enumerate(loader, 1):
            job.saw(digests(rows), epoch)
            _step(model, optimizer, rows)
            position = batches.state_dict(delivered=number)
            here = {"loader": loader.state_dict(), "batches": position, "epoch": epoch, "workers": job.workers}
            job.save({"model": model.state_dict(), **here})


def stateful_bytes(job: Job) -> None:
    from torchdata import nodes

    job.join()
    batches, state = make_loader(rank=job.rank, world=job.world, workers=job.workers), job.load()
    model, optimizer = _model(job, state)
    pipeline = nodes.Loader(nodes.IterableWrapper(batches))
    if state is not None:
        pipeline.load_state_dict(state["pipeline"])
    left = left_of(job, 0 if state is None else state["delivered"])
    for batch in islice(pipeline, left):
        job.saw(batch_digests(batch))
        _step(model, optimizer, batch["indices"])
        delivered = batches.state_dict()["delivered"]
        job.save({"model": model.state_dict(), "pipeline": pipeline.state_dict(), "delivered": delivered})


# numpy


def numpy_rows(job: Job) -> None:
    batches, weight, state = make_batches(rank=job.rank, world=job.world), 0.0, job.load()
    if state is not None:
        weight = state["weight"]
        batches.load_state_dict(state["batches"])
    for epoch in range(batches.state_dict()["pass"], PASSES):
        batches.set_epoch(epoch)
        for number, rows in enumerate(batches, 1):
            job.saw(digests(rows), epoch)
            weight += 1e-6 * sum(rows)
            job.barrier.wait()
            job.save({"weight": weight, "batches": batches.state_dict(delivered=number)})


def numpy_bytes(job: Job) -> None:
    batches = make_loader(rank=job.rank, world=job.world, workers=job.workers, to="numpy")
    weight, state = 0.0, job.load()
    if state is not None:
        weight = state["weight"]
        batches.load_state_dict(state["batches"])
    for batch in islice(batches, left_of(job, batches.state_dict()["delivered"])):
        job.saw(batch_digests(batch))
        weight += 1e-6 * float(batch["indices"].sum())
        job.barrier.wait()
        job.save({"weight": weight, "batches": batches.state_dict()})
