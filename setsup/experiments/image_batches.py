"""Settings of the sampler of passes over all images, which several papers use."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from setsup.errors import SetsupError
from setsup.samplers import EpochSampler

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["Images"]

_SMOKE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """Batches of passes over all images; see :class:`setsup.EpochSampler`.

    Attributes
    ----------
    size : int
        Images per step.

    """

    size: int = 128

    def build(self, dataset: "Dataset", seed: int) -> EpochSampler:
        """Build the sampler of a run."""
        if len(dataset) < self.size:
            raise SetsupError(
                f"{dataset.name} has {len(dataset):,} rows, but a step draws {self.size:,} images; lower "
                f"--sampler.size to {len(dataset):,} or less"
            )
        return EpochSampler(dataset.factors, self.size, seed=seed)

    def shrunk(self) -> "Images":
        """At most four images."""
        return replace(self, size=min(self.size, _SMOKE))
