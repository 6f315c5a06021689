"""The one GL context of the gl renderers in a process, on a thread of its own.

A context of OpenGL is bound to a thread and does not survive fork: a process therefore has one, made by EGL when
something is first drawn, without a window, and left to the end; whoever calls, on whatever thread, is served by its
thread. Whether there can be one is asked in another process, so that asking leaves nothing behind: a process that has
only asked may still fork.

References
----------
.. [1] Khronos Group, "EGL_EXT_device_enumeration", "EGL_EXT_device_query", "EGL_EXT_platform_device": devices, and
   their order.
.. [2] Mesa, "EGL_MESA_device_software": how a device says that it is software.
.. [3] Khronos Group, "EGL_NV_device_cuda": which device of CUDA's a device is.
.. [4] moderngl, https://moderngl.readthedocs.io

"""

import ctypes
import math
import os
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from setsup.errors import DataError, imported
from setsup_renderers.gl_probe import asked
from setsup_renderers.process_local import OfProcess, refuse_forked

__all__ = ["Context", "context", "describe_device"]

Result = TypeVar("Result")

_PACKAGES = "on Debian: apt-get install libegl1 libgl1"
_VERSION = 450  # of OpenGL, for clip control (depths of 0 … 1) and direct state access
_SOFTWARE = b"EGL_MESA_device_software"
_SOFTWARE_NAMES = ("llvmpipe", "softpipe", "swrast", "software")
_EGL_EXTENSIONS = 0x3055
_CUDA_DEVICE = 0x323A
_LOWER_LEFT, _ZERO_TO_ONE = 0x8CA1, 0x935F
_DEPTH_COMPONENT32F = 0x8CAC
_COLOR = 0x1800
_ERRORS = 16  # at most that are asked for: a lost context tells of one for ever


class Context:
    """A GL context; what is done with it is done on its thread.

    Attributes
    ----------
    number : int
        Of the device.
    device : str
        On what it draws, such as ``"llvmpipe (LLVM 15.0.6, 256 bits), software"``.
    largest : int
        Pixels a side of the largest image.
    gl : moderngl.Context
        The context itself, for its thread only.
    cache : dict
        What all renderers share: programs, buffers of images; for its thread only.

    """

    def __init__(self, number: int | None = None) -> None:
        self.cache: dict[Any, Any] = {}
        self.gl: Any = None
        self.device = "OpenGL"
        self._error: type[Exception] = imported("moderngl", "render").Error
        self._tasks: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[Any]] | None] = SimpleQueue()
        # a daemon: the context is left to the end of the process, which does not wait for it
        threading.Thread(target=self._serve, name="setsup-gl", daemon=True).start()
        try:
            self.run(lambda: self._start(number))
        except BaseException:
            self._tasks.put(None)
            raise

    def run(self, task: Callable[[], Result]) -> Result:
        """Do something on the thread of the context, and wait for it: half the time of concurrent.futures."""
        answer: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._tasks.put((task, answer))
        done, outcome = answer.get()
        if isinstance(outcome, self._error):
            raise DataError(f"{self.device} does not support this operation: {outcome}") from outcome
        if not done:
            raise outcome
        result: Result = outcome
        return result

    def depth_buffer(self, height: int, width: int) -> Any:
        """Buffer of float32 depths, which moderngl has none of."""
        buffer = self.gl.depth_renderbuffer((width, height))
        self._depth_storage(buffer.glo, _DEPTH_COMPONENT32F, width, height)
        return buffer

    def clear(self, attachment: int, values: Any) -> None:
        """Fill an attachment of the framebuffer in use with four int32, which moderngl's ``clear`` cannot."""
        self._clear(_COLOR, attachment, values)

    def program(self, vertex: str, fragment: str) -> Any:
        """Compile a program."""
        return self.gl.program(vertex_shader=vertex, fragment_shader=fragment)

    def shared(self, key: Any, make: Callable[[], Any], most: int | None = None) -> Any:
        """What was made for a key, or is made now; at most so many of a kind, ``key[0]``, are kept."""
        if key not in self.cache:
            same = [other for other in self.cache if other[0] == key[0]]
            if most is not None and len(same) >= most:
                self.cache.pop(same[0])
            self.cache[key] = make()
        return self.cache[key]

    def check_error(self, what: str, instead: str = "") -> None:
        """Raise when the driver has reported an error since the last call; ``instead`` is what a user may do."""
        error = self.gl.error
        if error != "GL_NO_ERROR":
            raise DataError(f"{self.device} cannot {what}: {error}{instead and f'; {instead}'}")

    def _serve(self) -> None:
        while (given := self._tasks.get()) is not None:
            task, answer = given
            try:
                result = (True, task())
                self._give_back()
            except BaseException as error:  # whoever asked shall have it
                traceback.clear_frames(error.__traceback__)  # which hold buffers that are half made
                result = (False, error)
                with suppress(Exception):  # the first error is the one to tell
                    self._give_back(check_error=True)
            answer.put(result)
            del given, task, answer, result  # or the scene drawn last would live until the next

    def _give_back(self, *, check_error: bool = False) -> None:
        """Release what nobody refers to any more; after a failure also forget the errors that it left behind."""
        if self.gl is None:
            return
        self.gl.gc()
        for _ in range(_ERRORS if check_error else 0):  # the next task would be blamed for them
            if self.gl.error == "GL_NO_ERROR":
                break

    def _start(self, wanted: int | None) -> None:
        errors = []
        for number in _devices(wanted):
            try:
                self.gl = _made(number)
                self.number = number
                break
            except Exception as error:  # as many kinds as drivers have ways to fail
                errors.append(f"device {number}: {error}")
        if self.gl is None:
            raise DataError(
                f"EGL could not create a context of OpenGL {_VERSION / 100:.1f} ({'; '.join(errors)}); {_PACKAGES}"
            )
        info = self.gl.info
        software = any(name in info["GL_RENDERER"].lower() for name in _SOFTWARE_NAMES)
        self.device = info["GL_RENDERER"] + (", software" if software else "")
        self.largest = min(info["GL_MAX_TEXTURE_SIZE"], info["GL_MAX_RENDERBUFFER_SIZE"], *info["GL_MAX_VIEWPORT_DIMS"])
        egl = _egl()
        self._depth_storage = _function(egl, b"glNamedRenderbufferStorage", *[ctypes.c_uint] * 2, *[ctypes.c_int] * 2)
        self._clear = _function(egl, b"glClearBufferiv", ctypes.c_uint, ctypes.c_int, ctypes.c_void_p)
        # depths are near / z, from 1 down to 0: float32 then tells apart 1e-7 of a depth, whatever the depth
        _function(egl, b"glClipControl", ctypes.c_uint, ctypes.c_uint)(_LOWER_LEFT, _ZERO_TO_ONE)
        self.gl.enable_only(self.gl.DEPTH_TEST)
        self.gl.depth_func = ">"
        self.gl.gc_mode = "context_gc"  # what nobody refers to is released after each task, on the right thread


