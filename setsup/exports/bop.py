"""BOP's files: cameras, poses and models in millimetres.

Cameras are x right, y down, z forward, and centres of pixels are integers, as here.

References
----------
.. [1] T. Hodaň et al., "BOP: Benchmark for 6D Object Pose Estimation", ECCV 2018, and its code,
   github.com/thodan/bop_toolkit: ``docs/bop_datasets_format.md``, ``scripts/calc_gt_info.py`` and
   ``bop_toolkit_lib/misc.py``, whose boxes end at the last pixel: a box of one pixel has width and height 0.

"""

from dataclasses import replace
from typing import Any

import numpy as np

from setsup.arrays import Array, Bools, Floats, Reals
from setsup.exports.coco import box_of
from setsup.scenes.camera import Camera
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.recipes.models import Model
from setsup.scenes.recipes.object import ObjectView

__all__ = ["camera_entry", "encode_ply", "info_entry", "model_entry", "object_entry", "object_model"]

_MM = 1000.0
_NONE = [-1, -1, -1, -1]


def object_model(model: Model) -> Mesh:
    """Give a mesh the size in which the recipes ``object`` and ``object-frames`` show it: its longest side is 2 metres.

    Parameters
    ----------
    model : Mesh, file or function
        As the recipe takes it.

    Returns
    -------
    Mesh
        In metres, in the frame of the modality ``object_poses``.

    Raises
    ------
    SetsupError
        When the model cannot be loaded, or has no extent.

    Examples
    --------
    >>> object_model(Mesh([[0, 0, 0], [4, 0, 0], [0, 0, 1]], [[0, 1, 2]])).bounds.tolist()
    [[0.0, 0.0, 0.0], [2.0, 0.0, 0.5]]

    """
    [placement] = ObjectView({"model": model}).scene({"model": "model"}).placements
    return replace(placement.mesh, vertices=placement.mesh.vertices * placement.scale)


def camera_entry(camera: Camera, depth_scale: float) -> dict[str, Any]:
    """Entry of ``scene_camera.json``; `depth_scale` millimetres are a step of the depth image."""
    return {
        "cam_K": camera.k.ravel().tolist(),
        "depth_scale": depth_scale,
        "cam_R_w2c": camera.rotation.ravel().tolist(),
        "cam_t_w2c": (_MM * camera.translation).tolist(),
    }


def object_entry(number: int, pose: Reals) -> dict[str, Any]:
    """Entry of ``scene_gt.json``; `pose` (4, 4) is from the model to the camera, in metres."""
    return {
        "obj_id": number,
        "cam_R_m2c": pose[:3, :3].ravel().tolist(),
        "cam_t_m2c": (_MM * pose[:3, 3]).tolist(),
    }


def info_entry(visible: Bools, whole: Bools, depth: Floats) -> dict[str, Any]:
    """Entry of ``scene_gt_info.json``, from masks (h, w) of what is seen and of the whole object in the image."""
    count, seen = int(whole.sum()), int(visible.sum())
    return {
        "px_count_all": count,
        "px_count_valid": int((depth[whole] > 0).sum()),
        "px_count_visib": seen,
        "visib_fract": seen / count if count else 0.0,
        "bbox_obj": _box(whole) if seen else list(_NONE),
        "bbox_visib": _box(visible) if seen else list(_NONE),
    }


def _box(mask: Bools) -> list[int]:
    x, y, width, height = box_of(mask)
    return [x, y, width - 1, height - 1]


def model_entry(vertices: Reals) -> dict[str, float]:
    """Entry of ``models_info.json``, of positions (n, 3) in metres."""
    low, size = _MM * vertices.min(axis=0), _MM * np.ptp(vertices, axis=0)
    lows = {f"min_{axis}": float(value) for axis, value in zip("xyz", low, strict=True)}
    sizes = {f"size_{axis}": float(value) for axis, value in zip("xyz", size, strict=True)}
    return {"diameter": _MM * _diameter(vertices), **lows, **sizes}


def _diameter(points: Reals) -> float:
    """Largest distance of two points."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        points = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # in a plane, or fewer than four
        points = np.unique(points, axis=0)
    step = max(1, (1 << 22) // len(points))
    blocks = [points[start : start + step] for start in range(0, len(points), step)]
    return float(max(np.sqrt(((block[:, None] - points) ** 2).sum(axis=2).max()) for block in blocks))


def encode_ply(mesh: Mesh) -> bytes:
    """Encode a mesh as a binary PLY file in millimetres, with normals and a color for each vertex.

    Corners of triangles whose materials or texture coordinates differ share no vertex, so that colors stay apart; a
    texture counts with its color at the vertices.
    """
    material = np.zeros(len(mesh.faces), np.int64) if mesh.material is None else mesh.material.astype(np.int64)
    corners = np.stack([mesh.faces.astype(np.int64).ravel(), material.repeat(3)], axis=1)
    used, faces = np.unique(corners, axis=0, return_inverse=True)
    places, kinds = used.T
    vertices = np.zeros(
        len(used), [(name, "<f4") for name in ("x", "y", "z", "nx", "ny", "nz")] + [(name, "u1") for name in _COLORS]
    )
    normals = _normals(mesh)[places]
    colors = _colors(mesh, places, kinds)
    for axis in range(3):
        vertices["xyz"[axis]] = _MM * mesh.vertices[places, axis]
        vertices[f"n{'xyz'[axis]}"] = normals[:, axis]
        vertices[_COLORS[axis]] = colors[:, axis]
    rows = np.zeros(len(mesh.faces), [("count", "u1"), ("corners", "<i4", 3)])
    rows["count"], rows["corners"] = 3, faces.reshape(-1, 3)
    properties = [f"property {'uchar' if name in _COLORS else 'float'} {name}" for name in vertices.dtype.names or ()]
    head = [
        "ply",
        "format binary_little_endian 1.0",
        f"element vertex {len(vertices)}",
        *properties,
        f"element face {len(rows)}",
        "property list uchar int vertex_indices",
        "end_header\n",
    ]
    return "\n".join(head).encode() + vertices.tobytes() + rows.tobytes()


_COLORS = ("red", "green", "blue")


def _normals(mesh: Mesh) -> Array:
    """Unit normals of the vertices: those of the mesh, else the mean over the triangles of a vertex, by their area."""
    if mesh.normals is not None:
        given = mesh.normals.astype(np.float64)
    else:
        a, b, c = mesh.corners.transpose(1, 0, 2)
        flat = np.cross(b - a, c - a)
        given = np.zeros_like(mesh.vertices)
        for corner in range(3):
            np.add.at(given, mesh.faces[:, corner], flat)
    length = np.linalg.norm(given, axis=1, keepdims=True)
    return np.asarray(np.where(length > 0, given / np.where(length > 0, length, 1), [0.0, 0.0, 1.0]))


def _colors(mesh: Mesh, places: Array, kinds: Array) -> Array:
    """Colors (n, 3) of vertices with their materials, sRGB."""
    from setsup.scenes.color import LINEAR, to_bytes
    from setsup.scenes.surfaces.appearance import Textures

    light: Array = LINEAR[np.array([material.color for material in mesh.materials])[kinds]]
    textures = Textures(mesh.materials)
    if textures.any and mesh.uv is not None:
        some = np.flatnonzero(textures.first[kinds] >= 0)
        light[some] *= textures.sample(kinds[some], mesh.uv[places[some]])
    if mesh.colors is not None:
        light *= LINEAR[mesh.colors[places]]
    return np.asarray(to_bytes(light))
