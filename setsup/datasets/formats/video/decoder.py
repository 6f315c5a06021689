"""An open video: decoded frames, and the frames where decoding can start."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setsup.datasets.formats.source import Source
from setsup.errors import DamagedFile, DataError, SetsupError, imported
from setsup.files.lfs import is_pointer, pointer_error

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

__all__ = ["Decoder", "FrameIndex", "decoder_version", "find_index", "told"]

Frame = npt.NDArray[np.uint8]

# names of FFmpeg's readers; its others include play lists, which lead to other files and to the network
_FORMATS = "avi,mov,mp4,matroska,webm,mpeg,mpegts,mpegvideo,ogg,flv,asf,h264,m4v,ivf,wtv,mxf,dv,rm"
_MOST_PIXELS = 80_000_000
_COVER = 0x0400
_FIX = "fetch it again, or remove it"
_HEAD = 64  # bytes that tell what a file is


@dataclass(frozen=True, eq=False, slots=True)
class FrameIndex:
    """Index of a video from one pass: its frames, and where decoding can start.

    Parameters
    ----------
    times : (n,) float64, s
        Presentation times of the frames, ascending from the first. If the file has no usable times, they follow from
        its rate.
    keys : (k,) int64
        Numbers of the frames at which decoding can start, ascending; the first is 0, the start of the file.
    marks : (k,) int64, bytes
        Offset of the packet of each key frame in the file.
    seeks : (k,) int64
        Timestamp of each key frame for seeking, in the stream's own unit.

    """

    times: npt.NDArray[np.float64]
    keys: npt.NDArray[np.int64]
    marks: npt.NDArray[np.int64]
    seeks: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Count the frames."""
        return len(self.times)


class Decoder:
    """An open video, and the number of the next frame.

    Attributes
    ----------
    shape : (height, width, 3)
        Shape of its frames in display orientation.
    rate : float or None
        Frames per second, as the file states it.

    """

    def __init__(self, source: Source, label: str) -> None:
        from av.video.reformatter import VideoReformatter

        self._source, self._label = source, label
        self._reformatter = VideoReformatter()
        self._file = _open(source, label)
        self._coming = _decode(self._file, label)
        self._next = 0
        self._held = next(self._coming, None)
        if self._held is None:
            raise _empty(label)
        self._size = self._held.height, self._held.width
        self._turn = _turn(self._held)
        height, width = self._size[::-1] if self._turn is not None and self._turn.transposed else self._size
        self.shape = height, width, 3
        self.rate = _rate(self._file.stream)

    def frame(self, number: int, index: FrameIndex) -> "VideoFrame":
        """Return a frame, decoded from the current position or from the last key frame before it."""
        key = int(np.searchsorted(index.keys, number, side="right")) - 1
        if not int(index.keys[key]) <= self._next <= number:
            self._go(key, index)
        frame = self.ahead(number)
        if frame is None:
            raise DataError(
                f"{self._label} ends before frame {number}, although it had {len(index):,} frames when it was opened; "
                "open the dataset again"
            )
        return frame

    def ahead(self, number: int) -> "VideoFrame | None":
        """Decode forward to a frame; None if the file ends before it."""
        while True:
            frame, self._held = self._held or next(self._coming, None), None
            if frame is None:
                return None
            _check(frame, self._size, self._next, self._label)
            self._next += 1
            if self._next > number:
                return frame

    def image(self, frame: "VideoFrame") -> Frame:
        """Convert a frame to sRGB in new memory."""
        pixels: Any = self._reformatter.reformat(frame, format="rgb24", threads=1).to_ndarray()
        if self._turn is None:
            return np.asarray(pixels)
        pixels = pixels.swapaxes(0, 1) if self._turn.transposed else pixels
        return np.ascontiguousarray(pixels[:: self._turn.down, :: self._turn.right])

    def _go(self, key: int, index: FrameIndex) -> None:
        """Go to a key frame, or to the start where seeking does not lead to it."""
        if key and self._sought(int(index.marks[key]), int(index.seeks[key])):
            self._next = int(index.keys[key])
            return
        self._file.container.close()
        self._file = _open(self._source, self._label)
        self._coming = _decode(self._file, self._label)
        self._next, self._held = 0, None

    def _sought(self, mark: int, stamp: int) -> bool:
        """Seek the key frame whose packet lies at `mark`, and hold it; False where it does not come."""
        from av.error import FFmpegError

        try:
            self._file.container.seek(stamp, stream=self._file.stream)
            self._coming = _decode(self._file, self._label, mark)
            for frame in self._coming:
                # frames that are shown before it lack what they were made of
                if _key(frame) == (mark, stamp):
                    self._held = frame
                    return True
        except (FFmpegError, DataError):
            pass  # what is damaged is told where it is decoded from the start
        return False


