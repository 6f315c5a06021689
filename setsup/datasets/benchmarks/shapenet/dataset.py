"""ShapeNetCore: models of everyday objects with materials and voxels, versions 1 and 2, from trees or zips."""

import posixpath
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setsup.datasets.adapters import meshes
from setsup.datasets.adapters.fetching import read_distinct
from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.benchmarks.shapenet.files import Models, find_models, published_splits
from setsup.datasets.benchmarks.shapenet.synsets import category_names
from setsup.datasets.dataset import Modality, fetch_request, of_row
from setsup.datasets.formats.geometry.binvox import Binvox, read_binvox
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable, Kind

__all__ = ["ShapeNet", "open"]

_LARGEST_VOXELS, _LARGEST_TAXONOMY = 1 << 27, 1 << 26
_VOXELS: dict[str, Literal["solid", "surface"]] = {"voxels_solid": "solid", "voxels_surface": "surface"}


class ShapeNet(BaseDataset):
    """Models of ShapeNetCore; the rows are models, sorted by synset and id.

    Factors are ``category`` (first name in ``taxonomy.json``, else the widely known name, else the synset), ``synset``
    (key), ``model`` (key, within the category), and ``split`` if ``all.csv`` is next to the categories (unknown for
    unlisted models). Modalities:

    - ``preview`` (128, 128, 3) uint8, an image of the mesh in the colors of its materials; see
      :mod:`setsup.datasets.adapters.preview`.
    - ``voxels_solid`` and ``voxels_surface`` (D, D, D) bool, indexed [x, y, z], if any model has such a file.

    Parameters
    ----------
    models : Models
        Where the files are.

    Attributes
    ----------
    version : str
        ``"v1"`` or ``"v2"``, determined by the layout of the tree. Meshes of the same id differ in position and scale
        between versions.

    Raises
    ------
    DataError
        The taxonomy, the list of splits or the first voxel file is damaged.

    Notes
    -----
    Frame: +y up, −z front. Version 2: bounding box of diagonal 1, mean vertex near the origin.

    """

    name = "shapenet"
    cpu_bound = True

    def __init__(self, models: Models) -> None:
        self.models = models
        self.version = models.version
        self.factors = _table(models)
        self.modalities = {"preview": Modality((128, 128, 3), "uint8", color="srgb")}
        for name, kind in _VOXELS.items():
            there = np.flatnonzero(getattr(models, kind) >= 0)
            if len(there):
                self.modalities[name] = Modality(self.voxels(int(there[0]), kind).voxels.shape, "bool")

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        def put(row: int, slot: int) -> None:
            out[slot] = self._array(name, row)

        read_distinct(rows, [out], np.ndarray.tolist, put)
        return out

    @of_row
    def mesh(self, row: int) -> Any:
        """Load a model's mesh with trimesh (the extra ``meshes``), also from an archive.

        Parameters
        ----------
        row : int
            Row number.

        Returns
        -------
        trimesh.Scene
            One geometry per material, with its texture. ``metadata["missing"]`` lists materials and textures that could
            not be read, such as those with absolute paths; they are logged too.

        Raises
        ------
        DataError
            When trimesh is missing, or the OBJ file is damaged.

        """
        members, member = self._file(self._row(row), "obj")
        folder = posixpath.dirname(str(members.names[member]))
        return meshes.load_obj(members, member, posixpath.dirname(folder) if self.version == "v2" else folder)

    @of_row
    def voxels(self, row: int, kind: Literal["solid", "surface"] = "solid") -> Binvox:
        """Read a model's voxels with their position in the frame of the mesh.

        Parameters
        ----------
        row : int
            Row number.
        kind : str
            ``"solid"`` (filled) or ``"surface"``.

        Raises
        ------
        DataError
            The model has no such file, or it is damaged.

        """
        if kind not in _VOXELS.values():
            raise DataError(f"kind of voxels must be 'solid' or 'surface', not {kind!r}")
        members, member = self._file(self._row(row), kind)
        return read_binvox(members.read(member, _LARGEST_VOXELS), members.label(member))

    def __repr__(self) -> str:
        """Show where the files are and the number of rows."""
        return f"ShapeNet({str(self.models.release.source)!r}, {self.version}, {len(self):,} rows)"

    def _row(self, row: int) -> int:
        return int(fetch_request(self, row, ())[0])

    def _file(self, row: int, kind: str) -> tuple[Any, int]:
        member = int(getattr(self.models, kind)[row])
        if member < 0:
            model = f"{self.models.synsets[row]}/{self.models.ids[row]}"
            raise DataError(
                f"{self.models.release.source}: {model} (row {row}) has no {kind} voxels; select rows that have "
                "them, or fetch other modalities"
            )
        return self.models.release, member

    def _array(self, name: str, row: int) -> Array:
        if name == "preview":
            return meshes.preview_scene(self.mesh(row))
        voxels, expected = self.voxels(row, _VOXELS[name]).voxels, self.modalities[name].shape
        if voxels.shape != expected:
            members, member = self._file(row, _VOXELS[name])
            raise DamagedFile(
                f"{members.label(member)} has voxels of shape {voxels.shape}; expected {expected}, as in the other "
                "files"
            )
        return voxels


def open(root: Path | str | None = None) -> ShapeNet:
    """Open ShapeNetCore.

    Parameters
    ----------
    root : Path, str or None
        Folder with the categories (``03001627/…``), unpacked or one zip each (``03001627.zip``), or with a subfolder
        ``shapenet`` that contains them; or one zip of all. None for the default folders.

    Raises
    ------
    DataError
        When no model exists, versions are mixed, or a list is damaged.

    """
    return ShapeNet(find_models(root))


def _table(models: Models) -> FactorTable:
    import pyarrow.compute as pc

    release = models.release
    synsets, ids = (pc.dictionary_encode(column) for column in (models.synsets, models.ids))
    levels = synsets.dictionary.to_pylist()
    taxonomy = release.place("taxonomy.json") if "taxonomy.json" in release else None
    content = None if taxonomy is None else release.read(taxonomy, _LARGEST_TAXONOMY)
    names = category_names(levels, content, "" if taxonomy is None else release.label(taxonomy))
    factors = [
        Factor("category", Kind.NOMINAL, names),
        Factor("synset", Kind.NOMINAL, tuple(levels), role="key"),
        Factor("model", Kind.NOMINAL, tuple(ids.dictionary.to_pylist()), within="category", role="key"),
    ]
    synset = np.asarray(synsets.indices)
    columns = {"category": synset, "synset": synset, "model": np.asarray(ids.indices)}
    splits = published_splits(models)
    if splits is not None:
        factors.append(Factor("split", Kind.NOMINAL, ("train", "val", "test"), role="split"))
        columns["split"] = splits
    return FactorTable(factors, columns)
