"""Images of datasets as the input of frozen networks, in batches of torch tensors."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import SetsupError

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "Preprocessing", "as_rgb", "unit_rgb"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

_SLACK = 1e-3  # by which floats may leave [0, 1], from rounding or resampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Preprocessing:
    """Resize, crop and normalise images, as published weights expect.

    Resizing is antialiased, as Pillow's: 8-bit images stay 8-bit until they are normalised, and differ from Pillow's by
    at most one level on a CPU.

    Attributes
    ----------
    resize : int or (int, int), optional
        Length of the shorter edge, which keeps the aspect ratio, the longer edge rounded down; or (height, width).
    crop : (int, int), optional
        (height, width) of the centre that is kept.
    mean, std : tuple of float
        Means of the three channels, in [0, 1], which are subtracted, and standard deviations, by which the result is
        divided.
    interpolation : {"bilinear", "bicubic", "nearest"}
        Of resizing. With ``nearest``, a place between two pixels may get the other one than with Pillow.
    half : {"even", "down"}
        How the offset of the crop is rounded where it is not an integer: torchvision rounds halves to even numbers,
        transformers down.

    Examples
    --------
    >>> imagenet = Preprocessing(resize=256, crop=(224, 224))
    >>> tuple(imagenet(torch.zeros(2, 3, 100, 150, dtype=torch.uint8)).shape)
    (2, 3, 224, 224)

    """

    resize: int | tuple[int, int] | None = None
    crop: tuple[int, int] | None = None
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    interpolation: Literal["bilinear", "bicubic", "nearest"] = "bilinear"
    half: Literal["even", "down"] = "even"

    def __call__(self, images: Tensor) -> Tensor:
        """Preprocess images.

        `images` (n, C, H, W) as :func:`as_rgb` takes them; returns (n, 3, height, width) float32.
        """
        rgb = as_rgb(images)
        if self.resize is not None:
            rgb = self._resized(rgb, self.resize)
        if self.crop is not None:
            rgb = self._cropped(rgb, self.crop)
        real = _unit(rgb)
        mean, std = (torch.tensor(of, device=real.device)[:, None, None] for of in (self.mean, self.std))
        return (real - mean) / std

    def _resized(self, images: Tensor, size: int | tuple[int, int]) -> Tensor:
        height, width = images.shape[-2:]
        if isinstance(size, int):
            shorter = min(height, width)
            size = int(size * height / shorter), int(size * width / shorter)
        if size == (height, width):
            return images
        if self.interpolation == "nearest":
            return functional.interpolate(images, size, mode="nearest-exact")
        how = {"mode": self.interpolation, "antialias": True, "align_corners": False}
        if images.dtype != torch.uint8:
            return functional.interpolate(images, size, **how).clamp_(0, 1)  # type: ignore[arg-type]
        if images.device.type == "cpu":
            return functional.interpolate(images, size, **how)  # type: ignore[arg-type]
        resized = functional.interpolate(images.float(), size, **how)  # type: ignore[arg-type]
        return resized.round_().clamp_(0, 255).to(torch.uint8)

    def _cropped(self, images: Tensor, size: tuple[int, int]) -> Tensor:
        height, width = images.shape[-2:]
        if height < size[0] or width < size[1]:
            raise SetsupError(
                f"images of {height} × {width} pixels cannot be cropped to {size[0]} × {size[1]}, the input size "
                "of the encoder; open the dataset with larger images"
            )
        places = (height - size[0]) / 2, (width - size[1]) / 2
        top, left = (round(edge) if self.half == "even" else int(edge) for edge in places)
        return images[..., top : top + size[0], left : left + size[1]]


def as_rgb(images: Tensor) -> Tensor:
    """Images of a dataset with three channels, as bytes or as floats in [0, 1].

    Grey images get three equal channels, and 16-bit integers are divided by 65,535.

    `images` (n, 1 or 3, H, W) uint8, uint16, or float in [0, 1]; returns (n, 3, H, W) uint8 or float32. SetsupError for
    others.
    """
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        shape = f"{images.shape[1]} channels" if images.ndim == 4 else f"the shape {tuple(images.shape)}"
        raise SetsupError(
            f"images for an encoder must have the shape (n, 1 or 3, height, width), not {shape}; use a dataset of "
            "RGB or grey images"
        )
    if images.dtype == torch.uint16:
        images = images.float() / 65_535
    elif images.is_floating_point():
        images = images.float()
        low, high = (float(bound) for bound in images.aminmax()) if images.numel() else (0.0, 0.0)
        if not -_SLACK <= low <= high <= 1 + _SLACK:
            raise SetsupError(
                f"floating-point images for an encoder must be in [0, 1], not from {low:.4g} to {high:.4g}; "
                "rescale them, or store 8-bit images"
            )
    elif images.dtype != torch.uint8:
        raise SetsupError(
            "images for an encoder must be uint8, uint16 or floats in [0, 1], not "
            f"{str(images.dtype).removeprefix('torch.')}; convert them"
        )
    return images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images


def unit_rgb(images: Tensor) -> Tensor:
    """Images of a dataset, as :func:`as_rgb` takes them, as (n, 3, H, W) float32 in [0, 1]."""
    return _unit(as_rgb(images))


def _unit(rgb: Tensor) -> Tensor:
    return rgb.float() / 255 if rgb.dtype == torch.uint8 else rgb
