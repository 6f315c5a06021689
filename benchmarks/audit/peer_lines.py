"""Samplers of other libraries in the audit, each used as its documentation says, and those that cannot be loaded."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.audit.lines import ACCELERATE, LIGHTNING, OWN, Line, in_accelerate, in_lightning, on_their_own
from benchmarks.audit.loading import installed, version
from benchmarks.audit.oml_lines import open_metric_learning
from benchmarks.audit.pass_lines import timm, torch
from benchmarks.audit.promises import CLASSES, EPISODES, TREE, check_quotes
from benchmarks.audit.tasks import Task
from benchmarks.audit.text_lines import older_sentence_transformers, sentence_transformers

__all__ = ["peer_lines"]


def peer_lines() -> tuple[list[Line], dict[str, str]]:
    """All samplers that load, and why others do not."""
    lines: list[Line] = []
    left_out = {
        "DeiT's and torchvision's RASampler": "no package has them; timm's RepeatAugSampler says that it is DeiT's",
    }
    makers: dict[str, Callable[[], list[Line]]] = {
        "pytorch-metric-learning": _metric_learning,
        "sentence-transformers": sentence_transformers,
        "sentence-transformers 5": older_sentence_transformers,
        "wilds": _wilds,
        "open-metric-learning": open_metric_learning,
        "easyfsl": _easyfsl,
        "torch": torch,
        "timm": timm,
    }
    for name, make in makers.items():
        try:
            lines += make()
        except Exception as error:  # a peer may fail in any way at import; that must not end the audit
            left_out[name] = f"{type(error).__name__}: {error}"
    return lines, left_out


def _metric_learning() -> list[Line]:
    module, release = installed("pytorch-metric-learning"), version("pytorch-metric-learning")
    from torch.utils.data import BatchSampler

    def flat(task: Task, ranks: int) -> Any:
        return module.MPerClassSampler(
            task.labels, task.per_class, task.size, length_before_new_iter=task.size * task.steps * ranks
        )

    def tree(task: Task) -> Any:
        outer, _, rows = task.tree
        return module.HierarchicalSampler(
            np.stack([task.labels, task.outer], axis=1), task.size, rows, super_classes_per_batch=outer
        )

    def batches(task: Task, ranks: int = 1) -> Any:
        return BatchSampler(flat(task, ranks), task.size, False)

    name, own = "pytorch-metric-learning MPerClassSampler", ("pml",)
    return [
        Line(name, OWN, CLASSES, own, release, lambda task: on_their_own(task, partial(batches, task))),
        Line(
            name,
            ACCELERATE,
            CLASSES,
            own,
            release,
            lambda task: in_accelerate(task, partial(batches, task, task.ranks)),
        ),
        Line(name, LIGHTNING, CLASSES, own, release, lambda task: in_lightning(task, partial(flat, task, task.ranks))),
        Line(
            "pytorch-metric-learning HierarchicalSampler",
            OWN,
            TREE,
            ("pml-tree",),
            release,
            lambda task: on_their_own(task, partial(tree, task)),
        ),
    ]


def _wilds() -> list[Line]:
    module, release = installed("wilds"), version("wilds")
    check_quotes(module, "wilds")
    import torch

    def make(task: Task) -> Any:
        return module.GroupSampler(
            torch.from_numpy(task.labels), task.size, task.ways, uniform_over_groups=True, distinct_groups=True
        )

    draw = lambda task: on_their_own(task, partial(make, task))  # noqa: E731
    return [Line("wilds GroupSampler", OWN, CLASSES, ("wilds",), release, draw)]


def _easyfsl() -> list[Line]:
    module, release = installed("easyfsl"), version("easyfsl")
    check_quotes(module, "easyfsl")

    def make(task: Task) -> Any:
        # the constructor of 1.5.0 calls one of torch that has no argument now
        sampler = object.__new__(module.TaskSampler)
        sampler.n_way, sampler.n_shot, sampler.n_query = task.ways, 1, task.per_class - 1
        sampler.n_tasks = task.steps
        rows = np.argsort(task.labels, kind="stable")
        parts = np.split(rows, np.cumsum(task.sizes)[:-1])
        sampler.items_per_label = {label: part.tolist() for label, part in enumerate(parts)}
        sampler._check_dataset_size_fits_sampler_parameters()
        return sampler

    draw = lambda task: on_their_own(task, partial(make, task))  # noqa: E731
    return [Line("easyfsl TaskSampler", OWN, EPISODES, ("easyfsl",), release, draw)]
