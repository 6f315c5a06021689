"""Linear probes and nearest neighbours: what is read from embeddings of rows that were not fitted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import DataError, SetsupError
from setsup.evaluation.held_out import held_out
from setsup.experiments.configs import Augmentation, build_transform
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS, Sample, draw_sample
from setsup.experiments.settings import flatten
from setsup.experiments.trained_run import TrainedRun
from setsup.random import fold, stream_key

__all__ = ["Probes"]

Array = npt.NDArray[Any]

_LOSSES: dict[str, tuple[str, Literal["logistic", "squared_hinge"]]] = {
    "logistic": ("", "logistic"),
    "svm": ("svm ", "squared_hinge"),
}
"""What the names of results begin with, and the loss of the fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Linear probes: how well a linear model predicts factors from embeddings of held-out rows, without noise.

    Attributes
    ----------
    factors : tuple of str
        Factors to predict: discrete ones by a linear classifier (:func:`setsup.evaluation.linear_classifier`), with a
        tenth of the rows held out; continuous ones by ridge regression (:func:`setsup.evaluation.ridge_probe`), with
        5-fold cross-validation.
    samples : int
        Number of rows to embed from the training data, and from the test split.
    split : str, optional
        Split to test on; the probe is then fitted to all sampled rows of the training data.
    classifiers : tuple of {"logistic", "svm"}
        Classifiers: logistic regression, or a one-vs-rest support vector machine with the squared hinge loss.
    c : tuple of float
        Candidates for the inverse strength of the penalty, scikit-learn's ``C``; one is chosen for each factor on a
        tenth of the training rows. By default, those of :func:`setsup.evaluation.linear_classifier`.
    knn : tuple of int
        Numbers of nearest neighbours that vote, among the training rows without augmentation; one accuracy is measured
        for each.
    metric : {"l2sq", "cosine"}
        Distance between embeddings.
    augment : str or Augmentation, optional
        Also fit linear models to augmented copies of the rows: the name of a recipe, or settings of a transform. If the
        transform returns pairs, the augmented image is used; if it returns several copies, the first.
    copies : int
        Number of augmented copies of each row.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 2

    factors: tuple[str, ...]
    samples: int = 10_000
    split: str | None = None
    classifiers: tuple[Literal["logistic", "svm"], ...] = ("logistic",)
    c: tuple[float, ...] = ()
    knn: tuple[int, ...] = ()
    metric: Literal["l2sq", "cosine"] = "l2sq"
    augment: str | Augmentation | None = None
    copies: int = 1
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check settings before all is embedded."""
        if any(not 0 < number < float("inf") for number in self.c):
            raise SetsupError(f"c must contain only positive numbers, not {self.c}")
        if any(number < 1 for number in self.knn) or self.copies < 1:
            raise SetsupError(f"knn and copies must be 1 or more, not {self.knn} and {self.copies}")

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its fits."""
        return ("sklearn",)

    def shrunk(self) -> "Probes":
        """Return the evaluation shrunk to few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """By factor: ``accuracy``, ``svm accuracy``, ``accuracy of 5 neighbours``; ``majority``; or ``R²``.

        ``majority`` is what naming the most frequent level would have. Of several candidates, ``c`` and ``svm c`` are
        those that were chosen.
        """
        rows = self._rows(trained)
        settings = {**rows.about, "c": self.c, "augment": _describe(self.augment, self.copies)}
        continuous = {name for name in self.factors if rows.fit.dataset.factors[name].continuous}
        levels = [name for name in self.factors if name not in continuous]
        values: dict[str, dict[str, float]] = {}

        def keep(kind: str, results: dict[str, float]) -> None:
            values.setdefault(kind, {}).update(results)

        for kind in self.classifiers:
            front, loss = _LOSSES[kind]
            results = rows.fit.parts(kind, settings, levels, _by_name(partial(self._classified, rows, loss)))
            keep(f"{front}accuracy", {name: results[name]["accuracy"] for name in levels})
            if len(self.c) > 1:
                keep(f"{front}c", {name: results[name]["c"] for name in levels})
        if self.knn:
            about = {**rows.about, "knn": self.knn, "metric": self.metric}
            votes = rows.fit.parts("knn", about, levels, _by_name(partial(self._voted, rows)))
            for at, k in enumerate(self.knn):
                keep(f"accuracy of {k} neighbours", {name: votes[name][at] for name in levels})
        keep("majority", rows.fit.parts("majority", rows.about, levels, _by_name(rows.majority)))
        numbers = [name for name in self.factors if name in continuous]
        about = {**rows.about, "augment": _describe(self.augment, self.copies)}
        keep("R²", rows.fit.parts("ridge", about, numbers, _by_name(partial(self._regressed, rows))))
        return Measured(values={f"{kind}: {name}": value for kind, by in values.items() for name, value in by.items()})

    def _rows(self, trained: TrainedRun) -> "_Rows":
        if self.split is None:
            fit = draw_sample(trained, self.factors, self.samples, embedding=self.embedding)
            return _Rows(fit, None, self.augment, self.copies)
        other = trained.open(split=self.split)
        fit = draw_sample(trained, self.factors, self.samples, embedding=self.embedding, without=other)
        for name in self.factors:
            if other.factors[name].levels != fit.dataset.factors[name].levels:
                raise DataError(
                    f"the levels of the factor {name!r} differ between the split {self.split!r} and the training data; "
                    "use the same levels in both"
                )
        test = draw_sample(trained, self.factors, self.samples, embedding=self.embedding, dataset=other)
        return _Rows(fit, test, self.augment, self.copies)

    def _classified(
        self, rows: "_Rows", loss: Literal["logistic", "squared_hinge"], name: str
    ) -> dict[str, float | None]:
        fit, test, copies = rows.parted(name)
        seed = rows.fit.trained.seed
        classifier = evaluation.linear_classifier(*fit, *test, loss=loss, c=self.c, copies=copies, seed=seed)
        return {"accuracy": classifier.accuracy, "c": classifier.c}

    def _voted(self, rows: "_Rows", name: str) -> list[float]:
        (gallery, labels), (queries, wanted), _ = rows.parted(name, augmented=False)
        near, _ = evaluation.nearest(queries, gallery, max(self.knn), metric=self.metric)
        return [float((evaluation.vote(near[:, :k], labels) == wanted).mean()) for k in self.knn]

    def _regressed(self, rows: "_Rows", name: str) -> float:
        if rows.test is None and rows.augment is None:
            return evaluation.ridge_probe(rows.fit.embedded, rows.fit.columns[name], seed=rows.fit.trained.seed).r2
        fit, test, copies = rows.parted(name)
        return evaluation.linear_regression(*fit, *test, copies=copies).r2


@dataclass
class _Rows:
    """Rows of the fit; those of the test, or None where a tenth of the rows of the fit is held out for it."""

    fit: Sample
    test: Sample | None
    augment: str | Augmentation | None
    count: int

    @property
    def about(self) -> dict[str, Any]:
        """What results depend on, besides the rows of the fit."""
        return {"test": None if self.test is None else self.test.about}

    @cached_property
    def copies(self) -> list[Array]:
        """Embeddings of augmented copies of the rows of the fit, (n, d) each."""
        if self.augment is None:
            return []
        from setsup.experiments.embedding import embed

        trained, dataset, embeddings = self.fit.trained, self.fit.dataset, []
        for copy in range(self.count):
            seed = int(fold(stream_key(trained.seed, "augmented copies"), copy))
            view = _OneView(build_transform(self.augment, dataset, seed))
            options = trained.embedding(dataset) | {"transform": view, "name": self.fit.embedding}
            embeddings.append(embed(trained.method, dataset, self.fit.rows, **options))
        return embeddings

    def parted(self, name: str, augmented: bool = True) -> tuple[tuple[Array, Array], tuple[Array, Array], list[Array]]:
        """Embeddings and labels of the fit and of the test, where they are known; and copies of those of the fit."""
        fit, test = self._chosen(name)
        copies = [copy[fit] for copy in self.copies] if augmented else []
        tested = self.fit if self.test is None else self.test
        return (
            (self.fit.embedded[fit], self.fit.columns[name][fit]),
            (tested.embedded[test], tested.columns[name][test]),
            copies,
        )

    def majority(self, name: str) -> float:
        """Share of the most frequent level of the fit among the rows of the test."""
        fit, test = self._chosen(name)
        tested = self.fit if self.test is None else self.test
        most = np.bincount(self.fit.columns[name][fit]).argmax()
        return float((tested.columns[name][test] == most).mean())

    def _chosen(self, name: str) -> tuple[Array, Array]:
        """Positions in the samples of fit and test."""
        fit = _known(self.fit.columns[name])
        if self.test is not None:
            return fit, _known(self.test.columns[name])
        codes = self.fit.columns[name][fit]
        dense = None if codes.dtype.kind == "f" else np.unique(codes, return_inverse=True)[1].astype(np.int64)
        away = held_out(len(fit), self.fit.trained.seed, dense)
        return fit[~away], fit[away]


@dataclass(frozen=True)
class _OneView:
    """A transform whose result has one image for each row: the augmented one of pairs, the first of several copies."""

    transform: Any

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        axes = batch["image"].ndim if "image" in batch else 0
        transformed = dict(self.transform(batch))
        if "positive_image" in transformed:
            transformed["image"] = transformed["positive_image"]
        if axes and transformed["image"].ndim == axes + 1:
            transformed["image"] = transformed["image"][:, :, 0]
        return transformed


def _known(column: Array) -> Array:
    return np.flatnonzero(~np.isnan(column) if column.dtype.kind == "f" else column >= 0)


def _by_name(compute: Callable[[str], Any]) -> Callable[[Sequence[str]], dict[str, Any]]:
    return lambda names: {name: compute(name) for name in names}


def _describe(augment: str | Augmentation | None, copies: int) -> dict[str, Any] | None:
    """Settings of an augmentation, as parts keep them."""
    if augment is None:
        return None
    if isinstance(augment, str):
        return {"recipe": augment, "copies": copies}
    return {"class": type(augment).__qualname__, **flatten(augment), "copies": copies}
