"""Images of several sizes brought to one size, each from its original: ``resize=`` of :func:`setsup.loader`."""

from setsup.loading.resizing.resizes import Letterbox, Place, RandomResizedCrop, Resize, ShortSide

__all__ = ["Letterbox", "Place", "RandomResizedCrop", "Resize", "ShortSide"]
