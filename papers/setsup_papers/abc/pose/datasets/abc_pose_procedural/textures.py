"""Images behind objects: photographs that scikit-image ships, and textures of noise; two kinds that share none.

``pool`` is what the augmentation of renderings takes crops of, in place of ImageNet-A; ``backdrop`` is what stands
behind the objects of the real domain. Photographs of one are not those of the other.
"""

from functools import cache

import numpy as np

from setsup.arrays import Floats, Pixels, Words
from setsup.errors import imported
from setsup.random import fold, randint_below, stream_key, uniform
from setsup_papers.abc.pose.datasets.abc_pose_procedural.shading import noise

__all__ = ["backdrop", "pool", "soften"]

POOL = ("astronaut", "coffee", "chelsea", "hubble_deep_field", "immunohistochemistry", "retina")
OUTDOORS, INDOORS = ("rocket", "gravel", "grass", "stereo_motorcycle"), ("brick", "stereo_motorcycle", "page", "text")


@cache
def photograph_named(name: str) -> Pixels:
    """A photograph of scikit-image, (h, w, 3) uint8."""
    loaded = getattr(imported("skimage.data", "train"), name)()
    image = np.asarray(loaded[0] if isinstance(loaded, tuple) else loaded)
    return np.ascontiguousarray(image[..., :3] if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2))


def pool(seed: int, count: int, side: int) -> Pixels:
    """Images (count, side, side, 3) uint8: half of them crops of photographs, half textures, by turns."""
    images = np.empty((count, side, side, 3), np.uint8)
    for number in range(count):
        key = fold(stream_key(seed, "abc-pose-procedural pool"), number)
        name = POOL[number // 2 % len(POOL)]
        images[number] = crop(photograph_named(name), key, side, side) if number % 2 else texture(key, side, side)
    return images


def backdrop(key: Words, height: int, width: int, indoors: bool) -> Pixels:
    """What lies beyond the floor, (height, width, 3) uint8: a blurred photograph, a wall, or a sky over a skyline."""
    u = _uniform(fold(key, 2000), 8)
    names = INDOORS if indoors else OUTDOORS
    if u[0] < 0.4:
        image = crop(photograph_named(names[int(u[1] * len(names))]), fold(key, 2001), height, width).astype(np.float32)
        return np.round(soften(image, 3 * u[2])).astype(np.uint8)
    if u[0] < 0.65:
        return texture(fold(key, 2002), height, width)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / height
    points = np.stack([4 * x + 40 * u[3], np.full_like(x, 40 * u[4]), np.zeros_like(x)], axis=-1).reshape(-1, 3)
    line = 0.25 + 0.35 * noise(np.floor(2 * points)).reshape(height, width)
    top, far = (
        np.array([60 + 190 * part for part in _uniform(fold(key, word), 3)], np.float32) for word in (2003, 2004)
    )
    sky = top * (1 - y[..., None]) + 235 * y[..., None]
    windows = 0.7 + 0.3 * ((np.floor(24 * x) + np.floor(18 * y)) % 2)[..., None]
    image = np.where((y > line)[..., None], far * windows * 0.6, sky)
    return np.round(soften(np.clip(image, 0, 255).astype(np.float32), 4 * u[5])).astype(np.uint8)


def texture(key: Words, height: int, width: int) -> Pixels:
    """Noise of two colours on several scales, with or without stripes."""
    u = _uniform(key, 16)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32) / max(height, width)
    turn = np.pi * u[0]
    along, over = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
    scale, stretch = 2.0 ** (1 + 4 * u[1]), 2.0 ** (3 * u[2])
    flat = np.stack([scale * along + 30 * u[3], scale * stretch * over + 30 * u[4], np.full_like(x, 30 * u[5])], -1)
    wave = sum(noise((2**octave * flat).reshape(-1, 3).astype(np.float32)) / 2**octave for octave in range(3)) / 1.75
    wave = np.asarray(wave).reshape(height, width)
    if u[6] < 0.35:
        wave = 0.5 * wave + 0.5 * (np.floor(2 * scale * along) % 2)
    first, last = np.array(u[7:10]), np.array(u[10:13])
    mixed = first + (last - first) * np.clip(1.6 * wave - 0.3, 0, 1)[..., None]
    pixels: Pixels = np.round(255 * mixed).astype(np.uint8)
    return pixels


def crop(image: Pixels, key: Words, height: int, width: int) -> Pixels:
    """A random part of an image, a third to the whole of its smaller side, resized, and flipped half of the time."""
    from PIL import Image

    u = _uniform(key, 3)
    side = max(2, int(min(image.shape[:2]) * (0.33 + 0.67 * u[0])))
    free = np.array([image.shape[0] - side + 1, image.shape[1] - side + 1])
    top, left = randint_below(fold(key, np.arange(8, 10, dtype=np.uint64)), free).tolist()
    part = Image.fromarray(image[top : top + side, left : left + side]).resize(
        (width, height), Image.Resampling.BILINEAR
    )
    pixels = np.asarray(part)
    return pixels[:, ::-1] if u[1] < 0.5 else pixels


def soften(image: Floats, sigma: float) -> Floats:
    """Gaussian blur of (h, w, c); nothing below a fifth of a pixel."""
    if sigma < 0.2:
        return image
    from scipy.ndimage import gaussian_filter

    softened: Floats = gaussian_filter(image, (sigma, sigma, 0), mode="nearest")
    return softened


def _uniform(key: Words, count: int) -> list[float]:
    numbers: list[float] = uniform(fold(key, np.arange(count, dtype=np.uint64))).tolist()
    return numbers