def decoder_version() -> str:
    """Version of FFmpeg's decoders, which may affect the number of frames in damaged or unusual files.

    Examples
    --------
    >>> decoder_version().split(".")[0].isdecimal()
    True

    """
    with told("the version of PyAV"):
        from av import library_versions

        return ".".join(map(str, library_versions["libavcodec"]))


def find_index(source: Source, label: str) -> FrameIndex:
    """Decode a video once, without its colors, and return its frames and key frames."""
    opened = _open(source, label)
    with opened.container:
        return _index(opened, label)


def _index(opened: "_Opened", label: str) -> FrameIndex:
    stamps: list[int | None] = []
    keys: dict[tuple[int, int], int] = {}
    size = None
    for number, frame in enumerate(_decode(opened, label)):
        size = size or (frame.height, frame.width)
        _check(frame, size, number, label)
        stamps.append(frame.pts)
        if number and frame.key_frame and (key := _key(frame)) is not None:
            keys.setdefault(key, number)
    if not stamps:
        raise _empty(label)
    rows = np.array([(0, 0, 0), *((number, *key) for key, number in keys.items())], np.int64)
    return FrameIndex(_times(stamps, opened.stream), *rows.T)


@contextmanager
def told(label: str) -> Iterator[None]:
    """Convert errors of PyAV to a DataError."""
    imported("av", "video")
    try:
        yield
    except SetsupError:
        raise
    except Exception as error:
        # errors of FFmpeg, and whatever PyAV stumbles over in what a damaged file says of itself
        why = " ".join(str(getattr(error, "strerror", None) or error).split()) or type(error).__name__
        raise DamagedFile(f"{label} could not be decoded as a video: {why}", _FIX) from error


class _Turn(NamedTuple):
    """How an image is put right: rows and columns change places, then rows or columns are reversed (−1)."""

    transposed: bool
    down: int
    right: int


def _turn(frame: "VideoFrame") -> _Turn | None:
    """Read how a frame is to be shown; None for as it is, and for turns that are not by quarters."""
    noted: Any = frame.side_data.get("DISPLAYMATRIX")
    if noted is None:
        return None
    # a point (x, y), y downwards, is shown at (a x + c y, b x + d y)
    a, b, _, c, d = np.frombuffer(bytes(noted), np.int32)[:5].tolist()
    if a and d and not (b or c):
        return None if a > 0 and d > 0 else _Turn(False, 1 if d > 0 else -1, 1 if a > 0 else -1)
    if b and c and not (a or d):
        return _Turn(True, 1 if b > 0 else -1, 1 if c > 0 else -1)
    return None


class _Opened(NamedTuple):
    """An open file, the moving image in it, and how many packets of it there must be; 0 where that is not known."""

    container: "InputContainer"
    stream: "VideoStream"
    packets: int


