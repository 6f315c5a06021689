"""Random pipelines of operations, and what they make of images in float64, without rounding between operations."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from setsup.correspondence import planar
from setsup.errors import SetsupError
from setsup.loading.transforms import (
    AddBrightness,
    Affine,
    Augment,
    AutoContrast,
    Blur,
    Brightness,
    Contrast,
    Crop,
    Equalize,
    Flip,
    Gray,
    Hue,
    Noise,
    Perspective,
    Posterize,
    RandomApply,
    Resize,
    ResizedCrop,
    Rotate,
    Saturation,
    Shift,
    Sobel,
    by_image,
)
from setsup.loading.transforms.choices import Move, build_steps
from setsup.loading.transforms.slots import Slots

HEIGHT, WIDTH = 44, 52
GROUPS: dict[str, list[Any]] = {
    "unrounded": [Flip(), Shift(0.3), Crop((36, 40)), Resize((60, 64)), Resize((30, 26)), ResizedCrop(40, (0.3, 1))],
    "rounded": [Rotate((-60, 60)), Affine((-20, 20), (-0.2, 0.2), (0.7, 1.3), (-5, 5)), Perspective(0.4)],
    "smooth": [
        AddBrightness(-0.3, 0.3),
        Blur(5, (0.4, 1.5)),
        Brightness(0.6, 1.4),
        Contrast(0.6, 1.4),
        RandomApply(Gray(), 0.3),
        Hue(-0.1, 0.1),
        Noise(0.05),
        Saturation(0.6, 1.4),
        Sobel(-0.2, 0.2),
    ],
    "steps": [Posterize(4), Equalize(), AutoContrast()],
}
"""Moves whose coordinates OpenCV does not round and those that it does; changes of colour without and with steps."""


class Compared(NamedTuple):
    """Results of a pipeline in levels, (n, C, H, W) float64: by OpenCV, by torch, and exactly."""

    opencv: npt.NDArray[np.float64]
    torch: npt.NDArray[np.float64]
    exact: npt.NDArray[np.float64]


def images(kind: str, rng: np.random.Generator) -> torch.Tensor:
    """Independent pixels, or waves some pixels long: (1, 4, 3, HEIGHT, WIDTH) uint8."""
    if kind == "noise":
        return torch.from_numpy(rng.integers(0, 256, (1, 4, 3, HEIGHT, WIDTH), dtype=np.uint8))
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    phases = rng.uniform(0, 7, (1, 4, 3, 1, 1))
    return torch.from_numpy((128 + 120 * np.sin(x / 9 + phases) * np.cos(y / 7 - phases)).astype(np.uint8))


def pipelines(groups: list[str], count: int, seed: int) -> Iterator[list[Any]]:
    """Lists of two to six operations of some groups."""
    rng = np.random.default_rng(seed)
    known = [one for group in groups for one in GROUPS[group]]
    for _ in range(count):
        found = [known[rng.integers(len(known))] for _ in range(rng.integers(2, 7))]
        yield found


def compare(operations: list[Any], given: torch.Tensor, eight_bit: bool, seed: int) -> Compared:
    """What both ways make of images, and the exact values."""
    augment = Augment(operations, eight_bit=eight_bit, seed=seed)
    batch: dict[str, Any] = {"image": given, "step": 0}
    found = []
    before = by_image.cv2
    try:
        for module in (before, None):
            by_image.cv2 = module
            image = augment(batch)["image"].flatten(0, 1).double().numpy()
            found.append(image if eight_bit else 255 * image)
    finally:
        by_image.cv2 = before
    own, shared = augment._slots(batch, (1, given.shape[1]), 1)
    exact = _exactly(given.flatten(0, 1), build_steps(augment.operations, own, shared, (HEIGHT, WIDTH)))
    return Compared(found[0], found[1], 255 * exact)


def _exactly(given: torch.Tensor, steps: Any) -> npt.NDArray[np.float64]:
    """Values of 0 … 1 in float64."""
    values = given.double() / 255
    for step in steps:
        if isinstance(step, Move):
            parts = [_moved(one.numpy(), matrix, step.size) for one, matrix in zip(values, step.matrices, strict=True)]
            values = torch.from_numpy(np.stack(parts))
            continue
        chosen = np.arange(len(values)) if step.chosen is None else np.flatnonzero(step.chosen)
        if len(chosen):
            changed = step.operation(values[chosen], _real(step.slots.take(chosen)))
            values[torch.from_numpy(chosen)] = changed.double()
    return values.numpy()


def _real(slots: Slots) -> Slots:
    return replace(slots, eight_bit=False)


def _moved(image: npt.NDArray[np.float64], matrix: npt.NDArray[np.float64], size: tuple[int, int]) -> Any:
    """An image (C, h, w) by a matrix; 0 where it is outside."""
    height, width = image.shape[1:]
    at = planar.carried(
        np.stack(np.meshgrid(np.arange(size[1]), np.arange(size[0])), -1).reshape(1, -1, 2).astype(float),
        np.linalg.inv(matrix)[None],
    )[0]
    at = np.where(np.isfinite(at), at, -9.0)
    inside = ((at >= -0.5 - 2**-30) & (at < np.array([width, height]) - 0.5 - 2**-30)).all(-1).reshape(size)
    straight = not matrix[[0, 1], [1, 0]].any() and (matrix[2] == [0, 0, 1]).all()
    if straight:
        down, across = (_triangles(matrix[k, k], matrix[k, 2], image.shape[2 - k], size[1 - k]) for k in (1, 0))
        return np.einsum("ij,cjk,lk->cil", down, image, across) * inside
    x, y = np.clip(at, 0, [width - 1, height - 1]).T
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    right, low = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    a, b = x - left, y - top
    upper = image[:, top, left] * (1 - a) + image[:, top, right] * a
    lower = image[:, low, left] * (1 - a) + image[:, low, right] * a
    return (upper * (1 - b) + lower * b).reshape(-1, *size) * inside


def _triangles(scale: float, shift: float, source: int, length: int) -> npt.NDArray[np.float64]:
    """Weights (length, source) of bilinear resampling, by triangles as wide as a pixel of the result if it shrinks."""
    centre = (np.arange(length) - shift) / scale
    ends = np.sort((np.array([-0.5, length - 0.5]) - shift) / scale)
    taps = np.arange(source)
    weights = np.maximum(0, 1 - np.abs(taps - centre[:, None]) / max(1 / abs(scale), 1))
    weights[:, (taps < np.floor(ends[0] + 0.5 + 1e-6)) | (taps > np.ceil(ends[1] - 0.5 - 1e-6))] = 0
    total = weights.sum(1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


class Measured(NamedTuple):
    """Differences in levels over some pipelines."""

    worst: npt.NDArray[np.float64]
    """Of OpenCV and torch, the largest of each pipeline."""
    apart: float
    """Of OpenCV and torch, the mean over all pixels."""
    beyond: float
    """Share of pixels in which they are more than a level apart."""
    opencv: float
    """Of OpenCV and the exact value, the mean over all pixels."""
    torch: float
    """Of torch and the exact value."""


def measure(groups: list[str], kind: str, eight_bit: bool, count: int, seed: int = 1) -> Measured:
    """Compare what both ways make of images by random pipelines."""
    rows = []
    for number, operations in enumerate(pipelines(groups, count, seed)):
        try:
            found = compare(operations, images(kind, np.random.default_rng(number)), eight_bit, number)
        except SetsupError:  # a crop that is larger than what is left of the images
            continue
        apart = np.abs(found.opencv - found.torch)
        errors = (np.abs(one - found.exact).mean() for one in (found.opencv, found.torch))
        rows.append((apart.max(), apart.mean(), (apart > 1.0001).mean(), *errors))
    worst, *means = np.array(rows).T
    return Measured(worst, *(float(one.mean()) for one in means))
