"""Features of pixels as images: their first three principal components, and where in another image the nearest is."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError

__all__ = ["component_images", "place_colours"]

_SHOWN = (0.01, 0.99)  # quantiles of a component that are drawn darkest and brightest
_FITTED = 100_000  # pixels that components are computed of


def component_images(maps: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[np.uint8]]:
    """The first three principal components of the features of all images together, as red, green and blue.

    So equal colours mean similar features, in all images.

    Parameters
    ----------
    maps : sequence of (h, w, D) float
        Features of all pixels of an image each; images may differ in size.

    Returns
    -------
    list of (h, w, 3) uint8

    Raises
    ------
    DataError
        When there are none, or D differs.

    Examples
    --------
    >>> left, right = component_images([np.zeros((2, 2, 8)), np.ones((2, 3, 8))])
    >>> left[0, 0].tolist() == right[0, 0].tolist(), right.shape
    (False, (2, 3, 3))

    """
    if not maps or any(one.ndim != 3 or one.shape[2] != maps[0].shape[2] for one in maps):
        raise DataError(f"features of images are (h, w, D) with one D, not {[one.shape for one in maps]}")
    flat = np.concatenate([one.reshape(-1, one.shape[2]) for one in maps]).astype(np.float64)
    some = flat[:: -(-len(flat) // _FITTED)]
    middle = some.mean(axis=0)
    axes = np.linalg.eigh(np.cov(some - middle, rowvar=False).reshape(flat.shape[1], -1))[1][:, ::-1][:, :3]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # the same on all machines
    found = np.zeros((len(flat), 3))
    found[:, : axes.shape[1]] = (flat - middle) @ axes
    low, high = np.quantile(found, _SHOWN, axis=0)
    colours = (255 * ((found - low) / np.maximum(high - low, 1e-12)).clip(0, 1)).astype(np.uint8)
    ends = np.cumsum([one.shape[0] * one.shape[1] for one in maps])[:-1]
    return [part.reshape(*one.shape[:2], 3) for part, one in zip(np.split(colours, ends), maps, strict=True)]


def place_colours(places: npt.ArrayLike, height: int, width: int) -> npt.NDArray[np.uint8]:
    """A colour for each place in an image: from left to right more red, from top to bottom more green.

    Parameters
    ----------
    places : (..., 2) float
        x and y in the image, pixels; NaN becomes black.
    height, width : int
        Of the image.

    Returns
    -------
    (..., 3) uint8

    Examples
    --------
    >>> place_colours([[0, 0], [9, 0], [np.nan, 0]], 10, 10).tolist()
    [[40, 40, 160], [240, 40, 160], [0, 0, 0]]

    """
    at = np.asarray(places, dtype=np.float64)
    share = (at / np.maximum([width - 1, height - 1], 1)).clip(0, 1)
    unknown = np.isnan(at).any(axis=-1, keepdims=True)
    colours = np.concatenate([40 + 200 * share, np.full((*at.shape[:-1], 1), 160.0)], axis=-1)
    return np.where(unknown, 0, colours).astype(np.uint8)
