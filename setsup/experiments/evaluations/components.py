"""Principal components of embeddings, and images of them in a plane."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL.Image import Image

from setsup import evaluation
from setsup.evaluation.maps import tsne_map, umap_map
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations.rows import SMOKE_ROWS
from setsup.experiments.trained_run import TrainedRun

__all__ = ["Components", "component_labels"]

_MAPS: dict[str, tuple[str, Callable[..., npt.NDArray[np.float64]]]] = {
    "tsne": ("t-SNE", tsne_map),
    "umap": ("UMAP", umap_map),
}
_LIBRARIES = {"tsne": "sklearn", "umap": "umap"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """Principal components of embeddings: their share of the variance, and plots of the first two.

    Attributes
    ----------
    factors : tuple of str
        Factors by which the panels of a plot are colored.
    samples : int
        Number of rows to embed.
    shown : int
        Number of points in a plot.
    maps : tuple of {"pca", "tsne", "umap"}
        Plots to make: of the first two principal components, or of a map by t-SNE or UMAP.
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    factors: tuple[str, ...]
    samples: int = 10_000
    shown: int = 2_000
    maps: tuple[Literal["pca", "tsne", "umap"], ...] = ("pca",)
    embedding: str | None = None

    def shrunk(self) -> "Components":
        """Return the evaluation shrunk to few rows."""
        return replace(self, samples=SMOKE_ROWS, shown=SMOKE_ROWS)

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of its images."""
        return ("matplotlib", *(library for kind, library in _LIBRARIES.items() if kind in self.maps))

    def measure(self, trained: TrainedRun) -> Measured:
        """Share of the variance that the first one, two and three components carry."""
        from setsup.reports.points import scatter_panels

        rows = trained.sample(self.samples)
        embedded = trained.embed_vectors(rows=rows, name=self.embedding)
        components = evaluation.principal_components(embedded)
        shares = np.cumsum(components.explained)
        table, some = trained.dataset.factors, embedded[: self.shown]
        colors = {name: table.codes(name, rows[: self.shown]) for name in self.factors}
        pictures: dict[str, Image] = {}
        panels = [table[name] for name in self.factors]
        for kind in self.maps:
            if kind == "pca":
                points, labels = components.project(some)[:, :2], component_labels(components.explained[:2])
            else:
                word, placed = _MAPS[kind]
                points, labels = placed(some, seed=trained.seed), [f"{word} 1", f"{word} 2"]
            pictures[kind] = scatter_panels(points, panels, colors, x_label=labels[0], y_label=labels[-1])
        return Measured(
            values={f"first {count}": shares[count - 1] for count in (1, 2, 3) if count <= len(shares)},
            pictures=pictures,
        )


def component_labels(shares: npt.NDArray[np.float64]) -> list[str]:
    """What stands at the axes of principal components: which they are, and their shares (k,) of the variance.

    Examples
    --------
    >>> component_labels(np.array([0.706, 0.284]))
    ['component 1 (71 %)', 'component 2 (28 %)']

    """
    return [f"component {number} ({100 * share:.0f} %)" for number, share in enumerate(shares, 1)]
