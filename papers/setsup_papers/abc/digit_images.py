"""Images of MNIST on which the style of digits is measured: some of the test, and those of a withheld digit.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, figure 5.

"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from setsup.arrays import Array, Rows
from setsup.experiments.trained_run import TrainedRun
from setsup_papers.abc.across import nearest_of_each
from setsup_papers.abc.digits import digit_measures

if TYPE_CHECKING:  # presets are listed without torch
    from lightning.pytorch import LightningModule
    from PIL.Image import Image

    from setsup.datasets import Dataset

__all__ = ["DigitImages", "open_digit_images", "read_digits", "read_images"]


@dataclass(frozen=True, slots=True, eq=False)
class DigitImages:
    """Images of digits; made by :func:`open_digit_images`.

    Attributes
    ----------
    parts : three of (Dataset, (k,) int64)
        Rows of the test, and those of the withheld digit in the training data and in the test.
    digits : (n,) int64
        Of the images of the test.
    images : (n, h, w, 1) uint8
        Those of the test.
    withheld : (m, h, w, 1) uint8
        Those of the withheld digit, of both parts.

    """

    parts: "tuple[tuple[Dataset, Rows], ...]"
    digits: Rows
    images: Array
    withheld: Array

    @property
    def fingerprints(self) -> list[str]:
        """Of the tables of both parts of MNIST, as settings of stored results."""
        return [dataset.factors.fingerprint for dataset, _ in self.parts[1:]]

    def embed(self, trained: TrainedRun, method: "LightningModule", name: str | None) -> tuple[Array, Array]:
        """Embeddings (n, d) of the test, and (m, d) of the withheld digit, by a method with the options of a run."""
        from setsup.experiments.embedding import embed

        embeddings = [
            embed(method, dataset, rows, name=name, **trained.embedding(dataset)) for dataset, rows in self.parts
        ]
        return embeddings[0], np.concatenate(embeddings[1:])

    def measure(self, embedded: Array, of_withheld: Array, *, sigma: float, seed: int) -> dict[str, float]:
        """Measures of :func:`~setsup_papers.abc.digits.digit_measures` by name, of what :meth:`embed` gives."""
        measures = digit_measures(
            embedded, self.digits, self.images, of_withheld, self.withheld, sigma=sigma, seed=seed
        )
        return asdict(measures)

    def draw_neighbours(self, embedded: Array) -> "Image":
        """Figure 5b [1]_: the first image of each digit, and the nearest to it of every digit, by (n, d) embeddings."""
        from setsup.reports.grid import image_grid

        names, queries, rows = nearest_of_each(embedded, self.digits)
        return image_grid(self.images[rows], column_labels=[str(name) for name in names], queries=self.images[queries])


def open_digit_images(trained: TrainedRun, withheld: int, every: int = 1, withheld_every: int = 1) -> DigitImages:
    """Read the images for a run: each `every`-th of the test, and each `withheld_every`-th of the withheld digit."""
    train, test = trained.dataset, trained.open(split="test")
    tested = np.arange(0, len(test), every)
    apart = [(part, np.flatnonzero(read_digits(part) == withheld)[::withheld_every]) for part in (train, test)]
    return DigitImages(
        parts=((test, tested), *apart),
        digits=read_digits(test)[tested],
        images=read_images(test, tested),
        withheld=np.concatenate([read_images(part, rows) for part, rows in apart]),
    )


def read_digits(dataset: "Dataset") -> Rows:
    """The digit of each row, (n,)."""
    return np.asarray(dataset.factors.codes("digit"))


def read_images(dataset: "Dataset", rows: Rows) -> Array:
    """Images of rows, (k, h, w, 1) uint8."""
    return dataset.fetch(rows, ["image"])["image"]
