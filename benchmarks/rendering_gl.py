"""Frames a second of the gl renderer, all outputs, on one core: against a bare moderngl loop, and pyrender.

The bare loop draws the same triangles to the same buffers with shaders written for the one scene and its one light,
reads them into memory that is there already, and leaves them packed as they come: no camera, no lights, no textures to
choose, no thread, no frame. pyrender draws colours and depth, then ids, as its users do; its depth is not of pixel
centres, and it gives no normals and no triangles, so that it does less.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.measure import Side, Spread, alternate, ratio
from benchmarks.rows import Row, at_least, duration
from benchmarks.scenes import dense_room, simple_room, views
from setsup.errors import DataError
from setsup.scenes import Camera, Scene
from setsup.scenes.color import LINEAR
from setsup_renderers.gl import GLRenderer

__all__ = ["rows"]

TOPIC = "gl"
SIZES = ((64, 64), (256, 256), (480, 640))

Array = npt.NDArray[Any]


def rows(full: bool) -> Iterator[Row]:
    os.environ.setdefault("LP_NUM_THREADS", "0")  # llvmpipe's threads would count as the time of none
    try:
        device = GLRenderer.check()
    except DataError as error:
        print(f"gl: {error}")
        return
    for name, scene in (("simple", simple_room()), ("room", dense_room())):
        yield from _frames(name, scene, device)
        yield _loads(name, scene, device)


def _frames(name: str, scene: Scene, device: str) -> Iterator[Row]:
    ours, bare, theirs = GLRenderer(), _Bare(scene), _pyrender(scene)
    ours.load(scene)
    for height, width in SIZES:
        camera = views(height, width)[0]
        sides = {"ours": Side(lambda camera=camera: ours.render(camera)), "bare": Side(bare.drawing(camera))}
        if theirs is not None:
            sides["pyrender"] = Side(theirs(camera))
        found = alternate(sides, blocks=9)
        middle = (height == 256) and name == "simple"
        what = f"{name}, {len(scene.triangles.corners):,} triangles, {height} × {width}"
        for other, said, bound in (("bare", "a bare moderngl loop", 0.9), ("pyrender", "pyrender, RGB, then ids", 8)):
            if other in found:
                wanted = at_least(bound) if middle else None
                said_too = duration(found["ours"]), said, duration(found[other])
                yield Row(TOPIC, f"{what}, {device}", *said_too, ratio(found[other], found["ours"]), "×", wanted)
    ours.close()


def _loads(name: str, scene: Scene, device: str) -> Row:
    ours, camera = GLRenderer(), views(256, 256)[0]

    def fresh() -> None:
        ours.load(Scene(scene.placements))
        ours.render(camera)

    found = alternate({"ours": Side(fresh)}, blocks=9)["ours"]
    ours.close()
    return Row(
        TOPIC, f"{name}, new scene and first view, 256 × 256", duration(found), "", "", Spread.of(1 / found), "/s"
    )


_VERTEX = """#version 450
in vec3 position; in vec3 normal; in vec3 color; in int instance;
uniform mat4 to_clip; uniform mat3 turn;
flat out vec3 n; flat out vec3 base; flat out int id;
void main() { gl_Position = to_clip * vec4(position, 1); n = turn * normal; base = color; id = instance; }
"""
_FRAGMENT = """#version 450
flat in vec3 n; flat in vec3 base; flat in int id;
uniform vec3 towards, of_camera, ambient;
uniform mat3 to_ray;
layout(location = 0) out vec4 color; layout(location = 1) out vec4 geometry; layout(location = 2) out ivec2 ids;
void main() {
    vec3 facing = dot(n, to_ray * vec3(gl_FragCoord.xy, 1)) > 0 ? -n : n;
    vec3 light = clamp(base * (ambient + of_camera * max(dot(facing, towards), 0)), 0, 1);
    vec3 bright = 1.055 * pow(max(light, vec3(0.0031308)), vec3(1 / 2.4)) - 0.055;
    color = vec4(mix(bright, 12.92 * light, lessThanEqual(light, vec3(0.0031308))), 1);
    geometry = vec4(facing, 1 / gl_FragCoord.w);
    ids = ivec2(id, gl_PrimitiveID);
}
"""


class _Bare:
    """What a few lines of moderngl draw."""

    def __init__(self, scene: Scene) -> None:
        import moderngl

        self.gl = gl = moderngl.create_context(
            standalone=True, backend="egl", require=450, libgl="libGL.so.1", libegl="libEGL.so.1"
        )
        egl = ctypes.CDLL("libEGL.so.1")
        egl.eglGetProcAddress.restype = ctypes.c_void_p
        self.clear = ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)(
            egl.eglGetProcAddress(b"glClearBufferiv")
        )
        ctypes.CFUNCTYPE(None, ctypes.c_uint, ctypes.c_uint)(egl.eglGetProcAddress(b"glClipControl"))(0x8CA1, 0x935F)
        gl.enable_only(moderngl.DEPTH_TEST)
        gl.depth_func = ">"
        triangles = scene.triangles
        corners = triangles.corners
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        kinds = [("position", "f4", 3), ("normal", "f4", 3), ("color", "f4", 3), ("instance", "i4")]
        vertices = np.zeros((len(corners), 3), np.dtype(kinds))
        vertices["position"] = corners
        vertices["normal"] = (normals / np.linalg.norm(normals, axis=1, keepdims=True))[:, None]
        colors = LINEAR[np.array([one.mesh.materials[0].color for one in scene.placements])]
        vertices["color"] = colors[triangles.placement][:, None]
        vertices["instance"] = triangles.instance[:, None]
        self.program = gl.program(vertex_shader=_VERTEX, fragment_shader=_FRAGMENT)
        content = [(gl.buffer(vertices.tobytes()), "3f 3f 3f 1i", "position", "normal", "color", "instance")]
        self.array = gl.vertex_array(self.program, content)
        self.uniform("ambient", np.full(3, 0.35))
        self.uniform("of_camera", np.full(3, 0.65))
        self.uniform("towards", np.array([0, 0, -1]))

    def uniform(self, name: str, values: Array) -> None:
        self.program[name].write(np.ascontiguousarray(values.T, np.float32).tobytes())

    def drawing(self, camera: Camera) -> Callable[[], object]:
        """Draw and read one picture."""
        height, width, k = camera.height, camera.width, camera.k
        size = (width, height)
        textures = [
            self.gl.texture(size, 4),
            self.gl.texture(size, 4, dtype="f4"),
            self.gl.texture(size, 2, dtype="i4"),
        ]
        buffers = self.gl.framebuffer(textures, self.gl.depth_renderbuffer(size))
        read = [np.empty((height, width, count), kind) for count, kind in ((4, "u1"), (4, "f4"), (2, "i4"))]
        nothing = np.full(4, -1, np.int32)
        view = np.concatenate([camera.rotation, camera.translation[:, None]], axis=1)
        clip = np.zeros((4, 4))
        clip[0] = 2 / width * (k[0] @ view) + (1 / width - 1) * view[2]
        clip[1] = 2 / height * (k[1] @ view) + (1 / height - 1) * view[2]
        clip[2, 3], clip[3] = 0.001, view[2]
        to_ray = np.linalg.inv(k) @ [[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]]

        def draw() -> None:
            self.uniform("to_clip", clip)
            self.uniform("turn", camera.rotation)
            self.uniform("to_ray", to_ray)
            buffers.use()
            buffers.clear(1.0, 1.0, 1.0, 1.0, depth=0.0)
            self.clear(0x1800, 2, nothing.ctypes.data)
            self.array.render()
            for texture, memory in zip(textures, read, strict=True):
                texture.read_into(memory)

        return draw


def _pyrender(scene: Scene) -> Callable[[Camera], Callable[[], object]] | None:
    """What users of pyrender write; None where it is missing."""
    os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
    try:
        import pyrender
        import trimesh
    except (ImportError, AttributeError, OSError):
        return None
    drawn = pyrender.Scene(ambient_light=np.full(3, 0.35), bg_color=np.ones(4))
    ids = {}
    for number, one in enumerate(scene.placements):
        color = [*LINEAR[list(one.mesh.materials[0].color)], 1.0]
        material = pyrender.MetallicRoughnessMaterial(
            baseColorFactor=color, metallicFactor=0.0, roughnessFactor=1.0, doubleSided=True
        )
        mesh = trimesh.Trimesh(one.placed(one.mesh.vertices), one.mesh.faces, process=False)
        ids[drawn.add(pyrender.Mesh.from_trimesh(mesh, material=material, smooth=False))] = (number + 1, 0, 0)
    light = drawn.add(pyrender.DirectionalLight(color=np.ones(3), intensity=2.0))
    renderer, thread = _offscreen(pyrender)
    seg = pyrender.RenderFlags.SEG | pyrender.RenderFlags.SKIP_CULL_FACES
    last: list[Any] = []

    def drawing(camera: Camera) -> Callable[[], object]:
        k = camera.k
        node = pyrender.Node(
            camera=pyrender.IntrinsicsCamera(k[0, 0], k[1, 1], k[0, 2] + 0.5, k[1, 2] + 0.5, znear=0.01, zfar=20.0)
        )

        def draw() -> None:
            pose = np.eye(4)
            pose[:3, :3] = camera.rotation.T @ np.diag([1, -1, -1])
            pose[:3, 3] = camera.centre
            if last[:1] != [node]:
                for old in last:
                    drawn.remove_node(old)
                last[:] = [node]
                drawn.add_node(node)
            drawn.set_pose(node, pose)
            drawn.set_pose(light, pose)
            renderer.viewport_height, renderer.viewport_width = camera.height, camera.width
            renderer.render(drawn, pyrender.RenderFlags.SKIP_CULL_FACES)
            renderer.render(drawn, seg, seg_node_map=ids)

        return lambda: thread.submit(draw).result()

    return drawing


@cache
def _offscreen(pyrender: Any) -> tuple[Any, ThreadPoolExecutor]:
    """The one renderer of pyrender that this topic makes, since deleting one disturbs others; and its thread."""
    thread = ThreadPoolExecutor(1)  # the context of the bare loop is current on the main one
    return thread.submit(pyrender.OffscreenRenderer, 64, 64).result(), thread
