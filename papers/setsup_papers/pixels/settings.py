"""Settings of samplers, augmentations and methods of single-pixel contrast."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from setsup.experiments.configs import import_method

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.datasets import Dataset
    from setsup.factors import FactorTable
    from setsup.loading.batch import Transform

__all__ = ["ColoredPairs", "PixelContrastSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColoredPairs:
    """Pairs of views of colored digits; see :class:`setsup.loading.views.PlanarPairs`.

    Attributes
    ----------
    colors : {"fresh", "fixed"}
        Whether labels and colors are drawn again for every image of a step, as in the published code, or taken from
        the dataset.
    keep : float
        Share of the pixels with a partner to use as positives.
    shift : int, optional
        Largest shift of the second view, in pixels; a quarter of the height by default.

    """

    colors: Literal["fresh", "fixed"] = "fresh"
    keep: float = 0.25
    shift: int | None = None

    def build(self, dataset: "Dataset", seed: int) -> "Transform":
        """Build the transform of a run."""
        from setsup.loading.transforms import Compose
        from setsup.loading.views import PlanarPairs
        from setsup_papers.pixels.fresh_colors import FreshColors

        pairs = PlanarPairs(32, self.keep, self.shift, seed=seed)
        return pairs if self.colors == "fixed" else Compose([FreshColors(seed=seed), pairs])


@dataclass(frozen=True, slots=True, kw_only=True)
class PixelContrastSettings:
    """Settings of :class:`setsup_papers.pixels.PixelContrast` and of its network.

    Attributes
    ----------
    widths : tuple of int
        Channels of the network's stages.
    blocks : tuple of int
        Residual blocks of each stage.
    features : int
        D, channels of a pixel's feature.
    dropout : float
        Dropout probability in the last two stages.
    within : float
        λ, weight of the loss within pairs; the loss between pairs has the weight 1 - λ. With 1, the features of pixels
        distinguish positions in an image; with less, they also distinguish images.
    norm : {"inf", "l1", "l2"}
        Norm of the losses' distances; see :func:`~setsup_papers.pixels.pixel_distances`.
    balance : {"pooled", "per_part"}
        Whether positive and random pixels are averaged together, as in the code, or separately, as in the text.
    rate : float
        Largest learning rate of AdamW; in one cycle, the rate rises from 1/25 of this value and falls to 10⁻⁴ of the
        initial rate.
    warmup : float
        Share of the steps in which the rate rises.
    weight_decay : float
        Weight decay of AdamW.

    """

    widths: tuple[int, ...] = (32, 64, 64)
    blocks: tuple[int, ...] = (1, 2, 2)
    features: int = 32
    dropout: float = 0.1
    within: float = 1.0
    norm: Literal["inf", "l1", "l2"] = "inf"
    balance: Literal["pooled", "per_part"] = "pooled"
    rate: float = 1e-3
    warmup: float = 0.05
    weight_decay: float = 1e-6

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run."""
        from setsup_papers.pixels.networks import PixelUNet

        method = import_method("setsup_papers.pixels.pixel_contrast:PixelContrast")
        return method(self, PixelUNet(self.widths, self.blocks, self.features, dropout=self.dropout))