def _open(source: Source, label: str) -> _Opened:
    """Open a video's first moving image, with a decoder of one thread."""
    import av

    if isinstance(source, Path):
        if not source.is_file():
            raise DamagedFile(f"{label} is {'not a file' if source.exists() else 'missing'}", _FIX)
        # without the word before it FFmpeg takes a name with a colon for an address
        file: Any = f"file:{source}"
        with source.open("rb") as raw:
            head = raw.read(_HEAD)
    else:
        content = source if isinstance(source, bytes) else source()
        file, head = io.BytesIO(content), content[:_HEAD]
    if is_pointer(head):
        raise pointer_error(label)
    container = av.open(
        file,
        "r",
        container_options={"format_whitelist": _FORMATS, "protocol_whitelist": "file"},
        metadata_errors="replace",
    )
    # a cover is a still image beside a sound
    streams = [stream for stream in container.streams.video if not int(stream.disposition) & _COVER]
    if not streams:
        container.close()
        raise DataError(f"{label} contains no video stream; remove it")
    stream = streams[0]
    codec = stream.codec_context
    if codec is None:
        container.close()
        raise DataError(f"{label} uses a codec that PyAV cannot decode; convert it, for example to H.264")
    codec.thread_count, codec.thread_type = 1, "NONE"
    codec.copy_opaque = True
    codec.options = {"max_pixels": str(_MOST_PIXELS)}
    entries = stream.index_entries
    if "mp4" in container.format.name and len(entries) and entries[-1].pos + entries[-1].size > container.size:
        container.close()
        raise DamagedFile(f"{label} is truncated: its last frame lies beyond the end of the file", _FIX)
    # an AVI's own index is at its end, and missing where that is
    short = head.startswith(b"RIFF") and 8 + int.from_bytes(head[4:8], "little") > container.size
    return _Opened(container, stream, stream.frames if short else 0)


def _decode(opened: _Opened, label: str, mark: int | None = None) -> "Iterator[VideoFrame]":
    """Frames as they come, those of key packets with the place and the time stamp of the packet as ``opaque``.

    With `mark`, packets before the one that lies there are left out.
    """
    sought, count = mark is not None, 0
    for packet in opened.container.demux(opened.stream):
        count += packet.pos is not None
        if not packet.size:
            continue  # a dropped frame; the decoder would take it for the end
        if mark is not None:
            if packet.pos != mark:
                continue
            mark = None
        if packet.is_corrupt:
            raise DamagedFile(f"{label} is truncated or damaged: it contains an incomplete packet", _FIX)
        if packet.is_keyframe and packet.pos is not None:
            stamps = [stamp for stamp in (packet.pts, packet.dts) if stamp is not None]
            packet.opaque = (packet.pos, min(stamps)) if stamps else None
        yield from packet.decode()
    if count < opened.packets and not sought:
        raise DamagedFile(f"{label} is truncated: it contains {count:,} of its {opened.packets:,} packets", _FIX)
    yield from opened.stream.codec_context.decode(None)


def _key(frame: "VideoFrame") -> tuple[int, int] | None:
    """Place and time stamp of the key packet that a frame was made of."""
    return frame.opaque if isinstance(frame.opaque, tuple) else None


def _times(stamps: list[int | None], stream: "VideoStream") -> npt.NDArray[np.float64]:
    """Seconds of each frame from the first, by the rate where the time stamps do not rise."""
    if stream.time_base and None not in stamps:
        ticks = np.array(stamps, np.int64)
        if (np.diff(ticks) > 0).all():
            return np.asarray((ticks - ticks[0]) * float(stream.time_base))
    return np.arange(len(stamps)) / (_rate(stream) or 1.0)


def _rate(stream: "VideoStream") -> float | None:
    for stated in (stream.average_rate, stream.guessed_rate):
        if stated is not None and stated > 0:
            return float(stated)
    return None


def _check(frame: "VideoFrame", size: tuple[int, int], number: int, label: str) -> None:
    if frame.is_corrupt:
        raise DamagedFile(f"{label} is damaged in frame {number}", _FIX)
    if (frame.height, frame.width) != size:
        raise DataError(
            f"{label} changes from {size[1]} × {size[0]} to {frame.width} × {frame.height} pixels (width × height) in "
            f"frame {number}; convert it to a fixed size"
        )


def _empty(label: str) -> DataError:
    return DamagedFile(f"{label} contains no frame that can be decoded", _FIX)
