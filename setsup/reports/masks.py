"""Masks of the objects of a rendering, in colors."""

import numpy as np

from setsup.arrays import Bytes, Pixels
from setsup.reports.colors import DISTINCT, rgb

__all__ = ["mask_colors"]


def mask_colors(mask: Bytes) -> Pixels:
    """Color the objects of a packed mask by number, the smallest in front, on white.

    Parameters
    ----------
    mask : (H, W, bytes) uint8
        Bits of objects, as the modality ``mask`` of :mod:`setsup.rendered.outputs` has them.

    Returns
    -------
    (H, W, 3) uint8

    Examples
    --------
    >>> colors = mask_colors(np.array([[[1], [3], [0]]], np.uint8))  # the second object lies within the first
    >>> colors[0].tolist()
    [[31, 119, 180], [255, 127, 14], [255, 255, 255]]

    """
    covered = np.unpackbits(mask, axis=-1, bitorder="little")
    sizes = covered.sum(axis=(0, 1), dtype=np.int64)
    colors = np.full((*mask.shape[:2], 3), 255, np.uint8)
    for number in np.argsort(-sizes, kind="stable").tolist():
        if sizes[number]:
            colors[covered[..., number] > 0] = np.rint(255 * rgb(DISTINCT[number % len(DISTINCT)]))
    return colors
