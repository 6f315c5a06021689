"""Modalities that a rendered row may have: names, in the order of the bits of the progress file, shapes and dtypes."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from setsup.datasets.modality import Modality

__all__ = ["BITS", "FORMS", "KEPT", "LABELS", "OUTPUTS", "POSES", "Form", "describe", "fits"]

OUTPUTS = {"image": "rgb", "depth": "depth", "normals": "normal", "instances": "instance", "triangles": "triangle"}
"""Modalities, and the attributes of a :class:`~setsup.scenes.Frame` that they are."""

LABELS = "labels"
"""The modality that a recipe with classes has."""

POSES = "object_poses"
"""The modality that has a pose for each instance."""

_ANY = range(1, 1 << 15)


@dataclass(frozen=True, slots=True)
class Form:
    """What the array of a row looks like.

    `last` has the lengths that each axis after those of the pixels may have; `pixels` tells whether there are such.
    """

    dtype: str
    last: tuple[Collection[int], ...] = ()
    unit: str = ""
    color: str = ""
    pixels: bool = True


FORMS: Mapping[str, Form] = {
    "image": Form("uint8", ((3, 4),), color="srgb"),
    "depth": Form("float32", unit="m"),
    "normals": Form("float32", ((3,),)),
    "instances": Form("int32"),
    "triangles": Form("int32"),
    "partners": Form("float32", ((2,),), unit="px"),
    "status": Form("uint8"),
    LABELS: Form("uint8"),
    "nocs": Form("float32", ((3,),)),
    "object_coordinates": Form("float32", ((3,),), unit="m"),
    "uv": Form("float32", ((2,),)),
    "barycentrics": Form("float32", ((3,),)),
    "albedo": Form("uint8", ((3,),), color="srgb"),
    "material": Form("int32"),
    "mask": Form("uint8", (_ANY,)),
    "pose": Form("float64", ((4,), (4,)), unit="m", pixels=False),
    "intrinsics": Form("float64", ((3,), (3,)), unit="px", pixels=False),
    "exact_flow": Form("float32", ((2,),), unit="px"),
    "exact_flow_back": Form("float32", ((2,),), unit="px"),
    "flow_status": Form("uint8"),
    "flow_back_status": Form("uint8"),
    POSES: Form("float64", (_ANY, (4,), (4,)), unit="m", pixels=False),
    "scene_flow": Form("float32", ((3,),), unit="m"),
}
"""All modalities that a folder may hold, in their order: new ones are appended, since folders keep their bits."""

KEPT = tuple(FORMS)
"""Names of :data:`FORMS`."""

BITS = {name: 1 << bit for bit, name in enumerate(KEPT)}
"""Bits of modalities in the progress file."""


def describe(name: str, size: tuple[int, int], length: int | None = None) -> Modality:
    """Modality of images of a size (height, width); `length` is that of the axis that may have several.

    Examples
    --------
    >>> describe("image", (48, 64), 4).shape, describe("nocs", (48, 64)).shape, describe("pose", (48, 64)).unit
    ((48, 64, 4), (48, 64, 3), 'm')

    """
    form = FORMS[name]
    last = [axis[0] if isinstance(axis, tuple) and len(axis) == 1 else length for axis in form.last]
    return Modality((*(size if form.pixels else ()), *last), form.dtype, form.unit, form.color)


def fits(name: str, modality: Modality, size: tuple[int, int]) -> bool:
    """Whether a modality is one that images of a size may have."""
    form = FORMS[name]
    lead = len(size) if form.pixels else 0
    last = modality.shape[lead:]
    return (
        modality.dtype == form.dtype
        and modality.shape[:lead] == size[:lead]
        and len(last) == len(form.last)
        and all(side in axis for side, axis in zip(last, form.last, strict=True))
    )
