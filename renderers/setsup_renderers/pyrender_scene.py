"""Scenes, cameras and lights as pyrender has them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR
from setsup.scenes.meshes.mesh import Material
from setsup.scenes.scene import Ambient, Directional, Lamp, Light, Placement, Scene
from setsup.scenes.surfaces.coincident import hidden_sides
from setsup_renderers.pyrender_context import check_holes

__all__ = ["GAMMA", "Pass", "dim", "lamps", "middle", "passes", "pinhole", "pose", "surfaces"]


GAMMA = 2.2
"""The shader of pyrender gives linear light to the power of 1/2.2."""

_FACING = 0.96 * 0.96 + 0.04 / 4.001
"""What a white surface of roughness 1 that faces both lamp and camera sends back: a part 0.04 is mirrored by the
Fresnel term and another taken off the base colour, 0.04/4.001 is the gloss."""
_FULL = math.pi / _FACING
_EXACT = 1 << 24  # pyrender keeps indices as float32
_WRAPS = MappingProxyType({"repeat": 10497, "clamp": 33071, "mirror": 33648})  # numbers of GL
_AT_ONCE = 4  # of a kind; pyrender leaves the others out


@dataclass(frozen=True, slots=True)
class Pass:
    """What is drawn at once.

    Attributes
    ----------
    scene : pyrender.Scene
        Without a camera; all passes share one mesh.
    nodes : list of (pyrender.Node, Light)
        Its lights, but for the ambient one.
    lamp : Directional or Lamp, optional
        With it the scene has this light alone, at its full strength wherever it would shine evenly: white, without
        shadows, and for lamps of intensity 1 at a distance of 1 m.

    """

    scene: Any
    nodes: list[tuple[Any, Light]]
    lamp: Directional | Lamp | None = None


def surfaces(pyrender: Any, scene: Scene) -> Any:
    """All triangles of a scene as one mesh of pyrender's, about the scene's middle; None where there are none.

    One mesh keeps the order of the scene, where pyrender would sort several by distance, or not at all. Every triangle
    stands in it twice, once a side, with normals of that side: pyrender does not turn normals towards the camera, but
    leaves out triangles that are seen from behind. A side that another triangle in the same place hides is left out.
    """
    if not scene.placements:
        return None
    textures: dict[str, Any] = {}
    origin, counts = middle(scene), np.cumsum([len(placement.mesh.faces) for placement in scene.placements])
    primitives = [
        pyrender.Primitive(material=_material(pyrender, material, textures, "texcoord_0" in arrays), **arrays)
        for placement, hidden in zip(scene.placements, np.split(hidden_sides(scene), counts[:-1]), strict=True)
        for material, arrays in _parts(placement, hidden, origin)
    ]
    return pyrender.Mesh(primitives) if primitives else None


def middle(scene: Scene) -> Reals:
    """Origin of pyrender's scenes, which are float32: far from that of the world they are as exact as around it."""
    return np.asarray(scene.bounds.mean(axis=0))


def lamps(scene: Scene) -> list[Directional | Lamp]:
    """Lights that are drawn by themselves: those with a place, and those with shadows."""
    return [
        light for light in scene.lights if isinstance(light, Lamp) or (isinstance(light, Directional) and light.shadow)
    ]


