"""MNIST: handwritten digits, read from the four published idx files."""

from pathlib import Path

from setsup.datasets.benchmarks.idx_images import IdxImages, release
from setsup.factors import Factor, Kind

__all__ = ["Mnist", "open"]


class Mnist(IdxImages):
    """Handwritten digits: the rows of the train files, followed by those of the test files.

    In the published files rows 0 to 59,999 are train and 60,000 to 69,999 test. The factors are ``digit`` and ``split``
    (no factor of variation). The only modality is ``image``, (28, 28, 1) uint8 grey: 0 is background, 255 ink.
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__("mnist", folder, Factor("digit", Kind.NOMINAL, tuple(range(10))))


def open(root: Path | str | None = None) -> Mnist:
    """Open MNIST."""
    return Mnist(release("mnist", root))
