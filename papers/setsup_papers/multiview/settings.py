"""Settings of the sampler and the method."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from setsup.experiments.configs import ImageSettings, import_method
from setsup.samplers import SetSampler, Zip

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.datasets import Dataset
    from setsup.factors import FactorTable

__all__ = ["BlockContrastSettings", "SharedFactors"]

_SMOKE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFactors:
    """Pairs of views for each subset of factors, which the views of a pair share; all other factors vary.

    Attributes
    ----------
    subsets : tuple of str
        Factors that are shared, joined by ``+``; subsets may overlap.
    pairs : int
        Pairs of each subset in a step.
    tolerance : tuple of (str, float)
        Difference of continuous factors up to which these count as shared.
    where : str, optional
        Expression over the factors that drawn rows satisfy.

    """

    subsets: tuple[str, ...]
    pairs: int = 64
    tolerance: tuple[tuple[str, float], ...] = ()
    where: str | None = None

    @property
    def factors(self) -> tuple[tuple[str, ...], ...]:
        """Names of each subset."""
        return tuple(tuple(subset.split("+")) for subset in self.subsets)

    def build(self, dataset: "Dataset", seed: int) -> Zip:
        """Build the sampler of a run: the pairs of one subset after those of another."""
        samplers = [
            SetSampler(
                dataset.factors,
                inactive=subset,
                size=2,
                sets=self.pairs,
                on_small_group="drop",
                tolerance={name: most for name, most in self.tolerance if name in subset} or None,
                where=self.where,
                seed=seed,
            )
            for subset in self.factors
        ]
        return Zip(*samplers)

    def shrunk(self) -> "SharedFactors":
        """At most four pairs of each subset."""
        return replace(self, pairs=min(self.pairs, _SMOKE))


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockContrastSettings(ImageSettings):
    """Settings of :class:`setsup_papers.multiview.BlockContrast` and of its network.

    Attributes
    ----------
    blocks : tuple of str
        Names of the blocks, one for each subset of the sampler, in the same order.
    width : int
        Dimensions of a block.
    temperature : float
        Temperature τ of the contrast.
    rate : float
        Learning rate of Adam.
    convolutions : tuple of (int, int)
        Channels and stride of each convolution.
    dense : int
        Width of the hidden layer.

    """

    blocks: tuple[str, ...]
    width: int = 8
    temperature: float = 0.1
    rate: float = 1e-3
    convolutions: tuple[tuple[int, int], ...] = ((32, 2), (32, 2), (64, 2), (64, 2))
    dense: int = 256

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        return import_method("setsup_papers.multiview.block_contrast:BlockContrast")(self, generator)
