"""Settings of single-pixel contrast in 3D: pairs of views of rooms, and what is random in them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from setsup.correspondence.matching import find_match
from setsup.correspondence.pair_sampler import PixelPairSampler
from setsup.files.expand_user import expanded
from setsup.samplers import OverlapSampler
from setsup.samplers.overlap.table import OverlapTable

if TYPE_CHECKING:
    from setsup.datasets import Dataset
    from setsup.loading.batch import Transform

__all__ = ["RoomPairs", "Views"]

_SMOKE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Views:
    """Two views of each of several scenes per step, drawn by factors or by their overlap.

    See :class:`setsup.correspondence.PixelPairSampler` and :class:`setsup.OverlapSampler`.

    Attributes
    ----------
    pairs : int
        Pairs of views per step.
    overlaps : str, optional
        File of the overlaps of these views, written by ``setsup overlap``: draw pairs by their overlap.
    overlap : (float, float)
        Band of the overlap, from 0 to 1, with `overlaps`.
    direction : {"forward", "both", "either"}
        Directions in which a pair of views must lie in the bands: ``forward``, from the first to the second view;
        ``both``; or ``either``.
    choose : {"pairs", "scenes", "overlap", "angle"}
        How a pair is chosen. ``pairs``: uniformly from all pairs; ``scenes``: a scene, then one of its pairs, each
        uniformly; ``overlap`` or ``angle``: a bin of it, then a pair in the bin, each uniformly.
    overlaps_digest : str, optional
        Digest of the overlaps; by default that of the file when the run starts. A run does not resume with others.

    """

    pairs: int = 32
    overlaps: str | None = None
    overlap: tuple[float, float] = (0.3, 0.8)
    direction: Literal["forward", "both", "either"] = "forward"
    choose: Literal["pairs", "scenes", "overlap", "angle"] = "pairs"
    overlaps_digest: str | None = None

    def build(self, dataset: "Dataset", seed: int) -> "PixelPairSampler | OverlapSampler":
        """Build the sampler of a run; SetsupError for a dataset that has no pairs of pixels."""
        find_match(dataset)
        if self.overlaps is None:
            return PixelPairSampler(dataset, pairs=self.pairs, seed=seed)
        file = str(expanded(self.overlaps))
        return OverlapSampler(
            dataset.factors,
            file if self.overlaps_digest is None else {"path": file, "digest": self.overlaps_digest},
            overlap=self.overlap,
            sets=self.pairs,
            direction=self.direction,
            choose=self.choose,
            seed=seed,
        )

    def fit_to(self, dataset: "Dataset") -> "Views":
        """Return settings with the digest of the overlaps."""
        if self.overlaps is None or self.overlaps_digest is not None:
            return self
        return replace(self, overlaps_digest=OverlapTable.open(expanded(self.overlaps)).digest)

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
