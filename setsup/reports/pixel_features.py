"""Features of pixels as images: their principal components, and what they find in another image.

What is found is shown as matches, which are lines between two views; as the distances of one pixel's feature, which are
a map; or as the place of each pixel, which is a color.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.correspondence import PixelPairs
from setsup.errors import DataError
from setsup.reports.grid import image_grid
from setsup.reports.matches import matches_drawn

__all__ = ["component_images", "distance_map", "pixel_match_sheet", "place_colors"]

_SHOWN = (0.01, 0.99)  # quantiles of a component that are drawn darkest and brightest
_FITTED = 100_000  # pixels that components are computed of
_CROSS = 5  # pixels from the middle of a cross to its ends
_LINE = (255, 60, 60)


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
    if not maps or any(image.ndim != 3 or image.shape[2] != maps[0].shape[2] for image in maps):
        raise DataError(
            f"features of images must have the shape (h, w, D) with the same D, not {[image.shape for image in maps]}"
        )
    features = np.concatenate([image.reshape(-1, image.shape[2]) for image in maps]).astype(np.float64)
    fitted = features[:: -(-len(features) // _FITTED)]
    middle = fitted.mean(axis=0)
    axes = np.linalg.eigh(np.cov(fitted - middle, rowvar=False).reshape(features.shape[1], -1))[1][:, ::-1][:, :3]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])  # the same on all machines
    components = np.zeros((len(features), 3))
    components[:, : axes.shape[1]] = (features - middle) @ axes
    low, high = np.quantile(components, _SHOWN, axis=0)
    colors = (255 * ((components - low) / np.maximum(high - low, 1e-12)).clip(0, 1)).astype(np.uint8)
    ends = np.cumsum([image.shape[0] * image.shape[1] for image in maps])[:-1]
    return [part.reshape(*image.shape[:2], 3) for part, image in zip(np.split(colors, ends), maps, strict=True)]


def place_colors(places: npt.ArrayLike, height: int, width: int) -> npt.NDArray[np.uint8]:
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
    >>> place_colors([[0, 0], [9, 0], [np.nan, 0]], 10, 10).tolist()
    [[40, 40, 160], [240, 40, 160], [0, 0, 0]]

    """
    at = np.asarray(places, dtype=np.float64)
    share = (at / np.maximum([width - 1, height - 1], 1)).clip(0, 1)
    unknown = np.isnan(at).any(axis=-1, keepdims=True)
    colors = np.concatenate([40 + 200 * share, np.full((*at.shape[:-1], 1), 160.0)], axis=-1)
    return np.where(unknown, 0, colors).astype(np.uint8)


def distance_map(view: npt.NDArray[np.uint8], distances: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """An image, bright where a feature is near and dark where it is far; the half that is farther is darkest.

    `view` (h, w, 3) uint8 and `distances` (h, w) float; returns (h, w, 3) uint8.
    """
    far = np.asarray(distances, dtype=np.float64)
    if far.shape != view.shape[:2]:
        raise DataError(
            f"distances must have the shape {view.shape[:2]}, one for each pixel of the view, not {far.shape}"
        )
    low, middle = far.min(), np.median(far)
    near = np.clip((middle - far) / max(middle - low, 1e-12), 0, 1)[..., None]
    grey = view.mean(axis=2, keepdims=True) * 0.35
    return np.asarray(grey + near * (np.array([255.0, 210.0, 60.0]) - grey), dtype=np.uint8)


def pixel_match_sheet(
    view1: npt.NDArray[np.uint8],
    view2: npt.NDArray[np.uint8],
    pairs: PixelPairs,
    pixel: tuple[int, int],
    distances: npt.ArrayLike,
    title: str = "",
    *,
    shown: int = 24,
) -> Image.Image:
    """Two views with lines between matches, and below one pixel of view 1 with the distances of its feature in view 2.

    Parameters
    ----------
    view1, view2 : (h, w, 3) uint8
        Of one height.
    pairs : PixelPairs
        Matches, drawn as lines.
    pixel : (int, int)
        x and y in view 1.
    distances : (h, w) float
        Of that pixel's feature from those of all pixels of view 2.
    title : str
        Title of the sheet.
    shown : int
        Lines at most, evenly chosen.

    Returns
    -------
    RGB image

    """
    far = np.asarray(distances, dtype=np.float64)
    drawn = pairs.select(np.unique(np.linspace(0, len(pairs) - 1, min(shown, len(pairs))).round().astype(np.int64)))
    nearest = np.unravel_index(int(far.argmin()), far.shape)
    rows: list[list[Any]] = [
        [np.asarray(matches_drawn(view1, view2, drawn, tile=max(view1.shape[1], 320)))],
        [
            np.concatenate(
                [_crossed(view1, pixel), _crossed(distance_map(view2, far), (nearest[1], nearest[0]))], axis=1
            )
        ],
    ]
    names = [
        f"{len(drawn)} of {len(pairs)} matches that are found both ways",
        f"pixel {pixel[0]}, {pixel[1]}: how near each pixel's feature is",
    ]
    return image_grid(rows, names, title=title, tile=2 * max(view1.shape[1], 320))


def _crossed(view: npt.NDArray[np.uint8], pixel: tuple[Any, Any]) -> npt.NDArray[np.uint8]:
    """The view with a cross at a pixel."""
    image = Image.fromarray(view)
    draw = ImageDraw.Draw(image)
    x, y = int(pixel[0]), int(pixel[1])
    draw.line([(x - _CROSS, y), (x + _CROSS, y)], _LINE)
    draw.line([(x, y - _CROSS), (x, y + _CROSS)], _LINE)
    return np.asarray(image)
