"""Samplers of other libraries in the audit, each used as its documentation says, and those that cannot be loaded."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.audit.lines import Batches, Fixed, Line, in_accelerate, in_lightning, on_their_own, seed_everything
from benchmarks.audit.loading import OLDER, SAMPLERS, alone, version
from benchmarks.audit.promises import CLASSES, EPISODES, PASSES, TEXTS, TREE, WEIGHTS, missing_words
from benchmarks.audit.tasks import Cell, Task
from benchmarks.peers import peer

__all__ = ["peer_lines"]

OWN, LIGHTNING, ACCELERATE = "a process of its own per rank", "Lightning's Trainer", "accelerate's prepare"
UTIL = {"sentence_transformers.util": {"is_datasets_available": lambda: False}}
"""What the samplers of sentence-transformers import of the package; it names a type of annotations."""
MOST_TEXTS = 20
"""Batches of NoDuplicatesBatchSampler, which compares all rows that are left for each."""


def peer_lines() -> tuple[list[Line], dict[str, str]]:
    """All samplers that load, and why others do not."""
    lines: list[Line] = []
    left_out = {
        "DeiT's and torchvision's RASampler": "no package has them; timm's RepeatAugSampler says that it is DeiT's",
    }
    makers: dict[str, Callable[[], list[Line]]] = {
        "pytorch-metric-learning": _metric_learning,
        "sentence-transformers": _sentence_transformers,
        "sentence-transformers 5": _older_sentence_transformers,
        "wilds": _wilds,
        "open-metric-learning": _open_metric_learning,
        "easyfsl": _easyfsl,
        "torch": _torch,
        "timm": _timm,
    }
    for name, make in makers.items():
        try:
            lines += make()
        except Exception as error:  # a peer may fail in any way at import; that must not end the audit
            left_out[name] = f"{type(error).__name__}: {error}"
    return lines, left_out


def _installed(name: str) -> Any:
    module = peer(name)
    if module is None:
        raise ModuleNotFoundError(f"{name} is not installed")
    return module


def _quoted(source: Any, *promises: str) -> None:
    """Refuse a release whose documentation no longer says what is quoted of it."""
    text = inspect.getsource(source)
    for name in promises:
        if words := missing_words(name, text):
            raise ValueError(f"its documentation does not say {words!r}")


def _metric_learning() -> list[Line]:
    module, release = _installed("pytorch-metric-learning"), version("pytorch-metric-learning")
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


class Columns:
    """What sentence-transformers' samplers read of a Hugging Face dataset, from lists in memory."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._columns = columns

    @property
    def column_names(self) -> list[str]:
        return list(self._columns)

    def remove_columns(self, names: Sequence[str]) -> "Columns":
        return Columns({name: values for name, values in self._columns.items() if name not in names})

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            return self._columns[key]
        return {name: values[key] for name, values in self._columns.items()}


def _text_sampler(kind: Any, columns: dict[str, list[Any]], task: Task) -> Any:
    import torch

    return kind(
        Columns(columns),
        batch_size=task.size,
        drop_last=False,
        valid_label_columns=["label"],
        generator=torch.Generator(),
        seed=task.seed,
    )


def _by_label(module: Any, task: Task) -> Batches:
    """As SentenceTransformerTrainer: accelerate shards whole batches, even_batches=False."""
    columns = {"label": task.labels.tolist()}
    make = partial(_text_sampler, module.GroupByLabelBatchSampler, columns, task)
    return in_accelerate(task, make, even_batches=False)


def _unique(module: Any, task: Task) -> Batches:
    fixed = _texts(module, task.cell._replace(ranks=1), task.seed, task.rows)
    return ((0, rank, batch) for _, rank, batch in in_accelerate(task, lambda: fixed, even_batches=False))


@lru_cache(8)
def _texts(module: Any, cell: Cell, seed: int, rows: int) -> Fixed:
    """Batches of rows whose anchors are the same within a label, whatever the number of ranks."""
    task = Task(cell, seed, rows)
    columns = {
        "anchor": [f"label {label}" for label in task.labels.tolist()],
        "positive": [f"row {row}" for row in range(task.rows)],
    }

    class Few(module.NoDuplicatesBatchSampler):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[list[int]]:
            return islice(super().__iter__(), MOST_TEXTS)

    return Fixed(_text_sampler(Few, columns, task))


