"""Images by pyrender, with its physically based shader; the geometry behind them by rays.

Geometry
--------
pyrender has no image of normals or triangles, and its depth is that of one of four samples of a pixel, not of its
centre. Depth, normals, instances and triangles are therefore traced, exactly as the ``embree`` renderer does: the two
agree in every number. Only ``rgb`` is pyrender's, averaged over four samples a pixel.

Colour
------
Surfaces have pyrender's metallic–roughness material with no metal and full roughness. Light is added up in linear
light: under ambient light alone every byte of a plain colour is that of the other renderers. Lamps differ, since a
rough surface still has the gloss of a dielectric: white that faces lamp and camera comes out as it is, grey of 188 and
128 one or two bytes brighter under :data:`~setsup.scenes.scene.STUDIO`, 64 by four, black as 20. Textures are filtered
between the levels of a pyramid, and as sRGB bytes, not in linear light: halfway from a black texel to a white one the
surface has 128, where those of the other renderers have 188.

Lights
------
Ambient light and directional lights without shadows are drawn at once. Each lamp and each light with shadows is drawn
by itself, white and even, since pyrender's lamps fall with the distance and its spots end at an angle in a way of
their own, and its shadows are coarse images: what arrives at the centre of each pixel, shadows included, is worked
out as ``embree`` does, and multiplied with what pyrender's shader makes of it. At silhouettes the light of all samples
is that of the centre.

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

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats
from setsup.checks import check_instance
from setsup.errors import SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.color import to_bytes
from setsup.scenes.frame import Frame
from setsup.scenes.scene import Directional, Lamp, Scene
from setsup_renderers.embree import EmbreeRenderer
from setsup_renderers.pyrender_context import context, device, library, release
from setsup_renderers.pyrender_scene import GAMMA, Pass, dim, lamps, middle, passes, pinhole, pose
from setsup_renderers.shading import Seen, light

__all__ = ["PyrenderRenderer"]


_MOST = (1 << 16) - 1
_LIGHT = ((np.arange(_MOST + 1) / _MOST) ** GAMMA).astype(np.float32)  # of what pyrender gives
_BYTES = to_bytes((np.arange(_MOST + 1) / _MOST) ** GAMMA)


class _Geometry(EmbreeRenderer):
    """What each pixel sees, and the light that arrives there; no colours."""

    def load(self, scene: Scene) -> None:
        super().load(scene)
        self._lamps = lamps(scene)

    def trace(self, camera: Camera) -> tuple[Frame, Floats]:
        """Draw a frame, and give the light of each lamp that arrives at its pixels, (lamps, H, W, 3)."""
        self._arrived: list[Floats] = []
        frame = self.render(camera)
        arrived = np.zeros((len(self._lamps), *frame.depth.shape, 3), np.float32)
        if self._lamps:
            arrived[:, frame.triangle >= 0] = np.concatenate(self._arrived, axis=1)
        return frame, arrived

    def _colors(self, camera: Camera, seen: Seen, flat: Floats, shading: Floats) -> Floats:
        size = max(self._size, float(np.abs(camera.centre - self._middle).max()))
        for_each = []
        for lamp in self._lamps:
            # as if every point faced the lamp: how far it does not is the shader's affair
            if isinstance(lamp, Directional):
                towards = np.broadcast_to(-np.array(lamp.direction), flat.shape)
            else:
                towards = lamp.position - camera.centre - seen.ray * seen.distance[:, None]
            facing = towards / np.maximum(np.linalg.norm(towards, axis=1, keepdims=True), 1e-30)
            for_each.append(light([lamp], camera, seen, flat, facing.astype(np.float32), self._rays.blocked, size))
        self._arrived.append(np.array(for_each, np.float32).reshape(len(for_each), len(flat), 3))
        return np.zeros((1, 3), np.float32)


class PyrenderRenderer:
    """Draws with pyrender, on EGL or OSMesa.

    Attributes
    ----------
    name : str
        ``"pyrender"``.

    """

    name = "pyrender"

    def __init__(self) -> None:
        self._geometry = _Geometry()
        self._scene: Scene | None = None
        self._passes: list[Pass] = []

    @classmethod
    def check(cls) -> str:
        """Say on what it would draw here; a process of its own is asked where this one has not drawn yet."""
        return device()

    def load(self, scene: Scene) -> None:
        """Make a scene the one that is drawn."""
        made = self._passes if scene is self._scene else passes(library(), scene)
        self._geometry.load(scene)
        if scene is not self._scene:
            self._release()
            self._scene, self._passes = scene, made

    def render(self, camera: Camera) -> Frame:
        """Draw the scene."""
        check_instance(camera, Camera, "what is rendered from", SetsupError)
        frame, arrived = self._geometry.trace(camera)
        return replace(frame, rgb=self._colors(camera, frame, arrived))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the call that makes it: another process loads the scene itself."""
        return PyrenderRenderer, ()

    def close(self) -> None:
        """Give back the buffers of the scene; the context stays until the process ends."""
        self._geometry.close()
        self._release()
        self._scene, self._passes = None, []

    def _release(self) -> None:
        if self._passes:
            release(self._passes[0].scene)

    def _colors(self, camera: Camera, frame: Frame, arrived: Floats) -> npt.NDArray[np.uint8]:
        """Colours of all passes together."""
        assert self._scene is not None
        shares = [
            None if render_pass.lamp is None else _share(render_pass, camera, frame, arrived[number])
            for number, render_pass in enumerate(self._passes, len(arrived) - len(self._passes))
        ]
        near, far = _depths(self._scene, camera, frame.depth)
        images = context().run(lambda: [self._drawn(render_pass, camera, near, far) for render_pass in self._passes])
        alpha = images[0][..., 3]
        if self._scene.background is None:
            images = [_undone(image, alpha) for image in images]
        if len(images) == 1:
            rgb = _BYTES[images[0][..., :3]]
        else:
            total = np.zeros((*alpha.shape, 3), np.float32)
            for image, share in zip(images, shares, strict=True):
                total += _LIGHT[image[..., :3]] * (1 if share is None else share)
            rgb = to_bytes(total)
        if self._scene.background is not None:
            return rgb
        return np.concatenate([rgb, ((alpha[..., None] * 255 + _MOST // 2) // _MOST).astype(np.uint8)], axis=-1)

    def _drawn(self, render_pass: Pass, camera: Camera, near: float, far: float) -> npt.NDArray[np.uint32]:
        """A pass as pyrender draws it, (H, W, 4); on the thread of the context."""
        assert self._scene is not None
        mirrored = camera.k[0, 0] * camera.k[1, 1] < 0
        origin = middle(self._scene)
        for node, lamp in render_pass.nodes:
            if isinstance(lamp, Directional) and lamp.of_camera:
                render_pass.scene.set_pose(node, pose(lamp, origin, camera))
        # or pyrender would take one side of a triangle for the other
        seen, stands = pinhole(library(), _mirrored(camera) if mirrored else camera, origin, near, far)
        node = render_pass.scene.add(seen, pose=stands)
        try:
            image = context().draw(render_pass.scene, camera.height, camera.width).astype(np.uint32)
        finally:
            render_pass.scene.remove_node(node)
        return image[:, ::-1] if mirrored else image


def _share(render_pass: Pass, camera: Camera, frame: Frame, arrived: Floats) -> Floats:
    """By what the image of a lamp is multiplied, (H, W, 3); sets how bright the lamp is drawn."""
    share, met = arrived, frame.depth > 0
    if isinstance(render_pass.lamp, Lamp) and met.any():
        points = camera.centre + camera.rays() * frame.depth.reshape(-1, 1)
        square = ((points - render_pass.lamp.position) ** 2).sum(axis=1).reshape(met.shape)
        # full where anything stands nearest, so that nothing is cut to white; but not so near that the rest is dark
        full = max(square[met].min(), np.median(square[met]) / 1000)
        dim(render_pass, math.sqrt(full))
        share = arrived * (square / full).astype(np.float32)[..., None]
    return _spread(share, met)


def _mirrored(camera: Camera) -> Camera:
    """Camera whose images are those of another, left and right exchanged."""
    k = camera.k.copy()
    k[0] *= -1
    k[0, 2] += camera.width - 1
    return replace(camera, k=k)


def _undone(image: npt.NDArray[np.uint32], alpha: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Colours of what covers a pixel in part: pyrender has averaged them with black."""
    whole = image * np.uint64(_MOST) // np.maximum(alpha, 1)[..., None]
    return np.asarray(np.minimum(whole, _MOST).astype(np.uint32))


def _spread(share: Floats, met: npt.NDArray[np.bool_]) -> Floats:
    """Shares of light, (H, W, 3), with those of their neighbours at pixels whose centres met nothing."""
    y, x = np.nonzero(~met)
    padded, known = np.pad(share * met[..., None], ((1, 1), (1, 1), (0, 0))), np.pad(met, 1)
    total, count = np.zeros((len(y), 3), np.float32), np.zeros((len(y), 1), np.float32)
    for down in range(3):
        for across in range(3):
            total += padded[y + down, x + across]
            count += known[y + down, x + across][:, None]
    filled = share.copy()
    filled[y, x] = total / np.maximum(count, 1)
    return filled


def _depths(scene: Scene, camera: Camera, depth: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Depths before and behind all that is seen."""
    corners = np.stack(np.meshgrid(*scene.bounds.T), axis=-1).reshape(-1, 3)
    seen = depth[depth > 0]
    near = float(seen.min()) / 2 if len(seen) else 0.01
    return near, max(1.01 * float(camera.project(corners)[1].max()), 2 * near)
