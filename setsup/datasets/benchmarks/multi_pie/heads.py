"""Synthetic heads as meshes: a skull with painted features, hair, ears, neck and shoulders.

Convention
----------
World frame in metres: z up, x to the right of the frontal image. The head is centred on the origin and looks along −y.
Vertices have the colors of an evenly lit face; the renderer adds no shading.
"""

import numpy as np
import numpy.typing as npt

from setsup.datasets.benchmarks.multi_pie.traits import Sitting, Traits
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.meshes.primitives import sphere
from setsup.scenes.scene import Ambient, Placement, Scene

__all__ = ["head_scene"]

Reals = npt.NDArray[np.float64]

_ACROSS, _UP = 360, 240  # quads of the skull around and from pole to pole
_HAIR_ACROSS, _HAIR_UP = 180, 120
# how far down hair reaches, in halves of the head's height, at _TURNS from the front; and how thick it is, in metres
_TURNS = (0.0, 40.0, 65.0, 90.0, 115.0, 180.0)
_STYLES: dict[str, tuple[tuple[float, ...], float]] = {
    "short": ((0.62, 0.58, 0.30, 0.12, -0.10, -0.40), 0.010),
    "long": ((0.60, 0.50, -0.20, -1.35, -1.45, -1.50), 0.016),
    "bob": ((0.42, 0.40, -0.10, -0.72, -0.75, -0.80), 0.020),
    "curly": ((0.55, 0.45, 0.10, -0.20, -0.45, -0.60), 0.042),
    "bun": ((0.66, 0.62, 0.40, 0.15, -0.10, -0.45), 0.007),
    "receding": ((0.97, 0.95, 0.45, 0.15, -0.10, -0.45), 0.007),
    "fringe": ((0.30, 0.30, 0.05, -0.10, -0.25, -0.55), 0.014),
    "crest": ((0.70, 0.98, 0.98, 0.98, 0.98, 0.20), 0.034),
}


def head_scene(person: Traits, sitting: Sitting) -> Scene:
    """Scene of a person in a session, without a background; all light is ambient, so that colors are albedo."""
    parts = [_skull(person, sitting), *_ears(person), *_body(person, sitting)]
    parts += _hair(person, sitting)
    head = _turn(sitting)
    moved = np.array([sitting.shift[0], 0.0, sitting.shift[1]])
    placed = []
    for name, mesh, centre, radii in parts:
        still = name in ("neck", "shoulders")
        rotation = np.eye(3) if still else head
        placed.append(Placement(mesh, rotation, rotation @ centre + moved, radii, name=name))
    return Scene(tuple(placed), (Ambient((1.0, 1.0, 1.0)),), None)


Part = tuple[str, Mesh, Reals, Reals]


def _turn(sitting: Sitting) -> Reals:
    """Rotation of the head: turned about z, then nodding about x, then tilted about y."""
    rotation = np.eye(3)
    for axis, degrees in ((2, sitting.turn), (0, sitting.nod), (1, sitting.tilt)):
        sine, cosine = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))
        first, second = [(1, 2), (2, 0), (0, 1)][axis]
        step = np.eye(3)
        step[first, first] = step[second, second] = cosine
        step[first, second], step[second, first] = -sine, sine
        rotation = step @ rotation
    return rotation


def _grid(across: int, up: int) -> tuple[Reals, Reals, npt.NDArray[np.int32]]:
    """Longitude (0 looks along −y, π/2 along +x) and latitude of a grid on the sphere, and its triangles."""
    around, height = np.meshgrid(np.linspace(-np.pi, np.pi, across + 1), np.linspace(-np.pi / 2, np.pi / 2, up + 1))
    number = np.arange((up + 1) * (across + 1)).reshape(up + 1, across + 1)
    here, right, above, beyond = number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]
    faces = np.concatenate([np.stack([here, right, beyond], -1), np.stack([here, beyond, above], -1)])
    return around, height, faces.reshape(-1, 3).astype(np.int32)


def _mesh(points: Reals, colors: Reals, faces: npt.NDArray[np.int32]) -> Mesh:
    """Smooth mesh of a grid of points, closed from the last column to the first."""
    along = np.gradient(points, axis=0)
    wrapped = np.concatenate([points[:, -2:-1], points, points[:, 1:2]], axis=1)
    across = np.gradient(wrapped, axis=1)[:, 1:-1]
    normals = np.cross(across, along).reshape(-1, 3)
    normals[~(np.linalg.norm(normals, axis=1) > 1e-15)] = (0, 0, 1)  # at the poles
    paint = np.clip(np.round(colors), 0, 255).astype(np.uint8).reshape(-1, 3)
    return Mesh(points.reshape(-1, 3), faces, normals.astype(np.float32) * 1e4, colors=paint)


