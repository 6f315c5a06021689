"""What an encoder knows about each factor of a dataset: five measures of one sample of rows."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.encoders.factors import suitable_factors
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations import FactorInformation
from setsup.experiments.evaluations.rows import SMOKE_ROWS
from setsup.experiments.trained_run import TrainedRun

__all__ = ["MEASURES", "NOISE", "FactorKnowledge", "measure_spread"]

Reals = npt.NDArray[np.float32]
Values = dict[str, float]

MEASURES = ("linear probe", "nearest neighbours", "information", "average precision", "within-set variance")
"""In the order of tables and charts; of each there is also what an embedding that knows nothing would have."""

NOISE = 0.1
"""Noise of networks that estimate information, in units of :func:`measure_spread` embeddings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorKnowledge:
    """Five scores of how well a frozen encoder represents each factor.

    All are of the same rows, and of embeddings as they are.

    ``linear probe``
        With levels: accuracy of :func:`~setsup.evaluation.logistic_probe` on a held-out tenth of the rows. Continuous:
        R² of :func:`~setsup.evaluation.ridge_probe`.
    ``nearest neighbours``
        With levels: share of rows whose level is the one that most of their `neighbours` nearest rows have, the row
        itself left out (:func:`~setsup.evaluation.accuracy`). Continuous: R² of the mean of these neighbours.
    ``information``
        Lower bound on the mutual information, in nats. With the estimator ``linear``: entropy less cross-entropy of
        the linear probe on the held-out rows, for factors with levels. With others: by
        :class:`~setsup.experiments.evaluations.FactorInformation`, under noise of a tenth of the standard deviation of
        the embeddings.
    ``average precision``
        With levels: mean over queries of the average precision with which all other rows are ranked
        (:func:`~setsup.evaluation.mean_average_precision`).
    ``within-set variance``
        With levels: share of the variance of the embedding that lies within sets of one level
        (:func:`~setsup.evaluation.within_set_variance`). The nearer to 0, the more invariant is the embedding within
        these sets.

    Attributes
    ----------
    factors : tuple of str
        Factors to measure; by default all that :func:`suitable_factors` returns.
    samples : int
        Number of rows to embed.
    queries : int
        Number of rows, from the start of the sample, among which average precision is measured: each ranks all others.
    neighbours : int
        Number of neighbours that vote, or are averaged.
    metric : {"cosine", "l2sq"}
        Distance between embeddings, for neighbours and rankings.
    estimator : {"linear", "probe", "mine"}
        Estimator of information.
    steps : int, optional
        Training steps of the estimators ``probe`` and ``mine``; by default their own number.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    factors: tuple[str, ...] = ()
    samples: int = 5_000
    queries: int = 2_000
    neighbours: int = 5
    metric: Literal["cosine", "l2sq"] = "cosine"
    estimator: Literal["linear", "probe", "mine"] = "linear"
    steps: int | None = None
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check numbers, before all is embedded."""
        if min(self.samples, self.queries, self.neighbours) < 1:
            raise SetsupError(
                f"samples, queries and neighbours must be 1 or more, not {self.samples}, {self.queries} and "
                f"{self.neighbours}"
            )

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its fits."""
        return ("sklearn",)

    def shrunk(self) -> "FactorKnowledge":
        """Return the evaluation shrunk to few rows and a short training."""
        return replace(self, samples=SMOKE_ROWS, steps=None if self.estimator == "linear" else 20)

    def measure(self, trained: TrainedRun) -> Measured:
        """Measures by ``measure: factor``, and under ``chance: `` those of an embedding that knows nothing."""
        rows = trained.sample(self.samples)
        table = trained.dataset.factors
        names, _ = suitable_factors(table, rows, self.factors)
        embedded = trained.embed_vectors(rows=rows, name=self.embedding)
        values: Values = {}
        for name in names:
            codes = table.codes(name, rows)
            of_factor = self._continuous if table[name].continuous else self._levels
            scores, chance = of_factor(embedded, codes, trained.seed)
            values |= {f"{kind}: {name}": value for kind, value in scores.items()}
            values |= {f"chance: {kind}: {name}": value for kind, value in chance.items()}
        if self.estimator != "linear":
            values |= self._estimated(trained, names, embedded)
        return Measured(values=values)

    def _levels(self, embedded: Reals, codes: npt.NDArray[np.int64], seed: int) -> tuple[Values, Values]:
        probe = evaluation.logistic_probe(embedded, codes, seed=seed)
        own, known = np.arange(len(codes)), codes >= 0
        nearest = evaluation.accuracy(embedded, embedded, codes, codes, self.neighbours, metric=self.metric, own=own)
        some, of_some = embedded[: self.queries], codes[: self.queries]
        ranked = evaluation.mean_average_precision(
            some, some, of_some, of_some, metric=self.metric, own=own[: self.queries]
        )
        shares = np.bincount(codes[known]) / known.sum()
        scores = {
            "linear probe": probe.accuracy,
            "nearest neighbours": nearest.value,
            "information": probe.entropy - probe.nats,
            "average precision": ranked.value,
            "within-set variance": evaluation.within_set_variance(embedded, codes),
        }
        chance = {
            "linear probe": probe.majority,
            "nearest neighbours": float(shares.max()),
            "information": 0.0,
            "average precision": _precision_by_chance(of_some),
            "within-set variance": 1.0,
        }
        return scores, chance

    def _continuous(self, embedded: Reals, numbers: npt.NDArray[np.float32], seed: int) -> tuple[Values, Values]:
        known = np.isfinite(numbers)
        some, wanted = embedded[known], numbers[known].astype(np.float64)
        near, _ = evaluation.nearest(some, some, self.neighbours, metric=self.metric, own=np.arange(len(some)))
        guessed = np.where(near >= 0, wanted[near], np.nan)
        missed = np.square(wanted - np.nanmean(guessed, axis=1)).sum()
        scores = {
            "linear probe": evaluation.ridge_probe(embedded, numbers, seed=seed).r2,
            "nearest neighbours": float(1 - missed / np.square(wanted - wanted.mean()).sum()),
        }
        return scores, dict.fromkeys(scores, 0.0)

    def _estimated(self, trained: TrainedRun, names: tuple[str, ...], embedded: Reals) -> Values:
        """Information by a trained estimator; the probe needs levels."""
        table = trained.dataset.factors
        asked = tuple(name for name in names if self.estimator == "mine" or not table[name].continuous)
        sigma = NOISE * measure_spread(embedded)
        if not asked or not sigma:
            return {}
        how: Literal["probe", "mine"] = "mine" if self.estimator == "mine" else "probe"
        measure = FactorInformation(
            factors=asked,
            samples=self.samples,
            estimator=how,
            steps=self.steps,
            sigma=sigma,
            embedding=self.embedding,
        )
        return {f"information: {name}": nats for name, nats in measure.measure(trained).values.items()}


def measure_spread(embedded: Reals) -> float:
    """Root mean square, over rows and dimensions (n, d), of what differs from the mean row."""
    return float(np.sqrt(np.square(embedded - embedded.mean(axis=0, dtype=np.float64)).mean()))


def _precision_by_chance(codes: npt.NDArray[np.int64]) -> float:
    """Mean over queries of the expected average precision of a random ranking.

    Of N rows, of which R are right, a right one at place k has j − 1 right ones among the k − 1 before it with the
    expectation (k − 1)(R − 1) / (N − 1): the mean over places is (H + (N − H)(R − 1) / (N − 1)) / N, with
    H = 1 + 1/2 + … + 1/N.
    """
    sizes = np.bincount(codes[codes >= 0]).astype(np.float64)
    sizes = sizes[sizes > 1]
    if not sizes.size:
        return float("nan")
    ranked, right = len(codes) - 1, sizes - 1
    harmonic = float((1 / np.arange(1, ranked + 1)).sum())
    expected = (harmonic + (ranked - harmonic) * (right - 1) / max(ranked - 1, 1)) / ranked
    return float((sizes * expected).sum() / sizes.sum())
