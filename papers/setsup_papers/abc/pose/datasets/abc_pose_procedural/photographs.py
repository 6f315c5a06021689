"""Images of the real domain: a model under a lamp and a sky, before a backdrop, as a cheap camera would store it.

Everything that is random is a function of (seed, category, number of the model, number of the image).
"""

import io
from collections.abc import Callable

import numpy as np

from setsup.arrays import Array, Floats, Pixels, Words
from setsup.random import fold, stream_key, uniform
from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR, encode
from setsup.scenes.frame import Frame
from setsup_papers.abc.pose.datasets.abc_pose_procedural.models import Model
from setsup_papers.abc.pose.datasets.abc_pose_procedural.shading import (
    Lights,
    locate_points,
    noise,
    pixel_rays,
    sun_light,
)
from setsup_papers.abc.pose.datasets.abc_pose_procedural.textures import backdrop, soften

__all__ = ["photograph", "photograph_key"]

Take = Callable[[float, float], float]


def photograph(model: Model, frame: Frame, camera: Camera, key: Words, indoors: bool) -> Pixels:
    """Image (H / 2, W / 2, 4) uint8, opaque, of a frame of albedo that was rendered at twice the size."""
    bits = iter(uniform(fold(key, np.arange(64, dtype=np.uint64))).tolist())

    def take(low: float, high: float) -> float:
        return float(low + (high - low) * next(bits))

    height, width = frame.triangle.shape
    turn, rise = np.radians([take(0, 360), take(20, 75)])
    lamp = np.array([np.cos(turn) * np.cos(rise), np.sin(turn) * np.cos(rise), np.sin(rise)], np.float32)
    lights = Lights(
        lamp,
        sun=_tint(take, 0.25) * np.float32(take(0.3, 1.3)),
        sky=_tint(take, 0.20) * np.float32(take(0.35, 0.8)),
        ground=_tint(take, 0.35) * np.float32(take(0.2, 0.6)),
    )
    light = _behind(model, camera, lights, take, key, indoors)
    points = locate_points(model, frame, camera)
    light.reshape(-1, 3)[points.pixels] = sun_light(points, lights, take(0.3, 1.0))
    small = light.reshape(height // 2, 2, width // 2, 2, 3).mean(axis=(1, 3))
    return _stored(small, take, key)


def _tint(take: Take, strength: float) -> Floats:
    """Colour of a light: warm or cold, and a little green or not."""
    warm, green = take(-strength, strength), take(-0.3 * strength, 0.3 * strength)
    return np.array([1 + warm, 1 + green, 1 - warm], np.float32)


def _behind(model: Model, camera: Camera, lights: Lights, take: Take, key: Words, indoors: bool) -> Floats:
    """Linear colours (H, W, 3) of what lies behind: a floor that ends at some distance in a backdrop."""
    lamp, sun, sky, ground = lights
    rays, eye = pixel_rays(camera).reshape(-1, 3), camera.centre.astype(np.float32)
    scene = LINEAR.astype(np.float32)[backdrop(key, camera.height, camera.width, indoors)].reshape(-1, 3)
    low, high = (corner.astype(np.float32) for corner in model.scene.bounds)
    size = float(np.linalg.norm(high - low))
    wall, coarse, fine = take(0.6, 3.0) * size, take(1.0, 4.0) / size, take(8.0, 30.0) / size
    contrast, tiles = take(0.05, 0.5), take(0.0, 1.0)
    down = rays[:, 2] < -1e-4
    reach = np.where(down, -eye[2] / np.minimum(rays[:, 2], -1e-4), np.inf)
    there = np.flatnonzero(down & (reach < np.linalg.norm(eye) + wall))
    at = rays[there] * reach[there, None] + eye
    grain = 0.6 * noise(coarse * at + 7) + 0.4 * noise(fine * at)
    if tiles > 0.6:
        grain = grain + 0.5 * (np.floor(4 * coarse * at[:, 0]) % 2 == 0)
    outside = np.maximum(np.maximum(low[:2] - at[:, :2], at[:, :2] - high[:2]), 0)
    shade = np.exp(-np.linalg.norm(outside, axis=1) / (0.12 * size))
    thrown = at[:, :2] + lamp[:2] / lamp[2] * 0.5 * high[2]  # where the lamp's ray leaves half of the height
    beside = np.maximum(np.maximum(low[:2] - thrown, thrown - high[:2]), 0)
    shade = np.maximum(shade, 0.9 * np.exp(-np.linalg.norm(beside, axis=1) / (0.05 * size)) * float(sun.mean() > 0.5))
    lit = (sky + sun * lamp[2] * (1 - 0.9 * shade)[:, None]) * (1 - 0.55 * shade)[:, None]
    scene[there] = ground * (0.7 + contrast * (grain - 0.5))[:, None] * lit
    return scene.reshape(camera.height, camera.width, 3)


def _stored(light: Floats, take: Take, key: Words) -> Pixels:
    """What a camera makes of linear light: exposure, blur, vignetting, white balance, noise, JPEG."""
    from PIL import Image

    height, width = light.shape[:2]
    light = light * np.float32(0.55 / max(float(light.mean()), 0.05) * take(0.35, 0.85)) * _tint(take, 0.06)
    light = soften(light, take(0.0, 0.9))
    down, across = np.linspace(-1, 1, height)[:, None], np.linspace(-1, 1, width)
    light = light * (1 - take(0.0, 0.25) * (down**2 + across**2) / 2)[..., None].astype(np.float32)
    grain = _normal(fold(key, 1000), light.size).reshape(light.shape)
    light = light + grain * np.float32(take(0.002, 0.03)) * np.sqrt(np.maximum(light, 0) + 0.02)
    shown = encode(np.maximum(light, 0)).astype(np.float32)
    grey = shown.mean(axis=2, keepdims=True)
    shown = grey + (shown - grey) * np.float32(take(0.6, 1.1))
    image = Image.fromarray(np.round(255 * np.clip(shown, 0, 1)).astype(np.uint8))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=round(take(30, 92)))
    pixels = np.full((height, width, 4), 255, np.uint8)
    pixels[..., :3] = np.asarray(Image.open(file))
    return pixels


def _normal(key: Words, count: int) -> Floats:
    """About normal: sums of four uniform numbers of 16 bits."""
    bits: Array = fold(key, np.arange(count, dtype=np.uint64))
    parts = np.zeros(count, np.float32)
    for number in range(4):
        parts += (bits >> np.uint64(16 * number) & np.uint64(0xFFFF)).astype(np.float32)
    return ((parts / 65535 - 2) * np.float32(np.sqrt(3))).astype(np.float32)


def photograph_key(seed: int, category: str, number: int, image: int) -> Words:
    """Key of everything that is random in an image, its pose apart."""
    return fold(fold(stream_key(seed, f"abc-pose-procedural photographs of a {category}"), number), image)
