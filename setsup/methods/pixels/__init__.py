"""Stable single-pixel contrast: features of pixels that are near if both show the same place, and at ½ otherwise.

The losses need torch alone; the method needs Lightning, and is imported on first use.
"""

from typing import TYPE_CHECKING

from setsup.errors import need
from setsup.lazy import lazy_names
from setsup.methods.pixels.losses import between_loss, pixel_distances, within_loss

if TYPE_CHECKING:
    from setsup.methods.pixels.pixel_contrast import PixelContrast

__all__ = ["PixelContrast", "between_loss", "pixel_distances", "within_loss"]

if not TYPE_CHECKING:
    _HOMES = {"pixel_contrast": ("PixelContrast",)}

    __getattr__ = lazy_names(__name__, _HOMES, lambda name, _: need(f"{name} needs", "lightning"))

    def __dir__() -> list[str]:
        return sorted(__all__)
