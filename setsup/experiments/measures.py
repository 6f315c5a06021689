"""What is measured on trained methods whose embeddings are one vector an image: information, components, accuracy."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.evaluation.maps import tsne_map, umap_map
from setsup.experiments.preset import Measured

if TYPE_CHECKING:  # presets are listed without torch
    from setsup.experiments.trained import Trained

__all__ = ["Accuracy", "Components", "FactorInformation", "NoiseSweep", "noise_of"]

_MAPS: dict[str, Callable[..., npt.NDArray[np.float64]]] = {"tsne": tsne_map, "umap": umap_map}
_SMOKE_ROWS = 288  # a batch of the estimators, and what they hold out
_SMOKE_STEPS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Principal components of embeddings: their share of the variance, and pictures of the plane of the first two.

    Attributes
    ----------
    factors : tuple of str
        Each gives a panel of a picture, coloured by its values.
    samples : int
        Rows that are embedded.
    shown : int
        Points of a picture.
    maps : tuple of {"pca", "tsne", "umap"}
        Pictures: the two first components, or where :func:`~setsup.evaluation.maps.tsne_map` and
        :func:`~setsup.evaluation.maps.umap_map` put the points.

    """

    factors: tuple[str, ...]
    samples: int = 10_000
    shown: int = 2_000
    maps: tuple[Literal["pca", "tsne", "umap"], ...] = ("pca",)

    def shrunk(self) -> "Components":
        """The same on few rows."""
        return replace(self, samples=_SMOKE_ROWS, shown=_SMOKE_ROWS)

    def measure(self, trained: "Trained") -> Measured:
        """Share of the variance that the first one, two and three components carry."""
        from setsup.reports.points import scatter_panels

        rows = trained.sample(self.samples)
        embedded = trained.embed(rows=rows)
        found = evaluation.principal_components(embedded)
        shares = np.cumsum(found.explained)
        table, some = trained.dataset.factors, embedded[: self.shown]
        colours = {name: table.codes(name, rows[: self.shown]) for name in self.factors}
        pictures: dict[str, Image] = {}
        for kind in self.maps:
            points = found.project(some)[:, :2] if kind == "pca" else _MAPS[kind](some, seed=trained.seed)
            pictures[kind] = scatter_panels(points, [table[name] for name in self.factors], colours)
        return Measured(
            values={f"first {count}": shares[count - 1] for count in (1, 2, 3) if count <= len(shares)},
            pictures=pictures,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorInformation:
    """Mutual information between noisy embeddings and each factor, in nats.

    Attributes
    ----------
    factors : tuple of str
        In the order of the report.
    samples : int
        Rows that are embedded.
    estimator : {"mine", "probe", "neighbours"}
        See :func:`~setsup.evaluation.mine`, :func:`~setsup.evaluation.probe_information` and
        :func:`~setsup.evaluation.neighbour_information`.
    steps : int, optional
        Of the estimator's training; its own number by default. ``neighbours`` trains nothing and takes none.
    sigma : float, optional
        Of the noise, in units of the embeddings; by default that of :func:`noise_of`.

    """

    factors: tuple[str, ...]
    samples: int = 249_856
    estimator: Literal["mine", "probe", "neighbours"] = "mine"
    steps: int | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        """Check that steps are of a training."""
        if self.estimator == "neighbours" and self.steps is not None:
            raise SetsupError(f"the estimator neighbours trains nothing: give it steps None, not {self.steps}")

    def shrunk(self) -> "FactorInformation":
        """The same on few rows, with a short training."""
        return replace(self, samples=_SMOKE_ROWS, steps=None if self.estimator == "neighbours" else _SMOKE_STEPS)

    def measure(self, trained: "Trained") -> Measured:
        """Nats by factor."""
        sigma = noise_of(trained, self.sigma)
        embedded, codes = _embedded(trained, self.factors, self.samples)
        if self.estimator == "neighbours":
            nats = evaluation.neighbour_information(embedded, codes, sigma=sigma, seed=trained.seed).nats
        else:
            estimate = evaluation.mine if self.estimator == "mine" else evaluation.probe_information
            steps = {} if self.steps is None else {"steps": self.steps}
            nats = estimate(embedded, codes, sigma=sigma, seed=trained.seed, device=trained.device, **steps).nats
        return Measured(values=dict(zip(self.factors, nats, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSweep:
    """Information under noise of many scales, by MINE.

    Attributes
    ----------
    factors : tuple of str
        A curve each.
    samples : int
        Rows that are embedded.
    scales : int
        Scales of noise, evenly spaced in their logarithm from 10⁻³ to 10² times σ.
    steps : int
        Of the training of each statistics network.
    sigma : float, optional
        σ, in units of the embeddings; by default that of :func:`noise_of`.

    """

    factors: tuple[str, ...]
    samples: int = 249_856
    scales: int = 40
    steps: int = 20_000
    sigma: float | None = None

    def shrunk(self) -> "NoiseSweep":
        """Three scales, few rows and a short training."""
        return replace(self, samples=_SMOKE_ROWS, scales=3, steps=_SMOKE_STEPS)

    def measure(self, trained: "Trained") -> Measured:
        """A curve of nats over σ for each factor."""
        sigmas = np.geomspace(1e-3, 1e2, self.scales) * noise_of(trained, self.sigma)
        embedded, codes = _embedded(trained, self.factors, self.samples)
        sigmas, found = evaluation.noise_sweep(
            embedded, codes, sigmas, steps=self.steps, seed=trained.seed, device=trained.device
        )
        curves = zip(self.factors, found.nats.T, strict=True)
        return Measured(curves={name: (sigmas.tolist(), nats.tolist()) for name, nats in curves})


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How often a classifier finds each factor in noisy embeddings of held-out rows (appendix S1 of ABC).

    Attributes
    ----------
    factors : tuple of str
        A classifier each.
    samples : int
        Rows that are embedded; a tenth of them is held out.
    steps : int
        Of the training of each classifier.
    sigma : float, optional
        Of the noise, in units of the embeddings; by default that of :func:`noise_of`.

    """

    factors: tuple[str, ...]
    samples: int = 50_000
    steps: int = 5_000
    sigma: float | None = None

    def shrunk(self) -> "Accuracy":
        """The same on few rows, with a short training."""
        return replace(self, samples=_SMOKE_ROWS, steps=_SMOKE_STEPS)

    def measure(self, trained: "Trained") -> Measured:
        """Share that is right, by factor."""
        sigma = noise_of(trained, self.sigma)
        embedded, codes = _embedded(trained, self.factors, self.samples)
        found = evaluation.probe_information(
            embedded, codes, sigma=sigma, steps=self.steps, seed=trained.seed, device=trained.device
        )
        return Measured(values=dict(zip(self.factors, found.accuracy, strict=True)))


def _embedded(
    trained: "Trained", factors: Sequence[str], samples: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    """Embeddings of rows (n, d), and their codes (n, factors)."""
    rows = trained.sample(samples)
    table = trained.dataset.factors
    return trained.embed(rows=rows), np.stack([table.codes(name, rows) for name in factors], axis=1)


def noise_of(trained: "Trained", sigma: float | None = None) -> float:
    """σ of the noise at which embeddings are judged: as it is given, or the length that the loss of a method resolves.

    A loss has such a length where the ``similarity`` of its method is ``l2sq``, −‖x − y‖²/τ, or ``l2``, −‖x − y‖/τ: √τ
    and τ, as :func:`~setsup.evaluation.noise_scale` has them. With others σ has to be given. A cosine sees directions
    only, so that no σ fits embeddings of any length; on the unit sphere, where ‖x − y‖² = 2 − 2 cos, that of
    temperature τ resolves √(2τ).

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
    similarity, temperature = getattr(method, "similarity", None), getattr(method, "temperature", None)
    if similarity not in ("l2sq", "l2") or temperature is None:
        raise SetsupError(
            f"{type(method).__name__} does not say by a similarity l2sq or l2 and a temperature at which scale of "
            "noise its embeddings are judged: give the evaluation a sigma, in units of the embeddings"
        )
    return evaluation.noise_scale(similarity, temperature)
