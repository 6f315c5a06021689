"""Stable single-pixel contrast, arXiv 2512.04970: pixels of the same place have near features."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup_papers.pixels.colors import ColorSwap, PixelLabels
    from setsup_papers.pixels.experiments import PRESETS, REPORTS
    from setsup_papers.pixels.finetuning import PixelFinetuning
    from setsup_papers.pixels.finetuning_settings import FinetuningSettings
    from setsup_papers.pixels.fresh_colors import FreshColors
    from setsup_papers.pixels.losses import between_loss, match_loss, pixel_distances, within_loss
    from setsup_papers.pixels.networks import PixelClassifier, PixelUNet
    from setsup_papers.pixels.patch_network import PatchNetwork
    from setsup_papers.pixels.pixel_contrast import PixelContrast
    from setsup_papers.pixels.recipes import RECIPES
    from setsup_papers.pixels.room_measures import RoomMatches
    from setsup_papers.pixels.rooms import RoomPairs, Views
    from setsup_papers.pixels.settings import ColoredPairs, PixelContrastSettings

__all__ = [
    "PRESETS",
    "RECIPES",
    "REPORTS",
    "ColorSwap",
    "ColoredPairs",
    "FinetuningSettings",
    "FreshColors",
    "PatchNetwork",
    "PixelClassifier",
    "PixelContrast",
    "PixelContrastSettings",
    "PixelFinetuning",
    "PixelLabels",
    "PixelUNet",
    "RoomMatches",
    "RoomPairs",
    "Views",
    "between_loss",
    "match_loss",
    "pixel_distances",
    "within_loss",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "colors": ("ColorSwap", "PixelLabels"),
            "experiments": ("PRESETS", "REPORTS"),
            "finetuning": ("PixelFinetuning",),
            "finetuning_settings": ("FinetuningSettings",),
            "fresh_colors": ("FreshColors",),
            "losses": ("between_loss", "match_loss", "pixel_distances", "within_loss"),
            "networks": ("PixelClassifier", "PixelUNet"),
            "patch_network": ("PatchNetwork",),
            "pixel_contrast": ("PixelContrast",),
            "recipes": ("RECIPES",),
            "room_measures": ("RoomMatches",),
            "rooms": ("RoomPairs", "Views"),
            "settings": ("ColoredPairs", "PixelContrastSettings"),
        },
        needs={
            "torch": (
                "finetuning",
                "fresh_colors",
                "losses",
                "networks",
                "patch_network",
                "pixel_contrast",
                "recipes",
            ),
            "lightning": ("finetuning", "patch_network", "pixel_contrast"),
        },
    )

    def __dir__() -> list[str]:
        return sorted(__all__)
