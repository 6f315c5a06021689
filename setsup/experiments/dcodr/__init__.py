"""Experiments of DCoDR (arXiv 2203.11284) with LORD, DRNET and ML-VAE, and what the paper says of them."""

from setsup.experiments.dcodr import presets, reports, small_presets, small_reports
from setsup.experiments.dcodr.augmentations import Positives, Resized
from setsup.experiments.dcodr.baseline_settings import (
    AmortisedLORDSettings,
    DRNETSettings,
    LORDSettings,
    MLVAESettings,
)
from setsup.experiments.dcodr.measures import InvarianceProbes, LandmarkProbe, Retrieval
from setsup.experiments.dcodr.settings import DCoDRSettings, DomainBatches
from setsup.experiments.dcodr.speed import EpochTime
from setsup.experiments.dcodr.transforms_study import AutoencoderInvariance

__all__ = [
    "PRESETS",
    "REPORTS",
    "AmortisedLORDSettings",
    "AutoencoderInvariance",
    "DCoDRSettings",
    "DRNETSettings",
    "DomainBatches",
    "EpochTime",
    "InvarianceProbes",
    "LORDSettings",
    "LandmarkProbe",
    "MLVAESettings",
    "Positives",
    "Resized",
    "Retrieval",
]

PRESETS = [*presets.PRESETS, *small_presets.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *small_reports.REPORTS]
"""All reports."""