def _bump(x: Reals, z: Reals, centre: tuple[float, float], radii: tuple[float, float]) -> Reals:
    """Bell of height 1."""
    height: Reals = np.exp(-(((x - centre[0]) / radii[0]) ** 2) - ((z - centre[1]) / radii[1]) ** 2)
    return height


def _both(x: Reals, z: Reals, centre: tuple[float, float], radii: tuple[float, float]) -> Reals:
    """Bells on either side of the face."""
    return _bump(np.abs(x), z, centre, radii)


def _inside(x: Reals, z: Reals, centre: tuple[float, float], radii: tuple[float, float]) -> Reals:
    """1 within an ellipse, 0 outside, with a soft edge."""
    far = np.hypot((x - centre[0]) / radii[0], (z - centre[1]) / radii[1])
    return _step((1 - far) * min(radii) / 0.0012)


def _step(value: Reals) -> Reals:
    weight: Reals = np.clip(value + 0.5, 0, 1)
    return weight


def _skull(person: Traits, sitting: Sitting) -> Part:
    around, height, faces = _grid(_ACROSS, _UP)
    x = person.width * sitting.weight * np.cos(height) * np.sin(around)
    y = -person.depth * np.cos(height) * np.cos(around)
    z = person.height * np.sin(height)
    low = np.clip(-z / person.height, 0, 1)
    x = x * (1 - person.jaw * low**1.6)
    y = np.where(y < 0, y * (1 - 0.10 * low), y * (1 - 0.45 * low))  # the skull recedes above the neck
    front = np.clip(np.cos(around), 0, 1) ** 0.5 * (np.abs(around) < np.pi / 2)
    out = _features(person, x, z) * front
    colors = _paint(person, sitting, x, z, front)
    return "head", _mesh(np.stack([x, y - out, z], -1), colors, faces), np.zeros(3), np.ones(3)


def _features(person: Traits, x: Reals, z: Reals) -> Reals:
    """How far the face stands out before the skull."""
    top, tip = person.eyes_up, person.eyes_up - person.nose_long
    along = np.clip((top - z) / (top - tip), 0, None)
    profile = np.where(along <= 1, along**1.3, np.exp(-(((along - 1) / 0.16) ** 2)))
    wide = person.nose_wide * (0.45 + 0.55 * np.clip(along, 0, 1))
    nose = person.nose_out * profile * np.exp(-((x / wide) ** 2))
    nose += (0.005 + person.nose_hook) * _bump(x, z, ((0.0), (top + tip) / 2), (0.007, 0.012))
    nose += 0.35 * person.nose_out * _both(x, z, (person.nose_wide * 0.8, tip + 0.003), (0.006, 0.006))
    mouth = tip - 0.024
    lips = 0.006 * _bump(x, z, (0, mouth), (person.lips_wide, person.lips_full * 1.2))
    return (
        nose
        + lips
        - 0.010 * _both(x, z, (person.eyes_apart, person.eyes_up), (0.017, 0.012))
        + 0.004 * _both(x, z, (person.eyes_apart, person.eyes_up - 0.001), (0.010, 0.006))
        + person.brow * _both(x, z, (0.02, person.eyes_up + 0.018), (0.028, 0.009))
        + person.cheeks * _both(x, z, (0.042, tip + 0.012), (0.020, 0.020))
        + person.chin * _bump(x, z, (0, mouth - 0.030), (0.022, 0.014))
    )


