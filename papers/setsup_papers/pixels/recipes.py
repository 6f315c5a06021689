"""The views and augmentations of single-pixel contrast as functions that return a transform of a batch.

Arguments and notation are those that :mod:`setsup.methods.recipes` explains.

References
----------
.. [1] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), and its published code.

"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from setsup.arrays import Size
from setsup.loading.batch import Batch, Transform
from setsup.loading.transforms import (
    Augment,
    AutoContrast,
    Blur,
    Crop,
    Equalize,
    Gray,
    Jitter,
    Posterize,
    RandomApply,
)
from setsup.loading.views import PlanarPairs

__all__ = ["RECIPES", "oxels_2d", "oxels_3d"]


def oxels_2d(*, seed: int, stream: str, size: int | Size = 32, keep: float = 0.25) -> Transform:
    """Pixel pairs of Coloured MNIST [1]_ (first experiment, code): :class:`PlanarPairs` that keep a quarter.

    Colours stay as they are; the text speaks of jitter in hue and saturation, of which the code has none.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of both views.
    keep : float
        0 … 1: share of the partners that are kept: a quarter in the published sweep, 1/8 by the code's default.

    """
    return PlanarPairs(size, keep, seed=seed, stream=stream)


def oxels_3d(*, seed: int, stream: str, size: int | Size = 256) -> Transform:
    """Two views of a room [1]_ (second experiment, code): one window for all images of a set, colours of their own.

    A window of 256 of 480 × 640 pixels. Then for each image, with 8 bits: brightness and saturation by U(0.7, 1.3) and
    hue by U(−0.1, 0.1) turns, in any order; for 0.1 of them each automatic contrast, a blur by 7 × 7 pixels with
    σ = U(1, 3), 5 bits a colour, equalised tones; grey for 0.05. ``points`` (sets, size, n, 2), where a batch has them,
    are carried along; a :class:`SpatialPairs` after it finds partners within the window.
    """
    rare = [RandomApply(operation, 0.1) for operation in (AutoContrast(), Blur(7, (1, 3)), Posterize(5), Equalize())]
    operations = [Crop(size), Jitter(0.3, 0, 0.3, 0.1), *rare, RandomApply(Gray(), 0.05)]
    return _WithPoints(Augment(operations, geometry="sets", eight_bit=True, seed=seed, stream=stream))


@dataclass(frozen=True)
class _WithPoints:
    """An augmentation that carries ``points`` along in batches that have some."""

    augment: Augment

    @property
    def seed(self) -> int:
        """What Compose compares."""
        return self.augment.seed

    @property
    def stream(self) -> str:
        """What Compose compares."""
        return self.augment.stream

    def __call__(self, batch: Batch) -> Batch:
        points = {"points": "points"} if "points" in batch else {}
        return replace(self.augment, modalities={**self.augment.modalities, **points})(batch)


RECIPES: Mapping[str, Callable[..., Transform]] = MappingProxyType({"oxels-2d": oxels_2d, "oxels-3d": oxels_3d})
"""By the names that :func:`setsup.methods.recipes.recipe` takes."""
