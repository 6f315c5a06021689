"""The one GL context of pyrender in a process, on a thread of its own.

GL contexts belong to a thread, and pyrender's renderers disturb each other when one of them is deleted: a process
therefore has one, made when something is first drawn, resized to whatever is drawn, and left to the end.

References
----------
.. [1] M. Matl and others, "pyrender", the maintained distribution pyrender2: https://pypi.org/project/pyrender2
.. [2] Khronos Group, "EGL_EXT_platform_device": devices, which ``EGL_DEVICE_ID`` counts from 0.

"""

import importlib.util
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from setsup.errors import DataError, SetsupError, imported
from setsup_renderers.gl_probe import asked
from setsup_renderers.process_local import OfProcess, inherited

__all__ = ["Context", "check_holes", "context", "device", "library", "release"]

Result = TypeVar("Result")

_PLATFORMS = {"egl": "EGLPlatform", "osmesa": "OSMesaPlatform"}  # names of PyOpenGL's classes
_SOFTWARE = ("llvmpipe", "softpipe", "swrast", "software")

# the line of pyrender's fragment shader that reads a texture, and what takes its place: holes where alpha is below 1/2
_TEXTURED = "base_color = base_color * srgb_to_linear(texture(material.base_color_texture, uv_0));"
_PIERCED = f"""{_TEXTURED}
    vec2 texels = vec2(textureSize(material.base_color_texture, 0));
    if (textureLod(material.base_color_texture, (floor(uv_0 * texels) + 0.5) / texels, 0.0).a < 0.5) discard;
    base_color.a = 1.0;"""


def library() -> Any:
    """Import pyrender, on EGL unless ``PYOPENGL_PLATFORM`` says OSMesa; needs no context."""
    name = _bound()
    if importlib.util.find_spec("pyrender") is None or importlib.util.find_spec("OpenGL") is None:
        imported("pyrender", "render")
        imported("OpenGL", "render")
    os.environ["PYOPENGL_PLATFORM"] = name  # read by PyOpenGL and pyrender when they are imported, and after
    try:
        importlib.import_module("OpenGL.GL")
        return importlib.import_module("pyrender")
    except (ImportError, AttributeError, OSError) as error:  # whichever library of GL is missing
        raise DataError(f"pyrender could not load OpenGL for {name} ({error}); {_packages()}") from error


def check_holes() -> None:
    """Raise a DataError where this pyrender has a shader that does not have the line which makes holes."""
    shader = Path(library().__file__).parent / "shaders" / "mesh.frag"
    if _TEXTURED not in shader.read_text(encoding="utf-8"):
        raise DataError(
            f"pyrender's shader {shader} cannot render materials with holes; install pyrender2 (pip install "
            "pyrender2==0.2.2), or render with embree or gl"
        )


class Context:
    """A context and pyrender's renderer on it; all methods but :meth:`run` belong on its thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="setsup-pyrender")
        self.device = self.run(self._start)

    def run(self, task: Callable[[], Result]) -> Result:
        """Do something on the thread of the context, and wait for it."""
        return self._thread.submit(task).result()

    def draw(self, scene: Any, height: int, width: int) -> npt.NDArray[np.uint16]:
        """Draw a scene of pyrender's, (height, width, 4) uint16, row 0 at the top.

        Colours are as pyrender's shader gives them, averaged over the samples of a pixel: linear light to the power
        of 1/2.2, and alpha.
        """
        if max(height, width) > self._largest:
            raise SetsupError(
                f"{self.device} renders at most {self._largest} pixels per side, not {width} × {height}; render a "
                "smaller image"
            )
        self._renderer.viewport_height, self._renderer.viewport_width = height, width
        image: npt.NDArray[np.uint16] = self._renderer.render(scene, library().RenderFlags.OFFSCREEN)
        return image

    def release(self, scene: Any) -> None:
        """Give back the buffers of a scene, if they are there."""
        if self._renderer._meshes & scene.meshes:
            self._renderer._update_context(library().Scene(), 0)

    def _start(self) -> str:
        pyrender = library()
        gl = importlib.import_module("OpenGL.GL")
        platform = _platform()
        refused = "pyrender cannot create a context of OpenGL 4.1 on EGL, or 3.3 on OSMesa, on this machine"
        try:
            platform.init_context()
            platform.make_current()
            version = gl.glGetString(gl.GL_VERSION)
            device = str(gl.glGetString(gl.GL_RENDERER), "latin-1")
            self._largest = int(gl.glGetIntegerv(gl.GL_MAX_RENDERBUFFER_SIZE))
        except Exception as error:  # PyOpenGL has as many kinds as drivers have ways to fail, assertions among them
            raise DataError(f"{refused} ({error!r:.200}); {_packages()}") from error
        if not version:
            raise DataError(f"pyrender could not create a context of OpenGL 4.1; {_packages()}")
        self._platform = platform  # kept, or its buffers would go
        self._renderer = _renderer_class(pyrender, gl)(64, 64)
        return device + (", software" if any(name in device.lower() for name in _SOFTWARE) else "")


def context() -> Context:
    """Context of this process, made when it is first wanted."""

    def make() -> Context:
        library()
        return Context()

    return _CONTEXT.get(make)


def device() -> str:
    """What this process renders on, or would; creates no context, which forked processes could not use."""
    if _CONTEXT.made is not None or inherited():
        return context().device
    _bound()
    return asked("setsup_renderers.pyrender_context", *map(os.environ.get, ("PYOPENGL_PLATFORM", "EGL_DEVICE_ID")))


def release(scene: Any) -> None:
    """Give back the buffers of a scene of pyrender's, where this process has any."""
    made = _CONTEXT.made
    if made is not None:
        made.run(lambda: made.release(scene))


