"""Video files: any frame by its number, exactly, and all of them in one pass; decoded by PyAV (FFmpeg).

Convention
----------
Frames are numbered from 0 in presentation order, and returned as uint8 (height, width, 3) in display orientation:
rotations by multiples of 90° and reflections in the metadata are applied.

Notes
-----
Frames are those that the decoder outputs, because the numbers and times of frames in containers are often wrong,
especially in AVI (dropped frames, several frames in one packet, delays of B frames). Only a pass that decodes the whole
file is exact; :attr:`VideoFile.index` stores its result. To read frame t, decoding starts at the last key frame shown
at or before t, and frames are counted from there; frames that are shown before that key frame but stored after it,
which cannot be decoded correctly from there, are dropped. In a file without a seek table, decoding starts at the
beginning.

Color is converted from Y′CbCr to R′G′B′ by the matrix and range of the stream, by default BT.601 with 16 … 235, which
FFmpeg assumes for any size. Primaries and transfer functions are not converted, and non-square pixels stay so. FFmpeg
rounds to within about two levels of the formula.

Damage raises an error if the decoder or the container detects it; most files have no checksums, so altered content may
go unnoticed. Only single-file formats are opened, never playlists or URLs.

A file is decoded by one thread; several files, or several readers of one, use more.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.source import Source
from setsup.datasets.formats.video.decoder import Decoder, FrameIndex, decoder_version, find_index, told
from setsup.errors import DataError, RowError
from setsup.factors.column_storage import check_rows

__all__ = ["FrameIndex", "VideoFile", "decoder_version"]

Frame = npt.NDArray[np.uint8]

# what is known of every video without a pass
_START = FrameIndex(np.zeros(1), *np.zeros((3, 1), np.int64))


class VideoFile:
    """A video whose frames are read by number.

    The file is opened on first use. Several threads may use an object, each of which opens the file while they read at
    the same time; forked processes open it again. Objects pickle as their source and index.

    Parameters
    ----------
    source : Path, str, bytes or function
        The file, its content, or a function without arguments that gives the content.
    label : str, optional
        Name in messages; the path by default.
    index : FrameIndex, optional
        :attr:`index` of the same file from an earlier pass.

    Raises
    ------
    DataError
        On the first read, not at construction: when PyAV is not installed, or the file is missing, damaged, truncated,
        of an unknown format, without frames, or has frames of different sizes.

    Examples
    --------
    >>> import io, av
    >>> made = io.BytesIO()
    >>> with av.open(made, "w", format="avi") as file:
    ...     stream = file.add_stream("mpeg4", rate=25, width=64, height=48, pix_fmt="yuv420p")
    ...     for level in range(0, 250, 25):
    ...         image = np.full((48, 64, 3), level, np.uint8)
    ...         file.mux(stream.encode(av.VideoFrame.from_ndarray(image)))
    ...     file.mux(stream.encode())
    >>> video = VideoFile(made.getvalue(), "levels.avi")
    >>> video.frames, video.rate, video.times[:3].tolist()
    (10, 25.0, [0.0, 0.04, 0.08])
    >>> video.read([[9, 2]]).shape, video.read([9, 2])[:, 20, 20, 0].round(-1).tolist()
    ((1, 2, 48, 64, 3), [220, 50])

    """

    def __init__(self, source: Source | str, label: str | None = None, index: FrameIndex | None = None) -> None:
        self._source: Source = Path(source) if isinstance(source, str) else source
        self.label = label or (str(self._source) if isinstance(self._source, Path) else "the video")
        self._given = index
        # idle decoders by process; a reader takes one out while it reads
        self._idle: dict[int, Decoder] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the source, and the index where it is known."""
        return VideoFile, (self._source, self.label, self.__dict__.get("index", self._given))

    def __repr__(self) -> str:
        """Show what it is called."""
        return f"VideoFile({self.label!r})"

    @cached_property
    def index(self) -> FrameIndex:
        """Frames and key frames; found by one pass that decodes all frames, without their colors, unless given."""
        if self._given is not None:
            return self._given
        with told(self.label):
            return find_index(self._source, self.label)

    @property
    def frames(self) -> int:
        """Number of frames that can be decoded, from :attr:`index`."""
        return len(self.index)

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """Presentation times of the frames, (n,) float64 in s from the first, from :attr:`index`."""
        return self.index.times

    @property
    def rate(self) -> float:
        """Average frames per second as stated in the file, or computed from :attr:`times`."""
        stated = self._about[2]
        if stated is not None:
            return stated
        times = self.times
        return (len(times) - 1) / float(times[-1]) if len(times) > 1 else 1.0

    @property
    def height(self) -> int:
        """Height in pixels, from decoding the first frame."""
        return self._about[0]

    @property
    def width(self) -> int:
        """Width in pixels, from decoding the first frame."""
        return self._about[1]

    @cached_property
    def _about(self) -> tuple[int, int, float | None]:
        with self._decoder() as decoder:
            height, width, _ = decoder.shape
            return height, width, decoder.rate

    def read(self, frames: npt.ArrayLike, out: Frame | None = None) -> Frame:
        """Decode frames.

        Parameters
        ----------
        frames : integer array of any shape
            Numbers of frames, which may repeat and be in any order. Each is decoded once.
        out : (*frames.shape, height, width, 3) uint8, optional
            Array that receives the frames.

        Returns
        -------
        (*frames.shape, height, width, 3) uint8, sRGB

        Raises
        ------
        RowError
            When a frame number is out of range.
        DataError
            When the file is missing or damaged, or `out` does not fit.

        """
        rows = _check_numbers(frames, len(self.index), self.label)
        shape = (*rows.shape, self.height, self.width, 3)
        if out is None:
            out = np.empty(shape, np.uint8)
        elif out.shape != shape or out.dtype != np.uint8:
            raise DataError(
                f"out for frames of {self.label} must be uint8 of shape {shape}, not {out.dtype} of shape {out.shape}"
            )
        slots: dict[int, list[tuple[int, ...]]] = {}
        for slot in np.ndindex(rows.shape):
            slots.setdefault(int(rows[slot]), []).append(slot)
        if not slots:
            return out
        with self._decoder() as decoder:
            for number in sorted(slots):
                first, *others = slots[number]
                out[first] = decoder.image(decoder.frame(number, self.index))
                for slot in others:
                    out[slot] = out[first]
        return out

    def stream(self, start: int = 0, stop: int | None = None, step: int = 1) -> Iterator[tuple[int, Frame]]:
        """Decode frames in one pass, each into a new array.

        Parameters
        ----------
        start, stop, step : int
            As for ``range``, with 0 ≤ start and 1 ≤ step. Without `start`, no pass to count the frames is needed.
        stop : int or None
            None, or a number beyond the last frame, for all remaining frames.

        Yields
        ------
        number : int
        frame : (height, width, 3) uint8, sRGB

        Raises
        ------
        RowError
            When a number is negative, or `step` below 1.
        DataError
            When the file is missing or damaged; a damaged frame raises after the frames before it are returned.

        """
        if start < 0 or step < 1 or (stop is not None and stop < 0):
            raise RowError(
                f"frames {start} to {stop} with step {step} of {self.label}: start and stop must be at least 0, and "
                "the step at least 1"
            )
        return self._streamed(start, stop, step)

    def _streamed(self, start: int, stop: int | None, step: int) -> Iterator[tuple[int, Frame]]:
        index = self.index if start else _START
        if start and start >= len(index):
            return
        number = start
        with self._decoder() as decoder:
            while stop is None or number < stop:
                frame = decoder.frame(number, index) if number == start else decoder.ahead(number)
                if frame is None:
                    return
                yield number, decoder.image(frame)
                number += step

    @contextmanager
    def _decoder(self) -> Iterator[Decoder]:
        """Take an idle decoder or open another; it is put back unless something went wrong."""
        mine = os.getpid()
        with told(self.label):
            decoder = self._idle.pop(mine, None) or Decoder(self._source, self.label)
            yield decoder
        self._idle.clear()
        self._idle[mine] = decoder


def _check_numbers(frames: npt.ArrayLike, count: int, label: str) -> npt.NDArray[np.int64]:
    """Numbers of frames as int64, checked to lie in 0 … count − 1; messages call the video `label`."""
    try:
        return check_rows(frames, count)
    except RowError as error:
        raise RowError(f"frames of {label}: {error}") from error
