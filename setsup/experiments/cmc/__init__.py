"""Experiments of contrastive multiview coding (arXiv 1906.05849), and what the paper says of them."""

from setsup.experiments.cmc import presets, reports, small_presets, small_reports
from setsup.experiments.cmc.actions import Actions
from setsup.experiments.cmc.augmentations import Frames, Halves, PatchViews, ViewCrops
from setsup.experiments.cmc.layer_probes import LayerProbes
from setsup.experiments.cmc.segmentation import Segmentation
from setsup.experiments.cmc.settings import CMCSettings, CrossViewPredictionSettings
from setsup.experiments.cmc.view_information import ViewsInformation

__all__ = [
    "PRESETS",
    "REPORTS",
    "Actions",
    "CMCSettings",
    "CrossViewPredictionSettings",
    "Frames",
    "Halves",
    "LayerProbes",
    "PatchViews",
    "Segmentation",
    "ViewCrops",
    "ViewsInformation",
]

PRESETS = [*presets.PRESETS, *small_presets.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *small_reports.REPORTS]
"""All tables and figures."""
