"""Samplers of setsup in the audit."""

import hashlib
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.audit.lines import Batches, Line, window
from benchmarks.audit.promises import CLASSES, EPISODES, PASSES, TEXTS, TREE, WEIGHTS
from benchmarks.audit.tasks import Task
from setsup import DomainSampler, EpisodeSampler, EpochSampler, Factor, FactorTable, HierarchicalSampler, Kind
from setsup.loading import set_batches
from setsup.samplers import Sampler

__all__ = ["our_lines"]

SHARDED = "set_batches"
GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "samplers" / "golden.json"
"""Digests of what each sampler draws, which change with the draws and not with every commit."""
COPIES = 2
"""Copies of each row in a batch: a batch size is a multiple of them."""


def our_lines() -> list[Line]:
    lines = [
        _line("DomainSampler", CLASSES, ("ours",), partial(_domains, small="error")),
        _line("DomainSampler, drop", CLASSES, ("ours",), partial(_domains, small="drop")),
        _line("DomainSampler, short", CLASSES, ("ours-short",), partial(_domains, small="short")),
        _line("DomainSampler, replace", CLASSES, ("ours-replace",), partial(_domains, small="replace")),
        _line("HierarchicalSampler", TREE, ("ours-tree",), partial(_tree, small="error")),
        _line("HierarchicalSampler, drop", TREE, ("ours-tree",), partial(_tree, small="drop")),
        _line("EpisodeSampler", EPISODES, ("ours-episode",), partial(_episodes, small="error")),
        _line("EpisodeSampler, drop", EPISODES, ("ours-episode",), partial(_episodes, small="drop")),
        _line("EpochSampler", PASSES, ("ours-pass",), _pass),
        _line("EpochSampler, pad", PASSES, ("ours-pass",), partial(_pass, partial="pad")),
        _line(f"EpochSampler, repeats={COPIES}", PASSES, ("ours-pass",), partial(_pass, repeats=COPIES)),
        _line("EpochSampler, weights", WEIGHTS, ("ours-weights", "ours-without"), _weighted),
        _line("DomainSampler, size=1", TEXTS, ("ours-texts",), _texts),
    ]
    return lines


def _line(name: str, family: str, own: tuple[str, ...], draw: Any) -> Line:
    draws = hashlib.blake2b(GOLDEN.read_bytes(), digest_size=4).hexdigest()
    return Line(f"setsup {name}", SHARDED, family, own, f"setsup {version('setsup')}", draw, f"draws {draws}")


@lru_cache(8)
def _table(task: Task) -> FactorTable:
    columns, counts = (
        {"label": task.labels, "outer": task.outer},
        {"label": task.cell.classes, "outer": task.outer_count},
    )
    factors = [Factor(name, Kind.NOMINAL, tuple(range(count))) for name, count in counts.items()]
    return FactorTable(factors, columns)


def _sharded(task: Task, sampler: Sampler, epoch: int = 0) -> Batches:
    """Batches of each rank: as many as those of others, or an epoch of a sampler that ends."""
    for rank in range(task.ranks):
        steps = task.steps if sampler.length is None else None
        for step, batch in enumerate(set_batches(sampler.shard(rank, task.ranks), steps=steps)):
            yield (step * task.ranks + rank) // epoch if epoch else 0, rank, batch


def _domains(task: Task, small: Any) -> Batches:
    sampler = DomainSampler(
        _table(task), "label", sets=task.ways, size=task.per_class, on_small_group=small, seed=task.seed
    )
    return _sharded(task, sampler, window(task))


def _tree(task: Task, small: Any) -> Batches:
    outer, inner, rows = task.tree
    sampler = HierarchicalSampler(
        _table(task), ["outer", "label"], [outer, inner], rows, on_small_group=small, seed=task.seed
    )
    return _sharded(task, sampler)


def _episodes(task: Task, small: Any) -> Batches:
    sampler = EpisodeSampler(
        _table(task), "label", task.ways, 1, task.per_class - 1, on_small_group=small, seed=task.seed
    )
    return _sharded(task, sampler)


def _pass(task: Task, **options: Any) -> Batches:
    return _sharded(task, EpochSampler(_table(task), task.size, epochs=1, seed=task.seed, **options))


def _weighted(task: Task) -> Batches:
    return _sharded(task, EpochSampler(_table(task), task.size, epochs=1, weights=task.weights, seed=task.seed))


def _texts(task: Task) -> Batches:
    sampler = DomainSampler(_table(task), "label", sets=task.size, size=1, domains="all", seed=task.seed)
    return _sharded(task, sampler)