def passes(pyrender: Any, scene: Scene) -> list[Pass]:
    """Split a scene into what pyrender draws right at once; the light of all passes adds up.

    The first pass has the background, ambient light and up to four directional lights without shadows, as most scenes
    have no others; each lamp and each light with shadows has a pass of its own.
    """
    mesh = surfaces(pyrender, scene)
    together = [light for light in scene.lights if isinstance(light, Directional) and not light.shadow]
    ambient_colors = [light.color for light in scene.lights if isinstance(light, Ambient)]
    ambient = np.array([(0, 0, 0), *ambient_colors], float).sum(axis=0)
    back = np.zeros(4) if scene.background is None else np.append(LINEAR[list(scene.background)] ** (1 / GAMMA), 1.0)
    made = [Pass(pyrender.Scene(bg_color=back, ambient_light=ambient), [])]
    if mesh is None:
        return made
    dark = {"bg_color": np.append(np.zeros(3), back[3]), "ambient_light": np.zeros(3)}
    made += [Pass(pyrender.Scene(**dark), []) for _ in range(_AT_ONCE, len(together), _AT_ONCE)]
    made += [Pass(pyrender.Scene(**dark), [], light) for light in lamps(scene)]
    origin = middle(scene)
    for render_pass in made:
        render_pass.scene.add(mesh)
        if render_pass.lamp is not None:
            kind = pyrender.PointLight if isinstance(render_pass.lamp, Lamp) else pyrender.DirectionalLight
            full = kind(color=np.ones(3), intensity=_FULL)
            render_pass.nodes.append(
                (render_pass.scene.add(full, pose=pose(render_pass.lamp, origin)), render_pass.lamp)
            )
    for number, light in enumerate(together):
        render_pass = made[number // _AT_ONCE]
        full = pyrender.DirectionalLight(color=np.array(light.color), intensity=_FULL)
        render_pass.nodes.append((render_pass.scene.add(full, pose=pose(light, origin)), light))
    return made


def dim(render_pass: Pass, distance: float) -> None:
    """Set the lamp of a pass to its full strength at a distance, in metres."""
    render_pass.nodes[0][0].light.intensity = _FULL * distance**2


def pose(light: Light, origin: Reals, camera: Camera | None = None) -> Reals:
    """Where a light stands and shines, (4, 4) float64: pyrender's shine along their −z."""
    matrix, way = np.eye(4), (0.0, 0.0, -1.0)
    if isinstance(light, Lamp):
        matrix[:3, 3] = light.position - origin
    elif isinstance(light, Directional):
        way = light.direction
        if light.of_camera and camera is not None:
            way = tuple(camera.rotation.T @ way)
    z = -np.asarray(way, np.float64) / np.linalg.norm(way)
    x = np.cross((0.0, 1.0, 0.0) if abs(z[1]) < 0.9 else (1.0, 0.0, 0.0), z)
    x /= np.linalg.norm(x)
    matrix[:3, :3] = np.stack([x, np.cross(z, x), z], axis=1)
    return matrix


def pinhole(pyrender: Any, camera: Camera, origin: Reals, near: float, far: float) -> tuple[Any, Reals]:
    """One of pyrender's cameras that maps to pixels as ours does, and its pose, (4, 4) float64.

    `origin` (3,) float64, metres.
    """
    k, size = camera.k, np.array([[camera.width], [camera.height]])
    # from OpenCV's frame to −1 … 1, x to the right and y down, multiplied with the depth; edges are half a pixel off
    flat = 2 * (k[:2] + np.array([0, 0, 0.5])) / size - np.array([0, 0, 1])
    matrix = np.zeros((4, 4))
    matrix[:2, :3] = flat * [1, -1, -1] * [[1], [-1]]  # GL has y up and z backwards
    matrix[2, 2:] = (far + near) / (near - far), 2 * far * near / (near - far)
    matrix[3, 2] = -1
    made = pyrender.IntrinsicsCamera(k[0, 0], k[1, 1], k[0, 2], k[1, 2], znear=near, zfar=far)
    made.get_projection_matrix = lambda width, height: matrix  # its own has no skew
    stands = np.eye(4)
    stands[:3, :3] = camera.rotation.T * [1, -1, -1]
    stands[:3, 3] = camera.centre - origin
    return made, stands


def _parts(
    placement: Placement, hidden: npt.NDArray[np.bool_], origin: Reals
) -> Iterator[tuple[Material, dict[str, Any]]]:
    """Arrays of the triangles of each material of a placement."""
    mesh = placement.mesh
    which = np.zeros(len(mesh.faces), np.uint16) if mesh.material is None else mesh.material
    positions = placement.placed(mesh.vertices) - origin
    for number, material in enumerate(mesh.materials):
        own = (which == number) & ~hidden.all(axis=1)
        faces, (front, back) = mesh.faces[own], ~hidden[own].T
        if not len(faces):
            continue
        used, faces = np.unique(faces, return_inverse=True)
        faces = faces.reshape(-1, 3)
        if mesh.normals is None:
            used, faces = used[faces.ravel()], np.arange(faces.size).reshape(-1, 3)
        at = positions[used]
        across = np.cross(at[faces[:, 1]] - at[faces[:, 0]], at[faces[:, 2]] - at[faces[:, 0]])
        if mesh.normals is None:
            normals = np.repeat(across, 3, axis=0)
        else:
            normals = (mesh.normals[used] / placement.scale) @ placement.rotation.T
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        normals = np.divide(normals, length, out=np.zeros_like(normals), where=length > 0)
        arrays: dict[str, Any] = {"positions": np.tile(at, (2, 1)), "normals": np.concatenate([normals, -normals])}
        if mesh.colors is not None:
            colors = LINEAR[mesh.colors[used]]
            arrays["color_0"] = np.tile(np.concatenate([colors, np.ones((len(used), 1))], axis=1), (2, 1))
        if mesh.uv is not None and (material.texture is not None or material.mask is not None):
            arrays["texcoord_0"] = np.tile(mesh.uv[used], (2, 1))
        # the first copies of vertices, or the second, whose normals lie on the side from which the order is positive
        along = np.einsum("fcd,fd->f", normals[faces], across)[:, None] >= 0
        indices = np.concatenate(
            [
                np.where(along, faces, faces + len(used))[front],
                np.where(along, faces + len(used), faces)[back][:, ::-1],
            ]
        )
        if 2 * len(used) > _EXACT:
            arrays = {name: array[indices.ravel()] for name, array in arrays.items()}
        else:
            arrays["indices"] = indices
        yield material, arrays


def _material(pyrender: Any, material: Material, textures: dict[str, Any], textured: bool) -> Any:
    """Make a material of pyrender's: no metal, as rough as can be. Its colour is linear light, its texture sRGB."""
    texture = None
    if textured:
        texture = textures.get(material.digest)
        if texture is None:
            # of four channels: it hands over rows as if their bytes were a multiple of four
            across, upwards = (_WRAPS[wrap] for wrap in material.wrap)
            sampler = pyrender.Sampler(wrapS=across, wrapT=upwards)
            texture = pyrender.Texture(sampler=sampler, source=_texels(material), source_channels="RGBA")
            textures[material.digest] = texture
    return pyrender.MetallicRoughnessMaterial(
        baseColorFactor=np.append(LINEAR[list(material.color)], 1.0),
        baseColorTexture=texture,
        metallicFactor=0.0,
        roughnessFactor=1.0,
    )


def _texels(material: Material) -> npt.NDArray[np.uint8] | None:
    """Texture of a material, (h, w, 3), or with its mask as alpha, (h, w, 4)."""
    if material.mask is None:
        return material.texture
    check_holes()
    alpha = material.mask * np.uint8(255)
    color = np.full((*alpha.shape, 3), 255, np.uint8) if material.texture is None else material.texture
    return np.dstack([color, alpha])
