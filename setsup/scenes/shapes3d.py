"""The six Shapes3D factors and the framing of the scene: one place for the file, the ray caster and any renderer.

Convention
----------
World frame: right-handed, z up, the object stands on the floor (z = 0) at the origin, inside a square room centred
there. Lengths are in room units, one arbitrary unit for all of them. Orientation turns the camera around the object:
at angle ``t`` it stands at ``(camera_radius · sin t, −camera_radius · cos t, camera_height)`` and looks horizontally
at the z axis, so that room and object turn together in the image. Pixel centres are at integers, row 0 is the top.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setsup.errors import FactorError, did_you_mean
from setsup.factors.factor import Factor, Kind

__all__ = ["FRAMING", "HUES", "ORIENTATIONS", "SCALES", "SHAPES", "Framing", "codes", "factors"]

HUES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Hue levels in turns, for floor, wall and object alike."""

SCALES = (0.75, 0.8214, 0.8929, 0.9643, 1.0357, 1.1071, 1.1786, 1.25)
"""Scale levels: 8 equally spaced values from 0.75 to 1.25, rounded to four decimals so that they print and compare."""

SHAPES = ("cube", "cylinder", "sphere", "capsule")
"""Shape levels, in the order of the published labels 0, 1, 2, 3."""

ORIENTATIONS = (
    *(-30.0, -25.7143, -21.4286, -17.1429, -12.8571, -8.5714, -4.2857, 0.0),
    *(4.2857, 8.5714, 12.8571, 17.1429, 21.4286, 25.7143, 30.0),
)
"""Orientation levels in degrees: 15 equally spaced values from −30 to 30, rounded to four decimals."""


@dataclass(frozen=True, slots=True)
class Framing:
    """Room, camera, object and light, fitted to frames that were published with the set.

    Any renderer that wants images framed like Shapes3D takes its numbers from here (see the module's convention).
    """

    room_half_side: float = 3.095
    wall_height: float = 1.762
    camera_radius: float = 2.193
    camera_height: float = 0.6575
    focal_length: float = 68.96
    cube_half_side: float = 0.3083
    cylinder_radius: float = 0.3293
    cylinder_height: float = 0.669
    sphere_radius: float = 0.375
    capsule_radius: float = 0.2835
    capsule_straight: float = 0.571
    lamp: tuple[float, float, float] = (-1.166, 0.305, 6.153)
    lamp_exponent: int = 10
    lamp_light: float = 0.948
    ambient_light: float = 0.356
    camera_light: float = 0.591
    gloss: float = 0.109
    sky: tuple[float, float, float] = (0.60, 0.886, 0.976)


FRAMING = Framing()
"""The framing that all Shapes3D images of setsup use."""


def factors() -> tuple[Factor, ...]:
    """List the six factors in the order of the published labels."""
    hues = (
        Factor(name, Kind.CYCLIC, HUES, unit="turn", period=1.0) for name in ("floor_hue", "wall_hue", "object_hue")
    )
    return (
        *hues,
        Factor("scale", Kind.ORDINAL, SCALES),
        Factor("shape", Kind.NOMINAL, SHAPES),
        Factor("orientation", Kind.ORDINAL, ORIENTATIONS, unit="deg"),
    )


_LABELS = {factor.name: factor.levels for factor in factors() if factor.name != "shape"} | {"shape": range(len(SHAPES))}
_NEAR = 1e-3


def codes(name: str, labels: ArrayLike) -> NDArray[np.int64]:
    """Level codes of a column of published labels, which are numbers as a computation left them.

    `labels` array of float, any shape.
    """
    if name not in _LABELS:
        raise FactorError(f"Shapes3D has no factor {name!r}{did_you_mean(name, _LABELS)}")
    levels = np.array(_LABELS[name], dtype=np.float64)
    values = np.asarray(labels, dtype=np.float64)
    middles = (levels[1:] + levels[:-1]) / 2
    nearest = np.searchsorted(middles, values)
    return np.where(np.abs(values - levels[nearest]) <= _NEAR, nearest, -1)
