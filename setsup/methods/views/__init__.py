"""Contrastive multiview coding: views of an image whose features are alike, and prediction of a view from another.

Losses, memory banks and negatives need torch alone; the methods need Lightning, and are imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.errors import need
from setsup.lazy import lazy_names
from setsup.methods.views.banks import BankContrast
from setsup.methods.views.inputs import pair_views, view_images
from setsup.methods.views.losses import in_batch_loss, nce_loss, patch_loss, softmax_loss
from setsup.methods.views.negatives import draw_features, draw_negatives
from setsup.methods.views.within_batch import BatchContrast, PatchContrast

if TYPE_CHECKING:
    from setsup.methods.views.cmc import CMC
    from setsup.methods.views.prediction import CrossViewPrediction

__all__ = [
    "CMC",
    "BankContrast",
    "BatchContrast",
    "CrossViewPrediction",
    "PatchContrast",
    "draw_features",
    "draw_negatives",
    "in_batch_loss",
    "nce_loss",
    "pair_views",
    "patch_loss",
    "softmax_loss",
    "view_images",
]

if not TYPE_CHECKING:
    _HOMES = {"cmc": ("CMC",), "prediction": ("CrossViewPrediction",)}

    __getattr__ = lazy_names(__name__, _HOMES, lambda name, _: need(f"{name} needs", "lightning"))

    def __dir__() -> list[str]:
        return sorted(__all__)
