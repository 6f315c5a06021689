"""The augmentations and views of the papers, with their ranges: functions that return a transform of a batch.

All take ``seed`` and ``stream``, those of :class:`~setsup.loading.transforms.augment.Augment`; ``size`` is that of the
result in pixels, a number or (height, width). If the published code of a paper fixes what its text leaves open, or
contradicts it, the recipe follows the code and says so. U(a, b) is uniform between a and b, drawn for each image.
*8 bits* means images that are uint8 after every operation, as in Pillow.

References
----------
.. [1] K. Murphy et al., "Learning ABCs: approximate bijective correspondence for isolating factors of variation with
   weak supervision", CVPR 2022 (arXiv 2103.03240), and its published code for Shapes3D.
.. [2] J. Kahana, Y. Hoshen, "A contrastive objective for learning disentangled representations", ECCV 2022
   (arXiv 2203.11284), and its published code.
.. [3] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849), and its published code.
.. [4] L. Pogorelyuk et al., "Stable single-pixel contrastive learning for semantic and geometric tasks", 2025
   (arXiv 2512.04970), and its published code.

"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Size
from setsup.loading.batch import Batch, Transform
from setsup.loading.transforms import (
    AddBrightness,
    Augment,
    AutoContrast,
    Background,
    Blur,
    Brightness,
    CenterCrop,
    Compose,
    Contrast,
    Crop,
    Equalize,
    Erase,
    Flip,
    ForLevels,
    Gray,
    Hue,
    Jitter,
    Noise,
    OneOf,
    Posterize,
    Premultiply,
    RandomApply,
    Resize,
    ResizedCrop,
    Rotate,
    SaltAndPepper,
    Saturation,
    Shift,
    Sobel,
    VerticalFlip,
)
from setsup.loading.views import ColorViews, PlanarPairs

__all__ = [
    "APPENDIX_A",
    "ROOM",
    "Centered",
    "abc_pose",
    "abc_shapes3d",
    "cmc",
    "cmc_nyu",
    "cmc_stl10",
    "dcodr",
    "dcodr_appendix",
    "dcodr_blur",
    "dcodr_simsiam",
    "lab_views",
    "oxels_2d",
    "oxels_3d",
]

ROOM = {"image": "color", "depth": "depth", "normals": "normal", "labels": "label"}


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


def dcodr(*, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """Positives of DCoDR [2]_ (code): one of four operations for each image, equally likely, 8 bits.

    Blur by 5 × 5 pixels with σ = 1; contrast by U(1.8, 3); saturation by U(1.8, 3); a crop of U(0.5, 1) of the area and
    3/4 … 4/3 in width by height, resized. The text can be read as if all were applied. Images stay as they are, and
    ``positive_image`` is added. Saturation leaves grey images as they are.
    """
    four = [Blur(5, (1, 1)), Contrast(1.8, 3), Saturation(1.8, 3), ResizedCrop(size, (0.5, 1))]
    return _positives([OneOf(four)], seed, stream)


def dcodr_blur(*, seed: int, stream: str) -> Transform:
    """Positives of DCoDR on Edges2Shoes [2]_ (text): the blur of ``dcodr`` alone.

    The published script leaves the option out that says so, and would take all four.
    """
    return _positives([Blur(5, (1, 1))], seed, stream)


def dcodr_simsiam(*, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """Positives of DCoDR's ablation "SimSiam augmentations" [2]_ (table 3 and code): all that follows, 8 bits.

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
    """One of the thirteen transforms of DCoDR's appendix A [2]_ (code), applied to every image, 8 bits.

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


def cmc(least: float, *, seed: int, stream: str, size: int | Size = 224) -> Transform:
    """Views L and ab of one crop of each image [3]_ (code for ImageNet), 8 bits until colours are converted.

    A crop of U(least, 1) of the area, resized, with least = 0.2 for AlexNet and 0.08 for ResNets; a flip of half of the
    images. The best ResNets of the paper had Fast AutoAugment as well, which is not here. The code crops images as
    they are stored; batches have images of one size, such as those of ``setsup.load("imagenet", size=(256, 256))``.
    """
    return lab_views([ResizedCrop(size, (least, 1)), Flip()], seed, stream)


def cmc_stl10(*, seed: int, stream: str, size: int | Size = 64) -> Transform:
    """Views L and ab of a box of 64 of the 96 pixels of STL-10 [3]_ (implementation details); half of them flipped."""
    return lab_views([Crop(size), Flip()], seed, stream)


def cmc_nyu(
    *, seed: int, stream: str, size: int | Size = 128, modalities: Mapping[str, str] | None = None
) -> Transform:
    """Views L, ab, depth, normals and labels of one patch of each image of NYU [3]_ (implementation details).

    A box of 128 of 480 × 640 pixels, and a flip of half of them, the same for all modalities; normals turn with it.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of the patch.
    modalities : mapping of str to str, optional
        As in :class:`Augment`; by default ``image``, ``depth``, ``normals`` and ``labels``.

    """
    return lab_views([Crop(size), Flip()], seed, stream, modalities=ROOM if modalities is None else modalities)


def lab_views(operations: list[Any], seed: int, stream: str, **more: Any) -> Transform:
    """Augment with 8 bits, then split into the views L and ab."""
    return Compose([Augment(operations, eight_bit=True, seed=seed, stream=stream, **more), ColorViews("lab")])


@dataclass(frozen=True)
class Centered:
    """Views L and ab of the middle of each image: a box of a share of its shorter side, resized to one size.

    With 7/8 and 224 pixels the box of 224 in the middle of 256, which the code of CMC cuts out [3]_.
    """

    size: int
    share: float

    def __call__(self, batch: Batch) -> Batch:
        """Cut out, resize, and split into views."""
        side = round(self.share * min(batch["image"].shape[-2:]))
        return lab_views([CenterCrop(side), Resize(self.size)], 0, "evaluation")(batch)


def oxels_2d(*, seed: int, stream: str, size: int | Size = 32, keep: float = 0.25) -> Transform:
    """Pixel pairs of Coloured MNIST [4]_ (first experiment, code): :class:`PlanarPairs` that keep a quarter.

    Colours stay as they are; the text speaks of jitter in hue and saturation, of which the code has none.

    Parameters
    ----------
    size : int or (height, width)
        Pixels of both views.
    keep : float
        0 … 1: share of the partners that are kept: a quarter in the published sweep, 1/8 by the code's default.

    """
    return PlanarPairs(size, keep, seed=seed, stream=stream)


def oxels_3d(*, seed: int, stream: str, size: int | Size = 256) -> Transform:
    """Two views of a room [4]_ (second experiment, code): one window for all images of a set, colours of their own.

    A window of 256 of 480 × 640 pixels. Then for each image, with 8 bits: brightness and saturation by U(0.7, 1.3) and
    hue by U(−0.1, 0.1) turns, in any order; for 0.1 of them each automatic contrast, a blur by 7 × 7 pixels with
    σ = U(1, 3), 5 bits a colour, equalised tones; grey for 0.05. ``points`` (sets, size, n, 2), where a batch has them,
    are carried along; a :class:`SpatialPairs` after it finds partners within the window.
    """
    rare = [RandomApply(one, 0.1) for one in (AutoContrast(), Blur(7, (1, 3)), Posterize(5), Equalize())]
    operations = [Crop(size), Jitter(0.3, 0, 0.3, 0.1), *rare, RandomApply(Gray(), 0.05)]
    return _WithPoints(Augment(operations, geometry="sets", eight_bit=True, seed=seed, stream=stream))


@dataclass(frozen=True)
class _WithPoints:
    """An augmentation that carries ``points`` along in batches that have some."""

    augment: Augment

    @property
    def seed(self) -> int:
        """What Compose compares."""
        return self.augment.seed

    @property
    def stream(self) -> str:
        """What Compose compares."""
        return self.augment.stream

    def __call__(self, batch: Batch) -> Batch:
        points = {"points": "points"} if "points" in batch else {}
        return replace(self.augment, modalities={**self.augment.modalities, **points})(batch)
