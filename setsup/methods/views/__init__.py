"""Contrastive multiview coding: views of an image whose features are alike, and prediction of a view from another."""

from setsup.methods.views.banks import BankContrast
from setsup.methods.views.cmc import CMC
from setsup.methods.views.inputs import pair_views, view_images
from setsup.methods.views.losses import in_batch_loss, nce_loss, patch_loss, softmax_loss
from setsup.methods.views.negatives import draw_features, draw_negatives
from setsup.methods.views.prediction import CrossViewPrediction
from setsup.methods.views.within_batch import BatchContrast, PatchContrast

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
