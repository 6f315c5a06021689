"""Scenes in files: one file a scene, the same bytes for the same scene, and nothing in it that could run.

A file is a line ``setsup scene 1``, a line of JSON, and arrays in the order in which the JSON lists them, each little-
endian and beginning at a multiple of 64 bytes. Meshes, materials and arrays stand there once, however often they are
placed. The digest of the scene stands there, too: what was damaged does not have it any more.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_arguments
from setsup.errors import DamagedFile, DataError
from setsup.files.archives.names import shown
from setsup.files.archives.plain_files import read_file
from setsup.files.atomic import written
from setsup.scenes.meshes.mesh import Material, Mesh
from setsup.scenes.scene import Ambient, Directional, Lamp, Placement, Scene

__all__ = ["load_scene", "save_scene"]


_MAGIC, _VERSION = b"setsup scene ", 1
_LONGEST_FIRST_LINE = 64
_STEP = 64  # bytes: arrays begin at multiples
_DTYPES = ("<f8", "<f4", "<i4", "<u2", "|u1")
_LIGHTS = {kind.__name__: kind for kind in (Ambient, Directional, Lamp)}
_ARRAYS = ("vertices", "faces", "normals", "uv", "colors", "material")
_FIX = "save the scene again"


def save_scene(scene: Scene, path: Path | str) -> None:
    """Write a scene to a file; a reader sees the whole of it or nothing.

    Parameters
    ----------
    scene : Scene
        The scene.
    path : Path or str
        The file; its folder is made where it is missing, an older file is replaced.

    Raises
    ------
    DataError
        When the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from setsup.scenes.meshes.primitives import box
    >>> scene = Scene((Placement(box(), name="box"), Placement(box(), translation=(0, 0, 2))))
    >>> file = Path(tempfile.mkdtemp()) / "boxes.scene"
    >>> save_scene(scene, file)
    >>> again = load_scene(file)
    >>> again.digest == scene.digest, again.placements[0].mesh is again.placements[1].mesh
    (True, True)

    """
    if not str(path):
        raise DataError("the path to save the scene to is empty; pass a file name")
    check_arguments(save_scene, locals(), DataError)
    arrays: dict[str, tuple[int, Array]] = {}  # by digest of their content

    def stored(array: Array | None) -> int | None:
        if array is None:
            return None
        plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        key = f"{plain.dtype.str}{plain.shape}{hashlib.sha256(plain.data).hexdigest()}"
        return arrays.setdefault(key, (len(arrays), plain))[0]

    meshes = {placement.mesh.digest: placement.mesh for placement in scene.placements}
    materials = {material.digest: material for mesh in meshes.values() for material in mesh.materials}
    mesh_numbers = {digest: number for number, digest in enumerate(meshes)}
    material_numbers = {digest: number for number, digest in enumerate(materials)}
    content = {
        "background": scene.background,
        "digest": scene.digest,
        "lights": [
            [type(light).__name__, [getattr(light, field.name) for field in fields(light)]] for light in scene.lights
        ],
        "materials": [
            [material.color, stored(material.texture), *_told_more(material, stored)] for material in materials.values()
        ],
        "meshes": [
            {
                **{name: stored(getattr(mesh, name)) for name in _ARRAYS},
                "materials": [material_numbers[material.digest] for material in mesh.materials],
            }
            for mesh in meshes.values()
        ],
        "placements": [
            {
                "instance": placement.instance,
                "mesh": mesh_numbers[placement.mesh.digest],
                "name": placement.name,
                "rotation": placement.rotation.tolist(),
                "scale": placement.scale.tolist(),
                "translation": placement.translation.tolist(),
            }
            for placement in scene.placements
        ],
    }
    content["arrays"] = [[array.dtype.str, array.shape] for _, array in arrays.values()]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    with written(path) as part, part.open("wb") as file:
        file.write(_MAGIC + b"%d\n" % _VERSION + text.encode("ascii") + b"\n")
        for _, array in arrays.values():
            file.write(bytes(-file.tell() % _STEP))
            file.write(array.data)


def _told_more(material: Material, stored: Callable[[Array | None], int | None]) -> list[Any]:
    """Mask and wrap of a material, where it has any."""
    mask = None if material.mask is None else stored(material.mask.view(np.uint8))
    if material.wrap != Material().wrap:
        return [mask, material.wrap]
    return [] if mask is None else [mask]


def load_scene(path: Path | str) -> Scene:
    """Read a scene that :func:`save_scene` wrote.

    Parameters
    ----------
    path : Path or str
        The file.

    Returns
    -------
    Scene
        Of the digest that the saved scene had; placements share meshes as they did.

    Raises
    ------
    DataError
        When the file is missing, no scene, damaged, or written by a newer setsup.

    """
    check_arguments(load_scene, locals(), DataError)
    label = shown(str(path))
    if not Path(path).is_file():
        raise DataError(f"the scene file {label} does not exist; check the path")
    content = read_file(os.fsencode(path), None)
    first = content[:_LONGEST_FIRST_LINE].partition(b"\n")[0]
    version = first.removeprefix(_MAGIC)
    if not first.startswith(_MAGIC) or not version.isdigit() or len(first) == _LONGEST_FIRST_LINE:
        raise DamagedFile(f"{label} is not a scene file of setsup", _FIX)
    if int(version) != _VERSION:
        raise DataError(
            f"{label} is a scene of version {int(version)}, but this version of setsup reads {_VERSION}; update setsup"
        )
    try:
        end = content.index(b"\n", len(first) + 1)
        told = json.loads(content[len(first) + 1 : end])
        scene = _scene(told, _arrays(content, end + 1, told["arrays"]))
        sound = scene.digest == told["digest"]
    except Exception as error:
        # whatever a changed number leads to: it is not what was written
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise DamagedFile(f"{label} is damaged ({why})", _FIX) from error
    if not sound:
        raise DamagedFile(f"{label} is damaged: the digest of its content does not match", _FIX)
    return scene


def _arrays(content: bytes, start: int, told: list[Any]) -> list[Array]:
    """Arrays of a file, which they map; none is larger than what there is."""
    arrays: list[Array] = []
    for dtype, shape in told:
        start += -start % _STEP
        if dtype not in _DTYPES or not all(isinstance(side, int) and side >= 0 for side in shape):
            raise DataError(f"an array has the invalid dtype or shape {dtype!r:.20} {shape!r:.40}")
        count = math.prod(shape)
        if count * np.dtype(dtype).itemsize > len(content) - start:
            raise DataError(f"it ends before the end of array {len(arrays)}")
        # of no element numpy makes no array of a buffer
        array = np.frombuffer(content, dtype, count, start) if count else np.empty(0, dtype)
        arrays.append(array.reshape(shape))
        start += array.nbytes
    if start != len(content):
        raise DataError(f"it contains {len(content) - start:,} bytes after its arrays")
    return arrays


def _scene(told: dict[str, Any], arrays: list[Array]) -> Scene:
    def array(number: int | None) -> Any:
        return None if number is None else arrays[number]

    materials = [
        Material(
            tuple(color),
            array(texture),
            None if not more or more[0] is None else array(more[0]).astype(bool),
            *(tuple(wrap) for wrap in more[1:]),
        )
        for color, texture, *more in told["materials"]
    ]
    meshes = [
        Mesh(
            **{name: array(mesh[name]) for name in _ARRAYS},
            materials=tuple(materials[number] for number in mesh["materials"]),
        )
        for mesh in told["meshes"]
    ]
    names = ("rotation", "translation", "scale", "instance", "name")
    placements = [
        Placement(meshes[placement["mesh"]], **{name: placement[name] for name in names})
        for placement in told["placements"]
    ]
    lights = [_LIGHTS[kind](*values) for kind, values in told["lights"]]
    return Scene(tuple(placements), tuple(lights), told["background"])
