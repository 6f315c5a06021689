"""The augmentations of ABC as functions that return a transform of a batch.

Arguments and notation are those that :mod:`setsup.methods.recipes` explains.

References
----------
.. [1] K. Murphy et al., "Learning ABCs: approximate bijective correspondence for isolating factors of variation with
   weak supervision", CVPR 2022 (arXiv 2103.03240), and its published code for Shapes3D.

"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Size
from setsup.loading.batch import Transform
from setsup.loading.transforms import (
    AddBrightness,
    Augment,
    Background,
    CenterCrop,
    ForLevels,
    Hue,
    Noise,
    Premultiply,
    SaltAndPepper,
    Shift,
    Sobel,
)

__all__ = ["RECIPES", "abc_pose", "abc_shapes3d"]


def abc_shapes3d(*, seed: int, stream: str) -> Transform:
    """Augmentation baseline of ABC on Shapes3D [1]_ (code): two copies of each image, hue turned by U(−0.5, 0.5) turns.

    Each image has a turn of its own, as the paper says. The code draws one for all images of a set.
    """
    return Augment([Hue(-0.5, 0.5)], copies=2, seed=seed, stream=stream)


def abc_pose(
    *,
    seed: int,
    stream: str,
    pool: npt.NDArray[np.uint8] | None = None,
    real: tuple[str, int | Sequence[int]] | None = None,
    size: int | Size | None = None,
    move: float = 0.1,
    brightness: float = 0.2,
    hue: float = 0.5,
    noise: float = 0.05,
    salt_and_pepper: float = 0.0,
    sobel: float = 0.2,
) -> Transform:
    """Double augmentation of ABC's pose networks [1]_ (synthetic-to-real pose, training details): two copies of each.

    In order: a move by U(−0.1, 0.1) of height and of width, the background, brightness + U(−0.2, 0.2), hue of real
    images by U(−0.5, 0.5) turns, normal noise with σ = 0.05, and Sobel edges times U(−0.2, 0.2). The paper has these
    operations and the amount of the move. It states no other amount and no order: they are chosen here. Its text has
    salt-and-pepper noise where a caption has normal noise.

    Parameters
    ----------
    pool : (k, height, width, 3) uint8, optional
        Images behind images with alpha; the paper took ImageNet-A. Without it, images are RGB, and what a move
        uncovers is black.
    real : (factor, codes of its levels), optional
        Which images are real, such as ``("part", 1)``. Without it, no hue is turned.
    size : int or (height, width), optional
        Pixels of the object's box, in the middle of larger images: the box is moved over the image, as in the
        paper, and what it uncovers is what the image has there. Without it the box is the whole image, and beside
        a photograph stands the pool, or black, just as beside a rendering.
    move : float
        0 … 1: largest move, as a share of the box's sides.
    brightness, hue, sobel : float
        Largest amounts either way; hue 0 … 0.5 turns.
    noise : float
        Standard deviation; colours are 0 … 1.
    salt_and_pepper : float
        0 … 1: share of the pixels turned black or white, after the normal noise.

    """
    operations: list[Any] = [] if pool is None else [Premultiply()]
    if size is not None:
        operations.append(CenterCrop(size))
    operations.append(Shift(move))
    if pool is not None:
        operations.append(Background(pool, premultiplied=True))
    operations.append(AddBrightness(-brightness, brightness))
    if real is not None:
        operations.append(ForLevels(Hue(-hue, hue), *real))
    operations.append(Noise(noise))
    if salt_and_pepper:
        operations.append(SaltAndPepper(salt_and_pepper))
    operations.append(Sobel(-sobel, sobel))
    return Augment(operations, copies=2, seed=seed, stream=stream)


RECIPES: Mapping[str, Callable[..., Transform]] = MappingProxyType({"abc-shapes3d": abc_shapes3d, "abc-pose": abc_pose})
"""By the names that :func:`setsup.methods.recipes.recipe` takes."""
