"""Text files next to a recording: camera poses, timestamps of frames, and intrinsics.

Convention
----------
A pose is the 4 × 4 matrix that maps camera to world coordinates, camera x right, y down, z forward; translations are in
metres. Frames have the numbers of the file, which may start at 0 or 1.
"""

import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.errors import DamagedFile

__all__ = ["read_keys", "read_timestamps", "read_trajectory"]


_BLOCK = 5
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"-?\d{1,18}")
_MOST_FRAMES = 10**8


def read_trajectory(content: bytes, label: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    r"""Read a trajectory log: blocks with one line of the frame number and four lines of a matrix.

    Returns `frames` (n,) int64; returns `poses` (n, 4, 4) float64.
    """
    lines, counts, words = _words(content, label)
    if len(counts) % _BLOCK:
        start = lines[len(counts) - len(counts) % _BLOCK]
        raise DamagedFile(
            f"{label} ends inside the block that begins in line {start}; expected the frame number and the four lines "
            "of a matrix"
        )
    inside = np.arange(len(counts)) % _BLOCK
    wrong = np.where(inside == 0, counts > 3, counts != 4)
    if wrong.any():
        first = int(np.argmax(wrong))
        expected = (
            "the frame number, as one to three integers" if inside[first] == 0 else "the 4 numbers of a matrix row"
        )
        raise DamagedFile(f"{label}: line {lines[first]} has {counts[first]} words; expected {expected}")
    heads = np.repeat(inside == 0, counts)
    starts = np.cumsum(counts) - counts
    frames = _cast(words.take(starts[::_BLOCK]), "int64", label, lines[::_BLOCK])
    _refuse_frames(frames, label, lines[::_BLOCK])
    values = _cast(words.filter(~heads), "float64", label, np.repeat(lines, counts)[~heads])
    return frames, values.reshape(-1, 4, 4)


def read_timestamps(content: bytes, label: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    r"""Read the times of frames: one line per frame with its number and the time in microseconds.

    Returns `frames` (n,) int64; returns `times` (n,) int64, microseconds.
    """
    lines, counts, words = _words(content, label)
    wrong = (counts < 2) | (counts > 3)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DamagedFile(
            f"{label}: line {lines[row]} has {counts[row]} words; expected a frame number and its time in microseconds"
        )
    starts = np.cumsum(counts) - counts
    frames, times = (_cast(words.take(starts + column), "int64", label, lines) for column in (0, 1))
    _refuse_frames(frames, label, lines)
    return frames, times


def read_keys(content: bytes, label: str, wanted: Sequence[str]) -> dict[str, float]:
    r"""Read some numbers from a file with one name and number per line, such as camera intrinsics."""
    values: dict[str, float] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        words = line.split(None, 2)
        if not words or words[0] not in wanted:
            continue
        if words[0] in values:
            raise DamagedFile(f"{label}: line {number} repeats the name {words[0]!r}")
        value = float(words[1]) if len(words) > 1 and _NUMBER.fullmatch(words[1]) else np.nan
        if not np.isfinite(value):
            raise DamagedFile(
                f"{label}: {words[0]} in line {number} is {' '.join(words[1:2])[:40]!r}; expected a finite number"
            )
        values[words[0]] = value
    if missing := [name for name in wanted if name not in values]:
        raise DamagedFile(f"{label} has no line that begins with {missing[0]!r}")
    return {name: values[name] for name in wanted}


def _words(content: bytes, label: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Any]:
    """Lines that are not blank: their numbers from 1, words in each, and all words one after the other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        raise DamagedFile(f"{label} is not ASCII text: byte {error.start} is {content[error.start]:#04x}") from error
    split = pc.split_pattern(pa.array([text], pa.large_string()), "\n").flatten()
    trimmed = pc.ascii_trim_whitespace(split)
    full = np.asarray(pc.not_equal(trimmed, ""))
    words = pc.ascii_split_whitespace(trimmed.filter(full))
    counts = np.asarray(pc.list_value_length(words)).astype(np.int64)
    return np.flatnonzero(full) + 1, counts, words.flatten()


def _cast(words: Any, dtype: str, label: str, lines: npt.NDArray[np.int64]) -> Array:
    """Words as numbers; `lines` has the line of each."""
    import pyarrow as pa

    try:
        values = np.asarray(words.cast(dtype))
    except pa.ArrowInvalid:
        _refuse_word(words, _WHOLE if dtype == "int64" else _NUMBER, label, lines)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values)))
        raise DamagedFile(f"{label}: line {lines[first]} contains {words[first]}, which is not a finite number")
    return values


def _refuse_word(words: Any, pattern: re.Pattern[str], label: str, lines: npt.NDArray[np.int64]) -> NoReturn:
    wrong = (index for index, word in enumerate(words.to_pylist()) if not pattern.fullmatch(word))
    index = next(wrong, 0)
    what = "an integer" if pattern is _WHOLE else "a number"
    raise DamagedFile(f"{label}: line {lines[index]} contains {str(words[index])[:40]!r}; expected {what}")


def _refuse_frames(frames: npt.NDArray[np.int64], label: str, lines: npt.NDArray[np.int64]) -> None:
    wrong = (frames < 0) | (frames > _MOST_FRAMES)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise DamagedFile(
            f"{label}: line {lines[first]} has the frame number {frames[first]}; expected 0 to {_MOST_FRAMES:,}"
        )
    order = np.argsort(frames, kind="stable")
    again = np.flatnonzero(np.diff(frames[order]) == 0)
    if len(again):
        first = int(order[again + 1].min())
        raise DamagedFile(f"{label}: line {lines[first]} repeats frame {frames[first]}")
