"""Images, uint8 or float32 in 0 … 1, by a matrix each: batches of tensors by torch, single arrays by OpenCV.

A matrix takes pixels of an image to those of the result. What it does decides how it is resampled, as
:mod:`setsup.loading.transforms.resampling.warp` says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch
from torch import Tensor
from torch.nn import functional

from setsup.arrays import Matrices, Reals, Size
from setsup.correspondence import planar
from setsup.loading.transforms.by_image import Image, Kernel, cv2, real, room
from setsup.loading.transforms.operations.eight_bit import to_images
from setsup.loading.transforms.resampling.taps import TIE, axis, separable, source_range

__all__ = ["COPIED", "SAME", "finish", "floats", "kernels", "resample", "sources", "ways"]

SAME, COPIED, MOVED, STRAIGHT, AFFINE, PROJECTIVE = range(6)  # what a matrix does

_FAR = -1e9  # pixels: where nothing is
_NOISE = 2.0**-12  # levels of 255: what float32 may lack of the integer that exact arithmetic gives
_WHOLE = 1e-6  # pixels


def ways(matrices: Matrices, before: Size, after: Size) -> npt.NDArray[np.int64]:
    """What each matrix does, (n,)."""
    scale, shift = matrices[:, (0, 1), (0, 1)], matrices[:, :2, 2]
    affine = (matrices[:, 2] == [0, 0, 1]).all(axis=1)
    straight = affine & (matrices[:, (0, 1), (1, 0)] == 0).all(axis=1)
    moved = straight & (np.abs(scale) == 1).all(axis=1)
    copy = moved & (shift == np.rint(shift)).all(axis=1)
    same = copy & (scale == 1).all(axis=1) & (shift == 0).all(axis=1) & (before == after)
    return np.select([same, copy, moved, straight, affine], [SAME, COPIED, MOVED, STRAIGHT, AFFINE], PROJECTIVE)


# batches, by torch


def floats(images: Tensor) -> Tensor:
    """Images as float32: uint8 over 255, float32 as they are."""
    real = images.to(torch.float32, memory_format=torch.contiguous_format)
    return real if images.dtype != torch.uint8 else to_images(real)


def finish(images: Tensor, eight_bit: bool) -> Tensor:
    """Images as uint8, rounded, or as float32."""
    if not eight_bit:
        return floats(images)
    return images if images.dtype == torch.uint8 else images.mul(255).round_().clamp_(0, 255).to(torch.uint8)


def resample(way: int, images: Tensor, matrices: Matrices, size: Size, fill: float, eight_bit: bool) -> Tensor:
    """Images (n, C, H, W) by matrices (n, 3, 3) that all do the same."""
    images = finish(images, eight_bit)
    if way == SAME:
        return images
    if way > STRAIGHT:
        return _slanted(images, matrices, size, fill)
    return _straight(images, matrices, size, fill, once=way == MOVED)


def _straight(images: Tensor, matrices: Matrices, size: Size, fill: float, once: bool) -> Tensor:
    """Moved, mirrored and resized along rows and columns; of 8 bits rounded once, or as Pillow's resize after each."""
    rows, columns = (axis(matrices[:, at, at], matrices[:, at, 2], images.shape[3 - at], size[1 - at]) for at in (1, 0))
    results = separable(images, rows, columns, once)
    if rows[2].all() and columns[2].all():
        return results
    down, across = (torch.from_numpy(inside).to(images.device) for *_, inside in (rows, columns))
    return _filled(results, down[:, :, None] & across[:, None, :], fill)


def _slanted(images: Tensor, matrices: Matrices, size: Size, fill: float) -> Tensor:
    """Bilinear, by matrices that are all affine, or all not.

    The grid is made in float64 and rounded once, so that sources are right to 2·10⁻⁴ px at 512 pixels.
    """
    height, width = images.shape[2:]
    unit = planar.compose(planar.scaling(2 / width, 2 / height), planar.translate(1 / width - 1, 1 / height - 1))
    x, y = sources(planar.compose(np.linalg.inv(matrices), unit), size, images.device, torch.float32)
    grid = torch.stack([x, y], dim=-1)
    results = functional.grid_sample(floats(images), grid, mode="bilinear", padding_mode="border", align_corners=False)
    if images.dtype == torch.uint8:  # Pillow's transforms truncate, and its resizes round
        results = results.mul_(255).add_(_NOISE).clamp_(0, 255).to(torch.uint8)
    first, last = torch.from_numpy(_spans(np.linalg.inv(matrices), (height, width), size)).to(images.device).unbind(1)
    column = torch.arange(size[1], device=images.device)
    return _filled(results, (column >= first) & (column < last), fill)


