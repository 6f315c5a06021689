"""Experiments of single-pixel contrast (arXiv 2512.04970), and what the paper says of them."""

from setsup.experiments.pixels import presets, reports, room_presets
from setsup.experiments.pixels.colors import ColorSwap, PixelLabels
from setsup.experiments.pixels.room_measures import RoomMatches
from setsup.experiments.pixels.rooms import RoomPairs, Views
from setsup.experiments.pixels.settings import ColoredPairs, Images, PixelContrastSettings

__all__ = [
    "PRESETS",
    "REPORTS",
    "ColorSwap",
    "ColoredPairs",
    "Images",
    "PixelContrastSettings",
    "PixelLabels",
    "RoomMatches",
    "RoomPairs",
    "Views",
]

PRESETS = [*presets.PRESETS, *room_presets.PRESETS]
"""All experiments."""

REPORTS = [*reports.REPORTS, *room_presets.REPORTS]
"""All reports."""
