"""Models of the objects of a BOP dataset: sizes, symmetries and meshes.

Convention
----------
Lengths are metres, in the files millimetres. Coordinates are those of the model: z points up, and the origin is the
centre of its bounding box.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setsup.arrays import Reals
from setsup.checks import check_integer
from setsup.datasets.adapters.meshes import ply_mesh
from setsup.datasets.formats.json_text import is_finite
from setsup.datasets.own.bop.annotations import FIX, read_numbered, read_numbers, read_rigid
from setsup.errors import DamagedFile, DataError, abbreviate, advice, did_you_mean
from setsup.files.archives.members import MemberIndex
from setsup.scenes.meshes.formats.ply import read_ply

__all__ = ["ObjectModel", "find_model_folders", "read_mesh", "read_models"]

_MOST = 1 << 26  # bytes of models_info.json
_MOST_MESH = 1 << 32
_INFO = "models_info.json"
_LENGTHS = ("diameter", *(f"{kind}_{axis}" for kind in ("min", "size") for axis in "xyz"))
_FAR, _SMALL = 1e12, 1e-9
_STEPS = 315  # ⌈π / 0.01⌉: that of BOP, whose steps move no vertex by more than 1 % of the diameter


@dataclass(frozen=True, slots=True, eq=False)
class ObjectModel:
    """Size and symmetries of an object.

    Attributes
    ----------
    diameter : float, metres
        Largest distance between two vertices.
    bounds : (2, 3) float64, metres
        Smallest and largest coordinates.
    discrete : (n, 4, 4) float64, metres
        Symmetries that map the model onto itself, without the identity.
    axes : (m, 3) float64
        Unit vectors of the axes about which any rotation is a symmetry.
    offsets : (m, 3) float64, metres
        A point on each axis.

    Examples
    --------
    >>> import numpy as np
    >>> axis = np.array([[0, 0, 1.0]])
    >>> cup = ObjectModel(0.1, np.array([[-0.04] * 3, [0.04] * 3]), np.empty((0, 4, 4)), axis, np.zeros((1, 3)))
    >>> cup.symmetries(steps=4)[1].round(6).tolist()
    [[0.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]

    """

    diameter: float
    bounds: Reals
    discrete: Reals
    axes: Reals
    offsets: Reals

    def symmetries(self, steps: int = _STEPS) -> Reals:
        """All symmetries: the identity, the discrete ones, and each of them followed by rotations about the axes.

        Parameters
        ----------
        steps : int
            Number of rotations about an axis, a full turn in equal steps from 0.

        Returns
        -------
        (n, 4, 4) float64, metres

        """
        steps = check_integer(steps, "steps", DataError, 1)
        discrete = np.concatenate([np.eye(4)[None], self.discrete])
        if not len(self.axes):
            return discrete
        turns = np.concatenate(
            [_turns(axis, offset, steps) for axis, offset in zip(self.axes, self.offsets, strict=True)]
        )
        return np.asarray((turns[None] @ discrete[:, None]).reshape(-1, 4, 4))


def find_model_folders(files: MemberIndex) -> dict[str, int]:
    """Folders of models in a dataset's folder, with the places of their lists: those for evaluation last."""
    places, groups = files.matching(rf"(?P<folder>models[^/]*)/{_INFO}")
    found = zip(groups["folder"].to_pylist(), places.tolist(), strict=True)
    return dict(sorted(found, key=lambda one: (one[0].endswith("_eval"), one[0])))


def read_models(files: MemberIndex, folder: str | None) -> dict[int, ObjectModel]:
    """Read the models of a folder, of the first by default."""
    place = find_model_folders(files)[choose_folder(files, folder)]
    label = files.label(place)
    listed = read_numbered(files.read(place, _MOST), label)
    return {number: _model(entry, f"{label}: object {number}") for number, entry in sorted(listed.items())}


def read_mesh(files: MemberIndex, folder: str | None, number: int) -> Any:
    """Read the mesh of an object, a trimesh.Trimesh in metres."""
    place = files.place(f"{choose_folder(files, folder)}/obj_{check_integer(number, 'number', DataError, 0):06d}.ply")
    mesh = ply_mesh(read_ply(files.path(place) or files.read(place, _MOST_MESH), files.label(place)))
    mesh.apply_scale(0.001)
    return mesh


def choose_folder(files: MemberIndex, folder: str | None) -> str:
    """The folder of models that is asked for, the first by default."""
    folders = find_model_folders(files)
    if not folders:
        raise DataError(
            f"{files.source} has no models*/{_INFO}; open the folder that contains both the models and the splits"
        )
    if folder is not None and folder not in folders:
        given = advice(f"folder={folder!r}", folder)
        raise DataError(f"{files.source} has no models in {given}{did_you_mean(folder, list(folders))}")
    return folder or next(iter(folders))


def _turns(axis: Reals, offset: Reals, steps: int) -> Reals:
    """Rotations about an axis through a point, (steps, 4, 4), by Rodrigues' formula."""
    angles = np.arange(steps) * (2 * np.pi / steps)
    cross = np.cross(np.eye(3), axis)  # times a vector v: axis × v
    turns = np.tile(np.eye(4), (steps, 1, 1))
    turns[:, :3, :3] = (
        np.cos(angles)[:, None, None] * np.eye(3)
        + np.sin(angles)[:, None, None] * cross
        + (1 - np.cos(angles))[:, None, None] * np.outer(axis, axis)
    )
    turns[:, :3, 3] = offset - turns[:, :3, :3] @ offset
    return turns


def _model(entry: Any, label: str) -> ObjectModel:
    if not isinstance(entry, dict):
        raise DamagedFile(f"{label} is {abbreviate(entry)}; expected an object with diameter", FIX)
    lengths: dict[str, Any] = {name: entry.get(name) for name in _LENGTHS}
    for name, value in lengths.items():
        if not is_finite(value) or abs(value) > _FAR or not (name.startswith("min_") or value >= 0):
            raise DamagedFile(f"{label} has {name} = {abbreviate(value)}; expected millimetres", FIX)
    numbers = np.array([lengths[name] for name in _LENGTHS], np.float64) / 1000
    matrices = [
        np.array(_numbers({"symmetry": one}, "symmetry", 16, label), np.float64).reshape(4, 4)
        for one in _entries(entry, "symmetries_discrete", label)
    ]
    if any(matrix[3].tolist() != [0, 0, 0, 1] for matrix in matrices):
        raise DamagedFile(f"{label} has a symmetry whose last row is not 0 0 0 1; expected a rigid transform", FIX)
    axes, offsets = [], []
    for one in _entries(entry, "symmetries_continuous", label):
        if not isinstance(one, dict):
            raise DamagedFile(f"{label} has the symmetry {abbreviate(one)}; expected an axis and an offset", FIX)
        axis = np.array(_numbers(one, "axis", 3, label), np.float64)
        if not _SMALL < np.linalg.norm(axis) < _FAR:
            raise DamagedFile(f"{label} has the axis {axis.tolist()}; expected a direction", FIX)
        axes.append(axis / np.linalg.norm(axis))
        offsets.append(np.array(_numbers(one, "offset", 3, label), np.float64) / 1000)
    return ObjectModel(
        float(numbers[0]),
        np.stack([numbers[1:4], numbers[1:4] + numbers[4:]]),
        read_rigid(
            [matrix[:3, :3].reshape(-1).tolist() for matrix in matrices],
            [matrix[:3, 3].tolist() for matrix in matrices],
            lambda at: f"{label}: symmetry {at}",
        ),
        np.array(axes, np.float64).reshape(-1, 3),
        np.array(offsets, np.float64).reshape(-1, 3),
    )


def _entries(entry: Mapping[str, Any], key: str, label: str) -> list[Any]:
    found = entry.get(key, [])
    if not isinstance(found, list):
        raise DamagedFile(f"{label} has {key} = {abbreviate(found)}; expected a list", FIX)
    return found


def _numbers(entry: Mapping[str, Any], key: str, count: int, label: str) -> list[float]:
    numbers = read_numbers(entry, key, count, label)
    if numbers is None:
        raise DamagedFile(f"{label} has a symmetry without {key}; expected {count} numbers", FIX)
    return numbers
