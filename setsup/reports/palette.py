"""Colours of charts: of names, of orders, of cycles."""

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals

__all__ = [
    "DISTINCT",
    "OTHERS",
    "UNKNOWN",
    "cyclic_colours",
    "oklab_to_srgb",
    "rgb",
    "sequential_colours",
    "srgb_to_oklab",
]


DISTINCT = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#bcbd22", "#17becf", "#3c4800"),
    *("#6c0048", "#00786c", "#90783c", "#3c00fc", "#fcb4a8", "#00d8a8", "#543000", "#cc186c", "#54486c", "#fcb40c"),
)
"""Colours of names: nine that are usual, and each next one the farthest (CIEDE2000) from those before it and white."""

UNKNOWN, OTHERS = "#ccd2d8", "#87929e"

# OKLab to linear sRGB: B. Ottosson, "A perceptual color space for image processing", 2020
_CONES = np.array(
    [[1, 0.3963377774, 0.2158037573], [1, -0.1055613458, -0.0638541728], [1, -0.0894841775, -1.291485548]]
)
_LINEAR = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.707614701],
    ]
)


def cyclic_colours(turns: npt.ArrayLike) -> Reals:
    """Colours of a circle of hues, red at 0; equal steps look about equal, and none is close to white.

    `turns` (n,) numbers; returns (n, 3) float64, sRGB from 0 to 1.
    """
    angle = np.radians(29 + 360 * np.asarray(turns, dtype=np.float64))
    lightness = 0.66 + 0.14 * np.cos(angle - np.radians(105))  # yellow lighter than blue, as eyes expect
    lab = np.stack([lightness, 0.15 * np.cos(angle), 0.15 * np.sin(angle)], axis=-1)
    return oklab_to_srgb(lab)


def oklab_to_srgb(lab: Reals) -> Reals:
    """Colours (n, 3) float64, sRGB from 0 to 1, of OKLab (n, 3); clipped where there is none."""
    linear = np.clip((lab @ _CONES.T) ** 3 @ _LINEAR.T, 0, 1)
    return np.asarray(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


def srgb_to_oklab(colours: Reals) -> Reals:
    """OKLab (n, 3) float64 of colours (n, 3), sRGB from 0 to 1."""
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ np.linalg.inv(_LINEAR.T)) @ np.linalg.inv(_CONES.T))


def sequential_colours(count: int) -> Reals:
    """Colours from dark to light, (count, 3) float64 sRGB: viridis without its palest, which are lost on white."""
    from matplotlib import colormaps

    return np.asarray(colormaps["viridis"](np.linspace(0, 0.94, count)), dtype=np.float64)[:, :3]


def rgb(colour: str) -> Reals:
    """Colour (3,) float64, sRGB from 0 to 1, of its ``#rrggbb``."""
    return np.frombuffer(bytes.fromhex(colour[1:]), np.uint8) / 255
