"""Sheets of matches: lines between the pixels of two views that show the same point, occluded ones apart."""

import colorsys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.checks import check_arguments
from setsup.correspondence import PixelPairs, Status
from setsup.errors import DataError
from setsup.random import fold, permute
from setsup.reports.lettering import fit_text
from setsup.reports.page import CAPTIONS, GUTTER, MARGIN, NOTES, PADDING, SKIP, Cell, Page, lines_height
from setsup.reports.thumbnails import thumbnail

__all__ = ["match_sheet", "matches_drawn"]

_SIDE = 320  # pixels of the longer side of a view, at least: smaller images are enlarged
_FINE = 3  # lines are drawn so many times larger, for smooth edges
_SPACE = 8  # pixels between the two views
_PAPER = 255


def matches_drawn(
    view1: npt.NDArray[np.uint8], view2: npt.NDArray[np.uint8], pairs: PixelPairs, *, occluded: bool = False
) -> Image.Image:
    """Draw two views side by side, and a line from each pixel of the first to its place in the second.

    Colours go round the middle of view 1, so that neighbours look alike and crossing lines are told apart.

    `view1, view2` (h, w, 3) or (h, w, 4) uint8.
    """
    check_arguments(matches_drawn, locals(), DataError)
    for view in (view1, view2):
        if np.ndim(view) != 3 or np.asarray(view).dtype != np.uint8:
            raise DataError(f"a view is an image (height, width, channels) uint8, not {np.shape(view)}")
    pictures = [np.asarray(thumbnail(view, max(view.shape[:2])).convert("RGB")) for view in (view1, view2)]
    if pictures[0].shape[0] != pictures[1].shape[0]:
        raise DataError(
            f"two views must be of one height, not {pictures[0].shape[0]} and {pictures[1].shape[0]} pixels"
        )
    height, width = pictures[0].shape[:2]
    times = max(1, round(_SIDE / max(height, width)))
    page = np.full((height * times, (width + pictures[1].shape[1]) * times + _SPACE, 3), _PAPER, np.uint8)
    page[:, : width * times] = _enlarge(pictures[0], times)
    page[:, width * times + _SPACE :] = _enlarge(pictures[1], times)
    image = Image.fromarray(page).resize((page.shape[1] * _FINE, page.shape[0] * _FINE), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(image)
    middle = np.array([(width - 1) / 2, (height - 1) / 2])
    for one, two in zip(pairs.points1, pairs.points2, strict=True):
        start = (one + 0.5) * times * _FINE
        end = ((two + 0.5) * times + [width * times + _SPACE, 0]) * _FINE
        angle = np.arctan2(*(one - middle)[::-1]) / (2 * np.pi)
        color = tuple(int(255 * part) for part in colorsys.hsv_to_rgb(angle % 1.0, 0.85, 1.0))
        _line(draw, start, end, color, occluded)
    return image.resize((page.shape[1], page.shape[0]), Image.Resampling.BOX)


def match_sheet(
    views: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    pairs: Sequence[PixelPairs],
    captions: Sequence[str],
    title: str = "",
    *,
    shown: int = 24,
) -> Image.Image:
    r"""Lay out pairs of views in rows: matches visible in both views on the left, occluded ones on the right."""
    check_arguments(match_sheet, locals(), DataError)
    if not len(views) or not len(views) == len(pairs) == len(captions):
        raise DataError(f"a sheet of {len(views)} pairs of views needs as many pixel pairs and captions, at least one")
    drawn = []
    for (view1, view2), found in zip(views, pairs, strict=True):
        parts = [
            matches_drawn(view1, view2, _some(found.select(found.status == status), shown), occluded=status != 0)
            for status in (Status.VISIBLE, Status.OCCLUDED)
        ]
        drawn.append(parts)
    width, height = (max(getattr(part, side) for parts in drawn for part in parts) for side in ("width", "height"))
    texts = [
        fit_text(f"{caption}: {_count(found)}", 2 * width, CAPTIONS)
        for caption, found in zip(captions, pairs, strict=True)
    ]
    heads = [fit_text(head, width, NOTES) for head in ("visible in both views", "occluded in the second view")]
    above = max(lines_height(text) for text in texts) + SKIP + lines_height(heads[0]) + SKIP
    card = 2 * PADDING + above + height
    page = Page(
        2 * (width + MARGIN + PADDING) + GUTTER,
        len(views) * (card + GUTTER) - GUTTER,
        title,
        Cell(width, height, height),
    )
    for number, (parts, text) in enumerate(zip(drawn, texts, strict=True)):
        top = page.top + number * (card + GUTTER)
        page.card(MARGIN, top, 2 * (width + PADDING) + GUTTER, card)
        below = page.write(MARGIN + PADDING, top + PADDING - 2, text) + SKIP
        for place, (part, head) in enumerate(zip(parts, heads, strict=True)):
            left = MARGIN + PADDING + place * (width + GUTTER)
            low = page.write(left, below, head) + SKIP
            page.image.paste(part, (left, low))
    return page.image


def _some(pairs: PixelPairs, most: int) -> PixelPairs:
    """So many of the pairs, drawn by a fixed key."""
    if len(pairs) <= most:
        return pairs
    return pairs.select(permute(fold(0, 0), len(pairs), np.arange(most)))


def _count(pairs: PixelPairs) -> str:
    counts = np.bincount(pairs.status, minlength=len(Status)).tolist()
    words = ("visible", "occluded", "outside the image", "no surface")
    return ", ".join(f"{count:,} {word}" for count, word in zip(counts, words, strict=True) if count)


def _enlarge(picture: npt.NDArray[np.uint8], times: int) -> npt.NDArray[np.uint8]:
    return picture.repeat(times, axis=0).repeat(times, axis=1)


def _line(draw: ImageDraw.ImageDraw, start: Any, end: Any, color: tuple[int, ...], occluded: bool) -> None:
    ends, dot = [*start, *end], 3 * _FINE
    for wide, paint in ((3 if occluded else 4, (0, 0, 0)), (1 if occluded else 2, color)):
        draw.line(ends, fill=paint, width=wide * _FINE // 2)
    for (x, y), crossed in ((start, False), (end, occluded)):
        if crossed:
            for dx in (dot, -dot):
                draw.line([x - dx, y - dot, x + dx, y + dot], fill=(0, 0, 0), width=2 * _FINE)
                draw.line([x - dx, y - dot, x + dx, y + dot], fill=color, width=_FINE)
        else:
            draw.ellipse([x - dot, y - dot, x + dot, y + dot], fill=color, outline=(0, 0, 0), width=_FINE // 2)
