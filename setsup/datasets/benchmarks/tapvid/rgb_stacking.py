"""TAP-Vid-RGB-Stacking: 50 rendered videos of a robot with tracks of points, read without unpickling the file."""

from pathlib import Path

from setsup.datasets.benchmarks.tapvid.dataset import SIZE, PointVideos, open_videos, unpack_videos

__all__ = ["open", "prepare"]

_NAME = "tapvid-rgb-stacking"


def open(root: Path | str | None = None, size: tuple[int, int] | None = SIZE) -> PointVideos:
    """Open TAP-Vid-RGB-Stacking.

    Parameters
    ----------
    root : Path, str or None
        A folder with the unpacked ``tapvid_rgb_stacking.pkl``; None for the default folders.
    size : (height, width), optional
        Stretch frames to this size; 256 × 256 by default, at which TAP-Vid is evaluated. None: as they are stored.

    Returns
    -------
    PointVideos

    Raises
    ------
    DataError
        When the file is missing (the message shows how to get it), still packed, damaged, or of another content.

    """
    return open_videos(_NAME, root, size)


def prepare(root: Path | str | None = None) -> Path:
    """Unpack ``tapvid_rgb_stacking.zip`` once, into a folder ``tapvid_rgb_stacking_unpacked`` that :func:`open` finds.

    The folder is next to the archive or, if that location is read-only, in the cache folder.
    """
    return unpack_videos(_NAME, root)
