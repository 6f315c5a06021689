"""Rows that are segments of videos: one from the middle of each video, or one every N frames.

A row is a window: `length` frames, `stride` frames apart, starting at the factor ``frame``. Windows serve all tasks on
videos, with arrays of one shape:

- action recognition: a window from the middle of each video, which is a row for each file of the release;
- a frame and a later frame, with the motion between: ``video`` is what
  :class:`~setsup.loading.views.FrameTriples` takes, which draws times within it again at every step
  (``video.movedim(-1, -3)`` puts channels first, as it has them);
- frames as images of an orbit or a set: ``every=25`` gives a row for every 25th frame, and ``image`` its first
  frame; ``OrbitSampler(clips.factors, "file")`` draws frames of one video, and negatives from others are those of
  another level of ``file``.

Motion is ``flow``, where a dataset is opened with ``flow=True``: see :mod:`setsup.datasets.adapters.clip_flow`.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.checks import check_boolean
from setsup.datasets.adapters.clip_flow import FlowFiles, read_or_compute
from setsup.datasets.adapters.factor_columns import table_of
from setsup.datasets.adapters.video_index import video_file, video_index
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality, fetch_request, of_row
from setsup.datasets.images import check_size, parallel, resize, several_sizes
from setsup.errors import DataError, require_modules
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex

__all__ = ["Clips", "Windows"]

Codes = tuple[Factor, npt.NDArray[np.int64]]

_log = logging.getLogger("setsup")


class Windows:
    """Video and frames of each row.

    `frames` (videos,) integer array.

    Attributes
    ----------
    video, start : (rows,) int64
        The video, and the number of the first frame. A video that is too short for a window has no row.

    """

    def __init__(self, frames: npt.ArrayLike, length: int, stride: int = 1, every: int | None = None) -> None:
        for name, number in (("length", length), ("stride", stride), ("every", 1 if every is None else every)):
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
                raise DataError(f"{name} must be an integer of at least 1 (frames), not {number!r}")
        self._length, self._stride = int(length), int(stride)
        # frames at which a window may begin
        room = np.maximum(np.asarray(frames, np.int64) - (self._length - 1) * self._stride, 0)
        each = np.minimum(room, 1) if every is None else -(-room // every)
        self.video = np.repeat(np.arange(len(room)), each)
        nth = np.arange(len(self.video)) - np.repeat(np.cumsum(each) - each, each)
        self.start = (room[self.video] - 1) // 2 if every is None else nth * every

    def frames(self, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Numbers of the frames of rows, integer array of any shape; (*rows.shape, length) int64."""
        offsets = np.arange(self._length, dtype=np.int64) * self._stride
        return np.asarray(self.start[np.asarray(rows)][..., None] + offsets)


