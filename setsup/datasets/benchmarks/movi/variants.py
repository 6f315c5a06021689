"""The six variants of MOVi: attributes of their objects, and the size at which they were rendered."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["NUMBERS", "SPLITS", "VARIANTS", "Level", "Variant"]

SPLITS = ("train", "validation", "test")
NUMBERS = ("mass", "friction", "restitution")
"""Numbers of each object in all variants."""


@dataclass(frozen=True, slots=True)
class Level:
    """A nominal attribute of objects: its feature, and the names of its values."""

    feature: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variant:
    """`levels` by modality; `features` are other features of objects; `native` is the side of the rendered images."""

    levels: Mapping[str, Level]
    features: tuple[str, ...]
    native: int = 256


_SHAPES = ("cube", "cylinder", "sphere")
_MORE = ("cone", "torus", "gear", "torus_knot", "sponge", "spot", "teapot", "suzanne")
_COLORS = ("blue", "brown", "cyan", "gray", "green", "purple", "red", "yellow")
_CATEGORIES = (
    *("Action Figures", "Bag", "Board Games", "Bottles and Cans and Cups", "Camera", "Car Seat", "Consumer Goods"),
    *("Hat", "Headphones", "Keyboard", "Legos", "Media Cases", "Mouse", "None", "Shoe", "Stuffed Toys", "Toys"),
)
_MATERIAL = Level("material_label", ("metal", "rubber"))
_CATEGORY = {"category": Level("category", _CATEGORIES)}
_MOVES = {"motion": Level("is_dynamic", ("resting", "tossed"))}

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "a": Variant(
            {
                "shape": Level("shape_label", _SHAPES),
                "size": Level("size_label", ("small", "large")),
                "color": Level("color_label", _COLORS),
                "material": _MATERIAL,
            },
            ("color",),
        ),
        "b": Variant(
            {"shape": Level("shape_label", (*_SHAPES, *_MORE)), "material": _MATERIAL},
            ("color", "scale"),
        ),
        "c": Variant(_CATEGORY, ("asset_id", "scale")),
        "d": Variant(_CATEGORY | _MOVES, ("asset_id", "scale")),
        "e": Variant(_CATEGORY | _MOVES, ("asset_id", "scale")),
        "f": Variant(_CATEGORY | _MOVES, ("asset_id", "scale"), native=512),
    }
)
