"""Fields of an item of a torch dataset: images, other arrays, and single values that could be factors.

Convention
----------
Items are tuples, mappings or an image alone. The fields of a tuple are ``image``, then ``target`` where there are two,
else ``item1``, ``item2`` …; those of a named tuple and a mapping have their names. Tensors of uint8 are (channels,
height, width), as torch has them, and numpy arrays (height, width, channels).
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from setsup.arrays import Array
from setsup.datasets.formats.npy import NUMBERS
from setsup.errors import DataError, did_you_mean

__all__ = ["CHANNELS", "Items", "as_pixels", "field_keys", "is_value", "pick", "plain_value", "read_item"]

CHANNELS = (1, 3, 4)

_MODES = {"1": "L", "L": "L", "P": "RGB", "RGB": "RGB", "CMYK": "RGB", "YCbCr": "RGB", "HSV": "RGB", "LAB": "RGB"}
_ALPHA = {"LA": "RGBA", "PA": "RGBA", "RGBA": "RGBA"}
_DEEP = {"I;16": "uint16", "I;16B": "uint16", "I;16L": "uint16", "I": "int32", "F": "float32"}


class Items(Protocol):
    """Items by their numbers."""

    def __len__(self) -> int:
        """Count the items."""
        ...

    def __getitem__(self, row: int, /) -> Any:
        """Give an item."""
        ...


def read_item(items: Items, row: int, name: str) -> Any:
    """Return an item; any error of the user's own code becomes a DataError."""
    try:
        return items[row]
    except Exception as error:
        why = " ".join(str(error).split())[:200]
        raise DataError(f"item {row} of {name} cannot be read: {type(error).__name__}: {why}") from error


def field_keys(item: Any) -> dict[str, Any]:
    """Names of the fields of an item with their keys; the key is None if the item is a single field."""
    if isinstance(item, Mapping):
        return {str(key): key for key in item}
    if isinstance(item, tuple) and hasattr(item, "_fields"):
        return {str(field): index for index, field in enumerate(item._fields)}
    if isinstance(item, tuple | list):
        rest = ["target"] if len(item) == 2 else [f"item{index}" for index in range(1, len(item))]
        return {field: index for index, field in enumerate(["image", *rest][: len(item)])}
    return {"image": None}


def pick(item: Any, key: Any, name: str, row: int) -> Any:
    """Return a field of an item."""
    if key is None:
        return item
    try:
        return item[key]
    except (KeyError, IndexError, TypeError):
        known = field_keys(item)
        raise DataError(
            f"item {row} of {name} has no field {key!r}, unlike other items{did_you_mean(key, known)}"
        ) from None


def is_value(value: Any) -> bool:
    """Whether a field is a single value or None, which could be a level of a factor."""
    if value is None or isinstance(value, str | bool | int | float | np.generic):
        return True
    return getattr(value, "shape", None) == () and not hasattr(value, "getbands")


def plain_value(value: Any) -> Any:
    """A value without its tensor or array."""
    return value.item() if hasattr(value, "item") else value


def as_pixels(value: Any, label: str) -> tuple[Array, bool] | None:
    """Array of a field, and whether it is an image, (height, width, channels) uint8; None for other fields."""
    if hasattr(value, "getbands"):
        return _of_pillow(value, label)
    torch_order = hasattr(value, "detach")
    if torch_order:
        try:
            value = value.detach().cpu().numpy()
        except TypeError as error:
            raise DataError(
                f"{label} cannot be converted to a numpy array: {error}; convert it in the dataset"
            ) from error
    if not isinstance(value, np.ndarray) or value.dtype.kind not in NUMBERS or not value.ndim:
        return None
    if value.dtype != np.uint8 or value.ndim not in (2, 3):
        return value, False
    return _of_bytes(value, label, torch_order)


def _of_pillow(image: Any, label: str) -> tuple[Array, bool]:
    mode = (_MODES | _ALPHA).get(image.mode)
    if mode is not None:
        pixels = np.asarray(image if image.mode == mode else image.convert(mode))
        return pixels.reshape(*pixels.shape[:2], -1), True
    if image.mode in _DEEP:
        return np.asarray(image).astype(_DEEP[image.mode], copy=False), False
    raise DataError(f"{label} is an image of mode {image.mode}; expected L, RGB or RGBA; convert it in the dataset")


def _of_bytes(array: Array, label: str, torch_order: bool) -> tuple[Array, bool]:
    if array.ndim == 2:
        return array[..., None], True
    first, last = array.shape[0] in CHANNELS, array.shape[2] in CHANNELS
    if torch_order and first:
        return np.moveaxis(array, 0, -1), True
    if last:
        return array, True
    if first:
        raise DataError(
            f"{label} is a uint8 numpy array of shape {array.shape}, which looks like (channels, height, width); "
            "return it as (height, width, channels), or as a tensor"
        )
    return array, False
