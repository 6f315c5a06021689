"""Index of the videos of a release, from one pass over them: frames, sizes and key frames; stored in the cache."""

import os
from collections.abc import Sequence
from functools import partial
from hashlib import sha256

import numpy as np

from setsup.arrays import Array
from setsup.datasets.cached_arrays import cached_npy, file_states
from setsup.datasets.formats.video.frames import FrameIndex, VideoFile, decoder_version
from setsup.datasets.images import parallel
from setsup.errors import DataError
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex
from setsup.progress import progress

__all__ = ["VideoIndex", "video_file", "video_index"]


# a row for the start of each video, and for each key frame behind it
_ENTRY = np.dtype(
    [
        ("video", "<i4"),
        ("frames", "<i4"),
        ("height", "<i4"),
        ("width", "<i4"),
        ("rate", "<f8"),
        ("number", "<i4"),
        ("mark", "<i8"),
        ("seek", "<i8"),
    ]
)


class VideoIndex:
    """Frames of many videos; made by :func:`video_index`.

    Attributes
    ----------
    frames, height, width : (videos,) int32
        Number of frames, and pixels, of each; 0 if it cannot be decoded completely.
    rate : (videos,) float64
        Frames per second.

    """

    def __init__(self, entries: Array, videos: int) -> None:
        self._entries = entries
        self._first = np.searchsorted(entries["video"], np.arange(videos + 1))
        starts = entries[self._first[:-1]]
        self.frames, self.height, self.width = (starts[field] for field in ("frames", "height", "width"))
        self.rate = starts["rate"]

    def of(self, video: int) -> FrameIndex:
        """Index of one video, with times by its rate."""
        keys = self._entries[self._first[video] : self._first[video + 1]]
        times = np.arange(int(self.frames[video])) / float(self.rate[video])
        return FrameIndex(times, *(keys[field].astype(np.int64) for field in ("number", "mark", "seek")))


def video_index(name: str, members: MemberIndex, places: Sequence[int]) -> VideoIndex:
    """Map the index of a release's videos from the cache, or create it by decoding every video once, without colors.

    The index is created again when a file, its archive, or the version of FFmpeg's decoders has changed.
    """
    made_of = repr((_ENTRY.descr, decoder_version(), file_states(members, places)))
    digest = sha256(os.fsencode(made_of)).hexdigest()[:32]
    path = cache_folder() / "indexes" / name / f"{digest}.npy"
    entries = cached_npy(path, partial(_is_whole, len(places)), partial(_made, name, members, places))
    return VideoIndex(entries, len(places))


def video_file(members: MemberIndex, member: int, index: FrameIndex | None = None) -> VideoFile:
    """Open a video of a release by its path, or by its content if it is in an archive."""
    path = members.path(member)
    return VideoFile(partial(members.read, member) if path is None else path, members.label(member), index)


def _made(name: str, members: MemberIndex, places: Sequence[int]) -> Array:
    with progress(len(places), f"{name}: counting frames", "videos") as advance:

        def entries(member: int) -> list[tuple[int | float, ...]]:
            frames = _entries(video_file(members, member))
            advance()
            return frames

        each = parallel(entries, places)
    return np.array([(video, *entry) for video, frames in enumerate(each) for entry in frames], _ENTRY)


def _entries(video: VideoFile) -> list[tuple[int | float, ...]]:
    try:
        index = video.index
        about = len(index), video.height, video.width, video.rate
    except DataError:
        return [(0, 0, 0, 1.0, 0, 0, 0)]
    return [(*about, *key) for key in zip(index.keys, index.marks, index.seeks, strict=True)]


def _is_whole(videos: int, entries: Array) -> bool:
    """Whether an array is an index of `videos` videos."""
    return (
        entries.dtype == _ENTRY and entries.ndim == 1 and np.array_equal(np.unique(entries["video"]), np.arange(videos))
    )
