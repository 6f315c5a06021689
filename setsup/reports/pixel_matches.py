"""A sheet of what features of pixels find in another image: matches as lines, and one pixel's distances as a map."""

from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.correspondence import PixelPairs
from setsup.errors import DataError
from setsup.reports.grid import image_grid
from setsup.reports.matches import matches_drawn

__all__ = ["distance_map", "pixel_match_sheet"]

_CROSS = 5  # pixels from the middle of a cross to its ends
_LINE = (255, 60, 60)


def distance_map(view: npt.NDArray[np.uint8], distances: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """An image, bright where a feature is near and dark where it is far; the half that is farther is darkest.

    `view` (h, w, 3) uint8 and `distances` (h, w) float; returns (h, w, 3) uint8.
    """
    far = np.asarray(distances, dtype=np.float64)
    if far.shape != view.shape[:2]:
        raise DataError(f"distances are those of all pixels of the view, {view.shape[:2]}, not {far.shape}")
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
    some = pairs.select(np.unique(np.linspace(0, len(pairs) - 1, min(shown, len(pairs))).round().astype(np.int64)))
    nearest = np.unravel_index(int(far.argmin()), far.shape)
    rows: list[list[Any]] = [
        [np.asarray(matches_drawn(view1, view2, some, tile=max(view1.shape[1], 320)))],
        [
            np.concatenate(
                [_crossed(view1, pixel), _crossed(distance_map(view2, far), (nearest[1], nearest[0]))], axis=1
            )
        ],
    ]
    names = [
        f"{len(some)} of {len(pairs)} matches that are found both ways",
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
