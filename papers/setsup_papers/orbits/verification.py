"""Verification and retrieval of identities on held-out orbits, as on Multi-PIE."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.orbits.orbit_rows import at_most_few, check_limits, draw_rows, embedders

__all__ = ["Verification"]

Reals = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Verification that two images show the same identity, over all pairs, and top-1 retrieval without easy images.

    Attributes
    ----------
    identity : str
        Factor of the identity.
    conditions : tuple of str
        Factors such as the camera: images of the query's identity that share one of them with the query are removed
        from its gallery; see :func:`~setsup.evaluation.identity_retrieval`.
    orbit : tuple of str
        Factors whose combinations are the orbits; test orbits must not be in the training data.
    dataset : str, optional
        One of the preset's ``datasets``; by default the training data.
    split : str, optional
        Split of the dataset.
    identities : int, optional
        Use only the first identities, at most this many.
    metric : {"l2sq", "cosine"}
        Euclidean distance of embeddings, or of embeddings scaled to length 1.
    baselines : tuple of {"pixels", "untrained"}
        Baselines to measure on the same images.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    identity: str = "subject"
    conditions: tuple[str, ...] = ("camera", "lighting")
    orbit: tuple[str, ...] = ("subject", "lighting", "session")
    dataset: str | None = None
    split: str | None = None
    identities: int | None = None
    metric: Literal["l2sq", "cosine"] = "l2sq"
    baselines: tuple[Literal["pixels", "untrained"], ...] = ()
    embedding: str | None = None

    def __post_init__(self) -> None:
        """Check settings before all is embedded."""
        if not self.conditions:
            raise SetsupError(
                "conditions must contain at least one condition; without any, no image is removed from the gallery"
            )
        check_limits(identities=self.identities)

    def shrunk(self) -> "Verification":
        """Return the evaluation shrunk to few identities."""
        return replace(self, identities=at_most_few(self.identities))

    def measure(self, trained: TrainedRun) -> Measured:
        """``AUC`` over all pairs, and ``top-1``, the share of queries whose nearest image has their identity."""
        dataset = trained.open(self.dataset, split=self.split)
        rows = draw_rows(trained, dataset, self.identity, self.orbit, classes=self.identities, embedding=self.embedding)
        conditions = np.stack([dataset.factors.codes(name, rows.sample.rows) for name in self.conditions], axis=1)
        about = rows.sample.about | {"identity": self.identity, "metric": self.metric}
        values: dict[str, float] = {}
        for source, embedded in embedders(self.baselines, trained, dataset, rows).items():

            def area(embedded: Callable[[], Reals] = embedded) -> float:
                return evaluation.verification_auc(embedded(), rows.labels, metric=self.metric).auc

            def top(embedded: Callable[[], Reals] = embedded) -> float:
                retrieved = evaluation.identity_retrieval(embedded(), rows.labels, conditions, metric=self.metric)
                return retrieved.value

            front = f"{source}: " if source else ""
            values[f"{front}AUC"] = trained.part("auc", about | {"source": source}, area)
            settings = about | {"source": source, "conditions": self.conditions}
            values[f"{front}top-1"] = trained.part("top-1", settings, top)
        return Measured(values=values)
