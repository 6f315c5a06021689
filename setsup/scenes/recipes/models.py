"""Models by name: meshes, files of them, or functions that give them."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from setsup.errors import DamagedFile, DataError, SetsupError
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import too_long, unreadable
from setsup.files.lfs import refuse_pointer
from setsup.scenes.meshes.asset_names import asset_names
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.meshes.mesh_files import LARGEST_MESH, FileAssets

__all__ = ["Model", "check_models", "identities", "identity", "loaded", "named_models"]

Model = Mesh | str | Path | Callable[[], Any]
"""A mesh, a file of one, or a function that gives a mesh or what trimesh holds."""

_BLOCK = 1 << 20


def named_models(paths: Iterable[str | Path]) -> dict[str, Path]:
    """Name mesh files by what tells them apart."""
    if isinstance(paths, str | Path):
        raise SetsupError(f"mesh files must be a list, such as [{str(paths)!r}], not a single path")
    files = [Path(path) for path in paths]
    parts = [(*path.parent.parts, path.stem) for path in files]
    shortest = min(map(len, parts), default=0)
    first = next((i for i in range(shortest) if len({each[i] for each in parts}) > 1), 0)
    last = next((i for i in range(shortest) if len({each[-1 - i] for each in parts}) > 1), 0)
    ways = ([each[-1:] for each in parts], [each[first : len(each) - last] for each in parts], parts)
    apart = first or shortest - 1  # of what differs in its ending alone, the name says enough
    with_endings = [(*each[apart:-1], path.name) for each, path in zip(parts, files, strict=True)]
    joined = (["/".join(each) for each in way] for way in (*ways, with_endings))
    names = next((way for way in joined if all(way) and len(set(way)) == len(way)), [str(path) for path in files])
    if len(set(names)) < len(names):
        raise SetsupError(f"the mesh file {Counter(names).most_common(1)[0][0]} is listed twice; list it once")
    return dict(zip(names, files, strict=True))


def check_models(models: Any, what: str) -> dict[str, Model]:
    """Check models by name."""
    if not isinstance(models, Mapping) or not models:
        raise SetsupError(f"{what} must map names to meshes, files or functions, not {models!r:.100}")
    for name, model in models.items():
        if not isinstance(name, str) or not (isinstance(model, Mesh | str | Path) or callable(model)):
            raise SetsupError(f"{what}: {name!r} must be a Mesh, a file or a function, not {model!r:.100}")
    return dict(models)


def loaded(model: Model) -> Mesh:
    """Load a model; see :data:`Model`."""
    from setsup.scenes.meshes.importing import load_mesh, mesh_from_trimesh

    if isinstance(model, Mesh):
        return model
    if isinstance(model, str | Path):
        return load_mesh(model)
    mesh = model()
    return mesh if isinstance(mesh, Mesh) else mesh_from_trimesh(mesh)


def identities(models: Mapping[str, Model]) -> bytes:
    """Names and identities of models, as a key digests them; see :func:`identity`."""
    return "".join(f"{name}\0{identity(model)}\0" for name, model in models.items()).encode()


def identity(model: Model, top: Path | str | None = None) -> str:
    """Text that differs between models that look different, without loading those that are files.

    A file counts with its bytes, and with those of the materials and textures that loading it reads, which are found
    and refused alike; a function with its attribute ``key``, else it is called.
    """
    if isinstance(model, str | Path):
        return _files_digest(Path(model), top)
    key = getattr(model, "key", None)
    return key if isinstance(key, str) else loaded(model).digest


def _files_digest(path: Path, top: Path | str | None) -> str:
    """SHA-256 of a mesh file and of the files that it names, and these in turn."""
    assets, digest = FileAssets(path, top), hashlib.sha256()
    waiting, seen = [(path, path.suffix[1:].lower())], {Path(os.path.realpath(path))}
    while waiting:
        file, kind = waiting.pop()
        _add(digest, file)
        try:
            names = asset_names(file, kind)
        except OSError as error:
            raise unreadable(file, error) from error
        for name in names:
            other = assets.find(name)
            if other is not None and other not in seen:
                seen.add(other)
                waiting.append((other, "mtl" if kind == "obj" else ""))
    return digest.hexdigest()


def _add(digest: Any, path: Path) -> None:
    """Add the length of a file and its bytes, block by block."""
    try:
        if not path.is_file():
            raise DataError(f"{shown(str(path))} is not an existing mesh file; check the path")
        refuse_pointer(path)
        with path.open("rb") as file:
            size = left = os.fstat(file.fileno()).st_size
            if size > LARGEST_MESH:
                raise too_long(shown(str(path)), size, LARGEST_MESH)
            digest.update(size.to_bytes(8, "little"))
            while left and (block := file.read(min(left, _BLOCK))):
                digest.update(block)
                left -= len(block)
    except OSError as error:
        raise unreadable(path, error) from error
    if left:
        raise DamagedFile(f"{shown(str(path))} was truncated while it was read", "wait until it is complete")
