"""SceneNN: the labelled objects of scanned rooms, from each scene's annotation and mesh.

Convention
----------
Positions are in metres in the frame of the scene's mesh, whose y points up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from setsup.datasets.adapters.meshes import need_trimesh
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.scenenn.objects import SceneObject, read_objects
from setsup.datasets.benchmarks.scenenn.previews import IMAGE, read_mesh, scene_previews
from setsup.datasets.benchmarks.scenenn.splits import online3d
from setsup.datasets.dataset import Modality, fetch_request, of_row
from setsup.datasets.images import parallel
from setsup.datasets.per_process import per_process
from setsup.errors import DataError, did_you_mean
from setsup.factors import Factor, FactorTable, Kind
from setsup.files import cache_folder
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.disk import make_folder
from setsup.scenes.meshes.formats.ply import Ply

__all__ = ["SceneNN", "open", "prepare"]

_MOST_BYTES = 1 << 24  # of an annotation
_NONE = "unknown"


@dataclass(slots=True)
class _Held:
    """What one process holds: previews of the scenes that it has looked at, and the last mesh that was asked for."""

    lock: Lock = field(default_factory=Lock)
    previews: dict[int, Array] = field(default_factory=dict)
    scene: int = -1
    mesh: Ply | None = None


class SceneNN(BaseDataset):
    """Labelled objects of scanned rooms; one row per object, by scene and in the order of its annotation.

    Factors are ``scene``, ``instance`` (a key: the object's id in its scene, which is also the label of its vertices),
    ``label`` (the annotators' text with collapsed spaces) and ``nyu_class`` (unknown if the release has none, or
    "unknown"); ``online3d`` is a split. Objects without a label are left out.

    Modalities are ``aabb``, the minimum and maximum corners of the axis-aligned box, (2, 3) float32, m; ``obb``, the
    oriented box, (10,) float32: centre and size (m), quaternion x y z w; both NaN if the box is missing or empty; and
    ``preview``, (128, 128, 3) uint8, the object's own vertices seen from above. Oriented boxes come from an
    eigendecomposition, and are unreliable for objects that are nearly cubes.

    Parameters
    ----------
    members : MemberIndex
        The files of the release.

    Raises
    ------
    DataError
        When no object is labelled, or an annotation is damaged.

    """

    name = "scenenn"
    cpu_bound = True

    def __init__(self, members: MemberIndex) -> None:
        places, groups = members.matching(r"(?P<scene>[0-9]{3})/(?P<file>[0-9]{3})\.xml")
        named = zip(groups["scene"].to_pylist(), groups["file"].to_pylist(), places.tolist(), strict=True)
        annotations = [(scene, member) for scene, file, member in named if scene == file]
        contents = parallel(lambda item: (members.read(item[1], _MOST_BYTES), members.label(item[1])), annotations)
        objects = [read_objects(*content) for content in contents]
        if not any(objects):
            raise DataError(
                f"{members.source} has {len(objects)} annotated scenes, but none contains an object with a label; "
                "fetch the annotations again"
            )
        self._members, self._source = members, members.source
        self._scenes = [scene for (scene, _), scene_objects in zip(annotations, objects, strict=True) if scene_objects]
        by_scene = [scene_objects for scene_objects in objects if scene_objects]
        rows = [scene_object for objects in by_scene for scene_object in objects]
        self._bounds = np.cumsum([0, *map(len, by_scene)])
        self._ids = np.array([scene_object.id for scene_object in rows], np.int64)
        self._boxes = {
            "aabb": np.array([scene_object.aabb for scene_object in rows], np.float32).reshape(-1, 2, 3),
            "obb": np.array([scene_object.obb for scene_object in rows], np.float32),
        }
        self.factors = _table(self._scenes, np.repeat(np.arange(len(by_scene)), np.diff(self._bounds)), rows)
        self.modalities = {
            "aabb": Modality((2, 3), "float32", unit="m"),
            "obb": Modality((10,), "float32"),
            "preview": Modality(IMAGE, "uint8", color="srgb"),
        }

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        return self._previews(rows, out) if name == "preview" else self._boxes[name][rows]

    def scene_mesh(self, scene: str) -> Any:
        """Read the mesh of a scene.

        Parameters
        ----------
        scene : str
            Level of the factor ``scene``, such as ``"005"``.

        Returns
        -------
        trimesh.Trimesh
            Vertices in metres, in the order of the file, with colors if available; ``vertex_attributes["label"]`` is
            the object id of each vertex, 0 or another number for none.

        Raises
        ------
        DataError
            When the scene does not exist, its mesh is missing or damaged, or trimesh is not installed.

        """
        if scene not in self._scenes:
            raise DataError(f"{self.name} has no scene {scene!r}{did_you_mean(scene, self._scenes)}")
        return _trimesh(self._mesh(self._scenes.index(scene)))

    @of_row
    def mesh(self, row: int) -> Any:
        """Read the mesh of an object: its vertices, and the triangles between them.

        The mesh of the last scene is kept in memory, so it is fastest to read the objects of a scene one after the
        other.

        Parameters
        ----------
        row : int
            Row number.

        Returns
        -------
        trimesh.Trimesh
            As :meth:`scene_mesh`; without vertices if the mesh has none for this object.

        Raises
        ------
        DataError
            As :meth:`scene_mesh`.
        RowError
            The row number is out of range.

        """
        index, _ = fetch_request(self, row, ())
        mesh = self._mesh(int(self.factors.codes("scene", index)))
        own = np.flatnonzero(mesh.vertices["label"] == self._ids[index])
        renumbered = np.full(len(mesh.vertices), -1, np.int32)
        renumbered[own] = np.arange(len(own), dtype=np.int32)
        faces = renumbered[mesh.faces]
        return _trimesh(Ply(mesh.vertices[own], faces[(faces >= 0).all(axis=1)]))

    def prepare(self) -> list[Path]:
        """Draw the previews of all scenes into the cache; see :func:`prepare`."""
        from setsup.progress import progress

        make_folder(cache_folder() / "prepared")  # where that cannot be, nothing is drawn in vain
        files = []
        with progress(len(self._scenes), f"preparing {self.name}", "scenes") as advance:
            for scene in range(len(self._scenes)):
                files.append(_mapped_file(self._scene(scene)))
                advance(1)
        return files

    def _previews(self, rows: Rows, out: Array) -> Array:
        scenes = self.factors.codes("scene", rows)
        for scene in np.unique(scenes).tolist():
            chosen = scenes == scene
            own = rows[chosen] - self._bounds[scene]
            drawn = self._scene(scene)
            empty = drawn["vertices"][own] == 0
            if empty.any():
                row = int(rows[chosen][np.argmax(empty)])
                raise DataError(
                    f"{self._members.source}: the mesh of scene {self._scenes[scene]} has no vertices for object "
                    f"{self._ids[row]} ({self.factors.values('label', row)}, row {row}), so it has no preview; "
                    f"exclude it with where=\"scene != '{self._scenes[scene]}' or instance != "
                    f'{self._ids[row]}"'
                )
            out[chosen] = drawn["picture"][own]
        return out

    def _scene(self, scene: int) -> Array:
        held = self._held
        with held.lock:  # one mesh at a time is enough to hold
            if scene not in held.previews:
                ids = self._ids[self._bounds[scene] : self._bounds[scene + 1]].tolist()
                held.previews[scene] = scene_previews(self._members, self._place(scene), ids)
        return held.previews[scene]

    def _mesh(self, scene: int) -> Ply:
        held = self._held
        with held.lock:
            if held.mesh is None or held.scene != scene:
                held.mesh = None  # let go of before the next one is read
                held.mesh, held.scene = read_mesh(self._members, self._place(scene)), scene
            return held.mesh

    @per_process
    def _held(self) -> "_Held":
        return _Held()

    def _place(self, scene: int) -> int:
        name = self._scenes[scene]
        mesh, annotation = f"{name}/{name}.ply", f"{name}/{name}.xml"
        if mesh not in self._members:
            folder = self._members.label(self._members.place(annotation)).removesuffix(f"{name}.xml")
            raise DataError(
                f"{folder[:-1]} has {name}.xml but no {name}.ply; fetch the mesh again, or exclude the scene "
                f"(where=\"scene != '{name}'\")"
            )
        return self._members.place(mesh)


def open(root: Path | str | None = None) -> SceneNN:
    """Open the annotated scenes of SceneNN.

    Parameters
    ----------
    root : Path, str or None
        Folder with ``005/005.xml``, ``005/005.ply`` and so on, or with a subfolder ``scenenn`` that contains them, or a
        zip or tar; None for the default folders. Any subset of scenes is accepted. Mesh files are required only for
        previews and meshes.

    Raises
    ------
    DataError
        When the files are missing, an annotation is damaged, or no object is labelled.

    """
    holds = {r"[0-9][0-9][0-9]/[0-9][0-9][0-9]\.xml": "<scene>/<scene>.xml (such as 005/005.xml)"}
    return SceneNN(find_members("scenenn", root, holds))


def prepare(root: Path | str | None = None) -> list[Path]:
    """Render the previews of all objects into the cache folder, so no mesh is read for them later.

    Processes one scene, and keeps one mesh in memory, at a time; an interrupted run resumes with the next scene.

    Parameters
    ----------
    root : Path, str or None
        As for :func:`open`.

    Returns
    -------
    list of Path
        A file of previews for each scene.

    Raises
    ------
    DataError
        As for :func:`open`; a mesh is missing or damaged; the disk is full or the cache cannot be written.

    """
    return open(root).prepare()


def _mapped_file(drawn: Array) -> Path:
    """File that an array of the cache is mapped from."""
    if not isinstance(drawn.base, np.memmap) or drawn.base.filename is None:
        raise DataError(
            f"scenenn: the previews could not be saved, because {cache_folder()} is not writable; set SETSUP_CACHE to "
            "a writable folder, and open the dataset again"
        )
    return Path(drawn.base.filename)


def _table(scenes: Sequence[str], codes: Array, objects: Sequence[SceneObject]) -> FactorTable:
    ids, id_codes = np.unique([scene_object.id for scene_object in objects], return_inverse=True)
    labels, label_codes = np.unique([scene_object.label for scene_object in objects], return_inverse=True)
    classes = sorted({scene_object.nyu_class for scene_object in objects} - {"", _NONE}) or [_NONE]
    class_codes = {name: code for code, name in enumerate(classes) if name != _NONE}
    split, parts = online3d(scenes, codes)
    return FactorTable(
        [
            Factor("scene", Kind.NOMINAL, tuple(scenes)),
            Factor("instance", Kind.NOMINAL, tuple(ids.tolist()), within="scene", role="key"),
            Factor("label", Kind.NOMINAL, tuple(labels.tolist())),
            Factor("nyu_class", Kind.NOMINAL, tuple(classes)),
            split,
        ],
        {
            "scene": codes,
            "instance": id_codes,
            "label": label_codes,
            "nyu_class": np.array([class_codes.get(scene_object.nyu_class, -1) for scene_object in objects], np.int64),
            split.name: parts,
        },
    )


def _trimesh(mesh: Ply) -> Any:
    return need_trimesh().Trimesh(
        mesh.points,
        mesh.faces,
        vertex_colors=mesh.colors,
        vertex_attributes={"label": mesh.vertices["label"]},
        process=False,
    )
