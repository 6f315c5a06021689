"""KeypointNet: semantic keypoints on models of ShapeNet, with their clouds and meshes, from the published files."""

import colorsys
import copy
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.datasets.adapters import meshes
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.adapters.inconsistent import replaced
from setsup.datasets.adapters.preview import splat
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.keypointnet.annotations import read_annotations, read_category
from setsup.datasets.dataset import Modality, fetch_request, of_row
from setsup.datasets.formats.geometry.pcd import Pcd, read_pcd
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind
from setsup.files.archives.members import MemberIndex, open_members
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of
from setsup.scenes.meshes.formats.ply import read_ply

__all__ = ["KeypointNet", "open"]

_CATEGORIES = MappingProxyType(
    {
        **{"02691156": "airplane", "02808440": "bathtub", "02818832": "bed", "02876657": "bottle", "02954340": "cap"},
        **{"02958343": "car", "03001627": "chair", "03467517": "guitar", "03513137": "helmet", "03624134": "knife"},
        **{"03642806": "laptop", "03790512": "motorcycle", "03797390": "mug", "04225987": "skateboard"},
        **{"04379243": "table", "04530566": "vessel"},
    }
)
_SPLITS = ("train", "val", "test")
_POINTS = 2048
_CLOUDS, _MESHES = "pcds", "ShapeNetCore.v2.ply"
_LARGEST_CLOUD, _LARGEST_MESH, _LARGEST_LIST = 1 << 24, 1 << 30, 1 << 24


