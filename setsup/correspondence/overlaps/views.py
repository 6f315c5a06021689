"""Sample pixels of views, and which of their points another view shows: by rays through scenes, or recorded depth."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from setsup import random
from setsup.arrays import Array, Bools, Bytes, Reals, Rows
from setsup.correspondence import planar
from setsup.correspondence.from_depth import compare_depth
from setsup.correspondence.pixel_pairs import OCCLUDED, OUTSIDE, VISIBLE
from setsup.correspondence.recorded_frames import fetch_depth, has_depth, has_tracks, lacking, read_frame
from setsup.correspondence.spatial_rays import exact_rays
from setsup.errors import SetsupError, advice
from setsup.scenes.camera import Camera

__all__ = ["Source", "SourceName", "View", "ViewReader", "choose_source", "content_digest", "focal_length"]

SourceName = Literal["scenes", "depth", "tracks"]

_SHAPES = ("image", "depth", "distortion")  # modalities that options of opening a dataset change
_BLOCK = 256  # pixels that are looked at first for a view's sample pixels; then twice as many, and so on


class View(NamedTuple):
    """A view with its sample pixels.

    Attributes
    ----------
    camera : Camera
        Its camera.
    points : (n, 4) or (n, 8) float64
        Of each sample pixel: x, y, z in the world (metres) and depth over focal length; of scenes also the plane of
        its surface, turned towards the camera.
    span : (2,) float64, metres
        Between which depths all the surface lies that the view shows.
    closed : bool
        Whether the view certainly shows nothing beyond that.

    """

    camera: Camera
    points: Reals
    span: Reals
    closed: bool


class ViewReader(Protocol):
    """Views of one scene."""

    def sample(self, row: int, pixels: int, key: int) -> View:
        """Draw the sample pixels of a view."""

    def statuses(self, row: int, camera: Camera, points: Reals) -> tuple[Bytes, Reals]:
        """Status in a view of points of others, (n,) uint8, and their depth in it, (n,) float64."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the views of a dataset come from; pickles with the dataset."""

    dataset: Any
    name: SourceName
    tolerance: float
    absolute: float

    def reader(self, row: int) -> ViewReader:
        """Views of the scene of a row."""
        if self.name == "scenes":
            return _TracedViews(self.dataset, row)
        return _RecordedViews(self.dataset, self.tolerance, self.absolute)


def choose_source(dataset: Any, name: SourceName | None) -> SourceName:
    """What the overlaps of a dataset are measured from: what is asked for, else scenes, else depth, else tracks."""
    has = {"scenes": hasattr(dataset, "scene") and hasattr(dataset, "camera")}
    has |= {"depth": has_depth(dataset), "tracks": has_tracks(dataset)}
    choices: tuple[SourceName, ...] = ("scenes", "depth", "tracks") if name is None else (name,)
    for choice in choices:
        if has[choice]:
            return choice
    if name == "tracks":
        raise SetsupError(
            f"{dataset.name} has no tracks of feature points; pass a capture with a COLMAP model, opened by setsup.open"
        )
    if name == "scenes":
        raise SetsupError(f"{dataset.name} has no scenes to trace; pass source='depth', or a RenderedDataset")
    raise SetsupError(
        f"the overlap of views of {dataset.name} cannot be measured, since it lacks the modalities "
        f"{', '.join(lacking(dataset))}; pass a rendered dataset, a folder written by `setsup render`, a dataset with "
        "the modalities depth, pose and intrinsics, or a capture with a COLMAP model"
    )


