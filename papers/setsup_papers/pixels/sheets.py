"""What features of pixels look like: images of the evaluations of single-pixel contrast."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setsup.evaluation.pixels import nearest_pixels

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["color_sheet", "room_sheet"]

Images = Sequence[npt.NDArray[np.uint8]]
Maps = Sequence[npt.NDArray[Any]]

_STEP = 4  # every so many pixels of a room the nearest one is drawn


def color_sheet(images: Images, turned: Images, maps: Maps, turned_maps: Maps) -> "Image":
    """Digits, the same in the other colour and turned, their features, and the nearest pixel of each pixel.

    All (h, w, ...) of as many digits. Places are drawn by colours, so the last two rows are alike where each pixel of
    the turned digit is matched to its own place in the first.
    """
    from setsup.reports import image_grid
    from setsup.reports.pixel_features import component_images, place_colors

    features = component_images([*maps, *turned_maps])
    height, width = maps[0].shape[:2]
    positions = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1)
    true = place_colors(np.rot90(positions), height, width)
    nearest = [
        place_colors(nearest_pixels(second.reshape(-1, second.shape[2]), first).places, height, width).reshape(
            *second.shape[:2], 3
        )
        for first, second in zip(maps, turned_maps, strict=True)
    ]
    rows: list[Any] = [images, turned, features[: len(maps)], features[len(maps) :], [true] * len(maps), nearest]
    names = ["digit", "other colour, turned", "features", "features, turned", "its place in the digit", "nearest"]
    return image_grid(rows, names, title="Features of pixels of digits in two colours", tile=64)


def room_sheet(views: Sequence[Images], maps: Sequence[Maps], partners: Maps) -> "Image":
    """Pairs of views, their features, and where in view 2 each pixel of view 1 is found.

    Parameters
    ----------
    views : pairs of (h, w, 3) uint8
        Both views of each pair.
    maps : pairs of (h, w, D) float
        Their features.
    partners : (h, w, 2) float each
        Places in view 2 of the pixels of view 1, NaN where they are not seen there.

    """
    from setsup.reports import image_grid
    from setsup.reports.pixel_features import component_images, place_colors

    rows = []
    for both, (first, second), there in zip(views, maps, partners, strict=True):
        height, width = second.shape[:2]
        some, seen = first[::_STEP, ::_STEP], there[::_STEP, ::_STEP]
        nearest = nearest_pixels(some.reshape(-1, some.shape[2]), second).places.reshape(*some.shape[:2], 2)
        nearest_seen = np.where(np.isnan(seen), np.nan, nearest)
        places = [
            place_colors(positions, height, width).repeat(_STEP, axis=0).repeat(_STEP, axis=1)[:height, :width]
            for positions in (seen, nearest_seen)
        ]
        rows.append([*both, *component_images([first, second]), *places])
    names = ["view 1", "view 2", "features", "features", "place in view 2", "nearest"]
    return image_grid(rows, column_labels=names, title="Features of pixels of two views", tile=256)
