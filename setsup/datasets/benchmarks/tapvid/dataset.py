"""Videos with tracks of points, as TAP-Vid publishes them: a pickle that is mapped into memory and never unpickled.

Convention
----------
A file holds a dictionary of videos by name (DAVIS), or a list of them (RGB-Stacking). A video is a dictionary with
``video`` (t, h, w, 3) uint8, ``points`` (n, t, 2) floating-point and ``occluded`` (n, t) bool. Points are (x, y) in
0 … 1 of the frame; times its size, they are raster coordinates, in which 0 is the left edge of the first pixel and
0.5 its centre [1]_. In setsup, the centre of the first pixel is 0, so half a pixel is subtracted.

References
----------
.. [1] C. Doersch et al., "TAP-Vid: a benchmark for tracking any point in a video", NeurIPS 2022 (arXiv 2211.03726),
   and its published code, https://github.com/google-deepmind/tapnet, ``tapvid/evaluation_datasets.py``.

"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from setsup.arrays import Array, Bools, Reals, Rows
from setsup.checks import check_arguments
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.adapters.packed_release import PackedRelease
from setsup.datasets.base import BaseDataset
from setsup.datasets.dataset import Modality, of_row
from setsup.datasets.formats.pickled import PickledArray, read_pickle
from setsup.datasets.images import check_size, parallel
from setsup.datasets.keypoint_pairs import KeypointPairs
from setsup.datasets.per_process import per_process
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.disk import need_regular, read_errors
from setsup.files.mapped import MappedFile, check_mapped

__all__ = ["SIZE", "PointVideos", "VideoTracks", "open_videos", "unpack_videos"]

SIZE = (256, 256)
"""Height and width at which TAP-Vid is evaluated."""

_CHANNELS = 3
_FARTHEST = 1000  # sizes of the frame


class VideoTracks(NamedTuple):
    """Tracks of the points of one video.

    Attributes
    ----------
    points : (n, t, 2) float64
        Pixels (x, y) of the frames as they are fetched; centres of pixels are integers. Positions of occluded points
        are meaningless.
    occluded : (n, t) bool
        Whether a point is hidden or outside the frame.

    """

    points: Reals
    occluded: Bools


class _Video(NamedTuple):
    """Where the arrays of a video are."""

    frames: PickledArray
    points: PickledArray
    occluded: PickledArray


class PointVideos(BaseDataset):
    """Frames of videos in the order of the file, with tracks of points.

    Factors: ``video`` and ``frame``, a key: the number of the frame in its video, from 0. The only modality is
    ``image``, uint8 sRGB. Frames are mapped from the file, and stretched to `size` by Pillow's Lanczos filter, as the
    published evaluation does.

    Parameters
    ----------
    name : str
        Name of the dataset.
    file : Path or str
        The pickle.
    size : (height, width), optional
        Size of the frames as they are fetched; None for the stored size.

    Attributes
    ----------
    pair_factors : tuple of str
        ``("video",)``: the factors in which two frames of a pair agree.

    Raises
    ------
    DataError
        When the file is missing or damaged, or does not have the published content.

    """

    cpu_bound = True
    pair_factors = ("video",)

    def __init__(self, name: str, file: Path | str, size: tuple[int, int] | None = SIZE) -> None:
        self.name = name
        self.file = self._source = Path(file).absolute()
        self._size = check_size(size)
        need_regular(self.file)
        with read_errors(self.file):
            self._length = self.file.stat().st_size
            if not self._length:
                raise DamagedFile(f"{self.file} is empty; expected videos with tracks of points")
            content = MappedFile.open(self.file)
        names, self._videos = _find_videos(read_pickle(content, self.file, fortran=True), self.file)
        for each, video in zip(names, self._videos, strict=True):
            points, occluded = video.points.view(content), video.occluded.view(content)
            if not np.isfinite(points[~occluded]).all():
                raise DamagedFile(f"{self.file}: the video {each} has a visible point that is not finite")
            if (farthest := np.abs(points[~occluded]).max(initial=0)) > _FARTHEST:
                raise DamagedFile(
                    f"{self.file}: the video {each} has a visible point at {farthest:g} times the size of the frame; "
                    f"expected numbers up to {_FARTHEST:,}"
                )
        lengths = [video.frames.shape[0] for video in self._videos]
        self._first: Rows = np.cumsum([0, *lengths])
        columns = {
            Factor("video", Kind.NOMINAL, tuple(names)): np.repeat(np.arange(len(names)), lengths),
            Factor("frame", Kind.ORDINAL, tuple(range(max(lengths))), within="video", role="key"): np.concatenate(
                [np.arange(length) for length in lengths]
            ),
        }
        self.factors = FactorTable(list(columns), {factor.name: column for factor, column in columns.items()})
        sizes = {video.frames.shape[1:3] for video in self._videos}
        height, width = self._size or (sizes.pop() if len(sizes) == 1 else (None, None))
        self.modalities = {"image": Modality((height, width, _CHANNELS), "uint8", color="srgb")}

    @of_row
    def video_tracks(self, row: int) -> VideoTracks:
        """Tracks of all points of the video of a row, through all of its frames.

        Parameters
        ----------
        row : int
            Any frame of the video. Column t of the tracks belongs to the row whose factor ``frame`` is t.

        Returns
        -------
        VideoTracks

        """
        video = self._videos[int(self._places(np.array(row))[0])]
        height, width = self._size or video.frames.shape[1:3]
        points = video.points.view(self._bytes).astype(np.float64, "C") * [width, height] - 0.5
        return VideoTracks(points, np.array(video.occluded.view(self._bytes), order="C"))

    @of_row
    def keypoint_pairs(self, rows: Sequence[int]) -> KeypointPairs:
        """Points that are visible in a frame, and their positions in another frame of the same video.

        Parameters
        ----------
        rows : (2,) int
            Frame 1 and frame 2.

        Returns
        -------
        KeypointPairs
            One for each point that is visible in frame 1, VISIBLE (0) or OCCLUDED (1) in frame 2; TAP-Vid also counts
            points outside the frame as occluded.

        Raises
        ------
        DataError
            When there are not two rows, or they are of two videos.

        """
        check_arguments(PointVideos.keypoint_pairs, locals(), DataError)
        if len(rows) != 2:
            raise DataError(f"points are paired between two rows of {self.name}, not {len(rows)}; pass [row, other]")
        videos, frames = self._places(np.asarray(rows, np.int64))
        if videos[0] != videos[1]:
            raise DataError(
                f"rows {rows[0]} and {rows[1]} of {self.name} are of different videos; draw them with PixelPairSampler"
            )
        tracks = self.video_tracks(int(rows[0]))
        shown = np.flatnonzero(~tracks.occluded[:, frames[0]])
        hidden = tracks.occluded[shown, frames[1]].astype(np.uint8)
        names = [f"point {number}" for number in shown.tolist()]
        return KeypointPairs(tracks.points[shown, frames[0]], tracks.points[shown, frames[1]], hidden, names)

    def _places(self, rows: Rows) -> tuple[Rows, Rows]:
        """Video of each row, and frame in it."""
        videos = np.searchsorted(self._first, rows, side="right") - 1
        return videos, rows - self._first[videos]

    def _read(self, name: str, rows: Rows, out: Array | None) -> Array:
        check_mapped(self._bytes)
        videos, frames = self._places(rows)
        images = parallel(lambda place: self._frame(*place), list(zip(videos.tolist(), frames.tolist(), strict=True)))
        if out is None:
            shape = images[0].shape if images else (0, 0, _CHANNELS)
            out = np.empty((len(rows), *shape), np.uint8)
        for slot, image in zip(out, images, strict=True):
            slot[...] = image
        return out

    def _frame(self, video: int, frame: int) -> Array:
        return _stretch(self._videos[video].frames.view(self._bytes)[frame], self._size)

    @per_process
    def _bytes(self) -> Array:
        with read_errors(self.file):
            if self.file.stat().st_size != self._length:
                raise replaced(self.file)
            return np.frombuffer(MappedFile.open(self.file), np.uint8)


def open_videos(name: str, root: Path | str | None, size: tuple[int, int] | None) -> PointVideos:
    """Open TAP-Vid's ``tapvid-davis`` or ``tapvid-rgb-stacking``."""
    return PointVideos(name, _pickle(_release(name).find(root)), size)


