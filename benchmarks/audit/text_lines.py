"""Samplers of sentence-transformers in the audit, of the installed release and of an older one."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from benchmarks.audit.lines import TRAINER, Batches, Fixed, Line, in_accelerate
from benchmarks.audit.loading import OLDER, alone, version
from benchmarks.audit.promises import CLASSES, TEXTS, check_quotes
from benchmarks.audit.tasks import Cell, Task

__all__ = ["older_sentence_transformers", "sentence_transformers"]

UTIL = {"sentence_transformers.util": {"is_datasets_available": lambda: False}}
"""What the samplers import of the package; it names a type of annotations."""
MOST_TEXTS = 20
"""Batches of NoDuplicatesBatchSampler, which compares all rows that are left for each."""


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


def sentence_transformers() -> list[Line]:
    module = alone("sentence_transformers.base.sampler", UTIL)
    release = version("sentence-transformers")
    check_quotes(module, "st", "st-unique", "st-size")
    name = "sentence-transformers"
    return [
        Line(f"{name} GroupByLabelBatchSampler", TRAINER, CLASSES, ("st",), release, partial(_by_label, module)),
        Line(
            f"{name} NoDuplicatesBatchSampler",
            TRAINER,
            TEXTS,
            ("st-unique", "st-size"),
            release,
            partial(_unique, module),
        ),
    ]


def older_sentence_transformers() -> list[Line]:
    """The last releases whose batches were of one label where a label has many rows."""
    module = alone("sentence_transformers.sampler", UTIL, folder=OLDER)
    release = version("sentence-transformers", OLDER)
    check_quotes(module, "st-older")
    name = f"{release} GroupByLabelBatchSampler"
    return [Line(name, TRAINER, CLASSES, ("st-older",), release, partial(_by_label, module))]