_CONTEXT: OfProcess[Context] = OfProcess("gl")


def context(device: int | None = None) -> Context:
    """Context of this process, made when it is first wanted."""
    current = _CONTEXT.get(lambda: Context(device))
    if device is not None and device != current.number:
        _devices(device)
        raise DataError(
            f"this process already renders on GPU {current.number} ({current.device}), and a process can have "
            f"only one context; render on GPU {device} in another process"
        )
    return current


def describe_device() -> str:
    """On what a context draws, or would draw; asked in another process where this one has none."""
    refuse_forked()
    if _CONTEXT.made is not None:
        return str(_CONTEXT.made.device)
    imported("moderngl", "render")
    return asked("setsup_renderers.gl_context")


def _made(device: int) -> Any:
    """Context on a device; libraries by the names that Debian's packages without headers have."""
    moderngl = imported("moderngl", "render")
    # glcontext prefers variables of the environment to what it is told: a device that was asked for comes first
    asked = os.environ.pop("GLCONTEXT_DEVICE_INDEX", None)
    try:
        libraries = {"libgl": "libGL.so.1", "libegl": "libEGL.so.1"}
        return moderngl.create_context(
            require=_VERSION, standalone=True, backend="egl", device_index=device, **libraries
        )
    finally:
        if asked is not None:
            os.environ["GLCONTEXT_DEVICE_INDEX"] = asked


def _devices(wanted: int | None) -> list[int]:
    """Numbers of the devices to try, in this order."""
    egl = _egl()
    count = ctypes.c_int(0)
    listed = (ctypes.c_void_p * 64)()
    query = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    if query:
        ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(query)(
            len(listed), listed, ctypes.byref(count)
        )
    if not count.value:
        raise DataError(f"EGL found no device; install the driver of your GPU, or the GL libraries ({_PACKAGES})")
    if wanted is not None:
        if not 0 <= wanted < count.value:
            last = count.value - 1
            found = f"{count.value} devices, numbered from 0 to {last}" if last else "only one device, number 0"
            raise DataError(f"GPU {wanted} does not exist: EGL found {found}")
        return [wanted]
    # CUDA's come first, in CUDA's order: the driver tells places in CUDA_VISIBLE_DEVICES, and none of what that hides
    numbers = {
        number: (_is_software(egl, listed[number]), _cuda_number(egl, listed[number])) for number in range(count.value)
    }
    return sorted(numbers, key=numbers.__getitem__)


def _is_software(egl: Any, device: int | None) -> bool:
    """Whether a device says that it is none."""
    query = egl.eglGetProcAddress(b"eglQueryDeviceStringEXT")
    if not query:
        return False
    told = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int)(query)(device, _EGL_EXTENSIONS)
    return _SOFTWARE in (told or b"")


def _cuda_number(egl: Any, device: int | None) -> float:
    """Number by which CUDA knows a device in this process; infinite where it does not."""
    query, number = egl.eglGetProcAddress(b"eglQueryDeviceAttribEXT"), ctypes.c_ssize_t(-1)
    if not query:
        return math.inf
    ask = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(query)
    known = ask(device, _CUDA_DEVICE, ctypes.byref(number)) and number.value >= 0
    return number.value if known else math.inf


def _egl() -> Any:
    try:
        ctypes.CDLL("libGL.so.1")
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError as error:
        raise DataError(f"could not load OpenGL ({error}); {_PACKAGES}") from error
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    egl.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    return egl


def _function(egl: Any, name: bytes, *types: Any) -> Any:
    return ctypes.CFUNCTYPE(None, *types)(egl.eglGetProcAddress(name))
