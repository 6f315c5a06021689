"""The files of Multi-Object Datasets: which features their examples have, and in which form.

Convention
----------
An example has E entities. The first ones are the background; the others are objects, of which those that are null have
the visibility 0. Pixels are lists of single bytes: ``image`` (height, width, channels), ``mask`` (E, height, width, 1),
or (height, width, E, 1) in Multi-dSprites. Numbers are float32, (E) or (E, number of columns). Codes of levels are
float32 (E), or single bytes (E) in CLEVR.

References
----------
.. [1] Kabra, Burgess, Matthey, Kaufman, Greff, Reynolds, Lerchner, "Multi-Object Datasets", 2019.

"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["CLEVR_WITH_MASKS", "MULTI_DSPRITES", "OBJECTS_ROOM", "TETROMINOES", "Form"]

_COLOR = ("red", "green", "blue")


@dataclass(frozen=True, slots=True)
class Form:
    """A file and the features of its examples.

    `file` is its name and `folder` that of the bucket; `size` (height, width). `levels` are features of codes;
    `numbers` has the columns of each feature of numbers, and `modalities` the columns of each array of numbers, one
    name for an array without a last axis.
    """

    file: str
    folder: str
    entities: int
    size: tuple[int, int] = (64, 64)
    channels: int = 3
    backgrounds: int = 1
    levels: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modalities: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    byte_levels: bool = False
    masks_last: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns of numbers."""
        return tuple(column for columns in self.numbers.values() for column in columns)


def _sprites(version: str, entities: int, channels: int) -> Form:
    singles = ("x", "y", "orientation", "scale")
    return Form(
        f"multi_dsprites_{version}.tfrecords",
        "multi_dsprites",
        entities,
        channels=channels,
        levels=("shape",),
        numbers={**{name: (name,) for name in singles}, "color": _COLOR},
        modalities={**{name: name for name in singles}, "color": _COLOR},
        masks_last=True,
    )


def _room(part: str, entities: int) -> Form:
    return Form(f"objects_room_{part}.tfrecords", "objects_room", entities, backgrounds=4)


MULTI_DSPRITES = MappingProxyType(
    {
        "binarized": _sprites("binarized", 4, 1),
        "colored_on_grayscale": _sprites("colored_on_grayscale", 6, 3),
        "colored_on_colored": _sprites("colored_on_colored", 5, 3),
    }
)
"""Multi-dSprites by version."""

OBJECTS_ROOM = MappingProxyType(
    {
        "train": _room("train", 7),
        "six_objects": _room("test_six_objects", 10),
        "empty_room": _room("test_empty_room", 4),
        "identical_color": _room("test_identical_color", 10),
    }
)
"""Objects Room by version: the training set and three test sets."""

TETROMINOES = Form(
    "tetrominoes_train.tfrecords",
    "tetrominoes",
    4,
    size=(35, 35),
    levels=("shape",),
    numbers={"x": ("x",), "y": ("y",), "color": _COLOR},
    modalities={"x": "x", "y": "y", "color": _COLOR},
)

CLEVR_WITH_MASKS = Form(
    "clevr_with_masks_train.tfrecords",
    "clevr_with_masks",
    11,
    size=(240, 320),
    levels=("shape", "size", "color", "material"),
    numbers={
        **{name: (name,) for name in ("rotation", "x", "y", "z")},
        "pixel_coords": ("pixel_x", "pixel_y", "depth"),
    },
    modalities={
        "rotation": "rotation",
        "position": ("x", "y", "z"),
        "pixel": ("pixel_x", "pixel_y"),
        "depth": "depth",
    },
    byte_levels=True,
)