class KeypointNet(BaseDataset):
    """Models with semantic keypoints: the rows are the annotated models, categories by name.

    Factors are ``category``, ``model`` (key, within the category), ``split`` if the published lists exist (unknown for
    unlisted models), and ``misaligned`` if ``knife_misaligned.txt`` exists (key; knives that are flipped along x).
    Modalities:

    - ``keypoints``, (K, 3) float32 in the frame of the model, K the largest number of keypoints of any opened model,
      padded with NaN.
    - ``keypoint_ids``, (K,) int16, their semantic ids, padded with −1. An id denotes the same part in all models of a
      category, but not across categories.
    - ``points`` (2048, 3) float32 and ``colors`` (2048, 3) uint8, the published cloud.
    - ``preview`` (128, 128, 3) uint8, an image of the cloud (of the mesh, if only that exists) with the keypoints as
      dots colored by id; see :mod:`setsup.datasets.adapters.preview`.

    Clouds and meshes may be missing until they are read.

    Parameters
    ----------
    members : MemberIndex
        Files of the release.

    Raises
    ------
    DataError
        An annotation or a list is damaged.

    Notes
    -----
    Frame of the models: +y up, −z front, bounding box with a diagonal of 1, not centred on the origin.

    """

    name = "keypointnet"
    cpu_bound = True

    def __init__(self, members: MemberIndex) -> None:
        self.members, self._source = members, members.source
        self._parts = [("", members), *_beside(members)]
        self._found = read_annotations(members)
        most = max(1, int(np.diff(self._found.firsts).max()))
        self.factors = _table(self._found.classes, self._found.models, members)
        self.modalities = {
            "keypoints": Modality((most, 3), "float32"),
            "keypoint_ids": Modality((most,), "int16"),
            "points": Modality((_POINTS, 3), "float32"),
            "colors": Modality((_POINTS, 3), "uint8"),
            "preview": Modality((128, 128, 3), "uint8", color="srgb"),
        }
        self._parsed: tuple[int, list[dict[str, Any]]] | None = None

    def _read_all(self, rows: Rows, out: Mapping[str, Array]) -> dict[str, Array]:
        keypoints = {name: self._keypoints(name, rows) for name in out if name in ("keypoints", "keypoint_ids")}
        drawn = {name: array for name, array in out.items() if name not in keypoints}

        def put(row: int, slot: int) -> None:
            arrays = self._clouds(row, list(drawn))
            for name, array in drawn.items():
                array[slot] = arrays[name]

        if drawn:
            read_distinct(rows, list(drawn.values()), np.ndarray.tolist, put)
        return {**keypoints, **drawn}

    @of_row
    def annotation(self, row: int) -> dict[str, Any]:
        """Return the annotation of a model as published.

        Parameters
        ----------
        row : int
            Row number.

        Returns
        -------
        dict
            ``class_id``, ``model_id``, ``keypoints`` (each with ``xyz``, ``rgb``, ``semantic_id``, and where published
            ``pcd_info`` and ``mesh_info``) and ``symmetries``, whose ``kp_indexes`` count the keypoints of this model.

        """
        row = self._row(row)
        member, position = int(self._found.files[row]), int(self._found.positions[row])
        parsed = self._parsed
        if parsed is None or parsed[0] != member:
            parsed = self._parsed = (member, read_category(self.members, member))
        if position >= len(parsed[1]) or parsed[1][position].get("model_id") != str(self._found.models[row]):
            raise replaced(self.members.label(member))
        return copy.deepcopy(parsed[1][position])

    @of_row
    def mesh(self, row: int) -> Any:
        """Load a model's mesh through trimesh (the extra ``meshes``).

        Parameters
        ----------
        row : int
            Row number.

        Returns
        -------
        trimesh.Trimesh or trimesh.Scene
            A Trimesh with vertex colors if the PLY file exists: its faces are in the order to which
            ``mesh_info.face_index`` refers. Else the scene of the OBJ file, see
            :func:`setsup.datasets.adapters.meshes.load_obj`.

        Raises
        ------
        DataError
            When trimesh or the files are missing, or a file is damaged.

        """
        row = self._row(row)
        file = self._find(self._ply_names(row))
        if file is not None:
            return meshes.ply_mesh(read_ply(file[0].read(file[1], _LARGEST_MESH), file[0].label(file[1])))
        top = f"models/{self._model(row)}"
        file = self._find([f"{top}/models/model_normalized.obj"])
        if file is None:
            raise self._missing(row, self._ply_names(row)[0])
        return meshes.load_obj(*file, top)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the annotations that were parsed last."""
        return {**self.__dict__, "_parsed": None}

    def _row(self, row: int) -> int:
        return int(fetch_request(self, row, ())[0])

    def _model(self, row: int) -> str:
        return f"{self._found.classes[row]}/{self._found.models[row]}"

    def _ply_names(self, row: int) -> list[str]:
        return [f"{_MESHES}/{self._model(row)}.ply", f"models/{self._model(row)}/models/model_normalized.ply"]

    def _find(self, names: list[str]) -> tuple[MemberIndex, int] | None:
        """Find the first of some files that is present."""
        for name in names:
            for folder, members in self._parts:
                if name.startswith(folder):
                    member = int(members.places([name[len(folder) :]])[0])
                    if member >= 0:
                        return members, member
        return None

    def _missing(self, row: int, name: str) -> DataError:
        return DataError(
            f"{self.members.source} has no {name} (row {row}); `setsup fetch keypointnet` shows where to download it"
        )

    def _keypoints(self, name: str, rows: Rows) -> Array:
        source = self._found.xyz if name == "keypoints" else self._found.ids
        places = self._found.firsts[rows, None] + np.arange(self.modalities[name].shape[0] or 0)
        filled = places < self._found.firsts[rows + 1, None]
        keypoints = np.full((*places.shape, *source.shape[1:]), np.nan if name == "keypoints" else -1, source.dtype)
        keypoints[filled] = source[places[filled]]
        return keypoints

    def _clouds(self, row: int, names: list[str]) -> dict[str, Array]:
        """Arrays of one row that come from its cloud."""
        arrays: dict[str, Array] = {}
        file = self._find([f"{_CLOUDS}/{self._model(row)}.pcd"])
        if file is None and (set(names) != {"preview"} or self._find(self._ply_names(row)) is None):
            raise self._missing(row, f"{_CLOUDS}/{self._model(row)}.pcd")
        cloud = None if file is None else _cloud(*file)
        if cloud is not None:
            arrays = {"points": cloud.points, "colors": _colors(cloud)}
        if "preview" in names:
            arrays["preview"] = self._preview(row, arrays)
        return arrays

    def _preview(self, row: int, cloud: dict[str, Array]) -> Array:
        own = slice(*self._found.firsts[row : row + 2])
        marks = (self._found.xyz[own], _palette(self._found.ids[own]))
        if cloud:
            return splat(cloud["points"], cloud["colors"], marks=marks)
        members, member = self._find(self._ply_names(row)) or (self.members, -1)
        ply = read_ply(members.read(member, _LARGEST_MESH), members.label(member))
        return meshes.preview_mesh(ply.points, ply.faces, ply.colors, marks)


def open(root: Path | str | None = None) -> KeypointNet:
    """Open KeypointNet.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``annotations/`` (and ``pcds/``, ``ShapeNetCore.v2.ply/``, ``splits/``), or with a folder
        ``keypointnet`` that has them, or a zip or tar of them; None for the default folders. Clouds and meshes may also
        lie there as ``pcds.zip`` and ``ShapeNetCore.v2.ply.zip`` (or ``.tar``).

    Raises
    ------
    DataError
        When the annotations are missing, or a file is damaged.

    """
    names = ("KeypointNet.zip", "KeypointNet.tar", "keypointnet.zip", "keypointnet.tar")
    return KeypointNet(find_members("keypointnet", root, [r"annotations/[^/]+\.json"], names))


def _beside(members: MemberIndex) -> list[tuple[str, MemberIndex]]:
    """Archives of clouds and meshes in the folder of the release, each with the folder that it stands for."""
    sources = []
    for folder in (_CLOUDS, _MESHES):
        for name in (f"{folder}.zip", f"{folder}.tar"):
            path = members.path(members.place(name)) if name in members else None
            if path is not None:
                content = open_members(path)
                inner = content.under(folder)
                sources.append((f"{folder}/", inner if len(inner) else content))
    return sources


def _table(classes: npt.NDArray[np.str_], models: npt.NDArray[np.str_], members: MemberIndex) -> FactorTable:
    synsets, category = np.unique(classes, return_inverse=True)
    ids, model = np.unique(models, return_inverse=True)
    names = tuple(_CATEGORIES.get(synset, synset) for synset in synsets.tolist())
    factors = [
        Factor("category", Kind.NOMINAL, names),
        Factor("model", Kind.NOMINAL, tuple(ids.tolist()), within="category", role="key"),
    ]
    columns = {"category": category, "model": model}
    keys = np.char.add(np.char.add(classes, "-"), models)
    lists = {split: _read_list(members, f"splits/{split}.txt") for split in _SPLITS if f"splits/{split}.txt" in members}
    if lists:
        factors.append(Factor("split", Kind.NOMINAL, _SPLITS, role="split"))
        columns["split"] = np.full(len(keys), -1)
        for split, listed in lists.items():
            own = np.isin(keys, listed)
            twice = np.flatnonzero(own & (columns["split"] >= 0))
            if len(twice):
                other = _SPLITS[columns["split"][twice[0]]]
                raise DataError(
                    f"{members.source}: {keys[twice[0]]} is in both splits/{other}.txt and splits/{split}.txt; fetch "
                    "both again"
                )
            columns["split"][own] = _SPLITS.index(split)
    if "knife_misaligned.txt" in members:
        listed = _read_list(members, "knife_misaligned.txt", "03624134-")
        factors.append(Factor("misaligned", Kind.NOMINAL, (False, True), role="key"))
        columns["misaligned"] = np.isin(keys, listed).astype(np.int64)
    return FactorTable(factors, columns)


def _read_list(members: MemberIndex, name: str, start: str = "") -> list[str]:
    """Models that a list names, as ``<class>-<model>``; `start` is put before a name that has no class."""
    member = members.place(name)
    lines = text_of(members.read(member, _LARGEST_LIST), members.label(member)).split()
    listed = [line if re.match("[0-9]{8}-", line) else start + line for line in lines]
    for number, line in enumerate(listed):
        if re.fullmatch(r"[0-9]{8}-[^/\\]+", line) is None:
            raise DamagedFile(
                f"{members.label(member)}: entry {number} is {line[:60]!r}; expected <class_id>-<model_id>"
            )
    return listed


def _cloud(members: MemberIndex, member: int) -> Pcd:
    cloud = read_pcd(members.read(member, _LARGEST_CLOUD), members.label(member))
    if len(cloud.records) != _POINTS:
        raise DamagedFile(f"{members.label(member)} has {len(cloud.records):,} points; expected {_POINTS:,}")
    return cloud


def _colors(cloud: Pcd) -> npt.NDArray[np.uint8]:
    return np.full((len(cloud.records), 3), 128, np.uint8) if cloud.colors is None else cloud.colors


def _palette(ids: npt.NDArray[np.int16]) -> npt.NDArray[np.uint8]:
    """Colors that tell semantic ids apart: hues by the golden ratio."""
    colors = [colorsys.hsv_to_rgb(0.618034 * number % 1, 1.0, 1.0 - 0.35 * (number % 2)) for number in ids.tolist()]
    return np.asarray(np.rint(255 * np.array(colors).reshape(-1, 3)).astype(np.uint8))
