"""Description of one kind of array that a dataset fetches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.checks import check_string
from setsup.errors import DataError, abbreviate

__all__ = ["Modality", "first_image"]


@dataclass(frozen=True, slots=True)
class Modality:
    """One kind of array that a dataset fetches, described for a single row.

    Parameters
    ----------
    shape : tuple of int or None
        Shape of one row's array; None for a length that differs between rows.
    dtype : str
        Name of a numpy dtype: ``"uint8"``, ``"float32"``.
    unit : str
        ``"m"``, ``"rad"`` or nothing.
    color : str
        ``"srgb"``, ``"grey"``, ``"red-green"`` for images of two channels; empty for arrays that are not images.

    Raises
    ------
    DataError
        When the dtype is not one of numpy's, or a length is not positive.

    Examples
    --------
    >>> Modality((64, 64, 3), "uint8", color="srgb").shape
    (64, 64, 3)

    """

    shape: tuple[int | None, ...]
    dtype: str
    unit: str = ""
    color: str = ""

    def __post_init__(self) -> None:
        """Check the description and normalize it, so that equal modalities compare equal."""
        if not isinstance(self.shape, Sequence) or isinstance(self.shape, str | bytes):
            raise DataError(f"the shape of a modality must be a tuple, not {abbreviate(self.shape)}")
        check_string(self.unit, "the unit of a modality", DataError)
        check_string(self.color, "the color of a modality", DataError)
        shape = tuple(self.shape)
        if not all(size is None or (isinstance(size, int | np.integer) and size > 0) for size in shape):
            raise DataError(f"the shape of a modality must contain positive integers or None, not {shape}")
        object.__setattr__(self, "shape", tuple(None if size is None else int(size) for size in shape))
        try:
            object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        except (TypeError, ValueError):
            raise DataError(
                f"the dtype of a modality must be the name of a numpy dtype, not {abbreviate(self.dtype)}"
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return the description as JSON values, in the order in which files state them.

        Examples
        --------
        >>> Modality((64, 64, 3), "uint8", color="srgb").to_dict()
        {'shape': [64, 64, 3], 'dtype': 'uint8', 'unit': '', 'color': 'srgb'}

        """
        return {"shape": list(self.shape), "dtype": self.dtype, "unit": self.unit, "color": self.color}

    @property
    def is_eight_bit_image(self) -> bool:
        """Whether this is an 8-bit image that any image format supports: grayscale, or color with or without alpha."""
        return bool(self.color) and self.dtype == "uint8" and len(self.shape) == 3 and self.shape[2] in (1, 3, 4)


def first_image(modalities: Mapping[str, Modality]) -> str | None:
    """Name of the first modality of images; None if there is none."""
    return next((name for name, kind in modalities.items() if kind.color), None)
