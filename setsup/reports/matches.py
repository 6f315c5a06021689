"""Sheets of matches: lines between the pixels of two views that show the same point, occluded ones apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.arrays import Reals
from setsup.checks import check_arguments
from setsup.correspondence import PixelPairs, Status
from setsup.errors import DataError
from setsup.random import fold, permute
from setsup.reports.colors import cyclic_colors
from setsup.reports.page import (
    CAPTIONS,
    GUTTER,
    MARGIN,
    NOTES,
    PADDING,
    SKIP,
    Cell,
    Page,
    check_measures,
    lines_height,
)
from setsup.reports.text_layout import fit_text, wrap_text
from setsup.reports.thumbnails import filled

__all__ = ["match_sheet", "matches_drawn"]

_SIDE = 320  # pixels of the longer side of a view
_SPACE = 8  # pixels between the two views
_KEY = 38  # pixels of a line in a legend
_RING = 16  # and of the circle of colours
_DARK = (16, 20, 24)
_LEGEND = "view 1 on the left, view 2 on the right; colours: the direction of a pixel from the centre of view 1"


def matches_drawn(
    view1: npt.NDArray[np.uint8],
    view2: npt.NDArray[np.uint8],
    pairs: PixelPairs,
    *,
    occluded: bool = False,
    tile: int | None = None,
    scale: int = 1,
    colors: npt.NDArray[np.float64] | None = None,
) -> Image.Image:
    """Draw two views side by side, at one height, and a line from each pixel of the first to its place in the second.

    Colours go round the middle of view 1, so that neighbours look alike and crossing lines are told apart; `colors`
    (n, 3) in 0 … 1 replace them. Many lines are thinner and let what is below them through.

    `view1, view2` (h, w, 3) or (h, w, 4) uint8. `tile` is the longer side of a view in pixels, 320 by default, and
    `scale` the factor of the resolution.
    """
    check_arguments(matches_drawn, locals(), DataError)
    check_measures(tile, scale)
    for view in (view1, view2):
        if np.ndim(view) != 3 or np.asarray(view).dtype != np.uint8:
            raise DataError(
                f"a view must be a uint8 array of shape (height, width, channels), not {np.asarray(view).dtype} of "
                f"shape {np.shape(view)}"
            )
    (height, width), (height2, width2) = view1.shape[:2], view2.shape[:2]
    side = tile or _SIDE
    times = side * scale / max(height, width, width2 * (height / height2))
    times2 = times * (height / height2)
    high, *wide = (max(1, round(size)) for size in (height * times, width * times, width2 * times2))
    second = wide[0] + _SPACE * scale
    page = Image.new("RGB", (second + wide[1], high), "white")
    page.paste(filled(view1, wide[0], high), (0, 0))
    page.paste(filled(view2, wide[1], high), (second, 0))
    starts = (pairs.points1 + 0.5) * times
    ends = (pairs.points2 + 0.5) * times2 + [second, 0]
    away = pairs.points1 - np.array([(width - 1) / 2, (height - 1) / 2])
    if colors is None:
        colors = cyclic_colors(np.arctan2(away[:, 1], away[:, 0]) / (2 * np.pi))
    _draw_lines(page, starts, ends, colors, occluded, scale * float(np.clip(side / _SIDE, 0.5, 2.5)))
    return page


def match_sheet(
    views: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
    pairs: Sequence[PixelPairs],
    captions: Sequence[str],
    title: str = "",
    *,
    shown: int = 24,
    tile: int | None = None,
    scale: int = 1,
) -> Image.Image:
    r"""Lay out pairs of views in rows: matches visible in both views on the left, occluded ones on the right.

    Where no pair has occluded ones, as with the tracks of a COLMAP model, those that are unknown are on the right.
    Without these, as with photographs of planes, rows have the left half alone.

    A line joins a pixel of view 1 to its place in view 2. Colours go round the middle of view 1, so that neighbours
    look alike and crossing lines are told apart; many lines are finer, and let what is below them through.

    Parameters
    ----------
    views : sequence of pairs of (height, width, channels) uint8
        Grey, sRGB or sRGB with alpha; views of several heights are drawn at one height.
    pairs : sequence of PixelPairs, one per pair of views
        What is joined.
    captions : sequence of str, one per pair of views
        Followed by the number of pixels of each status.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    shown : int
        Lines drawn of each status, chosen by a fixed key.
    tile : int, optional
        Longer side of a view in pixels, at scale 1; 320 by default, whatever the size of the views.
    scale : int
        Factor of the resolution, as of :func:`contact_sheet`.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        When an array is not an image, pairs, captions and views differ in number, `tile` is not from 8 to 4096, or
        `scale` not from 1 to 8.

    Examples
    --------
    >>> import numpy as np
    >>> from setsup.correspondence import PixelPairs
    >>> corners = np.array([[2.0, 3.0], [40.0, 20.0]])
    >>> pairs = PixelPairs(corners, corners + 4, np.zeros((2, 3)), np.zeros(2, int), np.array([0, 1]))
    >>> view = np.zeros((48, 64, 3), np.uint8)
    >>> match_sheet([(view, view)], [pairs], ["one pair"], tile=128).mode
    'RGB'

    """
    check_arguments(match_sheet, locals(), DataError)
    check_measures(tile, scale)
    if not len(views) or not len(views) == len(pairs) == len(captions):
        raise DataError(
            "a sheet requires at least one pair of views, and pixel pairs and a caption for each, not "
            f"{len(views)} pairs of views, {len(pairs)} pixel pairs and {len(captions)} captions"
        )
    drawn = []
    statuses = np.concatenate([of_views.status for of_views in pairs])
    hidden = [status for status in (Status.OCCLUDED, Status.UNKNOWN) if status in statuses][:1]
    for (view1, view2), of_views in zip(views, pairs, strict=True):
        held = [of_views.select(of_views.status == status) for status in (Status.VISIBLE, *hidden)]
        drawn.append(
            [
                matches_drawn(view1, view2, _some(part, shown), occluded=number > 0, tile=tile, scale=scale)
                for number, part in enumerate(held)
            ]
        )
    width = max(-(-part.width // scale) for parts in drawn for part in parts)
    heights = [-(-parts[0].height // scale) for parts in drawn]
    within = width + len(hidden) * (width + GUTTER)
    texts = [
        wrap_text(f"{caption}: {_count(of_views)}", within, CAPTIONS, most=2)
        for caption, of_views in zip(captions, pairs, strict=True)
    ]
    names = ("visible in both views", *(f"{status.name.lower()} in the second view" for status in hidden))
    heads = [fit_text(name, width - _KEY - SKIP, NOTES) for name in names]
    legend = wrap_text(_LEGEND, within + 2 * PADDING - _RING - SKIP, NOTES)
    below = lines_height(heads[0]) + SKIP
    cards = [
        2 * PADDING + lines_height(text) + SKIP + below + height for text, height in zip(texts, heights, strict=True)
    ]
    full = within + 2 * PADDING
    foot = SKIP + lines_height(legend)
    page = Page(
        full + 2 * MARGIN, sum(cards) + GUTTER * (len(cards) - 1) + foot, title, Cell(width, max(heights), width), scale
    )
    top = page.top
    for parts, text, card in zip(drawn, texts, cards, strict=True):
        page.card(MARGIN, top, full, card)
        middle = page.write(MARGIN + PADDING, top + PADDING - 2, text) + SKIP
        for number, (part, head) in enumerate(zip(parts, heads, strict=True)):
            left = MARGIN + PADDING + number * (width + GUTTER)
            _draw_key(page, left, middle, number > 0)
            page.write(left + _KEY + SKIP, middle, head)
            page.image.paste(part, (left * scale, (middle + below) * scale))
        top += card + GUTTER
    _draw_ring(page, MARGIN, top - GUTTER + SKIP + 1)
    page.write(MARGIN + _RING + SKIP, top - GUTTER + SKIP, legend)
    return page.image


def _some(pairs: PixelPairs, most: int) -> PixelPairs:
    """So many of the pairs, drawn by a fixed key."""
    if len(pairs) <= most:
        return pairs
    return pairs.select(permute(fold(0, 0), len(pairs), np.arange(most)))


def _count(pairs: PixelPairs) -> str:
    counts = np.bincount(pairs.status, minlength=len(Status)).tolist()
    statuses = ("visible", "occluded", "outside the image", "no surface", "unknown")
    return ", ".join(f"{count:,} {word}" for count, word in zip(counts, statuses, strict=True) if count)


def _draw_lines(page: Image.Image, starts: Reals, ends: Reals, colors: Reals, occluded: bool, size: float) -> None:
    """Draw lines `size` times as wide as usual, finer than the page and brought to its pixels, for smooth edges."""
    fine = 4 if size < 2 else 2
    count = max(len(starts), 1)
    wide = 2.1 * size * float(np.clip((60 / count) ** 0.3, 0.5, 1.0)) * (0.75 if occluded else 1.0)
    dark = 0.75 * size * float(np.clip((60 / count) ** 0.5, 0.25, 1.0))
    opaque = round(255 * float(np.clip((120 / count) ** 0.35, 0.45, 1.0)))
    dot = 2.9 * size * float(np.clip((60 / count) ** 0.3, 0.5, 1.0))
    layer = Image.new("RGBA", (page.width * fine, page.height * fine))
    draw = ImageDraw.Draw(layer)
    inks = [tuple(round(255 * (0.85 * float(part) + 0.15)) for part in color) for color in colors]
    lines = [((*start, *end), ink) for start, end, ink in zip(starts * fine, ends * fine, inks, strict=True)]
    for line, ink in lines:
        draw.line(line, fill=(*_DARK, opaque), width=round((wide + 2 * dark) * fine))
        draw.line(line, fill=(*ink, opaque), width=max(1, round(wide * fine)))
    edge = max(dark, 0.5 * size) * fine
    for (x1, y1, x2, y2), ink in lines:
        for x, y, crossed in ((x1, y1, False), (x2, y2, occluded)):
            if crossed:
                reach = 1.2 * dot * fine
                for paint, extra in ((_DARK, 2 * edge), (ink, 0.0)):
                    for slope in (reach, -reach):
                        bar = (x - slope, y - reach, x + slope, y + reach)
                        draw.line(bar, fill=(*paint, 255), width=max(1, round(wide * fine + extra)))
            else:
                for paint, radius in ((_DARK, dot * fine + edge), (ink, dot * fine)):
                    draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=(*paint, 255))
    smooth = layer.reduce(fine)
    page.paste(smooth, (0, 0), smooth)


def _draw_key(page: Page, left: int, top: int, occluded: bool) -> None:
    """Show a line as it is drawn, for the legend."""
    scale = page.scale
    key = Image.new("RGB", (_KEY * scale, 16 * scale), "white")
    ends = np.array([[5.0, 9.0]]) * scale, np.array([[_KEY - 6.0, 9.0]]) * scale
    _draw_lines(key, *ends, cyclic_colors([0.6]), occluded, scale)
    page.image.paste(key, (left * scale, top * scale))


def _draw_ring(page: Page, left: int, top: int) -> None:
    """Show the circle of colours as it lies on view 1."""
    side = _RING * page.scale
    y, x = np.mgrid[: 4 * side, : 4 * side] / (2 * side) - 1 + 1 / (4 * side)
    radius = np.hypot(x, y)
    pixels = np.round(255 * cyclic_colors(np.arctan2(y, x) / (2 * np.pi))).astype(np.uint8)
    alpha = 255 * ((radius < 1) & (radius > 0.4))[..., None].astype(np.uint8)
    ring = Image.fromarray(np.concatenate([pixels, alpha], axis=-1)).reduce(4)
    page.image.paste(ring, (left * page.scale, top * page.scale), ring)
