"""The six Shapes3D factors and the framing of the scene: one place for the file, the ray caster and any renderer.

Convention
----------
World frame: right-handed, z up, the object stands on the floor (z = 0) at the origin, inside a square room centred
there. Lengths are in room units, one arbitrary unit for all of them. Orientation turns the camera around the object:
at angle ``t`` it stands at ``(camera_radius · sin t, −camera_radius · cos t, camera_height)`` and looks horizontally
at the z axis, so that room and object turn together in the picture. Pixel centres are at integers, row 0 is the top.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setsup.errors import FactorError, near
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

    Any renderer that wants pictures framed like Shapes3D takes its numbers from here (see the module's convention).

    Parameters
    ----------
    room_half_side, wall_height : float, room units
        The square room reaches from ``-room_half_side`` to ``room_half_side``; above its walls is the sky.
    camera_radius, camera_height : float, room units
        The camera's distance from the z axis and height over the floor.
    focal_length : float, pixels
        For a picture 64 pixels wide; the camera's axis meets it in the middle.
    cube_half_side, cylinder_radius, cylinder_height, sphere_radius : float, room units
        At scale 1, as the following.
    capsule_radius, capsule_straight : float, room units
        A capsule is ``capsule_straight + 2 · capsule_radius`` high.
    lamp : tuple of 3 float, room units
        Position of the lamp, fixed in the room; it shines straight down and throws the shadow.
    lamp_exponent : int
        The lamp fades with this power of the cosine of the angle off its axis.
    lamp_light, ambient_light, camera_light : float
        Light from the lamp, from everywhere, and along the camera's axis; 1 shows a colour as it is.
    gloss : float
        White added on the object where the lamp reaches it.
    sky : tuple of 3 float
        RGB of the sky, sRGB values.

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
"""The framing that all Shapes3D pictures of setsup use."""


def factors() -> tuple[Factor, ...]:
    """List the six factors in the order of the published labels.

    Returns
    -------
    tuple of Factor
        floor_hue, wall_hue, object_hue, scale, shape, orientation: as a grid 10 · 10 · 10 · 8 · 4 · 15 = 480,000 rows.

    Examples
    --------
    >>> [(factor.name, len(factor)) for factor in factors()][2:]
    [('object_hue', 10), ('scale', 8), ('shape', 4), ('orientation', 15)]

    """
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

    Parameters
    ----------
    name : str
        Factor that the labels belong to.
    labels : array of float, any shape
        Turns for hues, degrees for the orientation, 0 … 3 for shapes.

    Returns
    -------
    int64, same shape
        Code of the level that lies within 0.001 of the label; -1 where none does.

    Raises
    ------
    FactorError
        When there is no factor of that name.

    Examples
    --------
    >>> codes("scale", [0.75, 0.75 + 0.5 / 7, 0.8]).tolist()
    [0, 1, -1]

    """
    if name not in _LABELS:
        raise FactorError(f"Shapes3D has no factor {name!r}{near(name, _LABELS)}")
    levels = np.array(_LABELS[name], dtype=np.float64)
    values = np.asarray(labels, dtype=np.float64)
    middles = (levels[1:] + levels[:-1]) / 2
    nearest = np.searchsorted(middles, values)
    return np.where(np.abs(values - levels[nearest]) <= _NEAR, nearest, -1)
