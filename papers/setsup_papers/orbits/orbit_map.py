"""Figure 2 of the orbit papers: a plane map of some test orbits, coloured by class and by orbit."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from setsup.evaluation.maps import tsne_map
from setsup.experiments.evaluation import Measured
from setsup.experiments.trained_run import TrainedRun
from setsup.factors import Factor, Kind
from setsup_papers.orbits.orbit_rows import at_most_few, check_limits, draw_rows, embedders

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["OrbitMap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitMap:
    """t-SNE maps of the embeddings of some orbits, as numbers and as plots.

    Orbits and the start of the map depend on `orbit_seed` and not on the seed of the run, so that runs are compared on
    the same ones.

    Attributes
    ----------
    factor : str
        Factor of the class.
    orbit : tuple of str
        Factors whose combinations are the orbits.
    orbits : int
        Maximum number of orbits of each class.
    members : int, optional
        Use only the first images of each orbit, at most this many.
    dataset : str, optional
        One of the preset's ``datasets``; by default the training data.
    split : str, optional
        Split of the dataset.
    baselines : tuple of {"pixels", "untrained"}
        Also plot maps of unchanged pixels, or of the method with its initial weights.
    embedding : str, optional
        Name of the embedding, if the method has several.
    orbit_seed : int
        Random seed of the selected orbits, and of the map.

    """

    version: ClassVar[int] = 1

    factor: str = "digit"
    orbit: tuple[str, ...] = ("source",)
    orbits: int = 2
    members: int | None = None
    dataset: str | None = None
    split: str | None = "test"
    baselines: tuple[Literal["pixels", "untrained"], ...] = ()
    embedding: str | None = None
    orbit_seed: int = 0

    def __post_init__(self) -> None:
        """Check settings before all is embedded."""
        check_limits(orbits=self.orbits, members=self.members)

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its maps and images."""
        return ("sklearn", "matplotlib")

    def shrunk(self) -> "OrbitMap":
        """Return the evaluation shrunk to few orbits."""
        return replace(self, orbits=at_most_few(self.orbits), members=at_most_few(self.members))

    def measure(self, trained: TrainedRun) -> Measured:
        """Images by source, ``trained`` and baselines: the same points coloured by class and by orbit.

        Values say of the embeddings, and not of their map, for how many images the nearest one is of the same orbit,
        ``nearest: orbit``, and for how many the nearest one of another orbit is of the same class, ``nearest: class``.
        """
        from setsup.reports.points import scatter_panels

        dataset = trained.open(self.dataset, split=self.split)
        limits: dict[str, Any] = {"per_class": self.orbits, "members": self.members, "seed": self.orbit_seed}
        rows = draw_rows(trained, dataset, self.factor, self.orbit, embedding=self.embedding, **limits)
        # numbered by class, so that orbits of one class have colours that stand together in the key
        first = np.unique(rows.orbits, return_index=True)[1]
        known = rows.orbits[first[np.argsort(rows.labels[first], kind="stable")]]
        level = {int(orbit): number for number, orbit in enumerate(known)}
        orbit = Factor("orbit", Kind.NOMINAL, tuple(range(1, len(known) + 1)))
        colors = {self.factor: rows.labels, orbit.name: np.array([level[int(number)] for number in rows.orbits])}
        pictures: dict[str, Image] = {}
        values: dict[str, float] = {}
        for source, embedded in embedders(self.baselines, trained, dataset, rows).items():

            def compute(embedded: Any = embedded) -> dict[str, Any]:
                vectors = np.asarray(embedded(), dtype=np.float64)
                perplexity = min(30.0, (len(vectors) - 1) / 3)
                placed = tsne_map(vectors, perplexity=perplexity, seed=self.orbit_seed)
                return {"points": placed, "nearest": _nearest(vectors, rows.labels, rows.orbits)}

            about = rows.sample.about | {"factor": self.factor, "orbit": self.orbit, "seed": self.orbit_seed}
            results = trained.part("orbit-map", about | {"source": source}, compute)
            values |= {f"{source}: {name}" if source else name: share for name, share in results["nearest"].items()}
            pictures[source or "trained"] = scatter_panels(
                np.asarray(results["points"]),
                [dataset.factors[self.factor], orbit],
                colors,
                x_label="t-SNE 1",
                y_label="t-SNE 2",
            )
        return Measured(values=values, pictures=pictures)


def _nearest(vectors: Any, labels: Any, orbits: Any) -> dict[str, float]:
    """Share of images whose nearest one is of their orbit, and whose nearest one of another orbit is of their class."""
    distances = np.stack([np.square(vectors - vector).sum(axis=1) for vector in vectors])
    np.fill_diagonal(distances, np.inf)
    same = orbits[distances.argmin(axis=1)] == orbits
    distances[orbits[:, None] == orbits] = np.inf
    alike = labels[distances.argmin(axis=1)] == labels
    return {"nearest: orbit": float(same.mean()), "nearest: class": float(alike.mean())}