def _sentence_transformers() -> list[Line]:
    module = alone("sentence_transformers.base.sampler", UTIL)
    release = version("sentence-transformers")
    _quoted(module, "st", "st-unique", "st-size")
    ranks = "SentenceTransformerTrainer, by accelerate"
    name = "sentence-transformers"
    return [
        Line(f"{name} GroupByLabelBatchSampler", ranks, CLASSES, ("st",), release, partial(_by_label, module)),
        Line(
            f"{name} NoDuplicatesBatchSampler",
            ranks,
            TEXTS,
            ("st-unique", "st-size"),
            release,
            partial(_unique, module),
        ),
    ]


def _older_sentence_transformers() -> list[Line]:
    """The last releases whose batches were of one label where a label has many rows."""
    module = alone("sentence_transformers.sampler", UTIL, folder=OLDER)
    release = version("sentence-transformers", OLDER)
    _quoted(module, "st-older")
    name, ranks = f"{release} GroupByLabelBatchSampler", "SentenceTransformerTrainer, by accelerate"
    return [Line(name, ranks, CLASSES, ("st-older",), release, partial(_by_label, module))]


def _wilds() -> list[Line]:
    module, release = _installed("wilds"), version("wilds")
    _quoted(module, "wilds")
    import torch

    def make(task: Task) -> Any:
        return module.GroupSampler(
            torch.from_numpy(task.labels), task.size, task.ways, uniform_over_groups=True, distinct_groups=True
        )

    draw = lambda task: on_their_own(task, partial(make, task))  # noqa: E731
    return [Line("wilds GroupSampler", OWN, CLASSES, ("wilds",), release, draw)]


def _open_metric_learning() -> list[Line]:
    stand_ins = {"omegaconf": {"DictConfig": dict, "OmegaConf": None}}
    entered = ("oml.utils", "oml.interfaces")
    balance = alone("oml.samplers.balance", stand_ins, entered, SAMPLERS)
    category = alone("oml.samplers.category_balance", stand_ins, entered, SAMPLERS)
    wrapper = alone("oml.ddp.patching", stand_ins, entered, SAMPLERS).DDPSamplerWrapper
    _quoted(balance, "oml", "oml-once")
    _quoted(category, "oml-tree")
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


def _easyfsl() -> list[Line]:
    module, release = _installed("easyfsl"), version("easyfsl")
    _quoted(module, "easyfsl")

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


def _torch() -> list[Line]:
    from torch.utils.data import BatchSampler, DistributedSampler, WeightedRandomSampler

    release = version("torch").partition("+")[0]
    _quoted(DistributedSampler, "torch")
    _quoted(WeightedRandomSampler, "torch-weights", "torch-without")

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

    built_in, own = "num_replicas, rank", ("torch-weights", "torch-without")
    name = "torch WeightedRandomSampler"
    return [
        Line("torch DistributedSampler", built_in, PASSES, ("torch",), release, partial(one_pass, make=split)),
        Line(
            "torch DistributedSampler, drop_last",
            built_in,
            PASSES,
            ("torch",),
            release,
            partial(one_pass, make=partial(split, drop_last=True)),
        ),
        Line(name, OWN, WEIGHTS, own, release, partial(one_pass, make=weighted)),
        Line(name, LIGHTNING, WEIGHTS, own, release, wrapped),
        Line(name, "dataset of a DistributedSampler", WEIGHTS, own, release, partial(one_pass, make=positions)),
    ]


def _timm() -> list[Line]:
    module, release = alone("timm.data.distributed_sampler", folder=SAMPLERS), version("timm", SAMPLERS)
    _quoted(module, "ra")
    from torch.utils.data import BatchSampler

    def draw(task: Task) -> Batches:
        for rank in range(task.ranks):
            sampler = module.RepeatAugSampler(range(task.rows), task.ranks, rank)
            sampler.set_epoch(task.seed)
            for batch in BatchSampler(sampler, task.size, False):
                yield 0, rank, batch

    return [Line("timm RepeatAugSampler", "num_replicas, rank", PASSES, ("ra",), release, draw)]
