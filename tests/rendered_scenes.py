"""A recipe and a renderer so simple that what they draw is known: numbers of the row's values, and of the pixel."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.errors import SetsupError
from setsup.factors import Factor, Kind
from setsup.scenes import Camera, Frame, Material, Mesh, Placement, Scene

SHAPES = ("cone", "ball", "cube")
AZIMUTHS = tuple(15.0 * step for step in range(24))

_TRIANGLE = ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])


@dataclass(frozen=True)
class Dots:
    """A scene is a triangle: the shape is its instance and name, the hue the red of its material."""

    size: tuple[int, int] = (4, 6)
    background: tuple[int, int, int] | None = (1, 2, 3)
    salt: str = ""

    name = "dots"
    scene_factors = ("shape", "hue")
    factors = (
        Factor("shape", Kind.NOMINAL, SHAPES),
        Factor("hue", Kind.ORDINAL, (20, 40)),
        Factor("azimuth", Kind.CYCLIC, AZIMUTHS, unit="deg", period=360.0),
    )

    @property
    def key(self) -> str:
        return f"dots {self.size} {self.background} {self.salt}"

    def scene(self, values: Mapping[str, Any]) -> Scene:
        mesh = Mesh(*_TRIANGLE, materials=(Material((int(values["hue"]), 0, 0)),))
        shape = values["shape"]
        return Scene((Placement(mesh, instance=SHAPES.index(shape), name=shape),), background=self.background)

    def camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        turn = math.radians(values["azimuth"])
        eye = (3 * math.cos(turn), 3 * math.sin(turn), 0)
        return Camera.look_at(eye, (0, 0, 0), height=self.size[0], width=self.size[1], focal_length=5)


class Crayon:
    """Draws what :func:`expected` says, and counts; ``seconds`` makes it slow."""

    name = "crayon"
    made: list["Crayon"] = []  # noqa: RUF012 - shared on purpose

    def __init__(self) -> None:
        self._scene: Scene | None = None
        self._seconds = 0.0
        self._loads, self._renders = 0, 0
        Crayon.made.append(self)

    @classmethod
    def slow(cls, seconds: float) -> "Crayon":
        found = cls()
        found._seconds = seconds
        return found

    @property
    def counts(self) -> tuple[int, int]:
        return self._loads, self._renders

    @classmethod
    def check(cls) -> str:
        return "wax"

    def load(self, scene: Scene) -> None:
        self._loads += scene is not self._scene
        self._scene = scene

    def render(self, camera: Camera) -> Frame:
        if self._scene is None:
            raise SetsupError("no scene")
        time.sleep(self._seconds)
        self._renders += 1
        thing = self._scene.placements[0]
        x, y, _ = camera.centre
        azimuth = round(math.degrees(math.atan2(y, x)) % 360, 3) % 360
        channels = 3 if self._scene.background is not None else 4
        return painted(camera.height, camera.width, channels, thing.instance, thing.mesh.materials[0].color[0], azimuth)

    def close(self) -> None:
        self._scene = None


def painted(height: int, width: int, channels: int, shape: int | None, hue: int, azimuth: float) -> Frame:
    """Picture of a shape, a hue and an azimuth."""
    pixels = np.arange(height * width).reshape(height, width)
    rgb = np.zeros((height, width, channels), np.uint8)
    rgb[..., 0], rgb[..., 1], rgb[..., 2] = shape, hue, round(azimuth) // 2
    depth = (azimuth + pixels / 64).astype(np.float32)
    normal = np.stack([depth, depth + 1, depth + 2], axis=-1)
    return Frame(rgb, depth, normal, np.full((height, width), shape, np.int32), (pixels + hue).astype(np.int32))


def expected(row: int, size: tuple[int, int] = (4, 6), channels: int = 3) -> dict[str, Any]:
    """Modalities of a row of the full grid of :class:`Dots`, from the row number alone."""
    shape, hue, azimuth = np.unravel_index(row, (3, 2, 24))
    frame = painted(*size, channels, int(shape), (20, 40)[hue], AZIMUTHS[azimuth])
    return {
        "image": frame.rgb,
        "depth": frame.depth,
        "normals": frame.normal,
        "instances": frame.instance,
        "triangles": frame.triangle,
    }
