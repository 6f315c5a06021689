"""Rows of equal height, as wide as their block: images of many shapes without gaps, as in a photo gallery."""

import math
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["TALLEST", "WIDEST", "Box", "justified", "shown_aspect"]

WIDEST, TALLEST = 3.0, 0.4
"""Width by height beyond which an image is cropped, where images of many shapes share a sheet."""

_LOOSE = 1.25  # a last row is stretched up to so much
_MOST = 1.6  # and any other row, before it stays short
_SHORT = 4.0  # what such a short row costs


class Box(NamedTuple):
    """Where an image stands, in pixels."""

    left: int
    top: int
    width: int
    height: int

    def moved(self, x: int, y: int) -> "Box":
        """The box further to the right and down."""
        return Box(self.left + x, self.top + y, self.width, self.height)


def shown_aspect(width: int, height: int) -> float:
    """Width by height of what is shown of an image, within the two limits."""
    return min(max(width / height, TALLEST), WIDEST)


def justified(aspects: Sequence[float], width: int, height: int, gap: int) -> list[Box]:
    """Break images into rows whose heights differ from `height` as little as possible.

    All images of a row are equally high, `gap` pixels apart, and the row is as wide as the block. The last one may be
    shorter, and so may a single image that would become too high.

    Parameters
    ----------
    aspects : sequence of float, positive
        Width by height of each image, in order.
    width : int
        Of the block, in pixels.
    height : int
        That rows should have.
    gap : int
        Between images.

    Returns
    -------
    list of Box, one per image, in order

    """
    count = len(aspects)
    best = [0.0] + [math.inf] * count
    first = [0] * (count + 1)  # of the last row when so many images are laid out
    for end in range(1, count + 1):
        total = 0.0
        for start in range(end - 1, -1, -1):
            total += aspects[start]
            free = width - (end - start - 1) * gap
            if free < end - start:
                break
            cost = best[start] + _cost(free / total / height, end == count)
            if cost < best[end] - 1e-12:
                best[end], first[end] = cost, start
    rows, end = [], count
    while end:
        rows.append((first[end], end))
        end = first[end]
    boxes: list[Box] = []
    top = 0
    for start, end in reversed(rows):
        boxes += _row(aspects[start:end], top, width, height, gap, end == count)
        top = boxes[-1].top + boxes[-1].height + gap
    return boxes


def _cost(stretch: float, last: bool) -> float:
    """How far a row that is stretched to the width of its block is from the height that it should have."""
    if last and stretch > _LOOSE:
        return 0.3 * (1 - 1 / stretch) ** 2
    return math.log(stretch) ** 2 + _SHORT * (stretch > _MOST)


def _row(aspects: Sequence[float], top: int, width: int, height: int, gap: int, last: bool) -> list[Box]:
    free, total = width - (len(aspects) - 1) * gap, sum(aspects)
    stretch = free / total / height
    if stretch > (_LOOSE if last else _MOST):
        tall = height if last else round(_MOST * height)
        ends = [round(tall * sum(aspects[: index + 1])) for index in range(len(aspects))]
    else:
        tall = max(1, round(stretch * height))
        ends = [round(free * sum(aspects[: index + 1]) / total) for index in range(len(aspects))]
    starts = [0, *ends[:-1]]
    return [
        Box(start + index * gap, top, max(1, end - start), tall)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
