"""Labels of CompCars: 136,726 small text files, read once into columns that are stored in the user's cache.

The first line of a file is the viewpoint (−1 if uncertain), the second the number of boxes, which is 1, and the third
``x1 y1 x2 y2`` in 1-based inclusive pixels.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.cached_arrays import cached_array, release_state
from setsup.datasets.images import parallel
from setsup.errors import DataError
from setsup.files.archives.members import MemberIndex
from setsup.files.roots import some

__all__ = ["VIEWPOINTS", "parse_label", "read_labels"]

VIEWPOINTS = ("front", "rear", "side", "front-side", "rear-side")
"""Viewpoints in the order of their numbers, which begin with 1."""

_KIND = np.dtype([("viewpoint", "i1"), ("box", "<f4", (4,))])
_VERSION = 1  # of the cached columns
_MOST = 1 << 12  # bytes of a label
_BLOCK = 1024
_LARGEST = 1 << 24  # to which integers are exact in single precision


def read_labels(members: MemberIndex, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Read the labels on the first call, and from the cache afterwards.

    They are read again if :func:`~setsup.datasets.cached_arrays.release_state` reports a change of the release.

    `places` (n,) int64; returns (n,) structured array.
    """
    made_of = (_VERSION, release_state(members, places))
    return cached_array("compcars-labels", made_of, _KIND, len(places), lambda: _read(members, places))


def parse_label(content: bytes, label: str) -> tuple[int, tuple[float, float, float, float]]:
    r"""Read one label."""
    lines = [line.split() for line in content.splitlines() if line.strip()]
    numbers = [[_whole(word) for word in line] for line in lines]
    shaped = len(lines) >= 2 and len(lines[0]) == len(lines[1]) == 1 and all(len(line) == 4 for line in lines[2:])
    if not shaped or any(number is None for line in numbers for number in line):
        raise DataError(
            f"{label} could not be parsed as a label; expected the viewpoint, the number of boxes and the four sides "
            "of a box, each on its own line"
        )
    viewpoint = numbers[0][0] or 0
    left, top, right, bottom = (float(side or 0) for side in (numbers[2] if len(numbers) > 2 else [0] * 4))
    if not (1 <= left <= right and 1 <= top <= bottom):
        left = top = right = bottom = np.nan
    return viewpoint - 1 if 1 <= viewpoint <= len(VIEWPOINTS) else -1, (left, top, right, bottom)


def _whole(word: bytes) -> int | None:
    """A integer that single precision holds; None for anything else."""
    digits = word.removeprefix(b"-")
    return int(word) if digits.isdigit() and len(digits) <= 8 and int(digits) <= _LARGEST else None


def _read(members: MemberIndex, places: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    from setsup.progress import progress

    labels: list[tuple[int, Sequence[float]] | str] = []
    with progress(len(places), "reading the labels of compcars", "files") as advance:
        for start in range(0, len(places), _BLOCK):
            block = places[start : start + _BLOCK].tolist()
            labels += parallel(partial(_one, members), block)
            advance(len(block))
    damaged = [sentence for sentence in labels if isinstance(sentence, str)]
    if damaged:
        raise DataError(
            f"{members.source}: {len(damaged):,} of {len(labels):,} labels cannot be parsed ({some(damaged, '; ')}); "
            "unpack the release again"
        )
    return np.array(labels, _KIND)


def _one(members: MemberIndex, member: int) -> tuple[int, Sequence[float]] | str:
    try:
        return parse_label(members.read(member, _MOST), members.label(member))
    except DataError as error:
        return str(error)
