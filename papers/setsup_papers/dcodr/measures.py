"""What DCoDR measures: probes of the domain and of attributes, errors of landmarks, and what is retrieved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.classes import FitRows, rows_of, split_attribute
from setsup.experiments.evaluations.rows import SMOKE_ROWS, Sample, shared_rows
from setsup.experiments.trained_run import TrainedRun
from setsup.factors import Kind
from setsup_papers.dcodr.retrieval_sheet import retrieval_sheet

__all__ = ["DeepProbeSettings", "InvarianceProbes", "LandmarkProbe", "Retrieval"]

Array = npt.NDArray[Any]

_DOMAIN = "domain"
_TRAINING = ("width", "layers", "rate", "batch", "epochs", "patience")
"""Settings of deep probes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepProbeSettings:
    """Rows that deep probes are fitted to and tested on, and settings of their training.

    Attributes
    ----------
    dataset : str, optional
        One of the preset's ``datasets`` to test on.
    split : str, optional
        Split of that dataset, or of the training data, to test on. Without a dataset and a split, a part of the
        training data is held out for the test.
    samples : int, optional
        Maximum number of rows to fit, and to test; all by default.
    width, layers, rate, batch, epochs, patience : optional
        As for :func:`setsup.evaluation.deep_probes`.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    dataset: str | None = None
    split: str | None = None
    samples: int | None = None
    width: int = 128
    layers: int = 6
    rate: float = 1e-3
    batch: int = 128
    epochs: int = 100
    patience: int = 7
    embedding: str | None = None

    @property
    def training(self) -> dict[str, Any]:
        """Settings of the training of probes."""
        return {name: getattr(self, name) for name in _TRAINING}

    def shrunk(self) -> Self:
        """Return the evaluation shrunk to few rows and two epochs."""
        return replace(self, samples=SMOKE_ROWS, epochs=2)

    def rows(self, trained: TrainedRun, resplit: tuple[str, ...] | None) -> FitRows:
        """Rows that are fitted, and tested; parts of the test, of each combination of the factors `resplit`."""
        return rows_of(
            trained, self.dataset, self.split, samples=self.samples, embedding=self.embedding, resplit=resplit
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class InvarianceProbes(DeepProbeSettings):
    """Accuracy of deep probes of the domain, which should be low, and of attributes, which should be high.

    The protocol is that of DCoDR's published code; see :func:`~setsup.evaluation.deep_probes`. All rows of the training
    data are fitted, a tenth of them held out to choose the epoch, and all rows of the test are tested. Without a test a
    tenth of the training data is.

    Attributes
    ----------
    domain : tuple of str
        Factors whose combinations are the domains.
    attributes : tuple of str
        Factors that the code should predict; ``"elevation+azimuth"`` is one attribute, the combinations of both.
    resplit : bool
        Fit to 70 % of the test rows of each domain and test on the other 30 %, as DCoDR does if no test domain is in
        the training data (CelebA).

    """

    version: ClassVar[int] = 1

    domain: tuple[str, ...]
    attributes: tuple[str, ...]
    resplit: bool = False

    def __post_init__(self) -> None:
        """Check names before all is embedded."""
        if not self.domain:
            raise SetsupError("domain must contain at least one factor; pass --domain")
        if self.resplit and self.dataset is None and self.split is None:
            raise SetsupError("resplit requires a dataset or a split to test on; set dataset or split")
        _check_labels(self.attributes, (_DOMAIN, "ideal", "informativeness"))

    def measure(self, trained: TrainedRun) -> Measured:
        """``domain``, ``ideal``, ``informativeness`` and each attribute; and ``majority: …`` of each attribute.

        ``ideal`` is the share of the most frequent domain of the test, ``informativeness`` the mean over attributes.
        """
        rows = self.rows(trained, self.domain if self.resplit else None)
        factors = {_DOMAIN: self.domain, **{attribute: split_attribute(attribute) for attribute in self.attributes}}
        probed = _probe(trained, rows, factors, self.training)
        values = {_DOMAIN: probed[_DOMAIN]["accuracy"], "ideal": probed[_DOMAIN]["majority"]}
        if self.attributes:
            values["informativeness"] = float(np.mean([probed[attribute]["accuracy"] for attribute in self.attributes]))
        values |= {attribute: probed[attribute]["accuracy"] for attribute in self.attributes}
        values |= {f"majority: {attribute}": probed[attribute]["majority"] for attribute in self.attributes}
        return Measured(values=values)


def _probe(
    trained: TrainedRun, rows: FitRows, factors: dict[str, tuple[str, ...]], how: dict[str, Any]
) -> dict[str, dict[str, float]]:
    """By name of classes: ``accuracy``, ``majority`` and ``epoch``; those that are not kept are fitted together."""
    # parts go by their factors: the domain of one evaluation may be an attribute of another
    combinations = {" ".join(names): names for names in factors.values()}

    def compute(keys: Sequence[str]) -> dict[str, dict[str, float]]:
        classes = [rows.classes(combinations[key]) for key in keys]
        fit, test = (np.stack([both[part] for both in classes], axis=1) for part in (0, 1))
        probes = evaluation.deep_probes(
            rows.fit.embedded, fit, rows.test.embedded, test, seed=trained.seed, device=trained.device, **how
        )
        columns = {"accuracy": probes.accuracy, "majority": probes.majority, "epoch": probes.epochs}
        return {key: {measure: float(of[at]) for measure, of in columns.items()} for at, key in enumerate(keys)}

    kept = trained.parts("deep-probes", {**rows.about, **how}, list(combinations), compute)
    return {name: kept[" ".join(names)] for name, names in factors.items()}


def _check_labels(attributes: Sequence[str], taken: Sequence[str]) -> None:
    """Refuse attributes whose names are those of other results."""
    if same := next((attribute for attribute in attributes if attribute in taken), None):
        raise SetsupError(f"the factor {same!r} has the same name as a result; rename the factor, or omit it")


@dataclass(frozen=True, slots=True, kw_only=True)
class LandmarkProbe(DeepProbeSettings):
    """Error of a deep probe that predicts landmarks: DCoDR's informativeness on CelebA.

    The rows of the test are divided, 70 % for the fit and 30 % for the test, the same share of each identity; those of
    the training data where no test is named.

    Attributes
    ----------
    landmarks : str
        Modality of landmarks, (points, 2), in pixels; rows with unknown numbers are left out. Numbers are rounded down
        to whole pixels, as in the published code.
    identity : tuple of str
        Factors by whose combinations rows are split.

    """

    version: ClassVar[int] = 1

    landmarks: str = "landmarks68"
    identity: tuple[str, ...] = ("identity",)

    def measure(self, trained: TrainedRun) -> Measured:
        """``L1``: mean absolute error in pixels; ``mean landmark``: that of naming the mean of the fit."""
        rows, how = self.rows(trained, self.identity), self.training

        def compute() -> dict[str, float]:
            points = [self._points(sample) for sample in (rows.fit, rows.test)]
            (fit, wanted), (test, truth) = (
                (sample.embedded[known], numbers[known])
                for sample, (numbers, known) in zip((rows.fit, rows.test), points, strict=True)
            )
            more: dict[str, Any] = {"seed": trained.seed, "device": trained.device, **how}
            return {
                "L1": evaluation.landmark_error(fit, wanted, test, truth, **more),
                "mean landmark": float(np.abs(truth - wanted.mean(axis=0)).mean()),
            }

        return Measured(values=trained.part("landmarks", {**rows.about, **how, "landmarks": self.landmarks}, compute))

    def _points(self, sample: Sample) -> tuple[Array, Array]:
        """Numbers (n, 2 · points) of each row, and whether they are known."""
        if self.landmarks not in sample.dataset.modalities:
            raise SetsupError(
                f"{sample.dataset.name} has no {self.landmarks!r}; create the file of landmarks as the page of "
                "the dataset describes, or set landmarks to another modality"
            )
        points = np.concatenate(
            [
                np.asarray(sample.dataset.fetch(some, [self.landmarks])[self.landmarks], np.float64)
                for some in np.array_split(sample.rows, -(-len(sample.rows) // 4096))
            ]
        ).reshape(len(sample.rows), -1)
        known = np.isfinite(points).all(axis=1)
        return np.floor(np.where(known[:, None], points, 0)), known


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """Whether the nearest neighbour of a test image, among all training and test images, has its attributes.

    Distances are Euclidean between embeddings of length 1. The query itself is excluded, other images of its domain are
    not, as in DCoDR's published code. There the gallery of Shapes3D is the whole dataset, including the 382,000 images
    outside the training data: set `gallery` to use it.

    Attributes
    ----------
    attributes : tuple of str
        As for :class:`InvarianceProbes`; an attribute of several factors is correct if each of them is.
    tolerances : tuple of (str, int)
        Number of levels by which a factor may differ; cyclic factors wrap around.
    dataset, split : str, optional
        Test data, as for :class:`InvarianceProbes`.
    gallery : str, optional
        One of the preset's ``datasets`` to search instead of the training data.
    samples : int, optional
        Maximum number of test images that are queries; all test images are searched.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    attributes: tuple[str, ...]
    tolerances: tuple[tuple[str, int], ...] = ()
    dataset: str | None = None
    split: str | None = None
    gallery: str | None = None
    samples: int | None = None
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check names before all is embedded."""
        known = self._factors
        if not known:
            raise SetsupError("attributes must contain at least one factor")
        _check_labels(self.attributes, ("all", "attainable"))
        for name, levels in self.tolerances:
            if name not in known or levels < 0:
                raise SetsupError(
                    f"tolerances must assign 0 or more levels to one of {', '.join(sorted(known))}, not {levels} to "
                    f"{name!r}"
                )

    @property
    def _factors(self) -> list[str]:
        """Of all attributes, once each."""
        return list(dict.fromkeys(name for attribute in self.attributes for name in split_attribute(attribute)))

    def shrunk(self) -> "Retrieval":
        """Return the evaluation shrunk to few queries."""
        return replace(self, samples=SMOKE_ROWS)

    def measure(self, trained: TrainedRun) -> Measured:
        """By attribute the share of queries whose neighbour has it; ``all`` of them; what is ``attainable``; a sheet.

        ``attainable`` is the share of queries for which the gallery has an image with all attributes.
        """
        rows = rows_of(trained, self.dataset, self.split, embedding=self.embedding)
        if self.gallery is not None:
            whole = trained.open(self.gallery)
            others = np.flatnonzero(~shared_rows(whole, rows.test.dataset))
            rows = FitRows(Sample(trained, whole, others, {}, self.embedding), rows.test)
        count = len(rows.test.rows) if self.samples is None else min(self.samples, len(rows.test.rows))
        settings = {**rows.about, "attributes": self.attributes, "tolerances": self.tolerances, "queries": count}
        values = trained.part("retrieval", settings, lambda: self._compute(rows, count))
        return Measured(values=values, pictures={"retrieved": retrieval_sheet(rows, self._factors, trained.seed)})

    def _compute(self, rows: FitRows, count: int) -> dict[str, float]:
        names = self._factors
        fit, test = (np.stack([rows.classes([name])[part] for name in names], axis=1) for part in (0, 1))
        table = rows.test.dataset.factors
        nested = [name for name, _ in self.tolerances if table.outer(name)]
        if nested:  # its classes are combinations with the other, so that equal instances of two categories differ
            raise SetsupError(
                f"{nested[0]!r} is nested in another factor, so distances between its levels are undefined; choose "
                "other attributes"
            )
        cyclic = {at: len(table[name]) for at, name in enumerate(names) if table[name].kind is Kind.CYCLIC}
        periods = {at: levels for at, levels in cyclic.items() if levels > 1}  # one level is no circle
        tolerances = dict(self.tolerances)
        levels = {at: tolerances[name] for at, name in enumerate(names) if tolerances.get(name)}
        codes, queries = np.concatenate([fit, test]), test[:count]
        own = len(fit) + np.arange(count)
        near, _ = evaluation.nearest(rows.test.embedded[:count], rows.gallery, 1, metric="cosine", own=own)
        right = evaluation.matches(queries, codes, near, tolerance=levels, period=periods)[:, 0]
        known = (queries >= 0).all(axis=1)
        if not known.any():
            raise SetsupError("none of the queries has all attributes; choose other attributes")
        values: dict[str, float] = {}
        for attribute in self.attributes:
            columns = [names.index(name) for name in split_attribute(attribute)]
            values[attribute] = float(right[known][:, columns].all(axis=1).mean())
        values["all"] = float(right[known].all(axis=1).mean())
        values["attainable"] = attainable(queries[known], codes, own[known], levels, periods)
        return values


def attainable(queries: Array, codes: Array, own: Array, tolerance: dict[int, int], period: dict[int, int]) -> float:
    """Share of queries (q, m) for which rows of (g, m) other than their own have all factors, within tolerances."""
    both = np.concatenate([codes, queries])
    exact = [axis for axis in range(both.shape[1]) if axis not in tolerance]
    first = np.unique(both[:, exact], axis=0, return_inverse=True)[1].reshape(-1) if exact else np.zeros(len(both), int)
    near = list(tolerance)
    places = np.column_stack([first, both[:, near]])
    sizes = (int(first.max()) + 1, *(period.get(axis, int(both[:, axis].max()) + 1) for axis in near))
    good: Array = np.asarray((codes >= 0).all(axis=1))
    cells = np.ravel_multi_index(places[: len(codes)][good].T, sizes)
    counts = np.bincount(cells, minlength=math.prod(sizes)).reshape(sizes)
    for number, axis in enumerate(near, start=1):
        counts = _within(counts, number, tolerance[axis], axis in period)
    here = counts[tuple(places[len(codes) :].T)] - good[own]  # a query is within its own tolerance
    return float((here > 0).mean())


def _within(counts: Array, axis: int, levels: int, circular: bool) -> Array:
    """Sums over the levels within a distance, along an axis."""
    level = np.arange(counts.shape[axis])
    apart = np.abs(level[:, None] - level)
    if circular:
        apart = np.minimum(apart, len(level) - apart)
    return np.moveaxis(np.tensordot(apart <= levels, counts, axes=(1, axis)), 0, axis)
