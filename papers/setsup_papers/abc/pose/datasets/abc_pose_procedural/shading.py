"""Light on models: what a frame of albedo and geometry becomes in a rendering, and in an image of the real domain.

Renderings are evenly lit, from all around, from above and from the camera; images of the real domain have a lamp and a
sky of random colours, reflections, and a ground with a shadow that fades into a backdrop. Both have the same textures
of albedo, whose strength is the model's. Light is linear; nothing in it depends on which side of y = 0 a point is on,
so that renderings have the mirror plane of their model.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from setsup.arrays import Array, Floats, Pixels
from setsup.random import fold, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR, to_bytes
from setsup.scenes.frame import Frame
from setsup_papers.abc.pose.datasets.abc_pose_procedural.models import GLASS, PLAIN, Model

__all__ = ["Lights", "Points", "even_light", "locate_points", "noise", "pixel_rays", "rendering", "sun_light"]

_LATTICE = 32
_GLOSS = np.array([0.03, 0.16, 0.45], np.float32)  # of PLAIN, PAINT, GLASS: share of the surroundings that is reflected


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """What is seen in the n pixels that show a model.

    `pixels` (n,) int64 in the flat image; `albedo` (n, 3), linear; `at`, `normal`, `towards` (n, 3): position, and unit
    vectors of the surface and to the camera, in the world; `kinds` (n,) uint8.
    """

    pixels: Array
    albedo: Floats
    at: Floats
    normal: Floats
    towards: Floats
    kinds: Array


class Lights(NamedTuple):
    """Lights of an image of the real domain.

    `lamp` (3,): unit vector towards it, in the world; `sun`, `sky`, `ground` (3,): linear colours of the lamp, of the
    sky, and of what the ground reflects; all float32.
    """

    lamp: Floats
    sun: Floats
    sky: Floats
    ground: Floats


def locate_points(model: Model, frame: Frame, camera: Camera) -> Points:
    """Points of a model in a frame that was rendered in ambient light."""
    triangles = frame.triangle.reshape(-1)
    pixels = np.flatnonzero(triangles >= 0)
    kinds = model.kinds[triangles[pixels]]
    rays = pixel_rays(camera).reshape(-1, 3)[pixels]
    at = rays * frame.depth.reshape(-1)[pixels, None] + camera.centre.astype(np.float32)
    albedo = LINEAR.astype(np.float32)[frame.rgb.reshape(-1, frame.rgb.shape[2])[pixels, :3]]
    if model.texture[0]:
        position = np.abs(at) * model.texture[1:]  # the same on either side
        wave = noise(position) + 0.5 * noise(2.7 * position)
        albedo = albedo * (1 + model.texture[0] * (kinds != GLASS) * (wave - 0.75))[:, None]
    towards = -rays / np.linalg.norm(rays, axis=1, keepdims=True)
    normal = frame.normal.reshape(-1, 3)[pixels] @ camera.rotation.astype(np.float32)
    return Points(pixels, albedo, at, normal, towards, kinds)


def pixel_rays(camera: Camera) -> Floats:
    """Directions of the rays through all pixels in the world, (H, W, 3) float32, as long as one metre of depth asks."""
    x = (np.arange(camera.width) - camera.k[0, 2]) / camera.k[0, 0]
    y = (np.arange(camera.height) - camera.k[1, 2]) / camera.k[1, 1]
    flat = np.stack([*np.meshgrid(x, y), np.ones((camera.height, camera.width))], axis=-1)
    rays: Floats = (flat @ camera.rotation).astype(np.float32)
    return rays


def even_light(points: Points) -> Floats:
    """Linear colours (n, 3) of a rendering."""
    facing = np.maximum((points.normal * points.towards).sum(axis=1), 0)
    above = np.maximum(points.normal[:, 2], 0)
    shaded: Floats = points.albedo * (0.42 + 0.38 * facing + 0.26 * above)[:, None]
    return shaded


def rendering(model: Model, frame: Frame, camera: Camera) -> Pixels:
    """Image (H / 2, W / 2, 4) uint8 of a frame of albedo at twice the size; black and transparent beside the model."""
    points = locate_points(model, frame, camera)
    light = np.zeros((*frame.triangle.shape, 4), np.float32)
    light.reshape(-1, 4)[points.pixels, :3] = even_light(points)
    light.reshape(-1, 4)[points.pixels, 3] = 1
    height, width = frame.triangle.shape
    small = light.reshape(height // 2, 2, width // 2, 2, 4).mean(axis=(1, 3))
    pixels = np.empty(small.shape, np.uint8)
    pixels[..., :3] = to_bytes(small[..., :3] / np.maximum(small[..., 3:], 0.25))
    pixels[..., 3] = np.round(255 * small[..., 3])
    return pixels


def sun_light(points: Points, lights: Lights, gloss: float) -> Floats:
    """Linear colours (n, 3) under a lamp and a sky, with reflections, whose strength is `gloss`, 0 … 1."""
    (lamp, sun, sky, ground), normal = lights, points.normal
    up = 0.5 + 0.5 * normal[:, 2:]
    around = up * sky + (1 - up) * ground * 0.6
    height = points.at[:, 2:] / max(float(points.at[:, 2].max()), 1e-6)
    around = around * (0.55 + 0.45 * np.clip(1.6 * height, 0, 1))  # what is near the ground sees less of the sky
    facing = np.maximum(normal @ lamp, 0)[:, None]
    light = points.albedo * (around + facing * sun)
    cosine = np.maximum((normal * points.towards).sum(axis=1), 0)
    mirrored = 2 * cosine[:, None] * normal - points.towards
    share = gloss * _GLOSS[points.kinds] + (points.kinds != PLAIN) * 0.35 * gloss * (1 - cosine) ** 5
    spot = np.maximum(mirrored @ lamp, 0) ** 40
    seen = _surroundings(mirrored, sky, ground) + 2 * spot[:, None] * sun
    lit: Floats = light * (1 - share[:, None]) + share[:, None] * seen
    return lit


def _surroundings(way: Floats, sky: Floats, ground: Floats) -> Floats:
    """What is seen in a mirror: bright above, dark below, with a jagged line between."""
    edge = 0.25 * noise(np.stack([3 * way[:, 0], 3 * way[:, 1], np.zeros(len(way), np.float32)], axis=1)) - 0.05
    above = np.clip((way[:, 2] - edge) * 8, 0, 1)[:, None]
    light: Floats = above * sky * (0.9 + 0.6 * np.clip(way[:, 2:], 0, 1)) + (1 - above) * 0.45 * ground
    return light


def noise(place: Floats) -> Floats:
    """Smooth noise of 0 … 1 at points (n, 3), with a period of 32."""
    table = _table()
    whole = np.floor(place)
    part = place - whole
    part = part * part * (3 - 2 * part)
    low = whole.astype(np.int64) % _LATTICE
    high = (low + 1) % _LATTICE
    values = np.zeros(len(place), np.float32)
    for corner in range(8):
        index = [(high if corner >> axis & 1 else low)[:, axis] for axis in range(3)]
        weight = np.ones(len(place), np.float32)
        for axis in range(3):
            weight = weight * (part[:, axis] if corner >> axis & 1 else 1 - part[:, axis])
        values += weight * table[index[0], index[1], index[2]]
    return values


@cache
def _table() -> Floats:
    bits = fold(stream_key(0, "abc-pose-procedural lattice"), np.arange(_LATTICE**3, dtype=np.uint64))
    return uniform(bits).astype(np.float32).reshape((_LATTICE,) * 3)
