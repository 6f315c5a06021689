"""Videos with tracks of points in TAP-Vid's files: a pickle of dictionaries of arrays, or a ``.npz`` for each video.

Convention
----------
A video is ``video`` (t, h, w, 3) uint8, ``points`` (n, t, 2) float32 and ``occluded`` (n, t) bool. Points are (x, y) in
0 … 1 of the frame; times its size, they are raster coordinates, in which 0 is the left edge of the first pixel and 0.5
its centre. In setsup the centre of the first pixel is 0. A point outside the frame is occluded.

The pickle has protocol 4, and names ``numpy.core.multiarray._reconstruct``, ``numpy.ndarray`` and ``numpy.dtype``,
which all versions of numpy have. It is written instruction by instruction, a video at a time.

References
----------
.. [1] C. Doersch et al., "TAP-Vid: a benchmark for tracking any point in a video", NeurIPS 2022 (arXiv 2211.03726),
   and its published code, https://github.com/google-deepmind/tapnet, ``tapvid/evaluation_datasets.py``.

"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Bools, Floats, Pixels
from setsup.checks import check_array, check_path
from setsup.errors import DataError, SetsupError, abbreviate
from setsup.exports.png import opaque
from setsup.files import written

__all__ = ["Video", "video_of", "write_tap_vid", "write_video"]

_KEYS = ("video", "points", "occluded")


class Video(NamedTuple):
    """A video as TAP-Vid's files have it.

    Attributes
    ----------
    video : (t, h, w, 3) uint8
        Frames, sRGB.
    points : (n, t, 2) float32
        Positions (x, y) of the points in each frame, 0 … 1 from the left and upper edge of the frame.
    occluded : (n, t) bool
        Whether a point is hidden or outside the frame.

    """

    video: Pixels
    points: Floats
    occluded: Bools


def video_of(frames: npt.ArrayLike, points: npt.ArrayLike, visible: npt.ArrayLike) -> Video:
    """Make a video of frames (t, h, w, 3 or 4), pixels (n, t, 2) with centres at integers, and visible (n, t).

    Colors with alpha are put in front of black. Positions that are not finite become 0, and are occluded.
    """
    images, pixels, shown = (check_array(array, "a video", SetsupError) for array in (frames, points, visible))
    if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] not in (3, 4):
        raise SetsupError(
            f"frames must be uint8 of shape (t, height, width, 3 or 4), not {images.dtype} of {images.shape}"
        )
    if shown.dtype != bool or shown.ndim != 2 or shown.shape[1] != len(images) or pixels.shape != (*shown.shape, 2):
        raise SetsupError(
            f"points must be of shape (n, {len(images)}, 2) and visible booleans of shape (n, {len(images)}), a column "
            f"for each frame, not {pixels.shape} and {shown.dtype} of {shown.shape}"
        )
    size = np.array([images.shape[2], images.shape[1]], np.float64)
    known = np.isfinite(pixels).all(axis=2)
    places = np.where(known[..., None], (np.asarray(pixels, np.float64) + 0.5) / size, 0.0)
    inside = known & ((places >= 0) & (places <= 1)).all(axis=2)
    return Video(opaque(images), places.astype(np.float32), ~(shown & inside))


def write_tap_vid(path: Path | str, videos: Iterable[tuple[str, Video]]) -> None:
    """Write videos with tracks as TAP-Vid publishes them: a pickle of a dictionary of videos by name.

    Parameters
    ----------
    path : Path or str
        The file, such as ``tapvid.pkl``; an existing one is replaced.
    videos : iterable of (str, Video)
        Name and content of each video. One is in memory at a time.

    Raises
    ------
    SetsupError
        When a name occurs twice, or arrays of a video do not belong together.
    DataError
        When the file cannot be written.

    Examples
    --------
    >>> import pickle, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "tapvid.pkl"
    >>> video = Video(np.zeros((2, 4, 6, 3), np.uint8), np.zeros((1, 2, 2), np.float32), np.zeros((1, 2), bool))
    >>> write_tap_vid(file, [("street", video)])
    >>> pickle.loads(file.read_bytes())["street"]["video"].shape
    (2, 4, 6, 3)

    """
    names = set[str]()
    with written(check_path(path, "path", DataError)) as part, part.open("wb") as file:
        file.write(b"\x80\x04}(")  # protocol 4; an empty dictionary; a mark, up to which it takes pairs
        for name, video in videos:
            if name in names:
                raise SetsupError(f"two videos have the name {name!r}; rename one")
            names.add(name)
            _check(name, video)
            file.write(_text(name) + b"}(")
            for key, array in zip(_KEYS, video, strict=True):
                file.write(_text(key))
                for some in _array(np.ascontiguousarray(array)):
                    file.write(some)
            file.write(b"u")
        file.write(b"u.")


def write_video(file: BinaryIO, video: Video) -> None:
    """Write a video as ``.npz`` with the keys of the dictionary."""
    _check("of a file", video)
    np.savez_compressed(file, **video._asdict())


def _check(name: str, video: Video) -> None:
    if not isinstance(name, str):
        raise SetsupError(f"the name of a video must be a string, not {abbreviate(name)}")
    if not isinstance(video, tuple) or [isinstance(array, np.ndarray) for array in video] != [True] * 3:
        raise SetsupError(f"the video {name} must be a Video of three arrays, not {abbreviate(video)}")
    frames, points, occluded = video
    forms = [(array.dtype.str[1:], array.ndim) for array in video]
    count = occluded.shape
    if (
        forms != [("u1", 4), ("f4", 3), ("b1", 2)]
        or frames.shape[3] != 3
        or points.shape != (*count, 2)
        or count[1] != len(frames)
    ):
        raise SetsupError(
            f"the video {name} must have uint8 frames (t, h, w, 3), float32 points (n, t, 2) and bool occluded (n, t), "
            f"not {', '.join(f'{array.dtype} {array.shape}' for array in video)}"
        )


def _text(text: str) -> bytes:
    content = text.encode()
    return b"X" + struct.pack("<I", len(content)) + content


def _array(array: Array) -> Iterator[bytes]:
    """Instructions that make an array: numpy's function, its arguments, and the array's state."""
    dtype = array.dtype.str  # such as <f4, |u1
    yield b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    yield b"(K\x01(" + b"".join(b"J" + struct.pack("<i", side) for side in array.shape) + b"t"
    yield b"cnumpy\ndtype\n" + _text(dtype[1:]) + b"\x89\x88\x87R(K\x03" + _text(dtype[0])
    yield b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    yield b"\x89\x8e" + struct.pack("<Q", array.nbytes)
    yield array.tobytes()
    yield b"tb"