def content_digest(source: Source, row: int) -> str:
    """Digest of what overlaps depend on and factors do not tell: recipe, shapes, and the first view that is compared.

    The view counts with its depth and camera, or the points that it observes. So options with which a dataset was
    opened count, such as its size, undistortion and unit of depth.
    """
    dataset = source.dataset
    recipe = getattr(dataset, "recipe", None)
    key = getattr(dataset, "recipe_key", None) if recipe is None else hashlib.sha256(recipe.key.encode()).hexdigest()
    known = {name: dataset.modalities[name].to_dict() for name in _SHAPES if name in dataset.modalities}
    digest = hashlib.blake2b(json.dumps([key, known]).encode(), digest_size=16)
    for array in _first_view(source, row):
        digest.update(repr((array.dtype.str, array.shape)).encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _first_view(source: Source, row: int) -> list[Array]:
    dataset = source.dataset
    if source.name == "scenes":
        return []
    if source.name == "depth":
        depth, camera = read_frame(dataset, row)
        return [depth, camera.k, camera.rotation, camera.translation]
    camera = dataset.fetch(row, ["pose", "intrinsics"])
    return [np.asarray(dataset.observed(row)), np.asarray(camera["pose"]), np.asarray(camera["intrinsics"])]


class _TracedViews:
    """Views of a scene, traced; decides as :func:`setsup.correspondence.spatial` does."""

    def __init__(self, dataset: Any, row: int) -> None:
        self._dataset, self._row, self._scene = dataset, row, dataset.scene(row)
        self._rays = exact_rays(self._scene)
        self._bounds: Reals | None = None
        if len(self._scene.triangles.corners):
            low, high = self._scene.bounds
            self._bounds = np.stack(np.meshgrid(*zip(low, high, strict=True)), axis=-1).reshape(-1, 3)

    def sample(self, row: int, pixels: int, key: int) -> View:
        """Draw the sample pixels of a view."""
        if self._dataset.scene(row).digest != self._scene.digest:
            raise SetsupError(
                f"rows {self._row} and {row} of {self._dataset.name} show different scenes; pass the factors "
                f"in which the views of a scene agree with {advice('scene=', '--scene')}"
            )
        camera: Camera = self._dataset.camera(row)

        def seen(at: Reals) -> tuple[Bools, Reals]:
            ways = camera.rays(at)
            surfaces = self._rays.first(camera.centre, ways)
            turned = self._rays.turned_towards(camera.centre, surfaces.planes)
            found = np.concatenate([camera.centre + ways * surfaces.reach[:, None], turned], axis=1)
            return surfaces.triangle >= 0, found

        drawn = _draw_pixels(camera, pixels, key, seen)
        xyz = drawn[:, :3]
        span = np.array([0.0, 0.0])
        if self._bounds is not None:
            depth = camera.project(self._bounds)[1]
            span = np.array([max(float(depth.min()), 0.0), max(float(depth.max()), 0.0)])
        return View(camera, np.concatenate([xyz, _coarseness(camera, xyz)[:, None], drawn[:, 3:]], axis=1), span, True)

    def statuses(self, row: int, camera: Camera, points: Reals) -> tuple[Bytes, Reals]:
        """Status in a view of points of others, and their depth in it."""
        places, depth = camera.project(points[:, :3])
        status = np.full(len(points), OUTSIDE, np.uint8)
        there = np.flatnonzero(planar.inside(places, camera.height, camera.width))
        inside, centre = points.take(there, axis=0), camera.centre
        back, turned = inside[:, :3] - centre, inside[:, 4:]
        free = self._rays.free(centre, back, turned) & self._rays.faced(centre, back, turned)
        status[there] = np.where(free, VISIBLE, OCCLUDED)
        return status, depth


class _RecordedViews:
    """Views with recorded depth; decides as :func:`setsup.correspondence.from_depth` does."""

    def __init__(self, dataset: Any, tolerance: float, absolute: float) -> None:
        self._dataset, self._tolerance, self._absolute = dataset, tolerance, absolute

    def sample(self, row: int, pixels: int, key: int) -> View:
        """Draw the sample pixels of a view."""
        image, camera = read_frame(self._dataset, row)
        known = np.isfinite(image) & (image > 0)

        def seen(at: Reals) -> tuple[Bools, Reals]:
            column, line = at.astype(np.int64).T
            depth = image[line, column].astype(np.float64)
            return known[line, column], camera.centre + depth[:, None] * camera.rays(at)

        xyz = _draw_pixels(camera, pixels, key, seen)[:, :3]
        depths = image[known]
        span = np.array([depths.min(), depths.max()], np.float64) if len(depths) else np.zeros(2)
        # a point counts as visible within the tolerance of the depth
        reach = max(span[1] / (1 - self._tolerance) if self._tolerance < 1 else np.inf, span[1] + self._absolute)
        closed = bool(known.all()) and bool(np.isfinite(reach))
        span[1] = reach if closed else span[1]
        return View(camera, np.concatenate([xyz, _coarseness(camera, xyz)[:, None]], axis=1), span, closed)

    def statuses(self, row: int, camera: Camera, points: Reals) -> tuple[Bytes, Reals]:
        """Status in a view of points of others, and their depth in it."""
        image = fetch_depth(self._dataset, row)
        places, depth = camera.project(points[:, :3])
        status = np.full(len(points), OUTSIDE)
        there = np.flatnonzero(planar.inside(places, camera.height, camera.width))
        status[there] = compare_depth(image, places[there], depth[there], self._tolerance, self._absolute)
        return status, depth


def _draw_pixels(camera: Camera, pixels: int, key: int, seen: Callable[[Reals], tuple[Bools, Reals]]) -> Reals:
    """What is seen at the first pixels of a keyed permutation that show a surface: uniform, and without repeats."""
    total = camera.height * camera.width
    parts: list[Reals] = []
    start, left, block = 0, pixels, _BLOCK
    while left > 0 and start < total:
        flat: Rows = random.permute(np.uint64(key), total, np.arange(start, min(start + max(block, left), total)))
        start, block = start + len(flat), 2 * block
        rows, columns = np.divmod(flat, camera.width)
        there, found = seen(np.stack([columns, rows], axis=-1).astype(np.float64))
        parts.append(found[there][:left])
        left -= len(parts[-1])
    return np.concatenate(parts)


def _coarseness(camera: Camera, xyz: Reals) -> Reals:
    """Depth of points over the focal length, (n,) metres per pixel."""
    return np.asarray(camera.project(xyz)[1] / focal_length(camera))


def focal_length(camera: Camera) -> float:
    """Geometric mean of the two focal lengths of a camera, in pixels."""
    return float(np.sqrt(abs(camera.k[0, 0] * camera.k[1, 1])))
