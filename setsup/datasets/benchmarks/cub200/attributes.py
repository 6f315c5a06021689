"""Attributes of CUB-200-2011: the published names, and what a worker said of each image.

``attributes.txt`` lists the 312 names in the order below, as ``has_bill_shape::dagger``. A worker gave one value of
nine of the groups, and any number of the others: in ``class_attribute_labels_continuous.txt`` the percentages of each
of these nine add up to 100 for every species.
"""

import numpy as np

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.number_texts import Column, read_columns
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind

__all__ = ["ATTRIBUTES", "CERTAINTIES", "GROUPS", "SINGLE", "attribute_factors", "read_attributes"]

_COLORS = (
    *("blue", "brown", "iridescent", "purple", "rufous", "grey", "yellow", "olive"),
    *("green", "pink", "orange", "black", "white", "red", "buff"),
)
_PATTERNS = ("solid", "spotted", "striped", "multi-colored")

GROUPS: dict[str, tuple[str, ...]] = {
    "bill_shape": (
        *("curved_(up_or_down)", "dagger", "hooked", "needle", "hooked_seabird"),
        *("spatulate", "all-purpose", "cone", "specialized"),
    ),
    "wing_color": _COLORS,
    "upperparts_color": _COLORS,
    "underparts_color": _COLORS,
    "breast_pattern": _PATTERNS,
    "back_color": _COLORS,
    "tail_shape": (
        *("forked_tail", "rounded_tail", "notched_tail"),
        *("fan-shaped_tail", "pointed_tail", "squared_tail"),
    ),
    "upper_tail_color": _COLORS,
    "head_pattern": (
        *("spotted", "malar", "crested", "masked", "unique_pattern", "eyebrow"),
        *("eyering", "plain", "eyeline", "striped", "capped"),
    ),
    "breast_color": _COLORS,
    "throat_color": _COLORS,
    "eye_color": tuple(color for color in _COLORS if color != "iridescent"),
    "bill_length": ("about_the_same_as_head", "longer_than_head", "shorter_than_head"),
    "forehead_color": _COLORS,
    "under_tail_color": _COLORS,
    "nape_color": _COLORS,
    "belly_color": _COLORS,
    "wing_shape": tuple(f"{shape}-wings" for shape in ("rounded", "pointed", "broad", "tapered", "long")),
    "size": (
        *("large_(16_-_32_in)", "small_(5_-_9_in)", "very_large_(32_-_72_in)"),
        *("medium_(9_-_16_in)", "very_small_(3_-_5_in)"),
    ),
    "shape": (
        *("upright-perching_water-like", "chicken-like-marsh", "long-legged-like", "duck-like", "owl-like"),
        *("gull-like", "hummingbird-like", "pigeon-like", "tree-clinging-like", "hawk-like"),
        *("sandpiper-like", "upland-ground-like", "swallow-like", "perching-like"),
    ),
    "back_pattern": _PATTERNS,
    "tail_pattern": _PATTERNS,
    "belly_pattern": _PATTERNS,
    "primary_color": _COLORS,
    "leg_color": _COLORS,
    "bill_color": _COLORS,
    "crown_color": _COLORS,
    "wing_pattern": _PATTERNS,
}
"""Values of each group, in the published order."""

ATTRIBUTES = tuple(f"has_{group}::{value}" for group, values in GROUPS.items() for value in values)
"""Names of the 312 attributes, as published."""

CERTAINTIES = ("not visible", "guessing", "probably", "definitely")
"""Names of the certainties 1 to 4."""

SINGLE = (
    *("bill_shape", "breast_pattern", "tail_shape", "size", "shape"),
    *("back_pattern", "tail_pattern", "belly_pattern", "wing_pattern"),
)
"""Groups of which a worker gave one value: they are factors."""

_SIZES = ("very_small", "small", "medium", "large", "very_large")
_COLUMNS = {
    "image": Column(np.int32, 1, 10**9),
    "attribute": Column(np.int16, 1, len(ATTRIBUTES)),
    "present": Column(np.int8, 0, 1),
    "certainty": Column(np.int8, 1, len(CERTAINTIES)),
}
_FURTHER = 2  # values that a few of the published lines have too many, before the time


def read_attributes(content: bytes, label: str, images: Rows) -> Array:
    """Presence and certainty of every attribute of some images, by ``image_attribute_labels.txt``.

    `images` (n,) int64: their numbers, each once. Returns (n, 312) uint8: twice the certainty, plus 1 if present.
    """
    meaning = "the numbers of an image and an attribute from 1 to 312, 0 or 1, a certainty from 1 to 4, and a time"
    lines = read_columns(content, label, _COLUMNS, meaning, unread=("time",), further=_FURTHER)
    order = np.argsort(images)
    place = np.searchsorted(images, lines["image"], sorter=order)
    row = order[np.minimum(place, len(images) - 1)]
    known = images[row] == lines["image"]
    spots = (row * len(ATTRIBUTES) + lines["attribute"] - 1)[known]
    codes = np.zeros(len(images) * len(ATTRIBUTES), np.uint8)
    codes[spots] = (2 * lines["certainty"] + lines["present"])[known].astype(np.uint8)
    if np.count_nonzero(codes) < len(spots):
        spot = int(np.argmax(np.bincount(spots) > 1))
        raise DamagedFile(f"{label} has more than one line for {_told(images, spot)}")
    if len(spots) < len(codes):
        spot = int(np.argmin(codes))
        raise DamagedFile(f"{label} has no line for {_told(images, spot)}")
    return codes.reshape(len(images), len(ATTRIBUTES))


def attribute_factors(codes: Array) -> list[tuple[Factor, Array]]:
    """Factors of the groups of one value, unknown where none or several are present; sizes rise.

    `codes` (n, 312) uint8, as :func:`read_attributes` returns them.
    """
    factors, start = list[tuple[Factor, Array]](), 0
    for group, values in GROUPS.items():
        stop = start + len(values)
        if group in SINGLE:
            sized = group == "size"
            levels = tuple(sorted(values, key=lambda value: _SIZES.index(value.split("_(")[0]))) if sized else values
            present = codes[:, start:stop][:, [values.index(level) for level in levels]] & 1
            level = np.where(present.sum(axis=1) == 1, present.argmax(axis=1), -1)
            factors.append((Factor(group, Kind.ORDINAL if sized else Kind.NOMINAL, levels), level))
        start = stop
    return factors


def _told(images: Rows, spot: int) -> str:
    row, attribute = divmod(spot, len(ATTRIBUTES))
    return f"attribute {attribute + 1} of image {images[row]}"
