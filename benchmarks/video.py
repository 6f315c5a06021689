"""Decoding videos: frames in one pass, windows, and random frames, against bare PyAV in a loop."""

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Side, alternate, ratio, sized
from benchmarks.rows import Row, at_least, rate
from setsup.datasets.formats.video.frames import VideoFile

__all__ = ["rows"]

TOPIC = "video"
CLOCK: dict[str, Any] = {"clock": time.perf_counter, "seconds": 0.2, "blocks": 11}
FRAMES, HEIGHT, WIDTH, WINDOW = sized(200, 40), 240, 320, 16
KINDS: tuple[tuple[str, str, str, dict[str, str]], ...] = (
    ("MPEG-4 in AVI", "mpeg4", "avi", {"g": "250", "bf": "2", "qscale": "5"}),
    ("H.264 in MP4", "libx264", "mp4", {"g": "50", "bf": "2"}),
)


def rows(full: bool) -> Iterator[Row]:
    for kind, codec, container, options in KINDS:
        content = _film(codec, container, options)
        yield from _in_order(f"{kind}, {FRAMES} frames of {HEIGHT} × {WIDTH}", content)
        yield from _windows(f"{kind}, {WINDOW} frames from anywhere", content)


def _in_order(what: str, content: bytes) -> Iterator[Row]:
    """Share of what PyAV alone gives in one thread, pictures thrown away, in per cent."""
    index = VideoFile(content).index
    out = np.empty((FRAMES, HEIGHT, WIDTH, 3), np.uint8)

    def bare() -> None:
        for _ in _bare(content):
            pass

    def stream() -> None:
        for _ in VideoFile(content).stream():
            pass

    def into() -> None:
        VideoFile(content, index=index).read(np.arange(FRAMES), out)

    def read() -> None:
        VideoFile(content, index=index).read(np.arange(FRAMES))

    def stacked() -> None:
        np.stack(list(_bare(content)))

    sides: dict[str, Callable[[], None]] = {
        "bare": bare,
        "stream": stream,
        "into": into,
        "read": read,
        "stacked": stacked,
        "count": lambda: len(VideoFile(content).index) and None,
    }
    found = alternate({name: Side(side, FRAMES) for name, side in sides.items()}, **CLOCK)
    for name, said, against, bound in (
        ("stream", "one pass", "bare", at_least(80)),
        ("into", "read into one array", "bare", at_least(80)),
        ("read", "read into a new array", "stacked", None),
        ("count", "counting the frames", "bare", None),
    ):
        words = "PyAV in a loop, pictures thrown away" if against == "bare" else "PyAV in a loop, np.stack"
        share = ratio(100 * found[against], found[name])
        speeds = rate(found[name], "frames"), words, rate(found[against], "frames")
        yield Row(TOPIC, f"{what}, {said}", *speeds, share, "%", bound)


def _windows(what: str, content: bytes) -> Iterator[Row]:
    """How many times faster than decoding from the start up to the last frame of the window."""
    index = VideoFile(content).index
    starts = iter(np.tile(np.random.default_rng(0).integers(0, FRAMES - WINDOW, 4999), 99).tolist())

    def ours() -> None:
        VideoFile(content, index=index).read(next(starts) + np.arange(WINDOW))

    def bare() -> None:
        start = next(starts)
        for number, _ in enumerate(_bare(content, start)):
            if number == start + WINDOW - 1:
                break

    found = alternate({"ours": Side(ours, WINDOW), "bare": Side(bare, WINDOW)}, **CLOCK)
    speeds = rate(found["ours"], "frames"), "PyAV from the start, without seeking", rate(found["bare"], "frames")
    yield Row(TOPIC, what, *speeds, ratio(found["bare"], found["ours"]))


def _bare(content: bytes, start: int = 0) -> Iterator[npt.NDArray[np.uint8] | None]:
    """Frames as PyAV gives them by default; None for those before `start`."""
    import av

    with av.open(io.BytesIO(content)) as file:
        for number, frame in enumerate(file.decode(video=0)):
            yield None if number < start else frame.to_ndarray(format="rgb24")


def _film(codec: str, container: str, options: dict[str, str]) -> bytes:
    """A view that moves over coarse and fine patterns, with some noise."""
    import av

    random = np.random.default_rng(0)
    coarse = np.kron(random.integers(0, 256, (40, 60, 3)), np.ones((16, 16, 1), int))
    made = io.BytesIO()
    with av.open(made, "w", format=container) as file:
        stream = file.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(FRAMES):
            view = coarse[number : number + HEIGHT, 2 * number : 2 * number + WIDTH]
            noisy = (view + random.integers(-6, 7, (HEIGHT, WIDTH, 1))).clip(0, 255).astype(np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(noisy)))
        file.mux(stream.encode())
    return made.getvalue()
