"""Samplers of torch and timm in the audit: passes over the rows, and weights."""

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.audit.lines import LIGHTNING, OWN, Batches, Line, in_lightning, seed_everything
from benchmarks.audit.loading import SAMPLERS, alone, version
from benchmarks.audit.promises import PASSES, WEIGHTS, check_quotes
from benchmarks.audit.tasks import Task

__all__ = ["timm", "torch"]

BUILT_IN = "num_replicas, rank"


def torch() -> list[Line]:
    from torch.utils.data import BatchSampler, DistributedSampler, WeightedRandomSampler

    release = version("torch").partition("+")[0]
    check_quotes(DistributedSampler, "torch")
    check_quotes(WeightedRandomSampler, "torch-weights", "torch-without")

    def one_pass(task: Task, make: Callable[[Task, int], Any]) -> Batches:
        for rank in range(task.ranks):
            seed_everything(1_000 * task.seed + rank)
            for batch in BatchSampler(make(task, rank), task.size, False):
                yield 0, rank, batch

    def split(task: Task, rank: int, dataset: Any = None, *, drop_last: bool = False) -> Any:
        return DistributedSampler(
            range(task.rows) if dataset is None else dataset, task.ranks, rank, seed=task.seed, drop_last=drop_last
        )

    def weighted(task: Task, rank: int = 0) -> Any:
        return WeightedRandomSampler(task.weights, int((task.weights > 0).sum()), replacement=False)

    def positions(task: Task, rank: int) -> Any:
        return split(task, rank, weighted(task)) if task.ranks > 1 else weighted(task)

    def wrapped(task: Task) -> Batches:
        return ((0, rank, batch) for _, rank, batch in in_lightning(task, partial(weighted, task)))

    own = ("torch-weights", "torch-without")
    name = "torch WeightedRandomSampler"
    return [
        Line("torch DistributedSampler", BUILT_IN, PASSES, ("torch",), release, partial(one_pass, make=split)),
        Line(
            "torch DistributedSampler, drop_last",
            BUILT_IN,
            PASSES,
            ("torch",),
            release,
            partial(one_pass, make=partial(split, drop_last=True)),
        ),
        Line(name, OWN, WEIGHTS, own, release, partial(one_pass, make=weighted)),
        Line(name, LIGHTNING, WEIGHTS, own, release, wrapped),
        Line(name, "dataset of a DistributedSampler", WEIGHTS, own, release, partial(one_pass, make=positions)),
    ]


def timm() -> list[Line]:
    module, release = alone("timm.data.distributed_sampler", folder=SAMPLERS), version("timm", SAMPLERS)
    check_quotes(module, "ra")
    from torch.utils.data import BatchSampler

    def draw(task: Task) -> Batches:
        for rank in range(task.ranks):
            sampler = module.RepeatAugSampler(range(task.rows), task.ranks, rank)
            sampler.set_epoch(task.seed)
            for batch in BatchSampler(sampler, task.size, False):
                yield 0, rank, batch

    return [Line("timm RepeatAugSampler", BUILT_IN, PASSES, ("ra",), release, draw)]
