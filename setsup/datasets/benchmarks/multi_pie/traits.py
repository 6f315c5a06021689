"""Traits of synthetic people, and of the sittings of a person: numbers sampled from a seed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.random import fold, stream_key, uniform
from setsup.scenes.traits import spread_traits

__all__ = ["HAIR_STYLES", "Sitting", "Traits", "sitting_of", "traits_of"]

HAIR_STYLES = ("short", "long", "bald", "bob", "curly", "bun", "receding", "fringe", "crest")
"""Ways in which hair is worn; a person keeps theirs."""

_SKINS = np.array(
    [(250, 220, 200), (236, 188, 150), (222, 160, 120), (190, 128, 88), (140, 88, 58), (92, 58, 40)], float
)
_HAIRS = np.array(
    [(18, 16, 18), (214, 178, 96), (70, 42, 24), (150, 66, 24), (196, 194, 190), (112, 74, 40), (36, 28, 52)], float
)
_IRISES = np.array([(70, 110, 150), (80, 50, 30), (80, 120, 70), (40, 30, 24), (120, 120, 120)], float)
_CLOTHES = np.array([(150, 40, 44), (40, 70, 140), (40, 100, 64), (200, 196, 186), (60, 60, 66), (190, 140, 50)], float)

Color = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Traits:
    """A person: lengths in metres, colors (3,) float64 of sRGB bytes; x to the image's right, z up."""

    width: float
    depth: float
    height: float
    jaw: float
    chin: float
    cheeks: float
    brow: float
    nose_out: float
    nose_wide: float
    nose_long: float
    nose_hook: float
    eyes_apart: float
    eyes_up: float
    eyes_wide: float
    lips_wide: float
    lips_full: float
    brows_thick: float
    brows_tilt: float
    ears: float
    style: str
    beard: float
    glasses: bool
    skin: Color
    hair: Color
    iris: Color
    lips: Color


@dataclass(frozen=True, slots=True)
class Sitting:
    """Changes between sessions: rotations in degrees, shifts in metres, factors around 1."""

    turn: float
    nod: float
    tilt: float
    shift: tuple[float, float]
    weight: float
    hair_long: float
    hair_thick: float
    smile: float
    brows_up: float
    exposure: float
    clothes: Color


def traits_of(seed: int, subject: int) -> Traits:
    """Person number `subject` of a seed, independent of the other subjects."""
    parts = spread_traits(seed, "multi-pie substitute persons", subject)
    take = iter(parts.tolist())

    def between(low: float, high: float) -> float:
        return float(low + (high - low) * next(take))

    skin = _blend(_SKINS, next(take) ** 1.2)
    lengths = {
        "width": between(0.066, 0.084),
        "depth": between(0.090, 0.106),
        "height": between(0.106, 0.130),
        "jaw": between(0.10, 0.48),
        "chin": between(-0.002, 0.014),
        "cheeks": between(-0.003, 0.007),
        "brow": between(0.0, 0.007),
        "nose_out": between(0.014, 0.036),
        "nose_wide": between(0.008, 0.017),
        "nose_long": between(0.036, 0.056),
        "nose_hook": between(-0.006, 0.006),
        "eyes_apart": between(0.027, 0.036),
        "eyes_up": between(0.010, 0.024),
        "eyes_wide": between(0.011, 0.017),
        "lips_wide": between(0.018, 0.032),
        "lips_full": between(0.005, 0.012),
        "brows_thick": between(0.002, 0.007),
        "brows_tilt": between(-0.25, 0.25),
        "ears": between(0.7, 1.4),
    }
    style = HAIR_STYLES[int(next(take) * len(HAIR_STYLES))]
    hair = _HAIRS[int(next(take) * len(_HAIRS))]
    beard = max(0.0, 2.2 * next(take) - 1.2)
    glasses = next(take) > 0.7
    iris = _IRISES[int(next(take) * len(_IRISES))]
    lips = 0.55 * skin + 0.45 * np.array([170.0, 40 + 40 * next(take), 60.0])
    return Traits(**lengths, style=style, beard=beard, glasses=glasses, skin=skin, hair=hair, iris=iris, lips=lips)


def sitting_of(seed: int, subject: int, session: int) -> Sitting:
    """Appearance of a person in a session."""
    key = fold(fold(stream_key(seed, "multi-pie substitute sittings"), subject), session)
    part = uniform(fold(key, np.arange(16, dtype=np.uint64)))
    around = 2 * part - 1
    return Sitting(
        turn=4 * around[0],
        nod=4 * around[1],
        tilt=3 * around[2],
        shift=(0.008 * around[3], 0.008 * around[4]),
        weight=1 + 0.03 * around[5],
        hair_long=1 + 0.15 * around[6],
        hair_thick=1 + 0.2 * around[7],
        smile=0.004 * around[8],
        brows_up=0.003 * around[9],
        exposure=1 + 0.06 * around[10],
        clothes=np.clip(_CLOTHES[int(part[11] * len(_CLOTHES))] + 20 * around[12:15], 0, 255),
    )


def _blend(colors: Color, part: float) -> Color:
    """Color at a part, 0 … 1, of the way along a row of colors."""
    at = part * (len(colors) - 1)
    return np.array([np.interp(at, np.arange(len(colors)), channel) for channel in colors.T])
