"""The papers' augmentations as items of a DataLoader do them: one image after the other, by OpenCV, Pillow and numpy.

Each function takes one picture, height × width × channels of uint8, and gives what a network gets: float32 tensors of
0 … 1, channels first. The laws are those of :mod:`setsup.methods.recipes`, written anew. Random numbers come
from Python's generator and numpy's; each operation from the library that does it fastest, where its law is the same.
"""

import math
import random

import cv2
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps

__all__ = [
    "dcodr_albumentations",
    "dcodr_kornia",
    "dcodr_opencv",
    "dcodr_pillow",
    "dcodr_torchvision",
    "pixel_pairs",
    "posed",
    "room",
    "stacked",
]

LEVELS = np.arange(256, dtype=np.float32)
GENERATOR = np.random.default_rng()


def tensor(picture):
    """What torchvision's ``ToTensor`` does, with a picture of Pillow or an array."""
    pixels = picture if isinstance(picture, np.ndarray) else np.array(picture)
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous().float().div_(255)


def stacked(items):
    """A batch of items, as a DataLoader's default collation makes it: tensors, or tuples of them."""
    items = list(items)
    if isinstance(items[0], tuple):
        return [torch.stack(part) for part in zip(*items, strict=True)]
    return torch.stack(items)


# ABC, pose: OpenCV and numpy on float32


def posed(image, real, pool):
    """Two copies of a picture with alpha, by which its colours are multiplied before they are moved."""
    alpha = cv2.extractChannel(image, 3)
    image = cv2.multiply(image, cv2.merge([alpha, alpha, alpha, np.full_like(alpha, 255)]), scale=1 / 255)
    return torch.stack([_posed(image, pool, real) for _ in range(2)])


def _posed(image, pool, real):
    height, width = image.shape[:2]
    x, y = random.uniform(-0.1, 0.1) * width, random.uniform(-0.1, 0.1) * height
    moved = cv2.warpAffine(image, np.float32([[1, 0, x], [0, 1, y]]), (width, height))
    background = pool[random.randrange(len(pool))]
    top, left = (random.randrange(many - few + 1) for many, few in zip(background.shape, (height, width), strict=False))
    clear = cv2.cvtColor(cv2.bitwise_not(cv2.extractChannel(moved, 3)), cv2.COLOR_GRAY2RGB)
    behind = background[top : top + height, left : left + width]
    shown = cv2.multiply(behind, clear, scale=1 / 255**2, dtype=cv2.CV_32F)
    colors = cv2.cvtColor(moved, cv2.COLOR_RGBA2RGB)
    shown = cv2.addWeighted(colors, 1 / 255, shown, 1, random.uniform(-0.2, 0.2), dtype=cv2.CV_32F)
    np.clip(shown, 0, 1, out=shown)
    if real:
        hsv = cv2.cvtColor(shown, cv2.COLOR_RGB2HSV)
        hsv[..., 0] = (hsv[..., 0] + random.uniform(-180, 180)) % 360
        shown = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    noise = cv2.randn(np.empty_like(shown), (0, 0, 0), (0.05, 0.05, 0.05))
    shown += noise
    np.clip(shown, 0, 1, out=shown)
    across, down = (
        cv2.Sobel(shown, cv2.CV_32F, *axis, ksize=3, scale=1 / 8, borderType=cv2.BORDER_REPLICATE)
        for axis in ((1, 0), (0, 1))
    )
    shown = cv2.scaleAdd(cv2.magnitude(across, down), random.uniform(-0.2, 0.2), shown)
    np.clip(shown, 0, 1, out=shown)
    return torch.from_numpy(shown).permute(2, 0, 1).contiguous()


# DCoDR: one of four


def box_of(height, width, least):
    """Top, left, height and width of a resized crop."""
    for _ in range(10):
        area = height * width * random.uniform(least, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randrange(height - h + 1), random.randrange(width - w + 1), h, w
    return 0, 0, height, width


def blurred(pixels, kernel, sigma):
    return cv2.GaussianBlur(pixels, (kernel, kernel), sigma, borderType=cv2.BORDER_REFLECT_101)


def dcodr_pillow(pixels):
    """By Pillow, as the paper's code does; but the blur, for which that calls torch, by OpenCV, which is faster."""
    which, (height, width) = random.randrange(4), pixels.shape[:2]
    if which == 0:
        return tensor(blurred(pixels, 5, 1))
    image = Image.fromarray(pixels)
    if which == 3:
        top, left, h, w = box_of(height, width, 0.5)
        return tensor(image.crop((left, top, left + w, top + h)).resize((width, height), Image.Resampling.BILINEAR))
    enhancer = ImageEnhance.Contrast if which == 1 else ImageEnhance.Color
    return tensor(enhancer(image).enhance(random.uniform(1.8, 3)))


def dcodr_opencv(pixels):
    """By OpenCV alone, to a level or two the same: it rounds where Pillow truncates."""
    which, (height, width) = random.randrange(4), pixels.shape[:2]
    if which == 0:
        return tensor(blurred(pixels, 5, 1))
    if which == 3:
        top, left, h, w = box_of(height, width, 0.5)
        return tensor(cv2.resize(pixels[top : top + h, left : left + w], (width, height)))
    factor, grey = random.uniform(1.8, 3), cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    if which == 1:
        mean = int(cv2.mean(grey)[0] + 0.5)
        return tensor(cv2.LUT(pixels, np.clip(mean + factor * (LEVELS - mean), 0, 255).astype(np.uint8)))
    return tensor(cv2.addWeighted(pixels, factor, cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), 1 - factor, 0))


