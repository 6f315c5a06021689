"""The binvox format: a run-length encoded cube of voxels, with its position in the frame of the mesh.

Convention
----------
Voxels are indexed [x, y, z]. The centre of voxel i is at ``translate + scale · (i + 0.5) / dim`` in the frame of the
mesh that was voxelised; dim is the longest side of the grid, which in all published files is a cube.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setsup.files.numbers import refuse
from setsup.scenes.meshes.formats.records import content

__all__ = ["Binvox", "read_binvox"]

_LONGEST_HEADER = 1 << 14
_LONGEST_SIDE = 1 << 14
_MOST_VOXELS = 1 << 30  # of a byte each; two bytes of a file stand for 255


@dataclass(frozen=True, slots=True, eq=False)
class Binvox:
    """Content of a binvox file.

    `voxels` (x, y, z) bool; `translate` (3,) float64.
    """

    voxels: npt.NDArray[np.bool_]
    translate: npt.NDArray[np.float64]
    scale: float

    def centres(self) -> npt.NDArray[np.float64]:
        """Centres of the occupied voxels in the frame of the mesh, (n, 3), in the order of their indices."""
        centres = np.argwhere(self.voxels) + 0.5
        return np.asarray(self.translate + self.scale * centres / max(self.voxels.shape))


def read_binvox(source: Path | bytes, label: str) -> Binvox:
    r"""Read a binvox file."""
    data = content(source, label)
    sides, translate, scale, start = _header(data, label)
    if (len(data) - start) % 2:
        refuse(label, "is truncated: it ends within a run of voxels")
    values, counts = np.frombuffer(data, np.uint8, offset=start).reshape(-1, 2).T
    if (values > 1).any() or (counts == 0).any():
        refuse(label, "has a run of length 0, or with a value other than 0 and 1")
    filled, wanted = int(counts.sum(dtype=np.int64)), sides[0] * sides[1] * sides[2]
    if filled != wanted:
        refuse(label, f"contains {filled:,} voxels, but its header specifies {' x '.join(map(str, sides))}")
    if wanted > _MOST_VOXELS:
        refuse(label, f"contains {wanted:,} voxels, more than the limit of {_MOST_VOXELS:,}")
    # x is slowest and y fastest: the axes stand as x, z, y
    voxels = np.repeat(values.astype(bool), counts).reshape(sides).transpose(0, 2, 1)
    return Binvox(np.ascontiguousarray(voxels), np.array(translate), scale)


def _header(data: bytes, label: str) -> tuple[tuple[int, int, int], list[float], float, int]:
    """Sides in the order of the file, lower corner, scale, and where the runs begin."""
    start = re.match(rb"#binvox[ \t]+1[ \t]*\r?\n", data)
    if start is None:
        refuse(label, f"is not a binvox file: it begins with {data[:9]!r}; expected '#binvox 1'")
    end = re.compile(rb"^data[ \t]*\r?\n", re.MULTILINE).search(data, start.end(), _LONGEST_HEADER)
    if end is None:
        refuse(label, f"has no line 'data' in its first {_LONGEST_HEADER:,} bytes")
    fields: dict[str, list[str]] = {}
    for line in data[start.end() : end.start()].decode("utf-8", "replace").splitlines():
        words = line.split("#")[0].split()
        if words and words[0] in ("dim", "translate", "scale"):
            fields[words[0]] = words[1:]
        elif words:
            refuse(label, f"has the header line {line[:80]!r}, which is not valid in a binvox file")
    sides = [int(word) for word in fields.get("dim", []) if re.fullmatch("[0-9]{1,6}", word)]
    if len(sides) != 3 or len(fields["dim"]) != 3 or not all(1 <= side <= _LONGEST_SIDE for side in sides):
        refuse(label, f"has the sides {' '.join(fields.get('dim', []))[:60]!r}; expected three integers")
    translate = _floats(fields.get("translate", ["0", "0", "0"]), 3, label)
    scale = _floats(fields.get("scale", ["1"]), 1, label)[0]
    return (sides[0], sides[1], sides[2]), translate, scale, end.end()


def _floats(words: list[str], count: int, label: str) -> list[float]:
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count or not np.isfinite(values).all():
        refuse(label, f"has {' '.join(words)[:60]!r} in the header; expected {count} finite numbers")
    return values