def _paint(person: Traits, sitting: Sitting, x: Reals, z: Reals, front: Reals) -> Reals:
    """Colors of the skin, lips, eyes, brows, beard and glasses."""
    side = np.abs(x)
    tip = person.eyes_up - person.nose_long
    mouth = tip - 0.024 + sitting.smile * ((x / person.lips_wide) ** 2 - 0.4)
    eye = (person.eyes_apart, person.eyes_up)
    colors = np.broadcast_to(person.skin, (*x.shape, 3)).copy()

    def lay(color: npt.ArrayLike, cover: Reals) -> None:
        part = (np.clip(cover, 0, 1) * (front > 0))[..., None]
        colors[...] = colors * (1 - part) + np.asarray(color, float) * part

    lay(person.skin * (1.0, 0.78, 0.74), 0.5 * _both(x, z, (0.040, tip + 0.010), (0.016, 0.014)))
    if person.beard > 0:
        jaw = _step((mouth + 0.016 - z + 0.5 * np.clip(side - 0.02, 0, None)) / 0.006)
        lip = _inside(x, z - mouth, (0, 0.013), (person.lips_wide * 1.2, 0.006))
        lay(person.hair, (0.25 + 0.75 * person.beard) * np.maximum(jaw, lip))
    lay(person.lips, _inside(x, z - mouth, (0, 0), (person.lips_wide, person.lips_full)))
    lay(person.lips * 0.45, _inside(x, z - mouth, (0, 0), (person.lips_wide * 0.95, 0.0016)))
    lay(person.skin * 0.45, _inside(side, z, (person.nose_wide * 0.5, tip - 0.003), (0.0035, 0.0022)))
    lay(person.skin * 0.6, _inside(side, z, eye, (person.eyes_wide * 1.25, person.eyes_wide * 0.72)))
    lay((240, 240, 238), _inside(side, z, eye, (person.eyes_wide, person.eyes_wide * 0.5)))
    iris = person.eyes_wide * 0.47
    lay(person.iris, _inside(side, z, eye, (iris, iris)))
    lay((12, 12, 14), _inside(side, z, eye, (iris * 0.5, iris * 0.5)))
    brow = person.eyes_up + 0.019 + sitting.brows_up + person.brows_tilt * (side - person.eyes_apart)
    lay(person.hair * 0.7, _inside(side, z - brow, (person.eyes_apart, 0), (0.018, person.brows_thick)))
    if person.glasses:
        far = np.hypot((side - eye[0]) / 0.025, (z - eye[1] + 0.002) / 0.019)
        lay((24, 22, 26), _step((0.0022 - np.abs(far - 1) * 0.02) / 0.0012))
        lay((24, 22, 26), _inside(x, z, (0, eye[1] + 0.004), (0.010, 0.002)))
    return colors


def _ball(name: str, color: npt.ArrayLike, centre: npt.ArrayLike, radii: npt.ArrayLike) -> Part:
    ball = sphere(1.0, segments=48)
    paint = np.tile(np.clip(np.asarray(color, float), 0, 255).astype(np.uint8), (len(ball.vertices), 1))
    mesh = Mesh(ball.vertices, ball.faces, ball.normals, colors=paint)
    return name, mesh, np.asarray(centre, float), np.asarray(radii, float)


def _ears(person: Traits) -> list[Part]:
    size = np.array([0.010, 0.016, 0.030]) * person.ears
    return [_ball("ear", person.skin * 0.92, (side * person.width, 0.008, 0.0), size) for side in (-1, 1)]


def _body(person: Traits, sitting: Sitting) -> list[Part]:
    neck = person.height
    return [
        _ball("neck", person.skin * 0.9, (0, 0.022, -neck), (0.050, 0.050, 0.110)),
        _ball("shoulders", sitting.clothes, (0, 0.03, -neck - 0.105), (0.200, 0.085, 0.075)),
    ]


def _hair(person: Traits, sitting: Sitting) -> list[Part]:
    """Hair as a shell that stands out where there is some, and is hidden within the skull elsewhere."""
    if person.style == "bald":
        return []
    edge, thick = _STYLES[person.style]
    around, height, faces = _grid(_HAIR_ACROSS, _HAIR_UP)
    lowest = min(0.0, *edge) * sitting.hair_long * person.height
    z = np.where(height > 0, person.height * np.sin(height), lowest * height / (-np.pi / 2))
    ring = np.where(height > 0, np.cos(height), 1.0)
    grown = np.full(around.shape, thick * sitting.hair_thick)
    if person.style == "curly":
        grown = grown * (1 + 0.18 * np.sin(11 * around) * np.sin(13 * height + 3))
    if person.style == "crest":
        grown = grown * np.exp(-((np.sin(around) * ring / 0.25) ** 2))
        hairline = np.where(np.abs(np.sin(around) * ring) < 0.3, np.where(np.cos(around) > 0, 0.55, -0.3), 2.0)
    else:
        hairline = np.interp(np.degrees(np.abs(around)), _TURNS, edge)
        hairline = np.where(hairline < 0, hairline * sitting.hair_long, hairline)
    there = _step((z - hairline * person.height) / 0.004)
    out = np.where(there > 0, grown, 0.0) + 0.003
    hidden = 1 - 0.9 * (1 - there)
    x = (person.width * sitting.weight + out) * ring * np.sin(around) * hidden
    y = -(person.depth + out) * ring * np.cos(around) * hidden
    z = np.where(height > 0, z + out * np.sin(height), z) * np.where(height > 0, hidden, 1.0)
    strands = 0.88 + 0.12 * np.sin(60 * around + 4 * np.sin(9 * height))
    colors = person.hair * strands[..., None]
    parts = [("hair", _mesh(np.stack([x, y, z], -1), colors, faces), np.zeros(3), np.ones(3))]
    if person.style == "bun":
        parts.append(_ball("bun", person.hair * 0.9, (0, 0.075, 0.85 * person.height), (0.036, 0.036, 0.036)))
    return parts