# the same by libraries of augmentations


def dcodr_torchvision():
    """On tensors of uint8."""
    from torchvision.transforms import v2

    crop = v2.RandomResizedCrop(64, scale=(0.5, 1), antialias=True)
    colors = v2.ColorJitter(contrast=(1.8, 3)), v2.ColorJitter(saturation=(1.8, 3))
    one_of = v2.RandomChoice([v2.GaussianBlur(5, (1, 1)), *colors, crop])
    return lambda pixels: one_of(torch.from_numpy(pixels).permute(2, 0, 1)).float().div_(255)


def dcodr_albumentations():
    """On arrays."""
    import albumentations

    plain = {"brightness": (1, 1), "contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0), "p": 1}
    one_of = albumentations.OneOf(
        [
            albumentations.GaussianBlur(blur_limit=(5, 5), sigma_limit=(1, 1), p=1),
            albumentations.ColorJitter(**{**plain, "contrast": (1.8, 3)}),
            albumentations.ColorJitter(**{**plain, "saturation": (1.8, 3)}),
            albumentations.RandomResizedCrop((64, 64), scale=(0.5, 1), p=1),
        ],
        p=1,
    )
    return lambda pixels: tensor(one_of(image=pixels)["image"])


def dcodr_kornia():
    """On batches of float32: from pictures to a call. Unlike ColorJiggle, ColorJitter has the contrast of Pillow."""
    from kornia import augmentation

    crop = augmentation.RandomResizedCrop((64, 64), scale=(0.5, 1), p=1)
    colors = augmentation.ColorJitter(contrast=(1.8, 3), p=1), augmentation.ColorJitter(saturation=(1.8, 3), p=1)
    some = [augmentation.RandomGaussianBlur((5, 5), (1, 1), p=1), *colors, crop]

    def prepared(pictures):
        images = torch.from_numpy(pictures).permute(0, 3, 1, 2)
        parts = [images[number::4] for number in range(4)]  # a quarter of the images each
        return lambda: torch.cat([op(part.float().div(255)) for op, part in zip(some, parts, strict=True)])

    return prepared


# single pixels, 2D: OpenCV, as the paper's code does


def pixel_pairs(pixels, size=32, keep=0.25):
    """Two views; for each pixel of the first a partner in the second, whether it is the true one, and where it is."""
    shift, room = size // 4, size + size // 4 * 2
    image = pixels.astype(np.float32) * (1 / 255)
    height, width = image.shape[:2]
    if height <= room or width <= room:
        width, height = max(width, room + 1), max(height, room + 1)
        image = cv2.resize(image, (width, height))
    half = size // 2
    x, y = (random.randint(shift + half, side - shift - size + half) for side in (width, height))
    dx, dy = random.randint(-shift, shift), random.randint(-shift, shift)
    angle = random.uniform(0, 2 * math.pi)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    warp = turn + 0.1 * GENERATOR.standard_normal((2, 2))
    matrix = np.hstack([warp, (half - warp @ [x, y])[:, None]])
    first = cv2.warpAffine(image, matrix, (size, size))
    second = image[y + dy - half : y + dy - half + size, x + dx - half : x + dx - half + size]
    down, across = np.divmod(np.arange(size * size), size)
    offset = np.linalg.inv(warp) @ np.stack([across - half, down - half])
    column, row = np.rint(offset).astype(np.int64) + half - np.array([[dx], [dy]])
    inside = (column > 0) & (column < size) & (row > 0) & (row < size)
    positive = inside & (GENERATOR.random(size * size) < keep)
    partner = np.where(positive, row * size + column, GENERATOR.integers(0, size * size, size * size))
    source = offset + np.array([[x], [y]])
    valid = ((source >= -0.5) & (source < [[width - 0.5], [height - 0.5]])).all(axis=0)
    views = [torch.from_numpy(view).permute(2, 0, 1).contiguous() for view in (first, second)]
    return (*views, *(torch.from_numpy(one) for one in (partner, positive, valid)))


# single pixels, 3D: one window for both views, then Pillow


def room(views, size=256):
    """Views of one scene, (2, height, width, 3)."""
    height, width = views.shape[1:3]
    top, left = random.randrange(height - size + 1), random.randrange(width - size + 1)
    return torch.stack([tensor(_colored(view[top : top + size, left : left + size])) for view in views])


def _colored(pixels):
    image = Image.fromarray(pixels)
    jitter = [_brightened, _saturated, _turned]
    random.shuffle(jitter)
    for change in jitter:
        image = change(image)
    if random.random() < 0.1:
        image = ImageOps.autocontrast(image)
    if random.random() < 0.1:
        image = Image.fromarray(blurred(np.asarray(image), 7, random.uniform(1, 3)))
    if random.random() < 0.1:
        image = ImageOps.posterize(image, 5)
    if random.random() < 0.1:
        image = ImageOps.equalize(image)
    return image.convert("L").convert("RGB") if random.random() < 0.05 else image


def _brightened(image):
    return ImageEnhance.Brightness(image).enhance(random.uniform(0.7, 1.3))


def _saturated(image):
    return ImageEnhance.Color(image).enhance(random.uniform(0.7, 1.3))


def _turned(image):
    hue, saturation, value = image.convert("HSV").split()
    levels = np.array(hue)
    levels += np.array(int(random.uniform(-0.1, 0.1) * 255)).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(levels), saturation, value)).convert("RGB")
