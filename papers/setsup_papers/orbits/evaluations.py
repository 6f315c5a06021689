"""Accuracy on held-out orbits: from one labelled image per class, and against the number of labelled images."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.orbits.orbit_rows import OrbitRows, at_most_few, check_limits, draw_rows, embedders, number

__all__ = ["OneShot", "SampleComplexity"]

Reals = npt.NDArray[Any]
Truths = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShot:
    """Accuracy of the nearest of one labelled image per class, over re-splits of held-out orbits.

    Re-splits depend on `resplit_seed` and not on the seed of the run, so that runs are compared on the same ones.

    Attributes
    ----------
    factor : str
        Factor of the class.
    orbit : tuple of str
        Factors whose combinations are the orbits.
    original : str, optional
        Expression that selects the images labelled in the variant ``original only``, such as ``member == 0``; without
        it the variant is left out.
    group : tuple of str
        Factors of the units that a re-split divides into validation and test, such as the objects that several orbits
        show; by default orbits.
    splits : int
        Number of re-splits.
    validation : float
        Share of the groups of each class that a re-split uses for validation; with 0, all are tested.
    part : {"test", "validation"}
        Part of each re-split to measure.
    dataset : str, optional
        One of the preset's ``datasets``; by default the training data.
    split : str, optional
        Split of the dataset.
    groups : int, optional
        Maximum number of groups of each class.
    members : int, optional
        Use only the first images of each orbit, at most this many.
    metric : {"l2sq", "cosine"}
        Euclidean distance of embeddings, or of embeddings scaled to length 1.
    baselines : tuple of {"pixels", "untrained"}
        Also measure, on the same re-splits, unchanged pixel values, or the method with its initial weights.
    embedding : str, optional
        Name of the embedding, if the method has several.
    resplit_seed : int
        Random seed of re-splits, and of the selected groups.

    """

    version: ClassVar[int] = 1

    factor: str = "digit"
    orbit: tuple[str, ...] = ("source",)
    original: str | None = None
    group: tuple[str, ...] = ()
    splits: int = 10
    validation: float = 0.5
    part: Literal["test", "validation"] = "test"
    dataset: str | None = None
    split: str | None = "test"
    groups: int | None = None
    members: int | None = None
    metric: Literal["l2sq", "cosine"] = "l2sq"
    baselines: tuple[Literal["pixels", "untrained"], ...] = ()
    embedding: str | None = None
    resplit_seed: int = 0

    def __post_init__(self) -> None:
        """Check settings before all is embedded."""
        if not 0 <= self.validation < 1 or self.splits < 1:
            raise SetsupError(
                f"validation must be at least 0 and below 1, and splits 1 or more, not {self.validation} and "
                f"{self.splits}"
            )
        if self.part == "validation" and not self.validation:
            raise SetsupError("validation must be above 0 to evaluate on validation rows, not 0")
        check_limits(groups=self.groups, members=self.members)

    def shrunk(self) -> "OneShot":
        """Return the evaluation shrunk to few orbits."""
        return replace(
            self, groups=at_most_few(self.groups), members=at_most_few(self.members), splits=min(self.splits, 3)
        )

    def measure(self, trained: TrainedRun) -> Measured:
        """``any member`` and ``original only``: mean and ``spread`` over re-splits, and the accuracy of each."""
        dataset = trained.open(self.dataset, split=self.split)
        limits: dict[str, Any] = {"per_class": self.groups, "members": self.members, "seed": self.resplit_seed}
        rows = draw_rows(trained, dataset, self.factor, self.orbit, self.group, embedding=self.embedding, **limits)
        within = self._within(rows)
        labels, orbits = rows.labels, rows.orbits
        variants: dict[str, Truths | None] = {"any member": None}
        if self.original is not None:
            variants["original only"] = dataset.factors.mask(self.original)[rows.sample.rows]
        how: dict[str, Any] = {"within": within, "seed": self.resplit_seed}
        drawn = {
            variant: evaluation.draw_labelled(labels, orbits, self.splits, candidates=candidates, **how)
            for variant, candidates in variants.items()
        }
        curves: dict[str, list[float]] = {}
        for source, embedded in embedders(self.baselines, trained, dataset, rows).items():
            for variant, labelled in drawn.items():

                def compute(labelled: Any = labelled, embedded: Callable[[], Reals] = embedded) -> Reals:
                    how: dict[str, Any] = {"within": within, "metric": self.metric}
                    return evaluation.one_shot_accuracy(embedded(), labels, orbits, labelled, **how)

                about = self._about(rows) | {"source": source, "labelled": labelled}
                name = f"{source}: {variant}" if source else variant
                curves[name] = trained.part("one-shot", about, compute)
        values: dict[str, float] = {}
        for name, scores in curves.items():
            values |= _summary(name, scores)
        numbers = list(range(self.splits))
        return Measured(values=values, curves={name: (numbers, scores) for name, scores in curves.items()})

    def _within(self, rows: OrbitRows) -> Truths | None:
        """Rows of the measured part of each re-split, (splits, n)."""
        if not self.validation:
            return None
        first = evaluation.draw_parts(
            rows.groups, rows.labels, self.splits, share=self.validation, seed=self.resplit_seed
        )
        for chosen in first:
            evaluation.check_disjoint(rows.orbits[chosen], rows.orbits[~chosen], ("validation", "test"))
        return first if self.part == "validation" else ~first

    def _about(self, rows: OrbitRows) -> dict[str, Any]:
        names = ("factor", "orbit", "group", "splits", "validation", "part", "metric", "resplit_seed")
        return rows.sample.about | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleComplexity:
    """Accuracy of a linear support vector machine against the number of labelled images per class.

    Train and test share no orbit; see :func:`~setsup.evaluation.draw_resamples`. Images depend on `resplit_seed`, not
    on the seed of the run. A map of accuracy over labels and orbits combines runs on different numbers of orbits.

    Attributes
    ----------
    factor : str
        Factor of the class.
    orbit : tuple of str
        Factors whose combinations are the orbits.
    counts : tuple of int
        Numbers of labelled images per class.
    resamples : int
        Number of resamples to average over; an interrupted evaluation resumes at the resample at which it stopped.
    test : int
        Number of test images per class.
    c : float
        Inverse strength of the penalty, scikit-learn's ``C``.
    dataset : str, optional
        One of the preset's ``datasets``; by default the training data.
    split : str, optional
        Split of the dataset.
    groups : int, optional
        Maximum number of orbits of each class.
    embedding : str, optional
        Name of the embedding, if the method has several.
    resplit_seed : int
        Random seed of resamples, and of the selected orbits.

    """

    version: ClassVar[int] = 2  # counts orbits

    factor: str
    orbit: tuple[str, ...]
    counts: tuple[int, ...] = tuple(range(1, 21))
    resamples: int = 10
    test: int = 64
    c: float = 1.0
    dataset: str | None = None
    split: str | None = "test"
    groups: int | None = None
    embedding: str | None = None
    resplit_seed: int = 0

    def __post_init__(self) -> None:
        """Check settings before all is embedded."""
        if not self.counts or min(self.counts) < 1 or self.resamples < 1 or self.test < 1 or not 0 < self.c:
            raise SetsupError(
                f"counts, resamples and test must be 1 or more, and c above 0, not {self.counts}, {self.resamples}, "
                f"{self.test} and {self.c}"
            )
        check_limits(groups=self.groups)

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its fits."""
        return ("sklearn",)

    def shrunk(self) -> "SampleComplexity":
        """Return the evaluation shrunk to few images."""
        return replace(self, counts=(1, 2), resamples=2, test=2, groups=at_most_few(self.groups))

    def measure(self, trained: TrainedRun) -> Measured:
        """By count, ``5 labels``: mean and ``spread`` over resamples; and the curves of these.

        ``orbits`` is the number of those that were trained on, where the training data have these factors.
        """
        dataset = trained.open(self.dataset, split=self.split)
        limits: dict[str, Any] = {"per_class": self.groups, "seed": self.resplit_seed}
        rows = draw_rows(trained, dataset, self.factor, self.orbit, embedding=self.embedding, **limits)
        drawn = evaluation.draw_resamples(
            rows.labels, rows.orbits, self.resamples, most=max(self.counts), test=self.test, seed=self.resplit_seed
        )
        settings = rows.sample.about | {"factor": self.factor, "counts": self.counts, "c": self.c}
        results = []
        for resample in drawn:
            images = np.unique(np.concatenate([resample.train.reshape(-1), resample.test.reshape(-1)]))
            about = settings | {"train": resample.train, "test": resample.test}
            positions = [np.searchsorted(images, some) for some in (resample.train, resample.test)]
            dense = evaluation.Resample(*positions)

            def compute(images: Any = images, dense: evaluation.Resample = dense) -> Reals:
                embedded = rows.sample.embedded[images]
                score = evaluation.accuracy_over_labels(embedded, rows.labels[images], [dense], self.counts, c=self.c)
                return np.asarray(score[0])

            results.append(trained.part("sample-complexity", about, compute))
        accuracies = np.array(results)
        values: dict[str, float] = {}
        for count, column in zip(self.counts, accuracies.T, strict=True):
            values |= _summary(f"{count} label{'s' * (count > 1)}", column)
        values |= self._trained_on(trained)
        counts = list(self.counts)
        curves = {"accuracy": (counts, accuracies.mean(axis=0).tolist())}
        curves |= {f"resample {number}": (counts, row.tolist()) for number, row in enumerate(accuracies)}
        return Measured(values=values, curves=curves)

    def _trained_on(self, trained: TrainedRun) -> dict[str, float]:
        if trained.data is None:
            return {}
        table = trained.dataset.factors
        if any(name not in table for name in self.orbit):
            return {}
        orbits = number(table, self.orbit)
        return {"orbits": float(len(np.unique(orbits[orbits >= 0])))}


def _summary(name: str, scores: Sequence[float] | Reals) -> dict[str, float]:
    """Mean over re-splits, and standard deviation where there are two or more."""
    values = {name: float(np.mean(scores))}
    return values | ({f"{name}: spread": float(np.std(scores, ddof=1))} if len(scores) > 1 else {})
