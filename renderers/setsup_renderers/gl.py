"""The gl renderer: OpenGL through EGL, without a window; all that a frame holds in one pass.

Nothing is antialiased unless it is asked for, and then the colours only. Both sides of triangles are drawn. Textures
are sampled bilinearly in linear light, go on outside 0 … 1 as their material says, and have no smaller copies of
themselves (mipmaps): where they are seen from far away, ask for more samples a pixel. Lights throw no shadows; the
first scene of a process with lights that should is told so in the log. Of sheets in one plane that are cut into
triangles in different ways any may be seen at any pixel, where the other renderers see the one of
:mod:`setsup.scenes.surfaces.coplanar`. Where a camera stands within the bounds of its scene, what is nearer to it than
1 mm along its axis, or 1/10,000 of the diagonal of a scene of less than 10 m, is not drawn.

References
----------
.. [1] moderngl, https://moderngl.readthedocs.io
.. [2] N. Reed, "Depth precision visualized", NVIDIA, 2015: why depths are kept as near / z in floats.

"""

import logging
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from setsup.arrays import Array, Reals
from setsup.checks import check_instance, check_integer
from setsup.errors import SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR
from setsup.scenes.frame import Frame
from setsup.scenes.scene import Ambient, Directional, Lamp, Scene
from setsup_renderers.gl_buffers import Surface, surfaces
from setsup_renderers.gl_context import Context, context, describe_device
from setsup_renderers.gl_shaders import Kind, sources
from setsup_renderers.gl_targets import LARGE, TRIANGLES, Fine, Target

__all__ = ["GLRenderer"]


_log = logging.getLogger("setsup")

_LIGHTS = 64
_SIZES = 4  # of images, for which buffers are kept
_SRGB8 = 0x8C41
_SURFACE, _MASK = 0, 1  # where programs look for textures


class GLRenderer:
    """Draws scenes with OpenGL.

    All renderers of a process share one context and its thread; any thread may call them. See
    :mod:`setsup_renderers.gl_context` for what that means for processes that fork.

    `device`: number of the GPU, as EGL counts them, which need not be CUDA's order. By default the first that
    works: those that CUDA sees, so that ``CUDA_VISIBLE_DEVICES`` chooses, then other hardware, then software. All
    renderers of a process draw on the same.
    """

    name = "gl"

    def __init__(self, supersample: int = 1, device: int | None = None) -> None:
        self.supersample = check_integer(supersample, "supersample", SetsupError, 1, 16)
        if device is not None:
            check_integer(device, "device", SetsupError)
        self.device = device
        self._loaded: _Loaded | None = None
        self._closed = False

    @classmethod
    def check(cls) -> str:
        """Return the device that renders on this machine, such as ``"llvmpipe (LLVM 15.0.6, 256 bits), software"``.

        Another process is started to find out, once, so that this one has no context afterwards and may fork.
        """
        return describe_device()

    def load(self, scene: Scene) -> None:
        """Make a scene the one that is drawn."""
        self._open()
        if self._loaded is not None and scene is self._loaded.scene:
            return
        lights = _Lights(scene)
        middle, drawn = surfaces(scene)
        gpu = context(self.device)
        before, self._loaded = self._loaded, None
        textures = {} if before is None else before.textures
        del before
        self._loaded = gpu.run(lambda: _Loaded(gpu, scene, lights, middle, drawn, textures))
        if any(getattr(light, "shadow", False) for light in scene.lights):
            _warn_of_shadows()

    def render(self, camera: Camera) -> Frame:
        """Draw the scene."""
        check_instance(camera, Camera, "what is rendered from", SetsupError)
        self._open()
        loaded = self._loaded
        if loaded is None:
            raise SetsupError("this renderer has no scene; call load(scene) before render(camera)")
        context(self.device)  # says why not, after fork
        times = self.supersample
        return loaded.gpu.run(lambda: loaded.frame(camera, times))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the call that makes it: another process loads the scene itself."""
        return GLRenderer, (self.supersample, self.device)

    def close(self) -> None:
        """Give back what it holds; calling it again does nothing."""
        self._closed = True
        loaded, self._loaded = self._loaded, None
        if loaded is None:
            return
        try:
            gpu = context(self.device)
        except SetsupError:  # forked: nothing here is this process's
            return
        del loaded
        gpu.run(lambda: None)  # after each task what nobody refers to is released

    def _open(self) -> None:
        if self._closed:
            raise SetsupError("this renderer is closed; create another")


class _Lights:
    """Lights of a scene, as a program wants them for each camera."""

    def __init__(self, scene: Scene) -> None:
        self.ambient = np.zeros(3)
        self.directionals: list[tuple[Directional, Reals]] = []
        self.lamps: list[Lamp] = []
        self.spots: list[tuple[Lamp, Reals]] = []
        for light in scene.lights:
            if isinstance(light, Ambient):
                self.ambient += light.color
            elif isinstance(light, Directional):
                self.directionals.append((light, _unit(light.direction, "direction of a Directional light")))
            elif light.axis is None:
                self.lamps.append(light)
            else:
                self.spots.append((light, _unit(light.axis, "axis of a Lamp")))
        count = len(self.directionals) + len(self.lamps) + len(self.spots)
        if count > _LIGHTS:
            raise SetsupError(f"the gl renderer supports at most {_LIGHTS} lights besides ambient ones, not {count}")

    def uniforms(self, camera: Camera) -> dict[str, bytes]:
        """Uniforms of the programs, in the camera's frame."""
        turn, move = camera.rotation, camera.translation
        arrays = {"ambient": self.ambient}
        if self.directionals:
            rows = [(-way if light.of_camera else -turn @ way, light.color) for light, way in self.directionals]
            arrays["directional"] = np.array(rows)
        lamps = [self._lamp(lamp, turn, move) for lamp in self.lamps]
        if lamps:
            arrays["lamp"] = np.array(lamps)
        if self.spots:
            arrays["spot"] = np.array(
                [[*self._lamp(lamp, turn, move), [*(turn @ axis), lamp.exponent]] for lamp, axis in self.spots]
            )
        return {name: values.astype(np.float32).tobytes() for name, values in arrays.items()}

    @staticmethod
    def _lamp(lamp: Lamp, turn: Reals, move: Reals) -> list[list[float]]:
        reach = 0.0 if lamp.reach is None else lamp.reach**2
        return [[*(turn @ np.asarray(lamp.position, np.float64) + move), reach], [*lamp.color, 0.0]]