_CONTEXT: OfProcess[Context] = OfProcess("pyrender")


def _bound() -> str:
    """Platform on which pyrender would draw; a DataError where OpenGL has another already."""
    loaded = type(getattr(sys.modules.get("OpenGL.platform"), "PLATFORM", None)).__name__
    name = os.environ.get("PYOPENGL_PLATFORM") or "egl"
    if name not in _PLATFORMS:
        raise DataError(
            f"PYOPENGL_PLATFORM is {name!r}, but pyrender renders offscreen only on 'egl' or 'osmesa'; set it to one "
            "of these before starting Python"
        )
    if loaded not in ("NoneType", _PLATFORMS[name]):
        raise DataError(
            f"pyrender requires PyOpenGL to use {_PLATFORMS[name]}, but PyOpenGL was already imported with {loaded}; "
            f"set PYOPENGL_PLATFORM={name} before starting Python"
        )
    return name


def _packages() -> str:
    library = "libosmesa6" if os.environ.get("PYOPENGL_PLATFORM") == "osmesa" else "libegl1"
    return f"on Debian: apt-get install {library} libgl1 libxrender1"


def _platform() -> Any:
    """What makes contexts: of the device that ``EGL_DEVICE_ID`` names, or OSMesa's."""
    if os.environ["PYOPENGL_PLATFORM"] == "osmesa":
        return importlib.import_module("pyrender.platforms.osmesa").OSMesaPlatform(64, 64)
    egl = importlib.import_module("pyrender.platforms.egl")
    devices = egl.query_devices()
    wanted = os.environ.get("EGL_DEVICE_ID", "0")
    if not devices:
        raise DataError(f"EGL found no device; {_packages()}")
    if not wanted.isdecimal() or int(wanted) >= len(devices):
        raise DataError(
            f"EGL_DEVICE_ID must be from 0 to {len(devices) - 1}, the number of an EGL device, not {wanted!r}"
        )
    return egl.EGLPlatform(64, 64, device=devices[int(wanted)])


@cache
def _renderer_class(pyrender: Any, gl: Any) -> Any:
    """Make pyrender's renderer draw on images of 16 bits, and leave out what a texture's alpha says is a hole.

    Its shader encodes with a power of 1/2.2 where sRGB has another curve: of 8 bits in the one, 10 of 256 colours come
    out as their neighbours in the other; of 16 bits, none. And it has no alpha mode MASK.
    """

    class Pierced(importlib.import_module("pyrender.shader_program").ShaderProgramCache):  # type: ignore[misc]
        def get_program(self, *files: Any, **defines: Any) -> Any:
            program = super().get_program(*files, **defines)
            load = type(program)._load
            program._load = lambda file: load(program, file).replace(_TEXTURED, _PIERCED)
            return program

    class Deep(pyrender.Renderer):  # type: ignore[misc]
        def __init__(self, width: int, height: int) -> None:
            super().__init__(width, height)
            self._program_cache = Pierced()

        def __del__(self) -> None:
            """Leave the buffers to the end of the process: its context may be gone, and is of another thread."""

        def _configure_main_framebuffer(self) -> None:
            fresh = (self.viewport_width, self.viewport_height) != self._main_fb_dims
            super()._configure_main_framebuffer()
            if fresh:
                for buffer, samples in ((self._main_cb, 0), (self._main_cb_ms, 4)):
                    gl.glBindRenderbuffer(gl.GL_RENDERBUFFER, buffer)
                    gl.glRenderbufferStorageMultisample(
                        gl.GL_RENDERBUFFER, samples, gl.GL_RGBA16, self.viewport_width, self.viewport_height
                    )

        def _read_main_framebuffer(self, scene: Any, flags: int) -> npt.NDArray[np.uint16]:
            width, height = self._main_fb_dims
            gl.glBindFramebuffer(gl.GL_READ_FRAMEBUFFER, self._main_fb_ms)
            gl.glBindFramebuffer(gl.GL_DRAW_FRAMEBUFFER, self._main_fb)
            whole = (0, 0, width, height)
            gl.glBlitFramebuffer(*whole, *whole, gl.GL_COLOR_BUFFER_BIT, gl.GL_NEAREST)
            gl.glBindFramebuffer(gl.GL_READ_FRAMEBUFFER, self._main_fb)
            pixels = gl.glReadPixels(*whole, gl.GL_RGBA, gl.GL_UNSIGNED_SHORT)
            return np.frombuffer(pixels, np.uint16).reshape(height, width, 4)[::-1]

    return Deep
