"""Rows that an evaluation over orbits embeds: classes, orbits and groups of them, and that none was trained on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError
from setsup.experiments.evaluations.rows import Sample
from setsup.experiments.trained_run import TrainedRun
from setsup.experiments.training_rows import find_origin
from setsup.random import fold, permute, stream_key

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.factors import FactorTable

__all__ = ["OrbitRows", "at_most_few", "check_limits", "check_training", "draw_rows", "embedders", "number"]

Codes = npt.NDArray[np.int64]
Reals = npt.NDArray[Any]

_FEW = 4


@dataclass
class OrbitRows:
    """Rows of known class, orbit and group.

    Attributes
    ----------
    sample : Sample
        The rows (n,) and their embeddings.
    labels : (n,) int64
        Codes of the classes.
    orbits, groups : (n,) int64
        Numbers, of this sample only.

    """

    sample: Sample
    labels: Codes
    orbits: Codes
    groups: Codes


def draw_rows(
    trained: TrainedRun,
    dataset: "Dataset",
    factor: str,
    orbit: Sequence[str],
    group: Sequence[str] = (),
    *,
    classes: int | None = None,
    per_class: int | None = None,
    members: int | None = None,
    embedding: str | None = None,
    seed: int = 0,
) -> OrbitRows:
    """Rows of known class and orbit: of the first classes, some groups of each, and the first members of each orbit."""
    table = dataset.factors
    if table[factor].continuous:
        raise SetsupError(
            f"classes require a factor with levels, but {factor!r} is continuous; bin the factor, or choose another"
        )
    labels = np.asarray(table.codes(factor), dtype=np.int64)
    orbits = number(table, orbit)
    groups = number(table, group) if group else orbits
    known = (labels >= 0) & (orbits >= 0) & (groups >= 0)
    if not known.any():
        raise DataError(
            f"no image of {dataset.name} has both a known class ({factor}) and a known orbit ({', '.join(orbit)}); "
            "choose other factors"
        )
    rows = np.flatnonzero(known)
    if classes is not None:
        rows = rows[np.isin(labels[rows], np.unique(labels[rows])[:classes])]
    if per_class is not None:
        rows = rows[_drawn(labels[rows], groups[rows], per_class, seed)]
    if members is not None:
        rows = rows[_rank(orbits[rows]) < members]
    check_training(trained, dataset, rows, orbit)
    if len(np.unique(np.stack([orbits[rows], groups[rows]]), axis=1).T) > len(np.unique(orbits[rows])):
        raise DataError(
            f"some orbits ({', '.join(orbit)}) contain images of several groups ({', '.join(group)}); choose "
            "groups that contain whole orbits"
        )
    sample = Sample(trained, dataset, rows, {}, embedding)
    return OrbitRows(sample, labels[rows], orbits[rows], groups[rows])


def number(table: "FactorTable", names: Sequence[str]) -> Codes:
    """Number of the group of equal levels of some factors that each row is of (n,), -1 where one is unknown."""
    if not names:
        raise SetsupError("orbit must contain at least one factor")
    for name in names:
        if table[name].continuous:
            raise SetsupError(f"orbits require factors with levels, but {name!r} is continuous; choose other factors")
    return table.group_by(names).of_rows()


def check_training(trained: TrainedRun, dataset: "Dataset", rows: Codes, orbit: Sequence[str]) -> None:
    """Raise an error where a run was trained on an orbit of these rows, unless they are the training data themselves.

    It is known for selections of the dataset that was trained on; others are taken to be other images.
    """
    if trained.config is None or trained.data is None or dataset is trained.dataset:
        return
    (source, there), (whole, held) = find_origin(dataset), find_origin(trained.dataset)
    if source.name != whole.name or not source.factors.has_fingerprint(whole.factors.fingerprint):
        return
    orbits = number(source.factors, orbit)
    learned = np.unique(orbits[held])
    shared = np.isin(orbits[there[rows]], learned[learned >= 0])
    if shared.any():
        row = rows[[np.argmax(shared)]]
        codes = [(name, int(dataset.factors.codes(name, row)[0])) for name in orbit]
        listed = ", ".join(f"{name} {(dataset.factors[name].levels or ())[code]}" for name, code in codes)
        raise DataError(
            f"an orbit ({listed}) is in both the training data and the test data; split {dataset.name} by orbit, "
            "not by image"
        )


def _drawn(labels: Codes, groups: Codes, per_class: int, seed: int) -> npt.NDArray[np.bool_]:
    """Rows (n,) of at most so many groups of each class."""
    chosen = np.zeros(len(labels), dtype=np.bool_)
    key = stream_key(seed, "groups of an evaluation")
    for label in np.unique(labels):
        own = np.unique(groups[labels == label])
        order = permute(fold(key, int(label)), len(own), np.arange(min(per_class, len(own))))
        chosen |= (labels == label) & np.isin(groups, own[order])
    return chosen


def _rank(orbits: Codes) -> Codes:
    """Place of each row among those of its orbit (n,)."""
    order = np.argsort(orbits, kind="stable")
    ordered = orbits[order]
    ranks = np.empty(len(orbits), dtype=np.int64)
    ranks[order] = np.arange(len(orbits)) - np.searchsorted(ordered, ordered)
    return ranks


def embedders(
    baselines: Sequence[str], trained: TrainedRun, dataset: "Dataset", rows: OrbitRows
) -> Mapping[str, Callable[[], Reals]]:
    """Functions that embed the rows: by the trained method, whose name is empty, and by each baseline."""

    @cache
    def pixels() -> Reals:
        images = dataset.fetch(rows.sample.rows, ["image"])["image"]
        return np.asarray(images.reshape(len(images), -1))

    @cache
    def untrained() -> Reals:
        from setsup.experiments.embedding import embed

        sample = rows.sample
        return embed(trained.untrained, dataset, sample.rows, name=sample.embedding, **trained.embedding(dataset))

    known = {"pixels": pixels, "untrained": untrained}
    if unknown := [name for name in baselines if name not in known]:
        raise SetsupError(f"baselines must be {' or '.join(known)}, not {unknown[0]!r}")
    return {"": lambda: rows.sample.embedded} | {name: known[name] for name in baselines}


def check_limits(**limits: int | None) -> None:
    """Raise SetsupError unless each limit is 1 or more, or None."""
    for name, limit in limits.items():
        if limit is not None and limit < 1:
            raise SetsupError(f"{name} must be 1 or more, or None for all, not {limit}")


def at_most_few(limit: int | None) -> int:
    """What a shrunk evaluation takes of something."""
    return _FEW if limit is None else min(limit, _FEW)
