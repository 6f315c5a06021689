"""Information and accuracy under noise, at the scale that the loss of a method resolves."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS, Sample, draw_sample
from setsup.experiments.trained_run import TrainedRun

__all__ = ["Accuracy", "FactorInformation", "NoiseSweep", "noise_of"]

Estimator = Literal["mine", "probe", "neighbours"]
Reals = npt.NDArray[np.float64]

_SMOKE_STEPS = 20
_TOGETHER = 64
"""Networks that ``mine`` trains as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorInformation:
    """Mutual information between noisy embeddings and each factor, in nats.

    Attributes
    ----------
    factors : tuple of str
        Factors, in the order of the report.
    samples : int
        Number of rows to embed.
    estimator : {"probe", "mine", "neighbours"}
        ``probe``: a trained classifier (:func:`setsup.evaluation.probe_information`); ``mine``: MINE
        (:func:`setsup.evaluation.mine`); ``neighbours``: distances to nearest neighbours
        (:func:`setsup.evaluation.neighbour_information`). ``probe`` and ``mine`` are lower bounds. ``mine``, ABC's
        choice, underestimates the information of factors with many levels. ``probe`` is evaluated on held-out rows and
        treats levels as classes, so a continuous factor requires one of the other two.
    steps : int, optional
        Training steps of the estimator. By default, `steps`, `batch` and `rate` are the estimator's own. ``neighbours``
        is not trained and uses none of these, nor `last`.
    batch : int, optional
        Number of rows per training step.
    rate : float, optional
        Learning rate.
    last : int, optional
        Number of final steps over which ``mine`` averages its estimate; 1,000 by default.
    sigma : float, optional
        Standard deviation of the noise, in units of the embeddings; by default the length that the method's loss
        resolves (:func:`setsup.experiments.evaluations.noise_of`).
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    factors: tuple[str, ...]
    samples: int = 249_856
    estimator: Estimator = "probe"
    steps: int | None = None
    batch: int | None = None
    rate: float | None = None
    last: int | None = None
    sigma: float | None = None
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check settings of a training, before all is embedded."""
        for name, value in self._training().items():
            if self.estimator == "neighbours":
                raise SetsupError(
                    f"{name} must be None with estimator='neighbours', which trains no network, not {value}"
                )
            if self.estimator == "probe" and name == "last":
                raise SetsupError(f"last must be None with estimator='probe', which averages no steps, not {value}")
            if not 0 < value < math.inf:
                raise SetsupError(f"{name} must be a positive number, not {value}")
        if self.last is not None and self.steps is not None and self.last > self.steps:
            raise SetsupError(f"last must be at most {self.steps}, the number of steps, not {self.last}")

    def _training(self) -> dict[str, Any]:
        given = {"steps": self.steps, "batch": self.batch, "rate": self.rate, "last": self.last}
        return {name: value for name, value in given.items() if value is not None}

    def shrunk(self) -> "FactorInformation":
        """Return the evaluation shrunk to few rows and a short training."""
        steps = None if self.estimator == "neighbours" else _SMOKE_STEPS
        return replace(self, samples=SMOKE_ROWS, steps=steps, batch=None, last=None)

    def measure(self, trained: TrainedRun) -> Measured:
        """Nats by factor."""
        sigma = noise_of(trained, self.sigma)
        levels = _of_levels(self.estimator)
        sample = draw_sample(trained, self.factors, self.samples, levels, embedding=self.embedding)
        nats = _information(sample, self.factors, self.estimator, [sigma], self._training())
        return Measured(values=dict(zip(self.factors, nats[0].tolist(), strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSweep:
    """Information under noise of many scales.

    Attributes
    ----------
    factors : tuple of str
        Factors, each with its own curve.
    samples : int
        Number of rows to embed.
    scales : int
        Number of noise scales, logarithmically spaced.
    low, high : float
        Smallest and largest scale of noise, in units of σ.
    estimator : {"probe", "mine", "neighbours"}
        As for :class:`FactorInformation`. An interrupted evaluation resumes at the scale at which it stopped. On a GPU,
        ``mine`` trains several scales together as one batched network.
    steps : int, optional
        Training steps of the estimator; by default its own number. ``neighbours`` is not trained.
    sigma : float, optional
        Standard deviation σ of the noise, in units of the embeddings; by default the length that the method's loss
        resolves (:func:`setsup.experiments.evaluations.noise_of`).
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    factors: tuple[str, ...]
    samples: int = 249_856
    scales: int = 40
    low: float = 1e-3
    high: float = 1e2
    estimator: Estimator = "mine"
    steps: int | None = None
    sigma: float | None = None
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check that there are scales from low to high."""
        if not 0 < self.low < self.high < math.inf or self.scales < 1:
            raise SetsupError(
                "scales must be 1 or more, and low and high must satisfy 0 < low < high, not "
                f"scales={self.scales}, low={self.low} and high={self.high}"
            )
        if self.steps is not None and self.steps < 1:
            raise SetsupError(f"steps must be a positive integer, not {self.steps}")

    def shrunk(self) -> "NoiseSweep":
        """Three scales, few rows and a short training."""
        return replace(self, samples=SMOKE_ROWS, scales=3, steps=_SMOKE_STEPS)

    def measure(self, trained: TrainedRun) -> Measured:
        """A curve of nats over σ for each factor."""
        sigmas = np.geomspace(self.low, self.high, self.scales) * noise_of(trained, self.sigma)
        levels = _of_levels(self.estimator)
        sample = draw_sample(trained, self.factors, self.samples, levels, embedding=self.embedding)
        training = {} if self.estimator == "neighbours" or self.steps is None else {"steps": self.steps}
        information = _information(sample, self.factors, self.estimator, sigmas.tolist(), training)
        curves = zip(self.factors, information.T, strict=True)
        return Measured(curves={name: (sigmas.tolist(), nats.tolist()) for name, nats in curves})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Accuracy of a classifier for each factor on noisy embeddings of held-out rows (appendix S1 of ABC).

    Attributes
    ----------
    factors : tuple of str
        Factors, each with its own classifier.
    samples : int
        Number of rows to embed.
    steps : int
        Training steps of each classifier.
    held_out : float
        Share of the rows held out from training.
    rate : float
        Learning rate.
    sigma : float, optional
        Standard deviation of the noise, in units of the embeddings; by default the length that the method's loss
        resolves (:func:`setsup.experiments.evaluations.noise_of`).
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    factors: tuple[str, ...]
    samples: int = 50_000
    steps: int = 5_000
    held_out: float = 0.1
    rate: float = 1e-3
    sigma: float | None = None
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check settings of the training, before all is embedded."""
        if not 0 < self.held_out < 1 or not 0 < self.rate < math.inf or self.steps < 1:
            raise SetsupError(
                "held_out must be between 0 and 1, and rate and steps must be positive, not "
                f"held_out={self.held_out}, rate={self.rate} and steps={self.steps}"
            )

    def shrunk(self) -> "Accuracy":
        """Return the evaluation shrunk to few rows and a short training."""
        return replace(self, samples=SMOKE_ROWS, steps=_SMOKE_STEPS)

    def measure(self, trained: TrainedRun) -> Measured:
        """Share that is right, by factor."""
        sigma = noise_of(trained, self.sigma)
        sample = draw_sample(trained, self.factors, self.samples, "a classifier", embedding=self.embedding)
        how: dict[str, Any] = {"sigma": sigma, "steps": self.steps, "held_out": self.held_out, "rate": self.rate}

        def compute(factors: Sequence[str]) -> dict[str, float]:
            information = evaluation.probe_information(
                sample.embedded,
                np.stack([sample.columns[name] for name in factors], axis=1),
                seed=trained.seed,
                device=trained.device,
                **how,
            )
            return dict(zip(factors, information.accuracy.tolist(), strict=True))

        return Measured(values=sample.parts("accuracy", how, self.factors, compute, together=True))


def _of_levels(estimator: Estimator) -> str:
    """What needs factors with levels, if anything does."""
    return "the estimator probe" if estimator == "probe" else ""


def _information(
    sample: Sample, factors: Sequence[str], estimator: Estimator, sigmas: Sequence[float], training: Mapping[str, Any]
) -> Reals:
    """Information of each factor under noise of each scale, (scales, factors) nats."""
    # on a CPU more networks side by side take as much longer; a GPU trains as many as mine does at a time in as long
    together = max(1, _TOGETHER // len(factors)) if estimator == "mine" and sample.trained.device != "cpu" else 1
    columns = []
    for start in range(0, len(sigmas), together):
        some = sigmas[start : start + together]
        settings = {"estimator": estimator, "sigmas": some, **training}

        def compute(names: Sequence[str], some: Sequence[float] = some) -> dict[str, list[float]]:
            return dict(zip(names, _nats(sample, names, estimator, some, training).T.tolist(), strict=True))

        nats = sample.parts("information", settings, factors, compute, together=estimator != "neighbours")
        columns.append(np.array([nats[name] for name in factors]).T)
    return np.concatenate(columns)


def _nats(
    sample: Sample, factors: Sequence[str], estimator: Estimator, sigmas: Sequence[float], training: Mapping[str, Any]
) -> Reals:
    """The same, computed."""
    embedded, seed = sample.embedded, sample.trained.seed
    columns = [sample.columns[name] for name in factors]
    if estimator == "neighbours":  # one by one: together with a continuous factor, classes would be treated as numbers
        estimate = evaluation.neighbour_information
        return np.array([[estimate(embedded, of, sigma=at, seed=seed).nats[0] for of in columns] for at in sigmas])
    if any(of.dtype.kind == "f" for of in columns):  # floats are unknown where NaN, codes where negative
        columns = [of if of.dtype.kind == "f" else np.where(of < 0, np.nan, of) for of in columns]
    table, how = np.stack(columns, axis=1), {"seed": seed, "device": sample.trained.device, **training}
    if estimator == "mine":
        scales = sigmas if len(sigmas) > 1 else sigmas[0]
        return np.atleast_2d(evaluation.mine(embedded, table, sigma=scales, **how).nats)
    return np.stack([evaluation.probe_information(embedded, table, sigma=at, **how).nats for at in sigmas])


def noise_of(trained: TrainedRun, sigma: float | None = None) -> float:
    """σ of the noise for the evaluation: as given, or the length that the loss of a method resolves.

    It is known for a method, or its settings, with the ``similarity`` ``l2sq``, −‖x − y‖²/τ, or ``l2``, −‖x − y‖/τ:
    √τ and τ, as of :func:`~setsup.evaluation.noise_scale`. Others need σ. A cosine depends on directions only, so that
    no σ fits embeddings of any length; on the unit sphere, where ‖x − y‖² = 2 − 2 cos, that of temperature τ resolves
    √(2τ).

    Raises
    ------
    SetsupError
        When σ is neither given nor known from the method, or is not positive.

    """
    method: Any = trained.method
    if sigma is not None:
        if not (math.isfinite(sigma) and sigma > 0):
            raise SetsupError(f"sigma, the scale of the noise, must be a positive number, not {sigma!r}")
        return float(sigma)
    similarity, temperature = (_declared(method, name) for name in ("similarity", "temperature"))
    if similarity not in ("l2sq", "l2") or temperature is None:
        raise SetsupError(
            f"the scale of the noise cannot be derived from {type(method).__name__}, which has no similarity "
            "'l2sq' or 'l2' with a temperature; set the evaluation's sigma, in units of the embeddings"
        )
    return evaluation.noise_scale(similarity, temperature)


def _declared(method: Any, name: str) -> Any:
    """Attribute of a method, or else of its settings; None where neither has it."""
    return getattr(method, name, getattr(getattr(method, "settings", None), name, None))
