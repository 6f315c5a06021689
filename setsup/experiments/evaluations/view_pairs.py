"""Pairs of views of any dataset with pixel correspondences, and what is true of them: places, instances, edges."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Numbers, Reals, Rows
from setsup.correspondence import PixelPairs, PixelPairSampler, Status
from setsup.correspondence.matching import Window, matched, view_size
from setsup.correspondence.recorded_frames import row_camera
from setsup.correspondence.rendered_pairs import PAIR
from setsup.datasets import Dataset
from setsup.errors import SamplerError
from setsup.evaluation.pixels import edge_pixels
from setsup.experiments.data import image_modality
from setsup.scenes.camera import Camera

__all__ = ["ViewPair", "content", "draw_view_pairs", "remembered_pairs", "scene_codes", "view_pair"]

_KEPT, _BYTES = 1 << 30, 100  # of pairs that are remembered, and about so many of each pixel


@dataclass(frozen=True, slots=True, eq=False)
class ViewPair:
    """What is known of two views.

    Attributes
    ----------
    rows : (int, int)
        View 1 and view 2.
    pairs : PixelPairs
        Pixels of view 1 and their places in view 2: of all pixels, row after row, or ``sparse`` ones.
    sizes : two of (height, width)
        Of the views, pixels.
    xyz2 : (height, width, 3) float64, metres, optional
        Points that the pixels of view 2 show; NaN where there is no surface.
    surface2 : (height, width) bool, optional
        Which pixels of view 2 show a surface.
    instances : (height, width) int32, optional
        What is seen at each pixel of view 1.
    edges : (height, width) bool, optional
        Edges of instances and depth in view 1.
    angle : float, degrees
        Of the rotation between the cameras; NaN where these are unknown.

    """

    rows: tuple[int, int]
    pairs: PixelPairs
    sizes: tuple[tuple[int, int], tuple[int, int]]
    xyz2: Reals | None = None
    surface2: Bools | None = None
    instances: Numbers | None = None
    edges: Bools | None = None
    angle: float = float("nan")


def draw_view_pairs(
    dataset: Dataset,
    count: int,
    seed: int,
    *,
    scene: str | Sequence[str] | None = None,
    where: str | None = None,
) -> Rows:
    """Draw pairs of views of one scene; no two pairs have the same rows.

    Parameters
    ----------
    dataset : Dataset
        Whose factors say which rows share a scene.
    count : int
        Pairs at most. There are fewer where draws of a :class:`~setsup.correspondence.PixelPairSampler` repeat: 20
        draws per pair are tried.
    seed : int
        Of the sampler.
    scene : str or list of str, optional
        Factors in which the views of a scene agree; those of the dataset (``pair_factors``) by default.
    where : str, optional
        Expression that drawn rows satisfy.

    Returns
    -------
    (n, 2) int64
        Rows of view 1 and view 2.

    Raises
    ------
    SamplerError, FactorError
        When nothing says what a scene is, or no scene has two views.

    Examples
    --------
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> draw_view_pairs(RenderedDataset(Shapes3D(size=(24, 32))), 3, seed=0).shape
    (3, 2)

    """
    sampler = PixelPairSampler(dataset, scene, pairs=1, seed=seed, where=where)
    drawn: dict[tuple[int, ...], None] = {}
    for step in range(20 * count):
        rows = tuple(sampler[step].indices[0].tolist())
        if rows not in drawn and rows[::-1] not in drawn:
            drawn[rows] = None
        if len(drawn) == count:
            break
    return np.array(list(drawn), dtype=np.int64).reshape(-1, 2)


def scene_codes(dataset: Dataset, pairs: Rows, names: Sequence[str] | None = None) -> Rows:
    """Number the scenes of pairs (n, 2) of rows, (n,) int64: the combinations of some factors in view 1.

    By default those of the scenes of a recipe, or in which the views of a scene agree. Of a folder of `setsup render
    --matches`, which numbers its pairs, they are all others in which both views of each pair agree.
    """
    recipe: Any = getattr(dataset, "recipe", None)
    known: Any = getattr(recipe, "scene_factors", None) or getattr(dataset, "pair_factors", ())
    chosen = list(names or known)
    if chosen == [PAIR]:
        chosen = _scene_factors(dataset, pairs) or chosen
    if not chosen:
        raise SamplerError(f"scene= is required for {dataset.name}; pass the factors in which views of a scene agree")
    codes = np.stack([np.asarray(dataset.factors.codes(name, pairs[:, 0]), np.float64) for name in chosen], axis=1)
    return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _scene_factors(dataset: Dataset, pairs: Rows) -> list[str]:
    """Discrete factors that are equal in the two views of all pairs, besides the number of the pair."""
    table = dataset.factors
    return [
        factor.name
        for factor in table.factors
        if factor.name != PAIR
        and not factor.continuous
        and (table.codes(factor.name, pairs[:, 0]) == table.codes(factor.name, pairs[:, 1])).all()
        and len(np.unique(table.codes(factor.name, pairs[:, 0]))) > 1
    ]


def view_pair(dataset: Any, row1: int, row2: int) -> ViewPair:
    """Match two views in the way that the dataset has.

    The first of these: its method ``pixel_pairs``; its scenes; the partners that it stores, if the rows are one of its
    pairs; its depth; the tracks of a COLMAP model.

    Parameters
    ----------
    dataset : Dataset
        Such as a folder of ``setsup render --matches``.
    row1, row2 : int
        View 1 and view 2.

    Returns
    -------
    ViewPair

    Raises
    ------
    SetsupError
        When the dataset has no correspondences, its images differ in size, or the rows do not share a scene.

    Examples
    --------
    >>> from setsup.rendered.dataset import RenderedDataset
    >>> from setsup.scenes.recipes import Shapes3D
    >>> shapes = RenderedDataset(Shapes3D(size=(24, 32)))
    >>> pair = view_pair(shapes, *draw_view_pairs(shapes, 1, seed=0)[0].tolist())
    >>> len(pair.pairs), pair.xyz2.shape, 0 < pair.angle < 180
    (768, (24, 32, 3), True)

    """
    sizes = view_size(dataset, row1), view_size(dataset, row2)
    window1, window2 = (Window(0, 0, *size) for size in sizes)
    pairs = matched(dataset, row1, row2, window1, window2, 1.0, 0)
    cameras = [_camera(dataset, row, size) for row, size in zip((row1, row2), sizes, strict=True)]
    angle = float("nan")
    if cameras[0] is not None and cameras[1] is not None:
        angle = _rotation(cameras[0], cameras[1])
    if pairs.sparse:
        return ViewPair((row1, row2), pairs, sizes, angle=angle)
    back = matched(dataset, row2, row1, window2, window1, 1.0, 0)
    xyz2 = back.xyz.reshape(*sizes[1], 3)
    instances = pairs.instance.reshape(sizes[0])
    known = bool((instances >= 0).any())
    return ViewPair(
        (row1, row2),
        pairs,
        sizes,
        xyz2 if cameras[1] is not None and np.isfinite(xyz2).any() else None,  # of planes, points are pixels
        (back.status != Status.NO_SURFACE).reshape(sizes[1]),
        instances if known else None,
        _edges(pairs, sizes[0], cameras[0], instances) if known else None,
        angle,
    )


def remembered_pairs(dataset: Any, rows: Rows) -> Callable[[int], ViewPair]:
    """What is true of pairs (n, 2) of rows, by their numbers; what was matched is kept, up to 1 GiB."""
    known: dict[int, ViewPair] = {}

    def pair(number: int) -> ViewPair:
        if number in known:
            return known[number]
        row1, row2 = rows[number].tolist()
        found = view_pair(dataset, row1, row2)
        pixels = max(height * width for height, width in found.sizes)
        if (len(known) + 1) * pixels * _BYTES <= _KEPT:
            known[number] = found
        return found

    return pair


def content(dataset: Dataset, rows: Rows, pairs: Callable[[int], ViewPair]) -> Iterator[npt.ArrayLike]:
    """Return what values of pairs (n, 2) of rows depend on besides the encoder: images, and what is true of pairs."""
    name = image_modality(dataset)
    for row in np.unique(rows).tolist():
        yield dataset.fetch(row, [name])[name]
    for number in range(len(rows)):
        pair = pairs(number)
        matches = pair.pairs
        yield from (matches.points1, matches.points2, matches.xyz, matches.instance, matches.status)
        yield from (known for known in (pair.xyz2, pair.surface2, pair.edges) if known is not None)


def _edges(pairs: PixelPairs, size: tuple[int, int], camera: Camera | None, instances: Numbers) -> Bools | None:
    """Edges by instances and depth; None where depth is unknown."""
    seen = np.asarray(np.isfinite(pairs.xyz).all(axis=1))
    if camera is None or not seen.any():
        return None
    depth = np.zeros(len(seen))
    depth[seen] = camera.project(pairs.xyz[seen])[1]
    return edge_pixels(instances, depth.reshape(size))


def _camera(dataset: Any, row: int, size: tuple[int, int]) -> Camera | None:
    if hasattr(dataset, "camera") or {"pose", "intrinsics"} <= set(dataset.modalities):
        return row_camera(dataset, row, size, pinhole=False)  # only its rotation, and depth along its axis
    return None


def _rotation(camera1: Camera, camera2: Camera) -> float:
    """Angle of the rotation from one camera to another, degrees: by its sine and cosine, exact near 0 and 180."""
    turn = camera2.rotation @ camera1.rotation.T
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    return float(np.degrees(np.arctan2(np.linalg.norm(axis), np.trace(turn) - 1)))
