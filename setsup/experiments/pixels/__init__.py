"""Experiments of single-pixel contrast (arXiv 2512.04970), and what the paper says of them."""

from setsup.experiments.pixels import presets
from setsup.experiments.pixels.colors import ColorSwap, PixelLabels
from setsup.experiments.pixels.reports import REPORTS
from setsup.experiments.pixels.settings import ColoredPairs, Images, PixelContrastSettings

__all__ = ["PRESETS", "REPORTS", "ColorSwap", "ColoredPairs", "Images", "PixelContrastSettings", "PixelLabels"]

PRESETS = [*presets.PRESETS]
"""All experiments."""
