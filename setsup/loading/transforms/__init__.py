"""Transforms of batches on their device: augmentations of sets of images and of modalities on the same pixels.

Everything here is a callable of a batch, for ``transform=`` of :func:`setsup.loader`, or an operation that
:class:`Augment` applies to its images.
"""

# ruff: noqa: E402

from setsup.errors import require_modules

require_modules("transforms need", "torch", "kornia")  # before what imports them

from setsup.loading.transforms.augment import Augment, Compose
from setsup.loading.transforms.choices import ForLevels, OneOf, RandomApply
from setsup.loading.transforms.operations.crops import CenterCrop, Crop, Resize, ResizedCrop
from setsup.loading.transforms.operations.filters import Blur, Noise, SaltAndPepper, Sobel
from setsup.loading.transforms.operations.geometry import Affine, Flip, Perspective, Rotate, Shift, VerticalFlip
from setsup.loading.transforms.operations.jitter import Jitter
from setsup.loading.transforms.operations.photometry import AddBrightness, Brightness, Contrast, Gray, Hue, Saturation
from setsup.loading.transforms.operations.regions import Background, Erase, Premultiply
from setsup.loading.transforms.operations.tones import AutoContrast, Equalize, Posterize

__all__ = [
    "AddBrightness",
    "Affine",
    "Augment",
    "AutoContrast",
    "Background",
    "Blur",
    "Brightness",
    "CenterCrop",
    "Compose",
    "Contrast",
    "Crop",
    "Equalize",
    "Erase",
    "Flip",
    "ForLevels",
    "Gray",
    "Hue",
    "Jitter",
    "Noise",
    "OneOf",
    "Perspective",
    "Posterize",
    "Premultiply",
    "RandomApply",
    "Resize",
    "ResizedCrop",
    "Rotate",
    "SaltAndPepper",
    "Saturation",
    "Shift",
    "Sobel",
    "VerticalFlip",
]
