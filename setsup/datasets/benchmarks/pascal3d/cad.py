"""The CAD models of Pascal3D+: from ``CAD/<class>.mat``, which has their anchor points too, or from OFF files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.benchmarks.pascal3d.objects import CATEGORIES
from setsup.datasets.formats.matlab.mat import read_mat
from setsup.errors import DamagedFile, DataError, did_you_mean
from setsup.files.archives.members import MemberIndex
from setsup.scenes.meshes.formats.off import read_off

__all__ = ["CadModel", "read_cad"]

_MOST = 1 << 28  # bytes of all models of a class


@dataclass(frozen=True, slots=True, eq=False)
class CadModel:
    """A CAD model in its own frame: z up, the front towards −y.

    `vertices` (n, 3) float64; `faces` (m, 3) int32.
    """

    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.int32]
    anchors: Mapping[str, npt.NDArray[np.float64]] = field(default_factory=dict)


def read_cad(members: MemberIndex, category: str, index: int) -> CadModel:
    """Read a CAD model of a release."""
    if category not in CATEGORIES:
        raise DataError(f"pascal3d has no class {category!r}{did_you_mean(category, CATEGORIES)}")
    if index not in range(1, CATEGORIES[category] + 1):
        raise DataError(
            f"the index of a CAD model of {category!r} must be from 1 to {CATEGORIES[category]}, not {index!r}"
        )
    packed, single = f"CAD/{category}.mat", f"CAD/{category}/{index:02d}.off"
    if packed in members:
        member = members.place(packed)
        content = members.path(member) or members.read(member, _MOST)
        models = read_mat(content, members.label(member), [category], _MOST)[category]
        return _from_mat(models, index, members.label(member))
    if single in members:
        member = members.place(single)
        mesh = read_off(members.path(member) or members.read(member, _MOST), members.label(member))
        return CadModel(mesh.vertices, mesh.faces)
    raise DamagedFile(f"{members.source} contains neither {packed} nor {single}")


def _from_mat(models: Any, index: int, label: str) -> CadModel:
    names = models.dtype.names or ()
    if not {"vertices", "faces"} <= set(names):
        raise DamagedFile(f"{label} contains no structs with 'vertices' and 'faces'")
    if models.size < index:
        raise DamagedFile(f"{label} has {models.size} models, but no model {index}")
    model = models.reshape(-1)[index - 1]
    where = f"{label}: model {index}"
    vertices = _points(model["vertices"], "vertices", where)
    faces = _points(model["faces"], "faces", where)
    if len(faces) and (faces != np.floor(faces)).any():
        raise DamagedFile(f"{where}: 'faces' contains values that are not integers")
    if len(faces) and not 1 <= faces.min() <= faces.max() <= len(vertices):
        raise DamagedFile(
            f"{where}: 'faces' refers to the vertices {faces.min():.0f} to {faces.max():.0f}; expected 1 to "
            f"{len(vertices)}"
        )
    anchors = {
        name: np.asarray(model[name], dtype=np.float64).reshape(3)
        for name in names
        # a model may lack an anchor, which is empty then; and there is a list of names among the fields
        if name not in ("vertices", "faces") and model[name].size == 3 and model[name].dtype.kind in "biuf"
    }
    return CadModel(vertices, (faces - 1).astype(np.int32), anchors)


def _points(value: Any, name: str, where: str) -> npt.NDArray[np.float64]:
    if value.dtype.kind not in "biuf" or value.ndim != 2 or value.shape[1] != 3 or not np.isfinite(value).all():
        raise DamagedFile(
            f"{where}: {name!r} has dtype {value.dtype.name} and shape {value.shape}; expected finite numbers of shape "
            "(n, 3)"
        )
    return np.asarray(value, dtype=np.float64)
