"""Settings of single-pixel contrast in 3D: pairs of views of rooms, and what is random in them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from setsup.correspondence.matching import find_match
from setsup.correspondence.pair_sampler import PixelPairSampler

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.loading.batch import Transform

__all__ = ["RoomPairs", "Views"]

_SMOKE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Two views of each of several scenes per step; see :class:`setsup.correspondence.PixelPairSampler`.

    Attributes
    ----------
    pairs : int
        Pairs of views per step.

    """

    pairs: int = 32

    def build(self, dataset: "Dataset", seed: int) -> PixelPairSampler:
        """Build the sampler of a run; SetsupError for a dataset that has no pairs of pixels."""
        find_match(dataset)
        return PixelPairSampler(dataset, pairs=self.pairs, seed=seed)

    def shrunk(self) -> "Views":
        """At most two pairs."""
        return replace(self, pairs=min(self.pairs, _SMOKE))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPairs:
    """One window of both views, separate colors per view, and a partner for every pixel.

    See the recipe ``oxels-3d`` and :class:`setsup.loading.views.SpatialPairs`.

    Attributes
    ----------
    size : int
        Side of the window, in pixels.
    keep : float
        Share of the pixels that are traced; others have a random partner.
    colors : bool
        Whether colors are changed.

    """

    size: int = 256
    keep: float = 0.125
    colors: bool = True

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Compose
        from setsup.loading.views import SpatialPairs
        from setsup.methods.recipes import recipe

        if not self.colors:
            return SpatialPairs(dataset, self.size, self.keep, seed=seed)
        return Compose(
            [
                recipe("oxels-3d", seed=seed, size=self.size),
                SpatialPairs(dataset, keep=self.keep, seed=seed),
            ]
        )
