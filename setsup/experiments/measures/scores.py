"""Scores of embeddings as they are: disentanglement, retrieval, linear probes."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.measures.rows import SMOKE_ROWS, embed_rows
from setsup.experiments.preset import Measured
from setsup.experiments.trained import TrainedRun

__all__ = ["Disentanglement", "Probes", "Retrieval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disentanglement:
    """Scores of how far each dimension follows one factor, and each factor one dimension.

    MIG, SAP, modularity, FactorVAE's vote and DCI, as :mod:`setsup.evaluation.scores` defines them. All compare single
    dimensions with single factors. A loss of distances or cosines does not see how an embedding is turned: its axes
    are arbitrary then, and so are these scores. Principal components do not depend on the turn.

    Attributes
    ----------
    factors : tuple of str
        Two or more, with levels.
    samples : int
        Rows that are embedded.
    components : int, optional
        Take the place of the axes: the first so many principal components.
    dci_learner : {"boosting", "additive"}
        Of DCI; published values are of ``boosting``, which takes minutes for many dimensions and levels.
    sap_learner : {"svm", "thresholds"}
        Of SAP; published values are of ``svm``.

    """

    factors: tuple[str, ...]
    samples: int = 10_000
    components: int | None = None
    dci_learner: Literal["boosting", "additive"] = "boosting"
    sap_learner: Literal["svm", "thresholds"] = "svm"

    def __post_init__(self) -> None:
        """Check that there is something to tell apart."""
        if len(self.factors) < 2:
            raise SetsupError(f"disentanglement is of two factors or more, not of {len(self.factors)}: name others")
        if self.components is not None and self.components < 1:
            raise SetsupError(f"components are 1 or more, or None for the axes themselves, not {self.components}")

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its learners."""
        return ("sklearn",) if self.dci_learner == "boosting" or self.sap_learner == "svm" else ()

    def shrunk(self) -> "Disentanglement":
        """The same on few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """Scores by name, 1 the best; those of DCI are disentanglement, completeness and informativeness."""
        embedded, columns = embed_rows(trained, self.factors, self.samples, "a disentanglement score")
        levels, codes = np.stack(columns, axis=1), embedded.astype(np.float64)
        if self.components is not None:
            codes = evaluation.principal_components(codes, self.components).project(codes)
        dci = evaluation.dci(codes, levels, learner=self.dci_learner, seed=trained.seed)
        return Measured(
            values={
                "MIG": evaluation.mig(codes, levels).value,
                "SAP": evaluation.sap(codes, levels, learner=self.sap_learner, seed=trained.seed).value,
                "modularity": evaluation.modularity(codes, levels).value,
                "FactorVAE": evaluation.factor_vae(codes, levels, seed=trained.seed).value,
                "disentanglement": dci.disentanglement,
                "completeness": dci.completeness,
                "informativeness": dci.informativeness,
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """Whether the images nearest to an image have its values of factors; each is a query among all the others.

    Attributes
    ----------
    factors : tuple of str
        With levels.
    samples : int
        Rows that are embedded.
    k : int
        Neighbours of a query, of which precision is the share that has its value.
    metric : {"l2sq", "cosine"}
        See :func:`~setsup.evaluation.nearest`.

    """

    factors: tuple[str, ...]
    samples: int = 2_000
    k: int = 1
    metric: Literal["l2sq", "cosine"] = "l2sq"

    def __post_init__(self) -> None:
        """Check that there are neighbours."""
        if self.k < 1:
            raise SetsupError(f"a query has 1 neighbour or more, not {self.k}")

    def shrunk(self) -> "Retrieval":
        """The same on few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """By factor: ``precision`` at k, ``average precision`` (its mean over queries), and ``chance`` of precision."""
        embedded, columns = embed_rows(trained, self.factors, self.samples, "retrieval")
        own = np.arange(len(embedded))
        rows, _ = evaluation.nearest(embedded, embedded, self.k, metric=self.metric, own=own)
        values: dict[str, dict[str, float]] = {"precision": {}, "average precision": {}, "chance": {}}
        for name, codes in zip(self.factors, columns, strict=True):
            right, known = evaluation.matches(codes[:, None], codes[:, None], rows)[..., 0], codes >= 0
            values["precision"][name] = evaluation.precision(right, known).value
            ranked = evaluation.mean_average_precision(embedded, embedded, codes, codes, metric=self.metric, own=own)
            values["average precision"][name] = ranked.value
            of_level = np.bincount(codes[known])
            values["chance"][name] = float(of_level @ (of_level - 1)) / (known.sum() * (len(codes) - 1))
        return Measured(values={f"{what}: {name}": value for what, by in values.items() for name, value in by.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Linear probes: what a linear model reads from embeddings of held-out rows, without noise.

    Attributes
    ----------
    factors : tuple of str
        Those with levels are told by :func:`~setsup.evaluation.logistic_probe`, with a tenth of the rows held out;
        continuous ones by :func:`~setsup.evaluation.ridge_probe`, with a fifth of them held out, each in turn.
    samples : int
        Rows that are embedded.

    """

    factors: tuple[str, ...]
    samples: int = 10_000

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its fits."""
        return ("sklearn",)

    def shrunk(self) -> "Probes":
        """The same on few rows."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """By factor: ``accuracy``, and ``majority``, what naming the most frequent level would have; or ``R²``."""
        embedded, columns = embed_rows(trained, self.factors, self.samples)
        values: dict[str, dict[str, float]] = {"accuracy": {}, "majority": {}, "R²": {}}
        for name, codes in zip(self.factors, columns, strict=True):
            if codes.dtype.kind == "f":
                values["R²"][name] = evaluation.ridge_probe(embedded, codes, seed=trained.seed).r2
            else:
                found = evaluation.logistic_probe(embedded, codes, seed=trained.seed)
                values["accuracy"][name], values["majority"][name] = found.accuracy, found.majority
        return Measured(values={f"{what}: {name}": value for what, by in values.items() for name, value in by.items()})
