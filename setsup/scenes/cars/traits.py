"""What tells one made-up car from another: numbers and colours drawn from a seed."""

import colorsys
from dataclasses import dataclass

from setsup.scenes.traits import spread_traits

__all__ = ["KINDS", "Car", "make_car"]

Color = tuple[int, int, int]

KINDS = ("sedan", "hatchback", "wagon", "coupe", "pickup", "van")
"""Shapes of the cabin, which further traits vary."""

# where the cabin stands along the car, in parts of its length from the rear (−½) to the front (½): foot of the rear
# window, ends of the roof, foot of the windscreen; and how high it rises, in parts of the car's height
_CABINS = {
    "sedan": (-0.34, -0.20, 0.06, 0.22, 1.00),
    "hatchback": (-0.49, -0.36, 0.08, 0.25, 1.05),
    "wagon": (-0.49, -0.45, 0.06, 0.22, 1.05),
    "coupe": (-0.42, -0.10, 0.00, 0.18, 0.84),
    "pickup": (-0.08, -0.05, 0.12, 0.24, 1.12),
    "van": (-0.495, -0.48, 0.22, 0.40, 1.35),
}


@dataclass(frozen=True, slots=True)
class Car:
    """A car: lengths in metres, colours of sRGB bytes; `cabin` as parts of the length, and its height in metres."""

    kind: str
    length: float
    width: float
    clearance: float
    hood: float
    trunk: float
    shoulder: float
    cabin: tuple[float, float, float, float]
    roof: float
    narrowing: float
    wheel: float
    front_axle: float
    rear_axle: float
    paint: Color
    second: Color
    two_tone: bool
    stripe: bool
    spoiler: bool
    rack: bool
    lamps: float


def make_car(seed: int, number: int) -> Car:
    """Car number `number` of a seed, whichever others there are."""
    take = iter(spread_traits(seed, "cars3d-procedural", number).tolist())

    def between(low: float, high: float) -> float:
        return float(low + (high - low) * next(take))

    kind = KINDS[int(next(take) * len(KINDS))]
    rear, roof_rear, roof_front, front, rise = _CABINS[kind]
    shift, height = between(-0.03, 0.03), between(1.28, 1.55)
    low = 0.005 if rear < -0.45 else between(-0.03, 0.03)  # a cabin that ends at the rear stays there
    return Car(
        kind=kind,
        length=between(3.5, 4.9),
        width=between(1.55, 1.9),
        clearance=between(0.16, 0.30),
        hood=height * between(0.52, 0.62),
        trunk=height * between(0.56, 0.66),
        shoulder=height * between(0.60, 0.68),
        cabin=(rear + low, roof_rear + low, roof_front + shift, front + shift),
        roof=height * rise,
        narrowing=between(0.72, 0.92),
        wheel=between(0.28, 0.37),
        front_axle=between(0.28, 0.34),
        rear_axle=-between(0.27, 0.34),
        paint=_paint(next(take), next(take), next(take)),
        second=_paint(next(take), 1.0, next(take)),
        two_tone=next(take) > 0.7,
        stripe=next(take) > 0.75,
        spoiler=next(take) > 0.75,
        rack=next(take) > 0.75,
        lamps=between(0.10, 0.17),
    )


def _paint(hue: float, saturation: float, value: float) -> Color:
    """A paint: a quarter of the cars are white, grey or black."""
    strength = 0.0 if saturation < 0.25 else 0.35 + 0.6 * (saturation - 0.25) / 0.75
    low = 0.15 if strength == 0 else 0.45
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, strength, low + (0.95 - low) * value))
    return red, green, blue
