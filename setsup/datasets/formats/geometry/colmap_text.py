"""COLMAP's sparse models as text: cameras, and the images with their poses.

Convention
----------
That of :mod:`setsup.datasets.formats.geometry.colmap`. Lines that begin with ``#`` are comments. ``images.txt`` has two
lines for each image: its pose, camera and name, and its observations, which may be an empty line.
"""

import re
from collections.abc import Iterator

import numpy as np

from setsup.datasets.formats.geometry.colmap import (
    ColmapCamera,
    ColmapImage,
    add_camera,
    add_image,
    camera_model,
    read_pose,
)
from setsup.errors import DamagedFile, abbreviate

__all__ = ["parse_numbers", "read_camera_lines", "read_image_lines"]

_CAMERA = 4  # fields before the parameters
_IMAGE = 9  # fields before the name
_INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")
_COUNTED = re.compile(rb"# Number of (?:cameras|images): ([0-9]{1,9})")
_FIX = "write the model again"


def read_camera_lines(content: bytes, label: str) -> dict[int, ColmapCamera]:
    """Read ``cameras.txt``: cameras by number; errors as those of binary files."""
    cameras: dict[int, ColmapCamera] = {}
    for line, (_, text) in enumerate(_lines(content), 1):
        fields = text.split()
        if not fields or fields[0].startswith(b"#"):
            continue
        at = f"{label}, line {line}"
        if len(fields) < _CAMERA:
            raise DamagedFile(f"{at} has {len(fields)} fields; expected CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]", _FIX)
        number, *size = (_integer(fields[place], at) for place in (0, 2, 3))
        model = camera_model(fields[1].decode("utf-8", "replace"), f"{at}: camera {number}")
        add_camera(cameras, number, model, (size[0], size[1]), parse_numbers(b" ".join(fields[_CAMERA:]), at), at)
    _check_count(content, len(cameras), label)
    return cameras


def read_image_lines(content: bytes, label: str) -> dict[str, ColmapImage]:
    """Read ``images.txt``: the images by name; errors as those of binary files."""
    images: dict[str, ColmapImage] = {}
    names: dict[int, str] = {}
    lines = enumerate(_lines(content), 1)
    for line, (_, text) in lines:
        if not text.strip() or text.lstrip().startswith(b"#"):
            continue
        at, fields = f"{label}, line {line}", text.split(None, _IMAGE)
        if len(fields) <= _IMAGE:
            raise DamagedFile(
                f"{at} has {len(fields)} fields; expected IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME", _FIX
            )
        name = fields[_IMAGE].rstrip().decode("utf-8", "backslashreplace")
        _, (start, observed) = next(lines, (0, (len(content), b"")))
        pose = read_pose(parse_numbers(b" ".join(fields[1 : _IMAGE - 1]), at).tolist(), name, at)
        number, camera = (_integer(fields[place], at) for place in (0, _IMAGE - 1))
        add_image(images, names, name, ColmapImage(number, camera, pose, start, len(observed)), at)
        if start + len(observed) >= len(content) and len(observed.split()) % 3:
            raise DamagedFile(
                f"{label} ends inside the observations of the image {abbreviate(name)}: it is truncated", _FIX
            )
    _check_count(content, len(images), label)
    return images


def parse_numbers(text: bytes, label: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Numbers between blanks, (n,) float64; NaN and infinity are among what their reader refuses."""
    try:
        return np.array(text.split(), np.float64)
    except ValueError as error:
        raise DamagedFile(f"{label} contains {' '.join(str(error).split()[-1:])}; expected numbers", _FIX) from None


def _integer(text: bytes, label: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise DamagedFile(f"{label} contains {text[:80].decode('utf-8', 'replace')!r}; expected an integer", _FIX)
    return int(text)


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Offset of each line, and its text without the line break; nothing behind the last line break."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        yield start, content[start:end]
        start = end + 1


def _check_count(content: bytes, found: int, label: str) -> None:
    """Compare with the count in the comments at the beginning, where COLMAP wrote one."""
    counted = _COUNTED.search(content[:4096])
    if counted is not None and int(counted[1]) != found:
        raise DamagedFile(
            f"{label} has {found:,} entries, but its comment says {int(counted[1]):,}: it is truncated, or was edited",
            "write the model again, or remove the comment",
        )
