"""What the documentation of each sampler promises, word for word, and what counts the batches that break it."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.audit import counters
from benchmarks.audit.counters import Drawn
from benchmarks.audit.tasks import Task

__all__ = [
    "CLASSES",
    "EPISODES",
    "FAMILIES",
    "PASSES",
    "PROMISES",
    "TEXTS",
    "TREE",
    "WEIGHTS",
    "Promise",
    "check_quotes",
    "missing_words",
]


class Promise(NamedTuple):
    """A sentence of a documentation, where it stands, and the function that counts the batches that break it.

    ``means`` says what the sentence demands of a batch, and what the documentation itself excepts.
    """

    says: str
    where: str
    means: str
    count: Callable[[Drawn, Task], int]

    @property
    def short(self) -> str:
        """What is counted, in the words of a table's head."""
        return SHORT[self.count.__name__]


SHORT = {
    "per_class": "P × K, copies count",
    "classes_once": "a class once per epoch",
    "several_labels": "two labels, two rows each",
    "pairs_of_labels": "two rows of each label",
    "per_class_distinct": "P × K, distinct rows",
    "per_class_of_small": "P × K, or all rows of a class",
    "per_class_replaced": "P × K, copies in small classes",
    "tree": "X × Z × Y, copies count",
    "tree_distinct": "X × Z × Y, distinct rows",
    "exclusive_to_rank": "rows of one rank",
    "once_per_rank": "a row once per rank",
    "drawn_once": "a row in one batch",
    "no_weightless_rows": "weight above 0",
    "distinct_rows": "distinct rows",
    "distinct_values": "distinct texts",
    "full_size": "the batch size",
}
"""Short names of what is counted, by the function that counts."""
PML_PAGE = "kevinmusgrave.github.io/pytorch-metric-learning/samplers"
PROMISES = {
    # P classes with K rows each
    "pml": Promise(
        "If specified, then every batch is guaranteed to have m samples per class.",
        f"{PML_PAGE}, MPerClassSampler, batch_size",
        "P classes with m rows each. Copies count: the page announces them for classes of fewer than m rows.",
        counters.per_class,
    ),
    "wilds": Promise(
        "'group' for group loaders, which first samples groups and then samples a fixed number of examples belonging "
        "to each group.",
        "wilds.common.data_loaders, get_train_loader, loader; distinct_groups=True",
        "P groups with the same number of rows each. Copies count.",
        counters.per_class,
    ),
    "oml": Promise(
        "This sampler takes ``n_instances`` for each of the ``n_labels`` to form the batches.",
        "oml.samplers.balance, BalanceSampler",
        "P labels with K rows each. Copies count: the docstring announces them for labels of fewer rows.",
        counters.per_class,
    ),
    "oml-once": Promise(
        "Thus, in each epoch, all the labels will be selected once",
        "oml.samplers.balance, BalanceSampler",
        "No label of an earlier batch of the epoch. For a sampler without epochs, ⌊L/P⌋ batches count as an epoch.",
        counters.classes_once,
    ),
    "st": Promise(
        "Every batch is guaranteed to contain multiple distinct labels, each with at least 2 samples.",
        "sentence_transformers.base.sampler, GroupByLabelBatchSampler",
        "Two labels or more, each with two rows or more; copies of a row count once.",
        counters.several_labels,
    ),
    "st-older": Promise(
        "aims to create batches such that each batch contains samples where the labels are as homogeneous as possible. "
        "This sampler is meant to be used alongside the ``Batch...TripletLoss`` classes, which require that each batch "
        "contains at least 2 examples per label class.",
        "sentence_transformers.sampler 5.2.3, GroupByLabelBatchSampler",
        "Two rows or more of each label; one label is enough. Copies of a row count once.",
        counters.pairs_of_labels,
    ),
    "ours": Promise(
        "Draws batches of several domains with the same number of rows each. […] no step repeats a domain.",
        "setsup.DomainSampler; the rows of a visit are positions of a permutation",
        "P classes with K different rows each.",
        counters.per_class_distinct,
    ),
    "ours-short": Promise(
        "``short`` uses all their rows and masks the remaining positions",
        "setsup.DomainSampler, on_small_group",
        "P classes with K rows each, or all rows of a class that has fewer; no row twice.",
        counters.per_class_of_small,
    ),
    "ours-replace": Promise(
        "``replace`` draws K rows with replacement.",
        "setsup.DomainSampler, on_small_group",
        "P classes with K rows each. Only classes with fewer than K rows have copies.",
        counters.per_class_replaced,
    ),
    # two levels
    "pml-tree": Promise(
        "Randomly select X super classes. For each super class, randomly select Y samples from Z classes, such that "
        "Y * Z equals the batch size divided by X.",
        f"{PML_PAGE}, HierarchicalSampler",
        "X super classes with Z classes each, and Y rows of each class. Copies count.",
        counters.tree,
    ),
    "oml-tree": Promise(
        "This sampler takes ``n_instances`` for each of the ``n_labels`` for each of the ``n_categories`` to form the "
        "batches.",
        "oml.samplers.category_balance, CategoryBalanceSampler",
        "X categories with Z labels each, and Y rows of each label. Copies of rows count, copies of labels do not.",
        counters.tree,
    ),
    "ours-tree": Promise(
        "Draws P groups, C groups within each of these, and so on, with K rows of each innermost group. […] Rows are "
        "uniform without repeats.",
        "setsup.HierarchicalSampler",
        "X super classes with Z classes each, and Y different rows of each class.",
        counters.tree_distinct,
    ),
    # episodes
    "easyfsl": Promise(
        "Sample n_way labels uniformly at random, and then sample n_shot + n_query items for each label, also "
        "uniformly at random.",
        "easyfsl.samplers.task_sampler, TaskSampler.__iter__",
        "N labels with K + Q different rows each.",
        counters.per_class_distinct,
    ),
    "ours-episode": Promise(
        "The rows of a class are uniform without repeats; the first ``shots`` of each set are the support, the others "
        "the query.",
        "setsup.EpisodeSampler",
        "N labels with K + Q different rows each.",
        counters.per_class_distinct,
    ),
    # passes
    "torch": Promise(
        "load a subset of the original dataset that is exclusive to it.",
        "torch.utils.data.distributed, DistributedSampler",
        "No row of another rank in the same epoch. The docstring announces that drop_last=False adds extra indices.",
        counters.exclusive_to_rank,
    ),
    "ra": Promise(
        "It ensures that different each augmented version of a sample will be visible to a different process (GPU)",
        "timm.data.distributed_sampler, RepeatAugSampler, as in the RASampler of DeiT and of torchvision's references",
        "No row twice in an epoch on the same rank.",
        counters.once_per_rank,
    ),
    "ours-pass": Promise(
        "An epoch still has every row in one batch only",
        "setsup.EpochSampler, repeats",
        "No row of another batch of the epoch, on any rank; repeats= requests copies within a batch.",
        counters.drawn_once,
    ),
    # weights
    "torch-weights": Promise(
        "Samples elements from ``[0,..,len(weights)-1]`` with given probabilities (weights).",
        "torch.utils.data.sampler, WeightedRandomSampler",
        "No row of weight 0.",
        counters.no_weightless_rows,
    ),
    "torch-without": Promise(
        "If not, they are drawn without replacement, which means that when a sample index is drawn for a row, it "
        "cannot be drawn again for that row.",
        "torch.utils.data.sampler, WeightedRandomSampler, replacement",
        "No row twice in an epoch on the same rank.",
        counters.once_per_rank,
    ),
    "ours-weights": Promise(
        "Rows of weight 0 are never drawn",
        "setsup.EpochSampler, weights",
        "No row of weight 0.",
        counters.no_weightless_rows,
    ),
    "ours-without": Promise(
        "Each batch is then drawn by successive sampling, each row by weight among those that are left",
        "setsup.EpochSampler, weights",
        "No row twice in a batch.",
        counters.distinct_rows,
    ),
    # texts
    "ours-texts": Promise(
        "no step repeats a domain.",
        "setsup.DomainSampler; the text is the domain",
        "No text twice.",
        counters.distinct_values,
    ),
    "st-unique": Promise(
        "This sampler creates batches such that each batch contains samples where the values are unique, even across "
        "columns.",
        "sentence_transformers.base.sampler, NoDuplicatesBatchSampler",
        "No text twice.",
        counters.distinct_values,
    ),
    "st-size": Promise(
        "batch_size (int): Number of samples per batch.",
        "sentence_transformers.base.sampler, NoDuplicatesBatchSampler",
        "The batch size, except in the last batch of a rank in an epoch.",
        counters.full_size,
    ),
}
"""What is promised, by a short name."""

