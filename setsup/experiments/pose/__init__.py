"""Experiments on poses of "Learning ABCs: Approximate Bijective Correspondence" (arXiv 2103.03240): tables 1 and 2."""

from setsup.experiments.pose import ablations, mnist, presets, reports, small_presets
from setsup.experiments.pose.baseline_settings import (
    CCVAESettings,
    ExclusiveInformationSettings,
    SharedInformationSettings,
)
from setsup.experiments.pose.data import PoseAugmentation, PoseCrop, PoseSets
from setsup.experiments.pose.evaluations import PoseLookup, PoseRegression
from setsup.experiments.pose.settings import PoseABCSettings, PoseFeaturesSettings, SphericalRegressionSettings
from setsup.experiments.pose.style_curves import StyleOverTraining

__all__ = [
    "PRESETS",
    "REPORTS",
    "CCVAESettings",
    "ExclusiveInformationSettings",
    "PoseABCSettings",
    "PoseAugmentation",
    "PoseCrop",
    "PoseFeaturesSettings",
    "PoseLookup",
    "PoseRegression",
    "PoseSets",
    "SharedInformationSettings",
    "SphericalRegressionSettings",
    "StyleOverTraining",
]

PRESETS = [*presets.PRESETS, *ablations.PRESETS, *small_presets.PRESETS, *mnist.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *mnist.REPORTS]
"""All reports."""
