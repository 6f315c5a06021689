"""Sheets of tracks: points of a video followed through its frames, with where they were before."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from setsup.arrays import Reals
from setsup.checks import check_arguments
from setsup.correspondence import Status
from setsup.errors import DataError
from setsup.reports.colors import cyclic_colors
from setsup.reports.grid import image_grid
from setsup.reports.page import check_measures
from setsup.reports.thumbnails import filled

__all__ = ["track_sheet"]

_SIDE = 240  # pixels of the longer side of a frame
_FINE = 3  # times finer than the sheet, for smooth edges
_DARK = (16, 20, 24, 255)

Statuses = npt.NDArray[np.uint8]


def track_sheet(
    videos: Sequence[Sequence[npt.NDArray[Any]]],
    points: Sequence[npt.NDArray[np.float64]],
    status: Sequence[Statuses],
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    title: str = "",
    *,
    tile: int | None = None,
    scale: int = 1,
) -> Image.Image:
    r"""Plot tracks of points on frames of videos: one row per video, one column per frame.

    A dot marks a point: filled if it is visible, a ring if it is occluded or outside. A line leads to it from its
    positions in earlier frames. Its color is its direction from the middle of the first frame.

    Parameters
    ----------
    videos : sequence of sequences of (height, width, channels) uint8
        Frames, sRGB or sRGB with alpha; as many of each video.
    points : sequence of (N, T, 2) float, one per video
        Places (x, y) of N points in its T frames, such as :func:`setsup.correspondence.scene_tracks` gives.
    status : sequence of (N, T) uint8, one per video
        A :class:`~setsup.correspondence.Status` each.
    row_labels, column_labels : sequence of str
        Names of the videos, and of the frames.
    title : str
        Title of the sheet; lines after ``\n`` are softer.
    tile : int, optional
        Longer side of a frame in pixels, at scale 1; 240 by default.
    scale : int
        Factor of the resolution, as of :func:`contact_sheet`.

    Returns
    -------
    RGB image

    Raises
    ------
    DataError
        If there are no frames, or shapes do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> frames = [np.zeros((24, 32, 3), np.uint8)] * 3
    >>> points = np.array([[[4.0, 5.0], [8.0, 6.0], [12.0, 7.0]]])
    >>> track_sheet([frames], [points], [np.array([[0, 0, 1]], np.uint8)], ["a video"]).mode
    'RGB'

    """
    check_arguments(track_sheet, locals(), DataError)
    check_measures(tile, scale)
    if not len(videos) or not len(videos) == len(points) == len(status):
        raise DataError(
            "a sheet of tracks requires at least one video, and points and statuses for each, not "
            f"{len(videos)} videos, {len(points)} arrays of points and {len(status)} of statuses"
        )
    rows = []
    for frames, places, states in zip(videos, points, status, strict=True):
        if np.shape(states) != np.shape(places)[:2] or np.shape(places)[1:] != (len(frames), 2) or not len(frames):
            raise DataError(
                f"points and statuses of a video of {len(frames)} frames must have shapes (N, {len(frames)}, 2) and "
                f"(N, {len(frames)}), not {np.shape(places)} and {np.shape(states)}"
            )
        rows.append(_plot(frames, np.asarray(places, np.float64), np.asarray(states), (tile or _SIDE) * scale))
    return image_grid(rows, row_labels, column_labels, title, tile=tile or _SIDE, scale=scale)


def _plot(
    frames: Sequence[npt.NDArray[Any]], points: Reals, status: Statuses, side: int
) -> list[npt.NDArray[np.uint8]]:
    """Frames of a video with its tracks, in the size of the sheet."""
    height, width = frames[0].shape[:2]
    times = side / max(height, width)
    high, wide = max(1, round(height * times)), max(1, round(width * times))
    away = np.nan_to_num(points[:, 0]) - [(width - 1) / 2, (height - 1) / 2]
    inks = np.round(255 * (0.85 * cyclic_colors(np.arctan2(away[:, 1], away[:, 0]) / (2 * np.pi)) + 38 / 255))
    at = (points + 0.5) * times * _FINE
    size = max(side / 320, 0.5) * _FINE
    plotted = []
    for time, frame in enumerate(frames):
        layer = Image.new("RGBA", (wide * _FINE, high * _FINE))
        draw = ImageDraw.Draw(layer)
        for track, states, ink in zip(at, status, inks.clip(0, 255).astype(int).tolist(), strict=True):
            if states[time] == Status.NO_SURFACE or not np.isfinite(track[: time + 1]).all():
                continue
            tail = [tuple(place) for place in track[: time + 1].tolist()]
            if time:
                draw.line(tail, fill=_DARK, width=round(3.4 * size), joint="curve")
                draw.line(tail, fill=(*ink, 255), width=round(2 * size), joint="curve")
            x, y = tail[-1]
            hidden, reach = states[time] != Status.VISIBLE, 3.4 * size
            draw.ellipse([x - reach - size, y - reach - size, x + reach + size, y + reach + size], fill=_DARK)
            draw.ellipse([x - reach, y - reach, x + reach, y + reach], fill=(*ink, 255))
            if hidden:
                inner = 0.55 * reach
                draw.ellipse([x - inner, y - inner, x + inner, y + inner], fill=_DARK)
        page = filled(frame, wide, high).convert("RGB")
        smooth = layer.reduce(_FINE)
        page.paste(smooth, (0, 0), smooth)
        plotted.append(np.asarray(page))
    return plotted
