"""Stable single-pixel contrast: features of pixels that are near if both show the same place, and at ½ otherwise."""

from setsup.methods.pixels.losses import between_loss, pixel_distances, within_loss
from setsup.methods.pixels.pixel_contrast import PixelContrast

__all__ = ["PixelContrast", "between_loss", "pixel_distances", "within_loss"]
