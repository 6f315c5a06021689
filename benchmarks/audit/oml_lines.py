"""Samplers of open-metric-learning in the audit, with the wrapper by which it shards batches among ranks."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

from benchmarks.audit.lines import Batches, Line, seed_everything
from benchmarks.audit.loading import SAMPLERS, alone, version
from benchmarks.audit.promises import CLASSES, TREE, check_quotes
from benchmarks.audit.tasks import Task

__all__ = ["open_metric_learning"]


def open_metric_learning() -> list[Line]:
    stand_ins = {"omegaconf": {"DictConfig": dict, "OmegaConf": None}}
    entered = ("oml.utils", "oml.interfaces")
    balance = alone("oml.samplers.balance", stand_ins, entered, SAMPLERS)
    category = alone("oml.samplers.category_balance", stand_ins, entered, SAMPLERS)
    wrapper = alone("oml.ddp.patching", stand_ins, entered, SAMPLERS).DDPSamplerWrapper
    check_quotes(balance, "oml", "oml-once")
    check_quotes(category, "oml-tree")
    release, name = version("open-metric-learning", SAMPLERS), "open-metric-learning"

    def classes(task: Task) -> Any:
        return balance.BalanceSampler(task.labels.tolist(), task.ways, task.per_class)

    def tree(task: Task, *, resample: bool) -> Any:
        outer, inner, rows = task.tree
        categories = {label: label % task.outer_count for label in range(task.cell.classes)}
        return category.CategoryBalanceSampler(
            task.labels.tolist(), categories, outer, inner, rows, resample_labels=resample
        )

    def sharded(task: Task, make: Callable[[Task], Any]) -> Batches:
        for rank in range(task.ranks):
            seed_everything(task.seed)
            sampler = make(task)
            if task.ranks > 1:
                # it asks the process group, at each iteration
                with (
                    patch("torch.distributed.get_world_size", return_value=task.ranks),
                    patch("torch.distributed.get_rank", return_value=rank),
                ):
                    yield from _epochs(task, rank, wrapper(sampler))
            else:
                yield from _epochs(task, rank, sampler)

    ranks = "its DDPSamplerWrapper"
    return [
        Line(f"{name} BalanceSampler", ranks, CLASSES, ("oml", "oml-once"), release, partial(sharded, make=classes)),
        Line(
            f"{name} CategoryBalanceSampler",
            ranks,
            TREE,
            ("oml-tree",),
            release,
            partial(sharded, make=partial(tree, resample=False)),
        ),
        Line(
            f"{name} CategoryBalanceSampler, resample_labels",
            ranks,
            TREE,
            (),  # it announces labels that are repeated
            release,
            partial(sharded, make=partial(tree, resample=True)),
        ),
    ]


def _epochs(task: Task, rank: int, sampler: Any) -> Batches:
    """Whole epochs of a sampler, until a rank has as many batches as those of samplers without epochs."""
    count = 0
    for epoch in range(task.steps):
        for batch in sampler:
            count += 1
            yield epoch, rank, batch
        if count >= task.steps:
            return
