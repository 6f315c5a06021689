"""Evaluations for figures of ABC: style of digits (5, S7), and losses of random points (S3)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from setsup import evaluation
from setsup.arrays import Array
from setsup.experiments.evaluation import Measured
from setsup.experiments.evaluations import noise_of
from setsup.experiments.evaluations.components import component_labels
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.abc.digit_images import open_digit_images, read_digits, read_images
from setsup_papers.abc.digits import pixels

if TYPE_CHECKING:  # presets are listed without torch
    from PIL.Image import Image

__all__ = ["DigitStyle", "LossOverDimensions"]

_NETWORKS = ("trained", "untrained")


@dataclass(frozen=True, slots=True, kw_only=True)
class DigitStyle:
    """Measures of :func:`setsup_papers.abc.digits.digit_measures`, and the images of figure 5 of ABC.

    The untrained network, and the first principal components of pixels, are measured in the same way.

    Attributes
    ----------
    withheld : int
        The digit that was not trained on; all its images, of both parts of MNIST, are used.
    components : int
        Number of principal components of pixels: as many as the embedding has dimensions.
    shown : int
        Number of images of the withheld digit in the plot, at their principal components; measures use all images.
    every : int
        Stride over the test images: 1 uses all.
    sigma : float, optional
        Standard deviation of the noise, in units of the embeddings; by default the length that the method's loss
        resolves (:func:`setsup.experiments.evaluations.noise_of`).
    embedding : str, optional
        Name of the embedding, if the method has several.

    """

    version: ClassVar[int] = 1

    withheld: int = 9
    components: int = 8
    shown: int = 400
    every: int = 1
    sigma: float | None = None
    embedding: str | None = None

    @property
    def needs(self) -> tuple[str, ...]:
        """Libraries of measures and plots."""
        return "skimage", "sklearn", "matplotlib"

    def shrunk(self) -> "DigitStyle":
        """The same on a twentieth of the test images."""
        return replace(self, every=20)

    def measure(self, trained: TrainedRun) -> Measured:
        """Measures of the trained network, the untrained one, and pixels; a scatter and a sheet of neighbours."""
        sigma = noise_of(trained, self.sigma)
        images = open_digit_images(trained, self.withheld, self.every)

        def measured(embedded: Array, of_withheld: Array) -> dict[str, float]:
            return images.measure(embedded, of_withheld, sigma=sigma, seed=trained.seed)

        @cache
        def embedded(name: str) -> tuple[Array, Array]:
            return images.embed(trained, trained.method if name == "trained" else trained.untrained, self.embedding)

        def of_pixels() -> dict[str, float]:
            train = trained.dataset
            learned = read_images(train, np.flatnonzero(read_digits(train) != self.withheld))
            components = evaluation.principal_components(pixels(learned), self.components)
            return measured(*(components.project(pixels(some)) for some in (images.images, images.withheld)))

        about = {
            "tables": images.fingerprints,
            "withheld": self.withheld,
            "every": self.every,
            "sigma": sigma,
            "embedding": self.embedding,
        }

        def of_network(names: Sequence[str]) -> dict[str, dict[str, float]]:
            return {name: measured(*embedded(name)) for name in names}

        by_source: dict[str, dict[str, float]] = {}
        for name in _NETWORKS:
            by_source |= trained.parts("style", about, [name], of_network)
        by_source["pixels"] = trained.part("pixels", about | {"components": self.components}, of_pixels)
        of_tested, of_withheld = embedded("trained")
        pictures = {
            "withheld": self._scatter(of_withheld, images.withheld),
            "neighbours": images.draw_neighbours(of_tested),
        }
        values = {f"{name}: {key}": value for name, by in by_source.items() for key, value in by.items()}
        return Measured(values=values, pictures=pictures)

    def _scatter(self, embedded: Array, images: Array) -> "Image":
        """Figure 5a: images of the withheld digit at their two first components."""
        from setsup.reports.image_points import image_scatter

        shown = embedded[: self.shown]  # the paper's components are those of the images that it shows
        components = evaluation.principal_components(shown, 2)
        labels = component_labels(components.explained)
        return image_scatter(components.project(shown), images[: self.shown], x_label=labels[0], y_label=labels[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class LossOverDimensions:
    """The correspondence loss of random points, by :func:`~setsup_papers.abc.simulation.simulate`: no training.

    Attributes
    ----------
    sizes : tuple of int
        Points per set.
    dimensions : tuple of int
        Dimensions of the cube that contains the points.
    draws : int
        Maximum number of draws that are averaged.
    error : float
        Relative standard error at which to stop earlier; neighbouring dimensions may differ by less than 1 %.

    """

    version: ClassVar[int] = 1

    sizes: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    dimensions: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    draws: int = 10_000
    error: float = 0.0

    def shrunk(self) -> "LossOverDimensions":
        """Two sizes, two numbers of dimensions, few draws."""
        return replace(self, sizes=(4, 32), dimensions=(1, 3), draws=50)

    def measure(self, trained: TrainedRun) -> Measured:
        """Losses over dimensions by size, scaled by that of one dimension; and the dimension where each is least."""
        from setsup_papers.abc.simulation import Simulation, simulate

        settings: dict[str, Any] = {"draws": self.draws, "error": self.error}

        def compute(pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
            size, count = map(int, pairs[0].split(" x "))
            cell = simulate([size], [count], **settings, seed=trained.seed, device=trained.device)
            return {pairs[0]: asdict(cell)}

        cells: dict[str, Any] = {}
        for pair in (f"{size} x {count}" for size in self.sizes for count in self.dimensions):
            cells |= trained.parts("simulation", settings, [pair], compute)

        def table(name: str) -> Array:
            values = [cells[f"{size} x {count}"][name][0][0] for size in self.sizes for count in self.dimensions]
            return np.array(values).reshape(len(self.sizes), len(self.dimensions))

        names = ("temperatures", "losses", "errors", "draws")
        simulation = Simulation(np.array(self.sizes), np.array(self.dimensions), *map(table, names))
        lines = zip(self.sizes, simulation.scaled, strict=True)
        return Measured(
            values={f"best of {size}": best for size, best in zip(self.sizes, simulation.best, strict=True)},
            curves={f"sets of {size}": (list(self.dimensions), scaled.tolist()) for size, scaled in lines},
        )