@dataclass(frozen=True, slots=True)
class _Part:
    """A surface on the device: its buffers, its texture, and the programs that draw it."""

    kind: Kind
    buffers: tuple[tuple[Any, ...], ...]
    texture: Any
    mask: Any
    vertices: int
    arrays: dict[str, tuple[Any, Any]]


class _Loaded:
    """A scene on the device; all but ``scene`` and ``gpu`` is for the thread of the context."""

    def __init__(
        self,
        gpu: Context,
        scene: Scene,
        lights: _Lights,
        middle: Reals,
        drawn: list[Surface],
        textures: dict[int, tuple[Array, Any]],
    ) -> None:
        self.gpu, self.scene, self.middle, self.lights = gpu, scene, middle, lights
        self.textures: dict[int, tuple[Array, Any]] = {}
        for surface in drawn:
            for image in (surface.texture, surface.mask):
                if image is not None:
                    self.textures[id(image)] = textures.get(id(image)) or self._texture(image)
        self.bounds = scene.bounds - middle
        self.parts = [self._part(surface) for surface in drawn]
        background = scene.background
        channels = (0, 0, 0, 0) if background is None else (*background, 255)
        self.empty = np.zeros(4, np.uint32)
        self.empty[0] = sum(channel << 8 * number for number, channel in enumerate(channels))
        self.light = (0.0,) * 4 if background is None else (*LINEAR[list(background)].tolist(), 1.0)
        gpu.check_error("store this scene", "split the scene, or render it with embree")

    def frame(self, camera: Camera, times: int) -> Frame:
        """Draw a frame, in one pass, or in three where colours are averages."""
        gpu, height, width = self.gpu, camera.height, camera.width
        if times * max(height, width) > gpu.largest:
            most = gpu.largest // times
            raise SetsupError(
                f"{gpu.device} renders at most {most:,} pixels per "
                f"side{f' of {times} × {times} samples' * (times > 1)}, not {width:,} × {height:,}; render parts of "
                "the image with camera.windowed(…)"
            )
        target = self._target(height, width)
        if times == 1:
            target.clear(self.empty)
            self._draw(camera, "all")
        else:
            target.clear(None)
            self._draw(camera, "geometry")
            fine = self._fine(height, width, times)
            fine.clear(self.light)
            self._draw(camera.resized(height * times, width * times), "light")
            fine.average(target)
        return target.frame(3 if self.scene.background is not None else 4)

    def _target(self, height: int, width: int) -> Target:
        gpu = self.gpu
        if height * width > LARGE:
            return Target(gpu, height, width)
        target: Target = gpu.shared(("target", height, width), lambda: Target(gpu, height, width), _SIZES)
        return target

    def _fine(self, height: int, width: int, times: int) -> Fine:
        gpu = self.gpu
        if height * width * times**2 > LARGE:
            return Fine(gpu, height, width, times)
        fine: Fine = gpu.shared(("fine", height, width, times), lambda: Fine(gpu, height, width, times), 1)
        return fine

    def _draw(self, camera: Camera, output: str) -> None:
        uniforms = self._uniforms(camera)
        if output != "geometry":
            uniforms |= self.lights.uniforms(camera)
        ready = set()
        for part in self.parts:
            if output not in part.arrays:
                part.arrays[output] = self._array(part, output)
            program, array = part.arrays[output]
            if id(program) not in ready:
                ready.add(id(program))
                for name, value in uniforms.items():
                    uniform = program.get(name, None)
                    if uniform is not None:
                        uniform.write(value)
            for unit, texture in ((_SURFACE, part.texture), (_MASK, part.mask)):
                if texture is not None:
                    texture.use(unit)
            array.render(TRIANGLES, part.vertices)

    def _uniforms(self, camera: Camera) -> dict[str, bytes]:
        height, width, k = camera.height, camera.width, camera.k
        view = np.concatenate([camera.rotation, (camera.rotation @ self.middle + camera.translation)[:, None]], axis=1)
        # pixel centres are integers, row 0 is at the bottom of GL's image, the first that is read; w is depth
        clip = np.zeros((4, 4))
        clip[0] = 2 / width * (k[0] @ view) + (1 / width - 1) * view[2]
        clip[1] = 2 / height * (k[1] @ view) + (1 / height - 1) * view[2]
        clip[2, 3] = self._near(view)
        clip[3] = view[2]
        ray = np.linalg.inv(k) @ [[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]]
        matrices = {"to_clip": clip, "to_camera": view, "to_ray": ray}
        return {name: matrix.T.astype(np.float32).tobytes() for name, matrix in matrices.items()}

    def _near(self, view: Reals) -> float:
        """Depth before which nothing is drawn: that of the nearest corner of the scene's box, or a little.

        The nearer it is, the less exactly GL interpolates on triangles that reach from there to the horizon.
        """
        least, most = self.bounds
        nearest = float(view[2, 3] + np.minimum(view[2, :3] * least, view[2, :3] * most).sum())
        size = float(np.linalg.norm(most - least)) or 1.0
        return max(0.99 * nearest, min(max(1e-3, 1e-5 * size), 1e-4 * size))

    def _part(self, surface: Surface) -> _Part:
        kind = Kind(
            surface.texture is not None,
            surface.normals is not None,
            surface.paint is not None,
            surface.mask is not None,
            surface.wrap,
            surface.coincident,
            len(self.lights.directionals),
            len(self.lights.lamps),
            len(self.lights.spots),
        )
        given = [
            (surface.positions, "3f4", "position"),
            (surface.flat, "3f4 4u4", "normal", "tag"),
            (surface.uv, "2f4", "uv"),
            (surface.normals, "3f4", "corner_normal"),
            (surface.paint, "3f4", "paint"),
        ]
        buffers = tuple(
            (self.gpu.gl.buffer(np.ascontiguousarray(array[0])), *array[1:]) for array in given if array[0] is not None
        )
        texture, mask = (
            None if image is None else self.textures[id(image)][1] for image in (surface.texture, surface.mask)
        )
        return _Part(kind, buffers, texture, mask, 3 * len(surface.positions), {})

    def _array(self, part: _Part, output: str) -> tuple[Any, Any]:
        kind = replace(part.kind, output=output)
        program = self.gpu.shared(("program", kind), lambda: self.gpu.program(*sources(kind)))
        if "mask" in program:
            program["mask"].value = _MASK
        content = []
        for buffer, layout, *names in part.buffers:
            used = [name for name in names if name in program]  # compilers leave out what makes no difference
            formats = [
                attribute if name in used else f"{_bytes(attribute)}x"
                for attribute, name in zip(layout.split(), names, strict=True)
            ]
            if used:
                content.append((buffer, " ".join(formats), *used))
        return program, self.gpu.gl.vertex_array(program, content)

    def _texture(self, texture: Array) -> tuple[Array, Any]:
        """Texture, or mask, on the device; the array is kept with it, so that its id stays its own."""
        height, width = texture.shape[:2]
        if max(height, width) > self.gpu.largest:
            raise SetsupError(
                f"a texture of {width} × {height} texels is too large for {self.gpu.device}; use a smaller texture, "
                "or render with embree"
            )
        size = (width, height)
        if texture.dtype == bool:
            return texture, self.gpu.gl.texture(size, 1, texture * np.uint8(255), alignment=1)
        content = np.ascontiguousarray(texture)
        return texture, self.gpu.gl.texture(size, 3, content, alignment=1, internal_format=_SRGB8)


def _bytes(layout: str) -> int:
    """Bytes of one attribute, such as ``3f4``."""
    return int(layout[0]) * int(layout[-1])


def _unit(vector: tuple[float, float, float], what: str) -> Reals:
    way = np.asarray(vector, dtype=np.float64)
    length = np.linalg.norm(way)
    if not (length > 0 and np.isfinite(length)):
        raise SetsupError(f"the {what} must be a finite, non-zero vector, not {vector!r}")
    return np.asarray(way / length)


@cache
def _warn_of_shadows() -> None:
    _log.warning(
        "the gl renderer does not support shadows: lights with shadow=True shine through objects; render with embree "
        "for shadows"
    )
