"""Images of the objects of a SceneNN scene, rendered once and cached.

The mesh of a scene has 100 to 200 MB and contains all its objects, so the first preview of a scene renders those of all
its objects into the cache folder, about 50 kB per object. The mesh itself is released.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array
from setsup.datasets.adapters.preview import splat
from setsup.datasets.cached_arrays import cached_array, file_states
from setsup.errors import DataError
from setsup.files.archives.members import MemberIndex
from setsup.scenes.meshes.formats.ply import Ply, read_ply

__all__ = ["IMAGE", "object_rows", "read_mesh", "scene_previews"]


IMAGE = (128, 128, 3)
"""Shape of a preview."""

_VERSION = 1
_ENTRY = np.dtype([("vertices", np.int64), ("picture", np.uint8, IMAGE)])
_MOST_POINTS = 50_000
_MOST_BYTES = 1 << 32
_GREY = 150


def read_mesh(members: MemberIndex, member: int) -> Ply:
    """Read the mesh of a scene."""
    label, path = members.label(member), members.path(member)
    mesh = read_ply(path if path is not None else members.read(member, _MOST_BYTES), label)
    names = mesh.vertices.dtype.names or ()
    if "label" not in names or mesh.vertices.dtype["label"].kind not in "iu":
        raise DataError(
            f"{label}: the vertices have no integer property 'label', only {', '.join(names)}; fetch the annotated mesh"
        )
    return mesh


def object_rows(labels: Array, ids: Sequence[int]) -> list[npt.NDArray[np.int64]]:
    """Vertices of each object, in the order of the mesh.

    `labels` (n,) integer.

    Examples
    --------
    >>> [rows.tolist() for rows in object_rows(np.array([3, 1, 3, 0]), [3, 7])]
    [[0, 2], []]

    """
    order = np.argsort(labels, kind="stable")
    ordered = labels[order].astype(np.int64)
    starts, stops = (np.searchsorted(ordered, np.asarray(ids, np.int64), side) for side in ("left", "right"))
    return [order[start:stop] for start, stop in zip(starts, stops, strict=True)]


def scene_previews(members: MemberIndex, member: int, ids: Sequence[int]) -> Array:
    """Images of the objects of a scene, from the cache or newly rendered.

    Returns (objects,) structured array.
    """
    made_of = [_VERSION, *file_states(members, [member]), *ids]
    return cached_array("previews", made_of, _ENTRY, len(ids), lambda: _drawn(members, member, ids))


def _drawn(members: MemberIndex, member: int, ids: Sequence[int]) -> Array:
    mesh = read_mesh(members, member)
    previews = np.zeros(len(ids), _ENTRY)
    for entry, rows in zip(previews, object_rows(mesh.vertices["label"], ids), strict=True):
        entry["vertices"] = len(rows)
        few = rows[:: -(-len(rows) // _MOST_POINTS) or 1]
        part = Ply(mesh.vertices[few], mesh.faces[:0])
        colors = part.colors
        entry["picture"] = splat(part.points, np.full((len(few), 3), _GREY, np.uint8) if colors is None else colors)
    return previews
