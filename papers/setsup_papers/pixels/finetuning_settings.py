"""Settings of fine-tuning a vision transformer for features of pixels."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from setsup.experiments.configs import import_method
from setsup.files.expand_user import expanded

if TYPE_CHECKING:
    import torch
    from lightning.pytorch import LightningModule

    from setsup.factors import FactorTable
    from setsup.loading.batch import Batch

__all__ = ["FinetuningSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuningSettings:
    """Settings of :class:`setsup_papers.pixels.PixelFinetuning` and of its network.

    Attributes
    ----------
    encoder : str
        A vision transformer of Hugging Face: ``hf:OWNER/NAME``, in the cache of the hub, or ``hf:./FOLDER``; nothing is
        downloaded. ``tiny`` is a transformer of two blocks with random weights, for tests.
    rank : int
        Rank of the low-rank updates of the projections (LoRA); 0 trains only a head.
    alpha : float
        Updates are multiplied by alpha / rank.
    projections : tuple of {"query", "key", "value", "output", "mlp"}
        Linear layers that are updated in all blocks: projections of the attention by name, or, for ``mlp``, all layers
        of the MLP: two, or three of a gated one such as SwiGLU.
    features : int
        Number of channels D of a linear head on the features of patches; 0 for no head.
    loss : {"infonce", "within_between"}
        InfoNCE of the matches of each pair of views, :func:`~setsup_papers.pixels.match_loss`, or the loss of
        :class:`~setsup_papers.pixels.PixelContrast`.
    temperature : float
        Temperature of InfoNCE.
    within, norm, balance
        Options of the loss ``within_between``, as for :class:`~setsup_papers.pixels.PixelContrastSettings`.
    rate : float
        Maximum learning rate of AdamW, in one cycle as for :class:`~setsup_papers.pixels.PixelContrastSettings`.
    warmup : float
        Share of the steps in which the rate rises.
    weight_decay : float
        Weight decay of AdamW.
    weights : str, optional
        Digest of the weights of the transformer, its configuration and preprocessing; by default of those found when
        the run starts. A run is resumed and evaluated only with the same transformer, since its checkpoints contain
        only trained weights.

    """

    encoder: str = "hf:facebook/dinov2-small"
    rank: int = 8
    alpha: float = 8.0
    projections: tuple[Literal["query", "key", "value", "output", "mlp"], ...] = ("query", "value")
    features: int = 0
    loss: Literal["infonce", "within_between"] = "infonce"
    temperature: float = 0.1
    within: float = 1.0
    norm: Literal["inf", "l1", "l2"] = "inf"
    balance: Literal["pooled", "per_part"] = "pooled"
    rate: float = 3e-4
    warmup: float = 0.05
    weight_decay: float = 1e-2
    weights: str | None = None

    def build(self, table: "FactorTable", generator: "torch.Generator") -> "LightningModule":
        """Build the method of a run; DataError if the weights of the transformer are missing or differ."""
        return import_method("setsup_papers.pixels.finetuning:build")(self, generator)

    def fit_to(self, batch: "Batch") -> "FinetuningSettings":
        """Return settings with the digest of the weights, and the absolute path of a folder."""
        from setsup_papers.pixels.patch_network import open_transformer

        scheme, _, place = self.encoder.partition(":")
        encoder = self.encoder
        if scheme == "hf" and (place.startswith((".", "~")) or expanded(place).is_dir()):
            encoder = f"hf:{expanded(place).absolute()}"
        weights = open_transformer(encoder).digest if self.weights is None else self.weights
        return replace(self, encoder=encoder, weights=weights)

    def shrunk(self) -> "FinetuningSettings":
        """Return settings of a tiny transformer with random weights, which needs no download."""
        return replace(self, encoder="tiny", weights=None)
