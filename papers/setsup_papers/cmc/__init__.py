"""Contrastive multiview coding (CMC), arXiv 1906.05849: features of views of an image that are alike."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.cmc.actions import Actions
    from setsup_papers.cmc.augmentations import Frames, Halves, PatchViews, ViewCrops
    from setsup_papers.cmc.banks import BankContrast
    from setsup_papers.cmc.experiments import PRESETS, REPORTS
    from setsup_papers.cmc.inputs import pair_views, view_images
    from setsup_papers.cmc.layer_probes import LayerProbes
    from setsup_papers.cmc.losses import in_batch_loss, nce_loss, patch_loss, softmax_loss
    from setsup_papers.cmc.method import CMC
    from setsup_papers.cmc.negatives import draw_features, draw_negatives
    from setsup_papers.cmc.networks.caffenet import caffenet_view
    from setsup_papers.cmc.networks.dense_views import ViewDecoder, nyu_view
    from setsup_papers.cmc.networks.views import RESNETS, ViewEncoder, alexnet_view, resnet_view, small_view, stl10_view
    from setsup_papers.cmc.prediction import CrossViewPrediction
    from setsup_papers.cmc.recipes import EVALUATION_TRANSFORMS, RECIPES
    from setsup_papers.cmc.segmentation import Segmentation
    from setsup_papers.cmc.settings import CMCSettings, CrossViewPredictionSettings
    from setsup_papers.cmc.view_information import ViewsInformation
    from setsup_papers.cmc.within_batch import BatchContrast, PatchContrast

__all__ = [
    "CMC",
    "EVALUATION_TRANSFORMS",
    "PRESETS",
    "RECIPES",
    "REPORTS",
    "RESNETS",
    "Actions",
    "BankContrast",
    "BatchContrast",
    "CMCSettings",
    "CrossViewPrediction",
    "CrossViewPredictionSettings",
    "Frames",
    "Halves",
    "LayerProbes",
    "PatchContrast",
    "PatchViews",
    "Segmentation",
    "ViewCrops",
    "ViewDecoder",
    "ViewEncoder",
    "ViewsInformation",
    "alexnet_view",
    "caffenet_view",
    "draw_features",
    "draw_negatives",
    "in_batch_loss",
    "nce_loss",
    "nyu_view",
    "pair_views",
    "patch_loss",
    "resnet_view",
    "small_view",
    "softmax_loss",
    "stl10_view",
    "view_images",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "actions": ("Actions",),
            "augmentations": ("Frames", "Halves", "PatchViews", "ViewCrops"),
            "banks": ("BankContrast",),
            "experiments": ("PRESETS", "REPORTS"),
            "inputs": ("pair_views", "view_images"),
            "layer_probes": ("LayerProbes",),
            "losses": ("in_batch_loss", "nce_loss", "patch_loss", "softmax_loss"),
            "method": ("CMC",),
            "negatives": ("draw_features", "draw_negatives"),
            "networks.caffenet": ("caffenet_view",),
            "networks.dense_views": ("ViewDecoder", "nyu_view"),
            "networks.views": ("RESNETS", "ViewEncoder", "alexnet_view", "resnet_view", "small_view", "stl10_view"),
            "prediction": ("CrossViewPrediction",),
            "recipes": ("EVALUATION_TRANSFORMS", "RECIPES"),
            "segmentation": ("Segmentation",),
            "settings": ("CMCSettings", "CrossViewPredictionSettings"),
            "view_information": ("ViewsInformation",),
            "within_batch": ("BatchContrast", "PatchContrast"),
        },
        needs={
            "torch": (
                "banks",
                "inputs",
                "losses",
                "method",
                "negatives",
                "networks.caffenet",
                "networks.dense_views",
                "networks.views",
                "prediction",
                "recipes",
                "within_batch",
            ),
            "lightning": ("method", "prediction"),
        },
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