class Clips(BaseDataset):
    """Windows of the videos of a release.

    Factors are those of the video, then the keys ``file`` (its name), ``frame`` (the number of the window's first
    frame) and ``time`` (s; the same by the video's rate), then splits. Modalities are ``image``, the first frame of the
    window, and ``video``, all its frames: uint8 sRGB (height, width, 3) and (length, height, width, 3). Each frame is
    decoded once, and decoding stops at the last requested frame. Rows are sorted by the files' names, and then by
    ``frame``. With `flow`, the additional modality ``flow``, (length − 1, 2, height, width) float32, is the motion from
    each frame to the next: TV-L1 of the frames as opened, clipped to ±20 pixels and scaled to ±1 [unclear]. It takes
    about 0.1 s per field of 128 × 171 pixels, and is saved next to the videos.

    Parameters
    ----------
    name : str
        Name of the dataset.
    members : MemberIndex
        The files of the release.
    places : (videos,) int64
        Positions of its videos.
    names : sequence of str
        Names of the videos, as levels of ``file``.
    factors, splits : sequence of (Factor, (videos,) int64)
        Factors of the videos with their codes; −1 for unknown values.
    length, stride, every
        As for :class:`Windows`.
    size : (height, width), optional
        Resize every frame, antialiased, until it just covers this size, and crop the centre.
    flow : bool
        Whether to add the modality ``flow``.

    Raises
    ------
    DataError
        When PyAV is not installed, or scikit-image for `flow`; when two videos have the same name, no video is long
        enough or can be decoded, or an argument is out of range.

    Notes
    -----
    Videos that cannot be decoded completely, or are too short for a window, are left out, with a warning. The first
    opening decodes all videos to count their frames, with a progress bar; see
    :func:`setsup.datasets.adapters.video_index.video_index`.

    """

    cpu_bound = True

    def __init__(
        self,
        name: str,
        members: MemberIndex,
        places: npt.NDArray[np.int64],
        names: Sequence[str],
        factors: Sequence[Codes],
        splits: Sequence[Codes] = (),
        *,
        length: int = 16,
        stride: int = 1,
        every: int | None = None,
        size: tuple[int, int] | None = None,
        flow: bool = False,
    ) -> None:
        self.name = name
        Windows([], length, stride, every)  # checks the numbers before minutes pass
        if check_boolean(flow, "flow", DataError):
            require_modules("optical flow needs", "skimage")
            if length < 2:
                raise DataError("optical flow requires at least two frames; pass length=2 or more")
        size = check_size(size)
        twice = sorted(each for each, times in Counter(names).items() if times > 1)
        if twice:
            raise DataError(f"{members.source} contains {twice[0]}.avi twice; keep only one copy of the release")
        self._members, self._places, self._size = members, places, size
        self._index = video_index(name, members, places.tolist())
        self._windows = Windows(self._index.frames, length, stride, every)
        self._tell(length, stride)
        video, start = self._windows.video, self._windows.start
        starts, codes = np.unique(start, return_inverse=True)
        columns = [
            *((factor, values[video]) for factor, values in factors),
            (Factor("file", Kind.NOMINAL, tuple(names), role="key"), video),
            (Factor("frame", Kind.ORDINAL, tuple(starts.tolist()), role="key"), codes),
            (Factor("time", Kind.CONTINUOUS, unit="s", role="key"), start / self._index.rate[video]),
            *((factor, values[video]) for factor, values in splits),
        ]
        self.factors = table_of(columns)
        used = np.unique(video)
        sizes = set(zip(self._index.height[used].tolist(), self._index.width[used].tolist(), strict=True))
        common: tuple[int | None, int | None] = size or (sizes.pop() if len(sizes) == 1 else (None, None))
        self.modalities = {
            "image": Modality((*common, 3), "uint8", color="srgb"),
            "video": Modality((length, *common, 3), "uint8", color="srgb"),
        }
        self._flow = FlowFiles(name, members, places, f"length={length} stride={stride} size={size}") if flow else None
        if flow:
            self.modalities["flow"] = Modality((length - 1, 2, *common), "float32")

    def _read_all(self, rows: Rows, out: Mapping[str, Array | None]) -> dict[str, Array]:
        size = self._common_size(rows)
        if self._flow is not None and "flow" in out:
            rest = {name: array for name, array in out.items() if name != "flow"}
            return {**(self._read_all(rows, rest) if rest else {}), "flow": self._moved(self._flow, rows, size, out)}
        # length, where a modality has one, and the size of these rows
        lengths = {name: [length or 0 for length in self.modalities[name].shape[:-3]] for name in out}
        shapes = {name: (len(rows), *lengths[name], *size, 3) for name in out}
        arrays = {name: np.empty(shapes[name], np.uint8) if array is None else array for name, array in out.items()}
        if arrays and len(rows):
            videos, owner = np.unique(self._windows.video[rows], return_inverse=True)
            order = np.argsort(owner, kind="stable")
            groups = np.split(order, np.searchsorted(owner[order], np.arange(1, len(videos))))
            items = list(zip(videos.tolist(), groups, strict=True))
            parallel(lambda item: self._decode(item[0], rows[item[1]], item[1], arrays), items)
        return arrays

    @property
    def flow_folder(self) -> Path:
        """Folder where flow is saved; DataError if the dataset has no flow."""
        if self._flow is None:
            raise DataError(f"{self.name} has no modality 'flow'; open the dataset with flow=True")
        return self._flow.folder

    def _moved(self, files: FlowFiles, rows: Rows, size: tuple[int, int], out: Mapping[str, Array | None]) -> Array:
        """Flow of rows, each computed once."""
        shape = (self._windows.frames(0).shape[-1] - 1, 2, *size) if len(self) else (1, 2, *size)
        target = out["flow"]
        flow = np.empty((len(rows), *shape), np.float32) if target is None else target
        distinct, inverse = np.unique(rows, return_inverse=True)

        def put(number: int) -> None:
            row = int(distinct[number])

            def frames() -> Array:
                return np.asarray(self._read_all(np.array([row]), {"video": None})["video"][0])

            video, start = int(self._windows.video[row]), int(self._windows.start[row])
            flow[inverse == number] = read_or_compute(files, video, start, shape, frames)

        parallel(put, range(len(distinct)))
        return flow

    @of_row
    def paths(self, indices: npt.ArrayLike) -> list[str]:
        """Names of the files of the given rows, within the release.

        Parameters
        ----------
        indices : integer array of any shape
            Row numbers.

        """
        rows, _ = fetch_request(self, indices, ())
        places = self._places[self._windows.video[rows.reshape(-1)]]
        names: list[str] = self._members.names.take(places).to_pylist()
        return names

    def __repr__(self) -> str:
        """Show where the files are and the number of rows."""
        return f"{type(self).__name__}({self.name!r}, {str(self._members.source)!r}, {len(self):,} rows)"

    def _tell(self, length: int, stride: int) -> None:
        """Log how many videos have no row; raise an error if no video has one."""
        frames = self._index.frames
        damaged = np.flatnonzero(frames == 0)
        short = np.flatnonzero((frames > 0) & ~np.isin(np.arange(len(frames)), self._windows.video))
        problems = []
        if len(damaged):
            problems.append(
                f"{len(damaged):,} of {len(frames):,} videos cannot be decoded ({self._why(int(damaged[0]))})"
            )
        if len(short):
            first = self._members.label(int(self._places[short[0]]))
            problems.append(
                f"{len(short):,} of {len(frames):,} videos are too short for {length} frames with a stride of "
                f"{stride}, such as {first} with {frames[short[0]]} frames"
            )
        if problems and not len(self._windows.video):
            raise DataError(
                f"{' and '.join(problems)}; fetch or unpack the release again, or choose a smaller length or stride"
            )
        for each in problems:
            _log.warning("%s; they are left out", each)

    def _why(self, video: int) -> str:
        """Describe what is wrong with a video; the cache records only that it is damaged."""
        member = int(self._places[video])
        try:
            video_file(self._members, member).index  # noqa: B018
        except DataError as error:
            return str(error)
        return self._members.label(member)

    def _common_size(self, rows: Rows) -> tuple[int, int]:
        """Common size of the frames of some rows."""
        height, width = self.modalities["image"].shape[:2]
        if height is not None and width is not None:
            return height, width
        videos = np.unique(self._windows.video[rows])
        sizes = sorted(set(zip(self._index.height[videos].tolist(), self._index.width[videos].tolist(), strict=True)))
        if len(sizes) > 1:
            raise several_sizes(
                f"{self.name} contains videos of {sizes[0][0]} × {sizes[0][1]} and {sizes[-1][0]} × {sizes[-1][1]} "
                "pixels (height × width)"
            )
        return sizes[0] if sizes else (1, 1)

    def _decode(self, video: int, rows: Rows, where: Rows, slots: Mapping[str, Array]) -> None:
        """Decode the frames of rows of one video to their places."""
        file = video_file(self._members, int(self._places[video]), self._index.of(video))
        windows = self._windows.frames(rows)
        whole = slots.get("video")
        if whole is not None and self._size is None and len(rows) == 1:
            file.read(windows[0], out=whole[where[0]])
            if "image" in slots:
                slots["image"][where[0]] = whole[where[0], 0]
            return
        wanted = windows if whole is not None else windows[:, :1]
        numbers, slot_frames = np.unique(wanted, return_inverse=True)
        frames = file.read(numbers)
        if self._size is not None:
            frames = np.stack([resize(frame, self._size) for frame in frames])
        slot_frames = slot_frames.reshape(wanted.shape)
        if whole is not None:
            whole[where] = frames[slot_frames]
        if "image" in slots:
            slots["image"][where] = frames[slot_frames[:, 0]]
