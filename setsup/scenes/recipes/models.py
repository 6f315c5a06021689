"""Models by name: meshes, files of them, or functions that give them."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from setsup.errors import DataError, SetsupError
from setsup.files.names import shown
from setsup.scenes.mesh import Mesh

__all__ = ["Model", "checked_models", "identities", "identity", "loaded", "named_models"]

Model = Mesh | str | Path | Callable[[], Any]
"""A mesh, a file of one, or a function that gives a mesh or what trimesh holds."""

_URI = re.compile(rb'"uri"\s*:\s*"([^"]{1,1000})"')
_NAMING = {
    ".obj": re.compile(rb"(?m)^[ \t]*mtllib[ \t]+([^\r\n]{1,1000})"),
    ".mtl": re.compile(rb"(?im)^[ \t]*(?:map_\w+|bump|disp|decal|refl|norm)[ \t]+([^\r\n]{1,1000})"),
    ".ply": re.compile(rb"(?i)texturefile[ \t]+([^\r\n]{1,1000})"),
    ".gltf": _URI,
    ".glb": _URI,
}


def named_models(paths: Iterable[str | Path]) -> dict[str, Path]:
    """Name mesh files by what tells them apart.

    Parameters
    ----------
    paths : iterable of str or Path
        Files.

    Returns
    -------
    dict of str to Path
        In the given order. Names are the files' without their endings, where these differ; else those parts of the
        paths that are not the same in all.

    Raises
    ------
    SetsupError
        When a file is given twice, or a single path is given.

    Examples
    --------
    >>> list(named_models(["cow.obj", "meshes/bunny.ply"]))
    ['cow', 'bunny']
    >>> list(named_models(["chair/1a/models/model.obj", "chair/2b/models/model.obj"]))
    ['1a', '2b']

    """
    if isinstance(paths, str | Path):
        raise SetsupError(f"give the mesh files as a list: [{str(paths)!r}]")
    files = [Path(path) for path in paths]
    parts = [(*path.parent.parts, path.stem) for path in files]
    shortest = min(map(len, parts), default=0)
    first = next((i for i in range(shortest) if len({each[i] for each in parts}) > 1), 0)
    last = next((i for i in range(shortest) if len({each[-1 - i] for each in parts}) > 1), 0)
    ways = ([each[-1:] for each in parts], [each[first : len(each) - last] for each in parts], parts)
    joined = (["/".join(each) for each in way] for way in ways)
    names = next((way for way in joined if all(way) and len(set(way)) == len(way)), [str(path) for path in files])
    if len(set(names)) < len(names):
        raise SetsupError(f"the mesh file {Counter(names).most_common(1)[0][0]} is given twice")
    return dict(zip(names, files, strict=True))


def checked_models(models: Any, what: str) -> dict[str, Model]:
    """Check models by name.

    Parameters
    ----------
    models : mapping of str to Model
        To be checked.
    what : str
        What messages call them.

    Raises
    ------
    SetsupError
        When there are none, or one is nothing that could give a mesh.

    """
    if not isinstance(models, Mapping) or not models:
        raise SetsupError(f"{what} must map names to meshes, files or functions, not {models!r:.100}")
    for name, model in models.items():
        if not isinstance(name, str) or not (isinstance(model, Mesh | str | Path) or callable(model)):
            raise SetsupError(f"{what}: {name!r} must be a Mesh, a file or a function, not {model!r:.100}")
    return dict(models)


def loaded(model: Model) -> Mesh:
    """Load a model; see :data:`Model`.

    Raises
    ------
    SetsupError
        When it cannot be loaded, or is no mesh.

    """
    from setsup.scenes.importing import load_mesh, mesh_from_trimesh

    if isinstance(model, Mesh):
        return model
    if isinstance(model, str | Path):
        return load_mesh(model)
    found = model()
    return found if isinstance(found, Mesh) else mesh_from_trimesh(found)


def identities(models: Mapping[str, Model]) -> bytes:
    """Names and identities of models, as a key digests them; see :func:`identity`."""
    return "".join(f"{name}\0{identity(model)}\0" for name, model in models.items()).encode()


def identity(model: Model) -> str:
    """Text that differs between models that look different, without loading those that are files.

    A file counts with its bytes, and with those of the materials and textures that it names; a function with its
    attribute ``key``, else it is called.

    Raises
    ------
    DataError
        When a file cannot be read.

    """
    if isinstance(model, str | Path):
        return _files_digest(Path(model))
    key = getattr(model, "key", None)
    return key if isinstance(key, str) else loaded(model).digest


def _files_digest(path: Path) -> str:
    """SHA-256 of a mesh file and of the files beside it that it names, and these in turn."""
    found, waiting, seen = hashlib.sha256(), [path], {path}
    while waiting:
        file = waiting.pop()
        try:
            content = file.read_bytes()
        except OSError as error:
            raise DataError(f"the mesh file {shown(str(file))} cannot be read: {error.strerror}") from error
        found.update(len(content).to_bytes(8, "little") + content)
        for other in _named_in(content, file):
            if other not in seen and _is_file(other):
                seen.add(other)
                waiting.append(other)
    return found.hexdigest()


def _named_in(content: bytes, file: Path) -> list[Path]:
    """Paths of the files that an OBJ, MTL, PLY or glTF file names."""
    pattern = _NAMING.get(file.suffix.lower())
    if file.suffix.lower() == ".ply":
        content = content.partition(b"end_header")[0]
    names = [] if pattern is None else [match.decode(errors="replace").strip() for match in pattern.findall(content)]
    # options may stand before a name, and names may have spaces: whichever ending of the line is a file; either slash
    # separates, and a space may stand there as %20, as load_mesh has it
    plain = [name.replace("\\", "/") for name in names]
    endings = [name[word.start() :] for name in plain for word in re.finditer(r"\S+", name)]
    return [file.parent / one for ending in endings for one in dict.fromkeys((ending, unquote(ending)))]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long
        return False
