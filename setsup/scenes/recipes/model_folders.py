"""Mesh files in a folder and all folders below it, and why others in it are left out."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from setsup.checks import check_path
from setsup.errors import DataError, SetsupError
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import unreadable
from setsup.files.lfs import refuse_pointer
from setsup.scenes.meshes.asset_names import asset_names
from setsup.scenes.meshes.mesh_files import LARGEST_MESH, FileAssets
from setsup.scenes.recipes.models import named_models

__all__ = ["FoundModels", "LeftOut", "find_models", "missing_files"]

_READ = frozenset({".glb", ".gltf", ".obj", ".off", ".ply", ".stl"})
_OTHER = frozenset(
    {".3ds", ".3mf", ".abc", ".blend", ".c4d", ".dae", ".fbx", ".ma", ".max", ".mb", ".usd", ".usda", ".usdc", ".usdz"}
)
"""Endings of meshes that are not searched for: they are listed, so that nothing is missed unnoticed."""

_IGNORED = "__MACOSX"


class LeftOut(NamedTuple):
    """A file or folder that is not among the models, and why."""

    path: Path
    why: str


class FoundModels(NamedTuple):
    """What :func:`find_models` found.

    Attributes
    ----------
    models : dict of str to Path
        Mesh files by name, sorted by path, as :class:`~setsup.scenes.recipes.ObjectView` takes them.
    left_out : list of LeftOut
        Meshes that are not among them, and why. The content of the models was not read: some of them may turn out to be
        broken when they are loaded.

    """

    models: dict[str, Path]
    left_out: list[LeftOut]


def find_models(paths: Iterable[Path | str]) -> FoundModels:
    r"""Search folders, and all folders below them, for mesh files: GLB, glTF, OBJ, OFF, PLY and STL.

    A model is named by its file, without the ending: ``chair``. If files have the same name, all are named by the part
    of their paths in which they differ: ``a/chair``, ``b/chair``, ``b/cup``. Names that start with a dot are skipped.
    Links to files are followed; links to folders are not, and are listed.

    Parameters
    ----------
    paths : iterable of Path or str
        Folders. Files are taken as they are.

    Returns
    -------
    FoundModels

    Raises
    ------
    DataError
        When a path does not exist, a folder cannot be listed, or there is no mesh file.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("red/cup.obj", "blue/cup.obj", "blue/jar.obj", "hat.fbx"):
    ...     (folder / name).parent.mkdir(exist_ok=True)
    ...     _ = (folder / name).write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    >>> found = find_models([folder])
    >>> list(found.models), found.left_out[0].path.name
    (['blue/cup', 'blue/jar', 'red/cup'], 'hat.fbx')

    """
    if isinstance(paths, str | Path):
        raise SetsupError(f"paths must be a list, such as [{str(paths)!r}], not a single path")
    files: list[Path] = []
    left: list[LeftOut] = []
    folders: list[Path] = []
    for path in (check_path(path, "paths", DataError) for path in paths):
        if path.is_dir():
            folders.append(path)
            _search(path, files, left)
        else:
            files.append(path)
    if not files:
        others = f" ({len(left):,} others were left out: {left[0].path}: {left[0].why})" if left else ""
        raise DataError(
            f"{', '.join(shown(str(folder)) for folder in folders) or 'the list'} contains no mesh files that setsup "
            f"reads ({', '.join(sorted(ending[1:] for ending in _READ))}){others}; choose another folder"
        )
    return FoundModels(named_models(files), left)


def missing_files(path: Path, top: Path | None = None) -> list[str]:
    """Names of materials and textures that a mesh file names and that cannot be read, found without loading the mesh.

    The mesh is rendered without them, in the colors of its materials.
    """
    assets, lost = FileAssets(path, top), list[str]()
    kind = path.suffix[1:].lower()
    try:
        waiting = _alternatives(asset_names(path, kind), kind, assets)
        while waiting:
            name, kind = waiting.pop(0)
            file = assets.find(name)
            if file is None:
                lost.append(name)
            elif kind == "obj":
                waiting += _alternatives(asset_names(file, "mtl"), "mtl", assets)
    except (DataError, OSError):
        pass  # loading it says why
    return list(dict.fromkeys(lost))


def _alternatives(names: list[str], kind: str, assets: FileAssets) -> list[tuple[str, str]]:
    """Names, and of what kind their file is; of an OBJ file, whose lines may be one name or several, those that exist.

    A name that does not exist is kept where no other does.
    """
    if kind == "obj":
        there = [name for name in names if assets.find(name) is not None]
        names = there or names[:1]
    return [(name, kind) for name in names]


def _search(folder: Path, files: list[Path], left: list[LeftOut]) -> None:
    """Add the mesh files below a folder, and those that are left out, both sorted."""

    def failed(error: OSError) -> None:
        place = Path(os.fsdecode(error.filename or folder))
        if place == folder:
            raise unreadable(place, error) from error
        left.append(LeftOut(place, f"cannot be searched ({error.strerror})"))

    for place, below, names in os.walk(folder, onerror=failed):
        kept = sorted(name for name in below if not name.startswith(".") and name != _IGNORED)
        linked = [name for name in kept if os.path.islink(os.path.join(place, name))]
        below[:] = [name for name in kept if name not in linked]
        left += [
            LeftOut(Path(place, name), "a link to a folder, which is not followed; list that folder, too")
            for name in linked
        ]
        for name in sorted(names):
            ending = os.path.splitext(name)[1].lower()
            if name.startswith(".") or ending not in _READ | _OTHER:
                continue
            path = Path(place, name)
            why = _refusal(path, ending)
            if why is None:
                files.append(path)
            else:
                left.append(LeftOut(path, why))


def _refusal(path: Path, ending: str) -> str | None:
    """Why a file is left out, as far as can be said without reading it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8; rename the file"
    if ending in _OTHER:
        return f"{ending[1:]} files are not read; convert it to .glb"
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            return "not a regular file"
        if not about.st_size:
            return "an empty file"
        if about.st_size > LARGEST_MESH:
            return f"larger than {LARGEST_MESH >> 30} GiB"
        if not os.access(path, os.R_OK):
            return "no permission to read it"
        refuse_pointer(path)
    except FileNotFoundError:
        return "a broken link"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except DataError:
        return "a Git LFS pointer; run `git lfs pull` in its repository"
    return None
