"""The augmentations of DCoDR as functions that return a transform of a batch.

Arguments and notation are those that :mod:`setsup.methods.recipes` explains.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284), and its published code.

"""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from setsup.arrays import Size
from setsup.loading.batch import Transform
from setsup.loading.transforms import (
    Augment,
    Blur,
    Brightness,
    Contrast,
    Erase,
    Flip,
    Gray,
    Hue,
    Jitter,
    OneOf,
    RandomApply,
    ResizedCrop,
    Rotate,
    Saturation,
    VerticalFlip,
)

__all__ = ["APPENDIX_A", "RECIPES", "dcodr", "dcodr_appendix", "dcodr_blur", "dcodr_simsiam"]


def dcodr(*, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """Positives of DCoDR [1]_ (code): one of four operations for each image, equally likely, 8 bits.

    Blur by 5 × 5 pixels with σ = 1; contrast by U(1.8, 3); saturation by U(1.8, 3); a crop of U(0.5, 1) of the area and
    3/4 … 4/3 in width by height, resized. The text can be read as if all were applied. Images stay as they are, and
    ``positive_image`` is added. Saturation leaves grey images as they are.
    """
    four = [Blur(5, (1, 1)), Contrast(1.8, 3), Saturation(1.8, 3), ResizedCrop(size, (0.5, 1))]
    return _positives([OneOf(four)], seed, stream)


def dcodr_blur(*, seed: int, stream: str) -> Transform:
    """Positives of DCoDR on Edges2Shoes [1]_ (text): the blur of ``dcodr`` alone.

    The published script leaves the option out that says so, and would take all four.
    """
    return _positives([Blur(5, (1, 1))], seed, stream)


def dcodr_simsiam(*, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """Positives of DCoDR's ablation "SimSiam augmentations" [1]_ (table 3 and code): all that follows, 8 bits.

    A crop of U(0.6, 1) of the area, resized; a flip of half of the images; for 0.3 of them brightness, contrast and
    saturation by U(0.6, 1.4) and hue by U(−0.1, 0.1) turns, in any order; grey for 0.2; for 0.2 a blur by 3 × 3 pixels
    with σ = U(1, 2).
    """
    jitter = RandomApply(Jitter(0.4, 0.4, 0.4, 0.1), 0.3)
    operations = [
        ResizedCrop(size, (0.6, 1)),
        Flip(),
        jitter,
        RandomApply(Gray(), 0.2),
        RandomApply(Blur(3, (1, 2)), 0.2),
    ]
    return _positives(operations, seed, stream)


APPENDIX_A: Mapping[str, Callable[[int | Size], Any]] = MappingProxyType(
    {
        "horizontal-flip": lambda size: Flip(1),
        "vertical-flip": lambda size: VerticalFlip(1),
        "affine": lambda size: Rotate((-40, 40)),
        "erasing": lambda size: Erase((0.02, 0.33), (0.3, 3.3)),
        "hue": lambda size: Hue(0.2, 0.8),  # a turn more changes nothing: 0.5 … 0.8 is −0.5 … −0.2
        "low-brightness": lambda size: Brightness(0.2, 0.6),
        "high-brightness": lambda size: Brightness(1.4, 1.8),
        "low-contrast": lambda size: Contrast(0.3, 0.8),
        "high-contrast": lambda size: Contrast(1.8, 3),
        "grey": lambda size: Gray(),
        "high-saturation": lambda size: Saturation(1.8, 3),
        "blur": lambda size: Blur(5, (1, 1)),
        "crop": lambda size: ResizedCrop(size, (0.5, 1)),
    }
)


def dcodr_appendix(transform: str, *, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """One of the thirteen transforms of DCoDR's appendix A [1]_ (code), applied to every image, 8 bits.

    Flips; a rotation by U(−40, 40) degrees on white; a rectangle of U(0.02, 0.33) of the area and 0.3 … 3.3 in height
    by width set to 0; hue by U(0.2, 0.5) or U(−0.5, −0.2) turns, equally likely; brightness by U(0.2, 0.6) or by
    U(1.4, 1.8); contrast by U(0.3, 0.8) or by U(1.8, 3); grey; saturation by U(1.8, 3); blur by 5 × 5 pixels with
    σ = 1; a crop of U(0.5, 1) of the area, resized. Images stay as they are, and ``positive_image`` is added.

    The code differs in two: it rotates by the nearest pixel, and here images are bilinear; and it hands its erasing
    the axes of images in another order, so that columns of one or two colour channels become 0.
    """
    fill = 1.0 if transform == "affine" else 0.0
    return _positives([APPENDIX_A[transform](size)], seed, stream, fill)


def _positives(operations: list[Any], seed: int, stream: str, fill: float = 0.0) -> Transform:
    return Augment(operations, into="positive", fill=fill, eight_bit=True, seed=seed, stream=stream)


RECIPES: Mapping[str, Callable[..., Transform]] = MappingProxyType(
    {
        "dcodr": dcodr,
        "dcodr-blur": dcodr_blur,
        "dcodr-simsiam": dcodr_simsiam,
        **{f"dcodr-a/{name}": partial(dcodr_appendix, name) for name in APPENDIX_A},
    }
)
"""By the names that :func:`setsup.methods.recipes.recipe` takes."""
