"""Patterns for surfaces that have no pictures of their own: wood, bricks, tiles, cloth and so on, drawn from a key."""

import colorsys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Words
from setsup.random import fold, randint_below, uniform
from setsup.scenes.meshes.mesh import Material

__all__ = ["PATTERNS", "finish", "pattern"]


PATTERNS = ("plain", "planks", "bricks", "tiles", "checks", "stripes", "dots", "weave", "marble")
"""What :func:`pattern` can draw."""


def pattern(kind: str, light: Sequence[int], dark: Sequence[int], key: Words, size: int = 128) -> npt.NDArray[np.uint8]:
    """Draw a picture that can be repeated without a seam.

    Returns (size, size, 3) uint8.
    """
    y, x = np.mgrid[:size, :size] * (64 / size)  # 64 units a side
    cloud = _noise(key, size, 4) - 0.5
    grain = _noise(fold(key, 1), size, 32) - 0.5
    shade = 0.1 * cloud + 0.08 * grain
    share = np.ones((size, size))  # of the light colour
    if kind in {"planks", "bricks"}:
        rows = 8
        row = y // rows
        length = 64 if kind == "planks" else 16
        shifted = (x + row * (27 if kind == "planks" else 8)) % 64
        piece = (row * 4 + shifted // length).astype(np.int64)
        tone = uniform(fold(fold(key, 2), np.arange(64)))[piece]
        gap = (y % rows < 0.6) | (shifted % length < (0.4 if kind == "planks" else 0.6))
        if kind == "planks":
            streaks = _noise(fold(key, 3), size, 32)[:, :1] * np.ones(size) - 0.5
            share = 0.35 + 0.5 * tone + 0.3 * streaks + 0.4 * cloud
            shade = 0.06 * grain - 0.35 * gap
        else:
            share = np.where(gap, 0.0, 0.75 + 0.25 * tone)
    elif kind == "tiles":
        share = np.where((x % 16 < 0.7) | (y % 16 < 0.7), 0.0, 1.0)
        tone = uniform(fold(fold(key, 2), np.arange(16)))[(y // 16 * 4 + x // 16).astype(np.int64)]
        shade = shade + 0.12 * (tone - 0.5)
    elif kind == "checks":
        share = (x // 16 + y // 16) % 2
    elif kind == "stripes":
        share = np.where(x % 16 < 5, 0.0, 1.0)
    elif kind == "dots":
        share = np.where(np.hypot(x % 16 - 8, (y + 8 * (x // 16)) % 16 - 8) < 4.5, 0.0, 1.0)
    elif kind == "weave":
        share = 0.5 + 0.25 * np.sin(x * np.pi / 2) + 0.25 * np.sin(y * np.pi / 2)
    elif kind == "marble":
        share = 0.5 + 0.5 * np.sin(2 * np.pi * (x / 32 + 1.6 * cloud))
    color = (
        np.asarray(dark, float) + (np.asarray(light, float) - np.asarray(dark, float)) * np.clip(share, 0, 1)[..., None]
    )
    return np.asarray(np.clip(color * (1 + shade)[..., None] + 0.5, 0, 255).astype(np.uint8))


def finish(key: Words, kinds: Sequence[str], colors: str = "any", size: int = 128) -> Material:
    """Draw a material with a pattern."""
    at = uniform(fold(key, np.arange(8)))
    hue, saturation, value = at[0], 0.35 + 0.5 * at[1], 0.45 + 0.45 * at[2]
    if colors == "pale":
        saturation, value = 0.05 + 0.25 * at[1], 0.75 + 0.17 * at[2]
    elif colors == "wood":
        hue, saturation, value = 0.06 + 0.05 * at[0], 0.3 + 0.35 * at[1], 0.4 + 0.45 * at[2]
    elif colors == "white":
        saturation, value = 0.03, 0.86 + 0.08 * at[2]
    other = hue if colors in {"pale", "wood", "white"} else hue + 0.15 + 0.7 * at[3]
    light = _bytes(hue, saturation, value)
    dark = _bytes(other, saturation, value * (0.45 + 0.35 * at[4]))
    kind = kinds[int(randint_below(fold(key, 9), len(kinds)))]
    return Material((255, 255, 255), pattern(kind, light, dark, fold(key, 10), size))


def _bytes(hue: Any, saturation: Any, value: Any) -> tuple[int, int, int]:
    red, green, blue = colorsys.hsv_to_rgb(float(hue) % 1.0, float(saturation), float(value))
    return round(255 * red), round(255 * green), round(255 * blue)


def _noise(key: Words, size: int, cells: int) -> Reals:
    """Smooth noise, 0 … 1, that repeats: random numbers on a lattice, interpolated; (size, size)."""
    lattice = uniform(fold(fold(key, np.arange(cells))[:, None], np.arange(cells)))
    at = np.arange(size) * (cells / size)
    left, part = at.astype(np.int64), at % 1
    part = part * part * (3 - 2 * part)
    right = (left + 1) % cells
    down = lattice[left] * (1 - part)[:, None] + lattice[right] * part[:, None]
    return np.asarray(down[:, left] * (1 - part) + down[:, right] * part)
