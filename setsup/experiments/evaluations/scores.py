"""Scores of embeddings as they are: disentanglement, retrieval."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS, draw_sample
from setsup.experiments.trained_run import TrainedRun

__all__ = ["Disentanglement", "Retrieval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disentanglement:
    """Scores of how far each dimension follows one factor, and each factor one dimension.

    MIG, SAP, modularity, FactorVAE's vote and DCI, as :mod:`setsup.evaluation.scores` defines them. All compare single
    dimensions with single factors. A loss of distances or cosines does not see how an embedding is turned: its axes
    are arbitrary then, and so are these scores. Principal components do not depend on the turn.

    Attributes
    ----------
    factors : tuple of str
        Two or more factors with levels.
    samples : int
        Number of rows to embed.
    components : int, optional
        Score this many principal components instead of the axes of the embedding.
    dci_learner : {"boosting", "additive"}
        Learner of DCI. Published values use ``boosting``, which takes minutes for many dimensions and levels.
    sap_learner : {"svm", "thresholds"}
        Learner of SAP. Published values use ``svm``.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    factors: tuple[str, ...]
    samples: int = 10_000
    components: int | None = None
    dci_learner: Literal["boosting", "additive"] = "boosting"
    sap_learner: Literal["svm", "thresholds"] = "svm"
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check that there is something to tell apart."""
        if len(self.factors) < 2:
            raise SetsupError(
                f"disentanglement requires at least two factors, not {len(self.factors)}; choose more factors"
            )
        if self.components is not None and self.components < 1:
            raise SetsupError(f"components must be 1 or more, or None for the original axes, not {self.components}")

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its learners."""
        return ("sklearn",) if self.dci_learner == "boosting" or self.sap_learner == "svm" else ()

    def shrunk(self) -> "Disentanglement":
        """Return the evaluation shrunk to few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """Scores by name, 1 the best; those of DCI are disentanglement, completeness and informativeness."""
        name = "a disentanglement score"
        sample = draw_sample(trained, self.factors, self.samples, name, embedding=self.embedding)
        levels = np.stack([sample.columns[name] for name in self.factors], axis=1)
        about = {**sample.about, "factors": self.factors, "components": self.components}

        @cache
        def codes() -> npt.NDArray[np.float64]:
            embedded = sample.embedded.astype(np.float64)
            if self.components is None:
                return embedded
            return evaluation.principal_components(embedded, self.components).project(embedded)

        def dci() -> dict[str, float]:
            dci_scores = evaluation.dci(codes(), levels, learner=self.dci_learner, seed=trained.seed)
            return {
                "disentanglement": dci_scores.disentanglement,
                "completeness": dci_scores.completeness,
                "informativeness": dci_scores.informativeness,
            }

        scores: dict[str, tuple[Mapping[str, Any], Callable[[], Any]]] = {
            "MIG": ({}, lambda: evaluation.mig(codes(), levels).value),
            "SAP": (
                {"learner": self.sap_learner},
                lambda: evaluation.sap(codes(), levels, learner=self.sap_learner, seed=trained.seed).value,
            ),
            "modularity": ({}, lambda: evaluation.modularity(codes(), levels).value),
            "FactorVAE": ({}, lambda: evaluation.factor_vae(codes(), levels, seed=trained.seed).value),
        }
        values = {
            name: trained.part(name, {**about, **settings}, compute) for name, (settings, compute) in scores.items()
        }
        return Measured(values=values | trained.part("DCI", about | {"learner": self.dci_learner}, dci))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """Whether the nearest neighbours of an image share its values of factors; each image is a query among all others.

    Attributes
    ----------
    factors : tuple of str
        Discrete factors.
    samples : int
        Number of rows to embed.
    k : int
        Number of neighbours of a query; precision is the share of neighbours that have the value of the query.
    metric : {"l2sq", "cosine"}
        Distance between embeddings, as in :func:`setsup.evaluation.nearest`.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    factors: tuple[str, ...]
    samples: int = 2_000
    k: int = 1
    metric: Literal["l2sq", "cosine"] = "l2sq"
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check that there are neighbours."""
        if self.k < 1:
            raise SetsupError(f"k must be 1 or more, not {self.k}")

    def shrunk(self) -> "Retrieval":
        """Return the evaluation shrunk to few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """By factor: ``precision`` at k, ``average precision`` (its mean over queries), and ``chance`` of precision."""
        sample = draw_sample(trained, self.factors, self.samples, "retrieval", embedding=self.embedding)
        own = np.arange(len(sample.rows))

        @cache
        def neighbours() -> npt.NDArray[np.int64]:
            return evaluation.nearest(sample.embedded, sample.embedded, self.k, metric=self.metric, own=own)[0]

        def compute(factors: Sequence[str]) -> dict[str, Any]:
            results = {}
            for name in factors:
                codes = sample.columns[name]
                right, known = evaluation.matches(codes[:, None], codes[:, None], neighbours())[..., 0], codes >= 0
                embedded, of_level = sample.embedded, np.bincount(codes[known])
                ranked = evaluation.mean_average_precision(
                    embedded, embedded, codes, codes, metric=self.metric, own=own
                )
                results[name] = {
                    "precision": evaluation.precision(right, known).value,
                    "average precision": ranked.value,
                    "chance": float(of_level @ (of_level - 1)) / (known.sum() * (len(codes) - 1)),
                }
            return results

        results = sample.parts("retrieval", {"k": self.k, "metric": self.metric}, self.factors, compute)
        kinds = ("precision", "average precision", "chance")
        return Measured(values={f"{kind}: {name}": results[name][kind] for kind in kinds for name in self.factors})
