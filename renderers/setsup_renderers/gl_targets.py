"""Buffers that the gl renderer draws to, and frames made of what is in them."""

from itertools import pairwise
from sys import getrefcount

import numpy as np

from setsup.arrays import Array
from setsup.scenes.frame import Frame
from setsup_renderers.gl_context import Context
from setsup_renderers.gl_shaders import RESOLVE

__all__ = ["LARGE", "TRIANGLES", "Fine", "Target"]


LARGE = 1 << 22
"""Pixels: buffers of larger images are not kept."""
TRIANGLES = 4
"""What OpenGL calls them."""

_GIVEN = 4  # frames of a size whose memory may be used again
_NOTHING = np.full(4, -1, np.int32)
_NEAREST = 0x2600
_PARTS = "render parts of the image with camera.windowed(…)"


class Target:
    """Buffers of one size of images, and how frames are read from them."""

    def __init__(self, gpu: Context, height: int, width: int) -> None:
        self.gpu, self.shape = gpu, (height, width)
        texture = gpu.gl.texture
        size = (width, height)
        self.color = texture(size, 1, dtype="u4")
        self.geometry = [texture(size, 4, dtype="f4"), texture(size, 2, dtype="i4")]
        self.depth = gpu.depth_buffer(height, width)
        # before a framebuffer holds what there is of it
        gpu.check_error(f"render images of {width} × {height} pixels", _PARTS)
        self.all = gpu.gl.framebuffer([self.color, *self.geometry], self.depth)
        self.only = gpu.gl.framebuffer(self.geometry, self.depth)
        self.flat = gpu.gl.framebuffer([self.color])
        self.read = [np.empty((*self.shape, count), dtype) for count, dtype in ((4, "u1"), (4, "f4"), (2, "i4"))]
        self.given: list[Array] = []

    def clear(self, color: Array | None) -> None:
        """Use the buffers, with or without colours, and empty them."""
        buffers = self.only if color is None else self.all
        buffers.use()
        buffers.clear(0.0, 0.0, 0.0, 0.0, depth=0.0)
        if color is not None:
            self.gpu.clear(0, color.ctypes.data)
        self.gpu.clear(1 if color is None else 2, _NOTHING.ctypes.data)

    def frame(self, channels: int) -> Frame:
        """Read what was drawn."""
        color, geometry, ids = self.read
        self.color.read_into(color)
        self.geometry[0].read_into(geometry)
        self.geometry[1].read_into(ids)
        result = self._empty(channels)
        if channels == 4:
            result.rgb[:] = color
        else:
            _split(color, [result.rgb[..., channel] for channel in range(3)])
        _split(geometry, [*(result.normal[..., axis] for axis in range(3)), result.depth])
        _split(ids, [result.instance, result.triangle])
        return result

    def _empty(self, channels: int) -> Frame:
        """Frame to be filled: in memory of an earlier one, where nobody refers to that any more.

        Fresh memory comes page by page, which may take as long as the drawing.
        """
        pixels = self.shape[0] * self.shape[1]
        size = (24 + channels) * pixels
        for number, references in enumerate(_references(self.given)):
            if references == _UNUSED and len(self.given[number]) == size:
                whole = self.given[number]
                break
        else:
            whole = np.empty(size, np.uint8)
            if pixels <= LARGE:
                self.given = [*self.given[1 - _GIVEN :], whole]
        ends = [0, *(pixels * size for size in (4, 16, 20, 24, 24 + channels))]
        depth, normal, instance, triangle, rgb = (whole[start:stop] for start, stop in pairwise(ends))
        return Frame(
            rgb.reshape(*self.shape, channels),
            depth.view(np.float32).reshape(self.shape),
            normal.view(np.float32).reshape(*self.shape, 3),
            instance.view(np.int32).reshape(self.shape),
            triangle.view(np.int32).reshape(self.shape),
        )


class Fine:
    """Buffers of more samples than pixels, for colours."""

    def __init__(self, gpu: Context, height: int, width: int, times: int) -> None:
        self.gpu, self.times = gpu, times
        self.samples = gpu.gl.texture((width * times, height * times), 4, dtype="f2")
        self.samples.filter = (_NEAREST, _NEAREST)
        depth = gpu.depth_buffer(height * times, width * times)
        gpu.check_error(f"render {times} × {times} samples of {width} × {height} pixels", _PARTS)
        self.buffers = gpu.gl.framebuffer([self.samples], depth)
        self.program = gpu.shared(("program", "resolve"), lambda: gpu.program(*RESOLVE))
        self.array = gpu.gl.vertex_array(self.program, [])

    def clear(self, light: tuple[float, ...]) -> None:
        """Use the buffers, and fill them with light."""
        self.buffers.use()
        self.buffers.clear(*light, depth=0.0)

    def average(self, target: Target) -> None:
        """Average the samples into the colours of an image."""
        target.flat.use()
        self.samples.use(0)
        self.program["times"].value = self.times
        self.array.render(TRIANGLES, 3)


def _split(values: Array, channels: list[Array]) -> None:
    """Take channels apart, one by one: numpy takes five times as long over all at once."""
    for number, channel in enumerate(channels):
        channel[:] = values[..., number]


def _references(arrays: list[Array]) -> list[int]:
    return [getrefcount(array) for array in arrays]


_UNUSED = _references([np.empty(0)])[0]
"""Counted for an array to which nothing but a list refers."""