def _spans(inverse: npt.NDArray[Any], before: Size, size: Size) -> npt.NDArray[np.int32]:
    """In each row of the result, where the columns that show the source begin and end, (n, 2, height, 1).

    Each of the source's four sides is an inequality, linear in the column; together they make the depth positive.
    """
    half, depth = 0.5 + TIE, inverse[:, 2]
    limits = [(inverse[:, at] + half * depth, (before[1 - at] - half) * depth - inverse[:, at]) for at in (0, 1)]
    sides = np.stack([side for ends in limits for side in ends], axis=1)  # times (column, row, 1): not below 0
    slope, base = sides[:, :, :1] + 0.0, sides[:, :, 1:2] * np.arange(size[0]) + sides[:, :, 2:]  # + 0: no −0
    with np.errstate(all="ignore"):
        root = np.where(base == 0, 0.0, -base / slope)  # no column where a row lies on the side itself
    first = np.where(slope >= 0, np.ceil(root), 0).max(axis=1)
    last = np.where(slope < 0, np.floor(root) + 1, size[1]).min(axis=1)
    return np.stack([first, last], axis=1)[..., None].clip(0, size[1]).astype(np.int32)


def sources(inverse: Matrices, size: Size, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Where pixels of the result come from.

    `inverse` (n, 3, 3) float64; `size` (height, width); returns `x, y` (n, height, width).
    """
    u, v = np.arange(size[1], dtype=np.float64), np.arange(size[0], dtype=np.float64)
    across, down = inverse[:, :, :1] * u, inverse[:, :, 1:2] * v + inverse[:, :, 2:]  # (n, 3, length) each
    affine = bool((inverse[:, 2] == [0, 0, 1]).all())
    if affine and not inverse[:, (0, 1), (1, 0)].any():
        x, y = (
            torch.from_numpy(part[:, at]).to(device, dtype) for at, part in ((0, across + down[:, :, :1]), (1, down))
        )
        return x[:, None, :], y[:, :, None]
    terms = [torch.from_numpy(term).to(device, dtype if affine else torch.float64) for term in (across, down)]
    x, y, *depth = (terms[0][:, at, None, :] + terms[1][:, at, :, None] for at in range(2 if affine else 3))
    if affine:
        return x, y
    far = depth[0] <= 0
    return x.div_(depth[0]).masked_fill_(far, _FAR).to(dtype), y.div_(depth[0]).masked_fill_(far, _FAR).to(dtype)


def _filled(images: Tensor, inside: Tensor, fill: float) -> Tensor:
    """Fill images (n, C, H, W) in place where they are not inside (n, H, W)."""
    return images.masked_fill_(~inside[:, None], round(fill * 255) if images.dtype == torch.uint8 else fill)


# single images, by OpenCV


@dataclass(frozen=True, slots=True)
class To:
    """What results are: their size, what they are filled with, and whether they are uint8."""

    size: Size
    fill: float
    eight_bit: bool

    def filler(self, image: Image) -> float:
        """What an image is filled with."""
        return round(self.fill * 255) if image.dtype == np.uint8 else self.fill

    def blank(self, image: Image) -> Image:
        """An image of one value, of the channels and dtype of another."""
        return np.full((*self.size, *image.shape[2:]), self.filler(image), dtype=image.dtype)


Change = Callable[[To, Image], Image]


@dataclass(frozen=True, slots=True)
class Warp:
    """A kernel that moves pixels; without 8 bits it takes uint8 for 1/255, which copies need not convert."""

    change: Change
    to: To

    levels: ClassVar[bool] = True

    def __call__(self, image: Image) -> Image:
        """The image moved."""
        return self.change(self.to, image)


def kernels(matrices: Matrices, before: Size, size: Size, fill: float, eight_bit: bool) -> list[Kernel | None]:
    """A kernel for each of n images, one for all where matrices are equal; None where a matrix changes nothing."""
    if len(matrices) > 1 and (matrices == matrices[0]).all():
        return kernels(matrices[:1], before, size, fill, eight_bit) * len(matrices)
    made: list[Kernel | None] = [None] * len(matrices)
    kinds, to = ways(matrices, before, size), To(size, fill, eight_bit)
    unmixed = (kinds > SAME) & (kinds <= MOVED)
    for chosen, make in ((unmixed, _moves), (kinds == STRAIGHT, _resizes), (kinds > STRAIGHT, _turns)):
        rows = np.flatnonzero(chosen)
        for row, change in zip(rows.tolist(), make(matrices[rows], before, size) if len(rows) else (), strict=True):
            made[row] = Warp(change, to)
    return made


def _moves(matrices: Matrices, before: Size, size: Size) -> list[Change]:
    """Moved by parts of a pixel, then copied to their places; mirrored or not."""
    mirrored, shift = matrices[:, (1, 0), (1, 0)] < 0, matrices[:, (1, 0), (2, 2)]  # of y and of x
    base = np.where(mirrored, shift, -shift)
    part = base - np.floor(base)
    target = np.where(mirrored, 1, -1) * (np.floor(base) + (part >= 0.5)).astype(np.int64)
    first = np.clip(np.where(mirrored, target - before + 1, target), 0, size)
    last = np.clip(np.where(mirrored, target + 1, target + before), first, size)
    start = np.clip(np.where(mirrored, target + 1 - last, first - target), 0, before)
    spans = np.stack([first, last, start, start + last - first], axis=-1)
    return [partial(_moved, *span) for span in zip(spans.tolist(), part.tolist(), mirrored.tolist(), strict=True)]


def _moved(spans: list[list[int]], parts: list[float], mirrored: list[bool], to: To, image: Image) -> Image:
    if parts != [0, 0]:
        rounded = to.eight_bit and image.dtype == np.uint8
        level = 1.0 if to.eight_bit or image.dtype != np.uint8 else 1 / 255
        (down, y), (across, x) = (([1 - part, part], int(part >= 0.5)) if part else ([1.0], 0) for part in parts)
        taps = np.array(across, np.float32), np.array(down, np.float32) * np.float32(level)
        image = cv2.sepFilter2D(image, cv2.CV_32F, *taps, room(image), (x, y), borderType=cv2.BORDER_REPLICATE)
        image = cv2.convertScaleAbs(image, room(image, np.uint8)) if rounded else image
    (top, bottom, row, below), (left, right, column, beyond) = spans
    cut = _mirrored(image[row:below, column:beyond], mirrored)
    if cut.shape[:2] == to.size:
        return cut
    cut = cut if to.eight_bit or to.fill in (0, 1) else real(cut)
    if not cut.size:
        return to.blank(cut)
    sides = top, to.size[0] - bottom, left, to.size[1] - right
    return cv2.copyMakeBorder(cut, *sides, cv2.BORDER_CONSTANT, value=[to.filler(cut)] * 4)


def _mirrored(image: Image, axes: list[bool]) -> Image:
    return cv2.flip(image, -1 if all(axes) else int(axes[1])) if image.size and any(axes) else image


def _resizes(matrices: Matrices, before: Size, size: Size) -> list[Change]:
    """Resized, mirrored or not: by Pillow where that averages, which OpenCV's bilinear does not."""
    scale, shift = matrices[:, (1, 0), (1, 0)], matrices[:, (1, 0), (2, 2)]  # of y and of x
    first, last = (
        np.stack(ends, axis=-1).astype(np.int64)
        for ends in zip(*(source_range(scale[:, at], shift[:, at], before[at], size[at]) for at in (0, 1)), strict=True)
    )
    edges = np.sort((np.stack([np.full(2, -0.5), np.array(size) - 0.5])[:, None] - shift) / scale, axis=0) + 0.5
    edges = np.where(np.abs(edges - np.rint(edges)) < _WHOLE, np.rint(edges), edges)  # of the box, (2, n, y and x)
    within = ((edges[0] >= 0) & (edges[1] <= before)).all(axis=1)
    whole = within & (edges[0] == first).all(axis=1) & (edges[1] == last + 1).all(axis=1)
    larger = (np.abs(scale) >= 1).all(axis=1)
    shifted = _turns(matrices, before, size, first[:, ::-1])
    boxes = (edges - first).transpose(1, 0, 2)[:, :, ::-1].reshape(-1, 4).tolist()
    kinds = np.stack([larger & ~whole, within, larger], axis=-1).tolist()
    changes: list[Change] = []
    each = enumerate(zip(kinds, first.tolist(), (last + 1).tolist(), strict=True))
    for row, ((slid, inner, grown), (top, left), (bottom, right)) in each:
        window = (slice(top, bottom), slice(left, right))
        if slid:
            changes.append(partial(_in_window, window, shifted[row]))
        elif inner:
            changes.append(partial(_resized, window, None if grown else boxes[row], (scale[row] < 0).tolist()))
        else:
            changes.append(partial(_by_torch, matrices[row]))
    return changes


def _in_window(window: Any, change: Change, to: To, image: Image) -> Image:
    return change(to, image[window])


def _resized(window: Any, box: Any | None, mirrored: list[bool], to: To, image: Image) -> Image:
    image = image[window] if to.eight_bit else real(image[window])
    if box is None:
        # of uint8 OpenCV truncates within, which darkens by an eighth of a level
        resized = cv2.resize(image.astype(np.float32), to.size[::-1], interpolation=cv2.INTER_LINEAR)
        resized = cv2.convertScaleAbs(resized).reshape(resized.shape) if image.dtype == np.uint8 else resized
    else:
        resized = _shrunk(image, to.size, box)
    return _mirrored(resized, mirrored)


def _shrunk(image: Image, size: Size, box: Any) -> Image:
    if image.ndim == 2 or (image.dtype == np.uint8 and image.shape[2] == 3):
        made = PIL.Image.fromarray(image).resize(size[::-1], PIL.Image.Resampling.BILINEAR, box)
        return np.array(made)
    return np.dstack([_shrunk(plane, size, box) for plane in cv2.split(image)])


def _turns(matrices: Matrices, before: Size, size: Size, start: Any = 0) -> list[Change]:
    """Affine, of what begins at `start` (n, 2), or projective; by torch where OpenCV would go beyond a horizon."""
    inverse = np.linalg.inv(matrices)
    flat = np.all(inverse[:, 2] == [0, 0, 1], axis=1)
    right, below = size[1] - 1, size[0] - 1
    seen = np.all(inverse[:, 2] @ [[0, right, 0, right], [0, 0, below, below], [1, 1, 1, 1]] > 0, axis=1)
    spans = _spans(inverse, before, size)
    inverse[flat, :2, 2] -= start
    return [
        partial(_turned, matrix[:2] if affine else matrix, span) if ahead else partial(_by_torch, given)
        for matrix, affine, ahead, span, given in zip(inverse, flat, seen, spans, matrices, strict=True)
    ]


def _turned(inverse: Reals, spans: Image, to: To, image: Image) -> Image:
    """Bilinear; `spans` (2, height, 1) are the columns of the result where the source begins and ends."""
    image = image if to.eight_bit else real(image)
    warp = cv2.warpAffine if len(inverse) == 2 else cv2.warpPerspective
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    warped = warp(image, inverse, to.size[::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)
    if not spans[0].any() and (spans[1] == to.size[1]).all():
        return warped
    column = np.arange(to.size[1], dtype=np.int32)
    inside = (column >= spans[0]) & (column < spans[1])
    return cv2.copyTo(warped, inside.view(np.uint8), to.blank(warped))


def _by_torch(matrix: Reals, to: To, image: Image) -> Image:
    """What few matrices need, such as those that shrink an image and move parts of it out of sight."""
    planes = torch.from_numpy(np.ascontiguousarray(image)).reshape(*image.shape[:2], -1).movedim(-1, 0)[None]
    way = int(ways(matrix[None], image.shape[:2], to.size)[0])
    resampled = resample(way, planes, matrix[None], to.size, to.fill, to.eight_bit)[0]
    return resampled.movedim(0, -1).contiguous().numpy().reshape(*to.size, *image.shape[2:])
