"""The reference renderer: rays by Embree, shading in numpy. No GL, no driver; survives fork.

Its bytes are the same on every run, which is what images in tests are compared with.
"""

from importlib.metadata import PackageNotFoundError, version

import numpy as np
import numpy.typing as npt

from setsup.arrays import Floats
from setsup.checks import check_instance, check_integer
from setsup.errors import DataError, SetsupError, imported
from setsup.scenes.camera import Camera
from setsup.scenes.color import LINEAR, to_bytes
from setsup.scenes.frame import Frame
from setsup.scenes.ray_engines import Hits
from setsup.scenes.rays import Rays
from setsup.scenes.scene import Scene
from setsup_renderers.shading import Seen, Surfaces, light, normals

__all__ = ["EmbreeRenderer"]


_RAYS = 1 << 13  # at a time, so that what they need stays in the processor's cache


class EmbreeRenderer:
    """Draws scenes by tracing rays."""

    name = "embree"

    def __init__(self, supersample: int = 1) -> None:
        self.supersample = check_integer(supersample, "supersample", SetsupError, 1, 16)
        self._scene: Scene | None = None
        self._closed = False

    @classmethod
    def check(cls) -> str:
        """Say with what rays are traced here."""
        try:
            imported("embreex.rtcore_scene", "render")
            imported("embreex.mesh_construction", "render")
            return f"Embree by embreex {_version('embreex')}, software"
        except DataError as error:
            try:
                for module in ("trimesh", "rtree"):
                    imported(module, "render")
            except DataError:
                raise error from None  # the stand-in is not what anybody should install
            return f"trimesh {_version('trimesh')} without Embree, many times slower, software ({error})"

    def load(self, scene: Scene) -> None:
        """Make a scene the one that is drawn; what was traced already, by whomever, has its tree."""
        self._open()
        if scene is self._scene:
            return
        self._rays, self._surfaces = Rays(scene), Surfaces(scene)
        bounds = scene.bounds
        self._middle, self._size = bounds.mean(axis=0), float(np.ptp(bounds, axis=0).max()) / 2
        self._scene = scene

    def render(self, camera: Camera) -> Frame:
        """Draw the scene."""
        check_instance(camera, Camera, "what is rendered from", SetsupError)
        scene = self._loaded()
        height, width = camera.height, camera.width
        frame = Frame(
            _behind(height, width, scene.background),
            np.zeros((height, width), np.float32),
            np.zeros((height, width, 3), np.float32),
            np.full((height, width), -1, np.int32),
            np.empty((height, width), np.int32),
        )
        rows = max(1, _RAYS // width)
        for top in range(0, height, rows):
            self._draw(camera, frame, top, min(top + rows, height))
        if self.supersample > 1:
            self._average(camera, frame.rgb)
        return frame

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle as the call that makes it: another process loads the scene itself."""
        return type(self), (self.supersample,)

    def close(self) -> None:
        """Let the scene go; calling it again does nothing."""
        self._closed, self._scene = True, None
        self.__dict__.pop("_rays", None)
        self.__dict__.pop("_surfaces", None)

    def _open(self) -> None:
        if self._closed:
            raise SetsupError("this renderer is closed; create another")

    def _loaded(self) -> Scene:
        self._open()
        if self._scene is None:
            raise SetsupError("this renderer has no scene; call load(scene) before render(camera)")
        return self._scene

    def _draw(self, camera: Camera, frame: Frame, top: int, bottom: int) -> None:
        """Draw some rows of pixels."""
        rays = _rays(camera, top, bottom)
        hits = self._rays.trace(camera.centre, rays)
        seen, some = _seen(hits, rays)
        flat, shading = normals(self._surfaces, seen)
        band = slice(top * camera.width, bottom * camera.width)
        frame.triangle.reshape(-1)[band] = hits.triangle
        frame.depth.reshape(-1)[band][some] = seen.distance
        frame.instance.reshape(-1)[band][some] = self._surfaces.instance.take(seen.triangle)
        frame.normal.reshape(-1, 3)[band][some] = shading @ camera.rotation.T.astype(np.float32)
        colors = self._colors(camera, seen, flat, shading)
        if self.supersample == 1:
            rgb = frame.rgb.reshape(-1, frame.rgb.shape[2])[band]
            rgb[some, :3] = to_bytes(colors)
            rgb[some, 3:] = 255

    def _colors(self, camera: Camera, seen: Seen, flat: Floats, shading: Floats) -> Floats:
        """Light that comes from each point to the camera, (n, 3)."""
        size = max(self._size, float(np.abs(camera.centre - self._middle).max()))
        fallen = light(self._loaded().lights, camera, seen, flat, shading, self._rays.blocked, size)
        colors = self._surfaces.appearance.albedo(seen.triangle, seen.u, seen.v)
        colors *= fallen
        return colors

    def _average(self, camera: Camera, rgb: npt.NDArray[np.uint8]) -> None:
        """Average the colours of more rays a pixel."""
        times, background = self.supersample, self._loaded().background
        fine = camera.resized(camera.height * times, camera.width * times)
        rows = max(1, _RAYS // (camera.width * times * times))
        for top in range(0, camera.height, rows):
            bottom = min(top + rows, camera.height)
            rays = _rays(fine, top * times, bottom * times)
            seen, some = _seen(self._rays.trace(camera.centre, rays), rays)
            samples = np.zeros((len(rays), 4), np.float32)
            if background is not None:
                samples[:, :3] = LINEAR[list(background)]
            samples[some, :3] = np.clip(self._colors(camera, seen, *normals(self._surfaces, seen)), 0, 1)
            samples[some, 3] = 1
            mean = samples.reshape(bottom - top, times, camera.width, times, 4).mean(axis=(1, 3), dtype=np.float64)
            if background is None:
                mean[..., :3] /= np.maximum(mean[..., 3:], 0.5 / times**2)  # of what covers the pixel
                rgb[top:bottom, :, 3] = np.floor(255 * mean[..., 3] + 0.5)
            rgb[top:bottom, :, :3] = to_bytes(mean[..., :3])


def _behind(height: int, width: int, background: tuple[int, int, int] | None) -> npt.NDArray[np.uint8]:
    """Image of nothing but the background."""
    if background is None:
        return np.zeros((height, width, 4), np.uint8)
    return np.full((height, width, 3), background, np.uint8)


def _seen(hits: Hits, rays: Floats) -> tuple[Seen, slice | npt.NDArray[np.intp]]:
    """What was met, and by which rays: a slice, which copies nothing, when it was all of them."""
    met = np.flatnonzero(hits.triangle >= 0)
    some = slice(None) if len(met) == len(rays) else met
    return Seen(hits.triangle[some], hits.distance[some], hits.u[some], hits.v[some], rays[some]), some


def _rays(camera: Camera, top: int, bottom: int) -> Floats:
    """Rays through the pixels of some rows, as :meth:`Camera.rays` has them, without large numbers in between."""
    corner, right, below = camera.rays([[0, top], [1, top], [0, top + 1]])
    across = np.arange(camera.width)[:, None] * (right - corner)
    down = corner + np.arange(bottom - top)[:, None] * (below - corner)
    ways = np.empty((bottom - top, camera.width, 3), np.float32)
    np.add(down[:, None], across[None], out=ways, casting="same_kind")
    return ways.reshape(-1, 3)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"