def unpack_videos(name: str, root: Path | str | None) -> Path:
    """Unpack the published archive, and return the folder of the pickle."""
    return _pickle(_release(name).unpack(root)).parent


def _pickle(members: MemberIndex) -> Path:
    places, _ = members.matching(r"tapvid_(?:davis|rgb_stacking)\.pkl")
    path = members.path(int(places[0]))
    if path is None:
        raise DataError(f"{members.source} is an archive, but its files must be mapped into memory; unpack it")
    return path


def _release(name: str) -> PackedRelease:
    stem = name.replace("-", "_")
    return PackedRelease(name, (f"{stem}.zip",), f"{stem}_unpacked", {rf"{stem}\.pkl$": f"{stem}.pkl"})


def _find_videos(content: Any, path: Path) -> tuple[list[str | int], list[_Video]]:
    """Names and arrays of the videos, whose shapes have been checked."""
    if not isinstance(content, dict | list) or not content:
        raise DamagedFile(
            f"{path} contains {type(content).__name__}; expected a dictionary or list of videos with tracks of points"
        )
    named: dict[str | int, Any] = dict(content) if isinstance(content, dict) else dict(enumerate(content))
    return list(named), [_find_video(one, f"{path}: the video {name}") for name, one in named.items()]


def _find_video(content: Any, label: str) -> _Video:
    frames, points, occluded = (
        content.get(key) if isinstance(content, dict) else None for key in ("video", "points", "occluded")
    )
    if (
        _is_array(frames, "u", 4)
        and _is_array(points, "f", 3)
        and _is_array(occluded, "b", 2)
        and frames.dtype.itemsize == 1
        and frames.shape[3] == _CHANNELS
        and min(frames.shape) > 0
        and points.shape == (*occluded.shape, 2)
        and occluded.shape[1] == frames.shape[0]
    ):
        return _Video(frames, points, occluded)
    raise DamagedFile(
        f"{label} has {_describe(frames)} as video, {_describe(points)} as points and {_describe(occluded)} as "
        "occluded; expected uint8 of shape (t, h, w, 3), floating-point numbers of shape (n, t, 2) and booleans of "
        "shape (n, t)"
    )


def _is_array(value: Any, kind: str, axes: int) -> TypeGuard[PickledArray]:
    return isinstance(value, PickledArray) and value.dtype.kind == kind and len(value.shape) == axes


def _describe(value: Any) -> str:
    if isinstance(value, PickledArray):
        return f"{value.dtype} of shape {value.shape}"
    return "nothing" if value is None else type(value).__name__


def _stretch(image: Array, size: tuple[int, int] | None) -> Array:
    if size is None or image.shape[:2] == size:
        return image
    from PIL import Image

    resized = Image.fromarray(np.ascontiguousarray(image)).resize((size[1], size[0]), Image.Resampling.LANCZOS)
    return np.asarray(resized)
