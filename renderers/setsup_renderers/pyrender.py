"""Pictures by pyrender, with its physically based shader; the geometry behind them by rays.

Geometry
--------
pyrender has no picture of normals or triangles, and its depth is that of one of four samples of a pixel, not of its
centre. Depth, normals, instances and triangles are therefore traced, exactly as the ``embree`` renderer does: the two
agree in every number. Only ``rgb`` is pyrender's, averaged over four samples a pixel.

Colour
------
Surfaces have pyrender's metallic–roughness material with no metal and full roughness. Light is added up in linear
light: under ambient light alone every byte is that of the other renderers. Lamps differ, since a rough surface still
has the gloss of a dielectric: white that faces lamp and camera comes out as it is, grey of 188 and 128 one or two
bytes brighter under :data:`~setsup.scenes.scene.STUDIO`, 64 by four, black as 20. Textures are filtered between the
levels of a pyramid.

Lights
------
Ambient and directional lights are as described, and so are lamps with a ``reach``. Approximate are

- lamps without ``reach``: pyrender's light always falls with the square of the distance; half of the surface of the
  scene gets more than it should, half less;
- spots of an ``exponent`` other than 0 and 2: pyrender's are cut off at an angle. Light is right on the axis and where
  half is left, and differs by up to 0.3 of the full light for exponent 1, 0.1 from 3 on;
- shadows: pictures of 2048 × 2048 as seen from the light. Lamps that are no spots throw none, and spots with shadows
  end 75 degrees off their axis.

At most four lights of a kind (directional, lamps, spots) can be drawn.

Processes
---------
All renderers of a process share one GL context, on a thread of its own, and the buffers of the scene drawn last. A
process forked from one that has drawn gets a DataError; spawned ones draw. ``PYOPENGL_PLATFORM``, ``egl`` by default
or ``osmesa``, is set when pyrender is first used; ``EGL_DEVICE_ID`` chooses the GPU, 0 by default.

References
----------
.. [1] M. Matl and others, "pyrender", the maintained distribution pyrender2: https://pypi.org/project/pyrender2
.. [2] Khronos Group, "glTF 2.0 Specification", appendix B: the metallic–roughness material.

"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.scenes.camera import Camera
from setsup.scenes.color import to_bytes
from setsup.scenes.frame import Frame
from setsup.scenes.scene import Directional, Light, Scene
from setsup_renderers.embree import EmbreeRenderer
from setsup_renderers.pyrender_context import context, library, release
from setsup_renderers.pyrender_scene import GAMMA, lit, middle, pinhole, pose
from setsup_renderers.shading import Seen

__all__ = ["PyrenderRenderer"]

Floats = npt.NDArray[np.float32]

_MOST = (1 << 16) - 1
_BYTES = to_bytes((np.arange(_MOST + 1) / _MOST) ** GAMMA)  # sRGB of what pyrender gives


class _Geometry(EmbreeRenderer):
    """Without colours."""

    def _colors(self, camera: Camera, seen: Seen, flat: Floats, shading: Floats) -> Floats:
        return np.zeros((1, 3), np.float32)


class PyrenderRenderer:
    """Draws with pyrender, on EGL or OSMesa.

    Attributes
    ----------
    name : str
        ``"pyrender"``.

    Examples
    --------
    >>> from setsup.scenes import Renderer
    >>> isinstance(PyrenderRenderer(), Renderer)
    True

    """

    name = "pyrender"

    def __init__(self) -> None:
        self._geometry = _Geometry()
        self._scene: Scene | None = None
        self._made: Any = None  # pyrender's scene
        self._lamps: list[tuple[Any, Light]] = []
        self._flags = 0

    @classmethod
    def check(cls) -> str:
        """Make the context of this process, and say on what it draws.

        Raises
        ------
        DataError
            When pyrender, a library of GL or a driver is missing, there is no GPU of the wanted number, OpenGL was
            imported for a platform with windows, or this process was forked from one that had drawn.

        """
        return context().device

    def load(self, scene: Scene) -> None:
        """Make a scene the one that is drawn.

        Raises
        ------
        DataError
            When pyrender or the libraries of GL are missing.
        SetsupError
            When there are more than four lights of a kind, or the renderer was closed.

        """
        self._geometry.load(scene)
        if scene is not self._scene:
            made, lamps, flags = lit(library(), scene)
            self._release()
            self._scene, self._made, self._lamps, self._flags = scene, made, lamps, flags

    def render(self, camera: Camera) -> Frame:
        """Draw the scene.

        Raises
        ------
        DataError
            When there is no GL here, as :meth:`check` says.
        SetsupError
            When no scene was loaded, the renderer was closed, or the picture is larger than the driver draws.

        """
        frame = self._geometry.render(camera)
        return replace(frame, rgb=self._colors(camera, frame.depth))

    def close(self) -> None:
        """Give back the buffers of the scene; the context stays until the process ends."""
        self._geometry.close()
        self._release()
        self._scene, self._made, self._lamps = None, None, []

    def _release(self) -> None:
        if self._made is not None:
            release(self._made)

    def _colors(self, camera: Camera, depth: Floats) -> npt.NDArray[np.uint8]:
        scene = self._scene
        assert scene is not None
        mirrored = camera.k[0, 0] * camera.k[1, 1] < 0
        if mirrored:  # or pyrender would take one side of a triangle for the other
            across = [[-1, -1, -1], [1, 1, 1], [1, 1, 1]]
            camera = replace(camera, k=camera.k * across + [[0, 0, camera.width - 1], [0, 0, 0], [0, 0, 0]])
        pixels = context().run(lambda: self._drawn(camera, *_depths(scene, camera, depth)))
        if mirrored:
            pixels = pixels[:, ::-1]
        if scene.background is not None:
            return _BYTES[pixels[..., :3]]
        alpha = pixels[..., 3:].astype(np.int64)
        color = np.minimum(pixels[..., :3].astype(np.int64) * _MOST // np.maximum(alpha, 1), _MOST)
        return np.concatenate([_BYTES[color], ((alpha * 255 + _MOST // 2) // _MOST).astype(np.uint8)], axis=-1)

    def _drawn(self, camera: Camera, near: float, far: float) -> npt.NDArray[np.uint16]:
        """As pyrender draws it; on the thread of the context."""
        assert self._scene is not None
        made, origin = self._made, middle(self._scene)
        for node, light in self._lamps:
            if isinstance(light, Directional) and light.of_camera:
                made.set_pose(node, pose(light, origin, camera))
        seen, stands = pinhole(library(), camera, origin, near, far)
        node = made.add(seen, pose=stands)
        try:
            return context().draw(made, self._flags, camera.height, camera.width)
        finally:
            made.remove_node(node)


def _depths(scene: Scene, camera: Camera, depth: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Depths before and behind all that is seen."""
    corners = np.stack(np.meshgrid(*scene.bounds.T), axis=-1).reshape(-1, 3)
    seen = depth[depth > 0]
    near = float(seen.min()) / 2 if len(seen) else 0.01
    return near, max(1.01 * float(camera.project(corners)[1].max()), 2 * near)