CLASSES, TREE, EPISODES = "P classes × K rows", "Classes within super classes", "Episodes"
PASSES, WEIGHTS, TEXTS = "Passes", "Weights", "Distinct texts"
FAMILIES = {
    CLASSES: ("pml", "wilds", "oml", "oml-once", "st", "st-older", "ours", "ours-short", "ours-replace"),
    TREE: ("pml-tree", "oml-tree", "ours-tree"),
    EPISODES: ("easyfsl", "ours-episode"),
    PASSES: ("torch", "ra", "ours-pass"),
    WEIGHTS: ("torch-weights", "torch-without", "ours-weights", "ours-without"),
    TEXTS: ("st-unique", "st-size", "ours-texts"),
}
"""Promises that are about the same kind of batch: each sampler of a family is counted under all of them."""


def check_quotes(source: Any, *promises: str) -> None:
    """Refuse a release whose documentation no longer says what is quoted of it: a ValueError names the words."""
    text = inspect.getsource(source)
    for name in promises:
        if words := missing_words(name, text):
            raise ValueError(f"its documentation does not say {words!r}")


def missing_words(name: str, source: str) -> str:
    """Words of a promise that a source lacks, whatever the line breaks; empty where it has all."""
    text = " ".join(source.split())
    return next((part for part in map(str.strip, PROMISES[name].says.split("[…]")) if part not in text), "")
