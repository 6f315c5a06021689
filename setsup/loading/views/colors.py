"""Color spaces of sRGB images, with the values of scikit-image's converters.

They are the spaces between whose channels contrastive multiview coding measures mutual information [1]_ (figure 5): one
channel is the first view, the other two are the second.

Convention
----------
Images are (…, 3, height, width), red, green and blue of sRGB, either float in 0 … 1 or uint8 in 0 … 255. Values are
those of scikit-image 0.26: L of Lab and Luv in 0 … 100, Y of YCbCr in 16 … 235, hue in turns; white is D65 with the
observer of 2 degrees; ``rgbcie`` is a mixture of the sRGB values as they are, which scikit-image does not make linear;
``hed`` is logarithmic, from 10⁻⁶ on, and never negative.

Normalised values are (value − mean) / std. The constants of ``lab`` and ``ycbcr`` are those of [1]_. Those of ``lab``
are the middle and half the width of each channel's range over all sRGB colors, which puts it on −1 … 1. None are
published for the other spaces: they follow the same rule.

References
----------
.. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive multiview coding", 2019 (arXiv 1906.05849).
.. [2] A. C. Ruifrok, D. A. Johnston, "Quantification of histochemical staining by color deconvolution", 2001: HED.

"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import torch
from kornia.color import rgb_to_hsv, rgb_to_lab, rgb_to_linear_rgb, rgb_to_luv

from setsup.arrays import Matrices
from setsup.errors import DataError, SetsupError, abbreviate, did_you_mean
from setsup.loading.transforms.by_image import UNIT, Image, cv2, real

__all__ = ["SPACES", "ColorSpace", "array_in_color_space", "color_space", "in_color_space"]

Three = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ColorSpace:
    """A color space of three channels.

    Attributes
    ----------
    channels : (str, str, str)
        Names of the channels, such as L, a and b.
    mean, std : (float, float, float)
        Mean and standard deviation of each channel, for normalization.
    convert : callable
        From sRGB (…, 3, height, width) float32 in 0 … 1 to values of the same shape and type.
    convert_array : callable
        The same by OpenCV: from sRGB (height, width, 3), uint8 or float32 in 0 … 1, to float32.

    """

    channels: tuple[str, str, str]
    mean: Three
    std: Three
    convert: Callable[[torch.Tensor], torch.Tensor]
    convert_array: Callable[[Image], Image]

    @property
    def views(self) -> tuple[str, str]:
        """Names of the views of one channel and of two, such as L and ab."""
        first, second, third = self.channels
        return first, second + third


def in_color_space(images: torch.Tensor, space: str, *, normalize: bool = False) -> torch.Tensor:
    """Convert sRGB images to a color space.

    `images` (..., 3, height, width) uint8, or float in 0 … 1; returns (..., 3, height, width) float32.
    """
    target = color_space(space)
    if images.ndim < 3 or images.shape[-3] != 3:
        raise DataError(
            f"a color space requires RGB images (…, 3, height, width), not {tuple(images.shape)}; composite images "
            "with an alpha channel over a background first"
        )
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise DataError(f"images must be uint8, or floating point in 0 … 1, not {images.dtype}")
    # in planes, where arithmetic is several times faster than on interleaved channels
    rgb = images.to(torch.float32, memory_format=torch.contiguous_format)
    values = target.convert(rgb / 255 if images.dtype == torch.uint8 else rgb)
    if not normalize:
        return values
    mean, std = (values.new_tensor(three).reshape(3, 1, 1) for three in (target.mean, target.std))
    return (values - mean) / std


def array_in_color_space(image: Image, space: str, *, normalize: bool = False) -> Image:
    """:func:`in_color_space` of one image by OpenCV, (height, width, 3) uint8, or float32 in 0 … 1.

    Returns float32.
    """
    target = color_space(space)
    values = target.convert_array(image)
    if not normalize:
        return values
    mean, std = np.array(target.mean), np.array(target.std)
    return cv2.transform(values, np.column_stack([np.diag(1 / std), -mean / std]))


def color_space(name: str) -> ColorSpace:
    """Find a color space by its name."""
    if not isinstance(name, str) or name not in SPACES:
        raise SetsupError(f"unknown color space {abbreviate(name)}{did_you_mean(name, SPACES)}")
    return SPACES[name]


# sRGB primaries and white D65; CIE RGB primaries; absorbances of haematoxylin, eosin and DAB [2]
_XYZ = np.array([[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]])
_CIE = np.array([[0.49, 0.31, 0.20], [0.17697, 0.81240, 0.01063], [0.00, 0.01, 0.99]]) / 0.17697
_STAINS = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])
_WHITE = (0.95047, 1.0, 1.08883)
_DARK = 0.008856  # relative luminance up to which lightness is linear

_RGBCIE = np.linalg.solve(_CIE, _XYZ)
_HED = np.linalg.inv(_STAINS).T
_YCBCR = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]])
_YPBPR = np.array([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
_YDBDR = np.array([[0.299, 0.587, 0.114], [-0.45, -0.883, 1.333], [-1.333, 1.116, 0.217]])
_YUV = np.array([[0.299, 0.587, 0.114], [-0.14714119, -0.28886916, 0.43601035], [0.61497538, -0.51496512, -0.10001026]])
_YIQ = np.array([[0.299, 0.587, 0.114], [0.59590059, -0.27455667, -0.32134392], [0.21153661, -0.52273617, 0.31119955]])


def _mixed(planes: torch.Tensor, matrix: Matrices, offset: Three = (0.0, 0.0, 0.0)) -> torch.Tensor:
    """Multiply each pixel by a matrix.

    Sums of planes, not a matrix product or a convolution: those may round their factors to 10 bits on a GPU.
    """
    first, second, third = planes.unbind(-3)
    rows = zip(matrix.tolist(), offset, strict=True)
    return torch.stack([first * a + second * b + third * c + shift for (a, b, c), shift in rows], dim=-3)


def _array_mixed(image: Image, matrix: Matrices, offset: Three = (0.0, 0.0, 0.0)) -> Image:
    return cv2.transform(real(image), np.column_stack([matrix, offset]))


def _bent(image: Image, curve: Callable[[Image], Image]) -> Image:
    """Each value changed by a curve, by 256 of them where it is a level."""
    return cv2.LUT(image, curve(UNIT)) if image.dtype == np.uint8 else curve(image)


def _linear(values: Image) -> Image:
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).astype(np.float32)


def _xyz(rgb: torch.Tensor) -> torch.Tensor:
    return _mixed(rgb_to_linear_rgb(rgb), _XYZ)


def _array_xyz(image: Image) -> Image:
    return _array_mixed(_bent(image, _linear), _XYZ)


def _array_root(values: Image) -> Image:
    return np.where(values > _DARK, np.cbrt(values), 7.787 * values + np.float32(16 / 116))


def _array_lab(image: Image) -> Image:
    # not cv2.cvtColor, whose interpolated curve is off by half a unit
    relative = _array_mixed(_bent(image, _linear), _XYZ / np.array(_WHITE)[:, None])
    x, y, z = cv2.split(_array_root(relative))
    return cv2.merge([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _array_luv(image: Image) -> Image:
    x, y, z = cv2.split(_array_xyz(image))
    lightness = np.where(y > _DARK, 116 * np.cbrt(y) - 16, 903.3 * y)
    total = np.maximum(x + 15 * y + 3 * z, 1e-12)  # black has no chromaticity, and its lightness is 0
    white = _WHITE[0] + 15 * _WHITE[1] + 3 * _WHITE[2]
    u = 13 * lightness * (4 * x / total - 4 * _WHITE[0] / white)
    v = 13 * lightness * (9 * y / total - 9 * _WHITE[1] / white)
    return cv2.merge([lightness, u, v])


def _hsv(rgb: torch.Tensor) -> torch.Tensor:
    hue, saturation, value = rgb_to_hsv(rgb).unbind(-3)
    return torch.stack([hue / (2 * math.pi), saturation, value], dim=-3)


def _array_hsv(image: Image) -> Image:
    return cv2.multiply(cv2.cvtColor(real(image), cv2.COLOR_RGB2HSV), (1 / 360, 1, 1, 1))


def _hed(rgb: torch.Tensor) -> torch.Tensor:
    return _mixed(rgb.clamp(min=1e-6).log() / math.log(1e-6), _HED).clamp(min=0)


def _array_hed(image: Image) -> Image:
    absorbed = _bent(image, lambda values: np.log(np.maximum(values, 1e-6)) / np.float32(math.log(1e-6)))
    return np.maximum(_array_mixed(absorbed, _HED), 0)


def _ranged(
    channels: tuple[str, str, str],
    low: npt.ArrayLike,
    high: npt.ArrayLike,
    convert: Callable[[torch.Tensor], torch.Tensor],
    convert_array: Callable[[Image], Image],
) -> ColorSpace:
    """Space whose normalised channels go from −1 at ``low`` to 1 at ``high``."""
    bounds = np.array([low, high], dtype=np.float64)
    mean, std = bounds.mean(axis=0).tolist(), (np.diff(bounds, axis=0)[0] / 2).tolist()
    return ColorSpace(channels, tuple(mean), tuple(std), convert, convert_array)


def _mixture(channels: tuple[str, str, str], matrix: Matrices) -> ColorSpace:
    """Space whose channels are mixtures of red, green and blue, each of which lies in 0 … 1."""
    low, high = np.minimum(matrix, 0).sum(axis=1), np.maximum(matrix, 0).sum(axis=1)
    return _ranged(channels, low, high, partial(_mixed, matrix=matrix), partial(_array_mixed, matrix=matrix))


_FOOT = (16.0, 128.0, 128.0)
_ZEROS, _ONES = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)

SPACES: Mapping[str, ColorSpace] = MappingProxyType(
    {
        "lab": ColorSpace(("L", "a", "b"), (50.0, 6.025, -6.6895), (50.0, 92.208, 101.1675), rgb_to_lab, _array_lab),
        "ycbcr": ColorSpace(
            ("Y", "Cb", "Cr"),
            (116.151, 121.080, 132.342),
            (109.500, 111.855, 111.964),
            partial(_mixed, matrix=_YCBCR, offset=_FOOT),
            partial(_array_mixed, matrix=_YCBCR, offset=_FOOT),
        ),
        "hsv": _ranged(("H", "S", "V"), _ZEROS, _ONES, _hsv, _array_hsv),
        "hed": _ranged(("H", "E", "D"), _ZEROS, np.maximum(_HED, 0).sum(axis=1), _hed, _array_hed),
        "luv": _ranged(("L", "u", "v"), (0, -83.078, -134.098), (100, 175.014, 107.399), rgb_to_luv, _array_luv),
        "yuv": _mixture(("Y", "U", "V"), _YUV),
        "xyz": _ranged(("X", "Y", "Z"), _ZEROS, _XYZ.sum(axis=1), _xyz, _array_xyz),
        "ydbdr": _mixture(("Y", "Db", "Dr"), _YDBDR),
        "ypbpr": _mixture(("Y", "Pb", "Pr"), _YPBPR),
        "yiq": _mixture(("Y", "I", "Q"), _YIQ),
        "rgbcie": _mixture(("R", "G", "B"), _RGBCIE),
    }
)
"""Color spaces by name."""
