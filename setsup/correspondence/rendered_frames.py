"""Rendered frames of moving scenes, with exact flow to the next and the previous frame."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import is_number
from setsup.correspondence.flow import displacement, flow_of, tracks_of
from setsup.correspondence.pixel_pairs import check_pixels
from setsup.correspondence.spatial_tracing import trace
from setsup.datasets.dataset import of_row
from setsup.errors import DataError, SetsupError
from setsup.factors.table import FactorTable
from setsup.rendered.dataset import RenderedDataset
from setsup.rendered.renderer_pool import RowErrors
from setsup.scenes import Camera, Frame, Recipe, Renderer, Scene

__all__ = ["FLOWS", "FRAME", "RenderedFrames"]

FRAME = "frame"
"""The factor that numbers frames."""

SCENE_FLOW = "scene_flow"

FLOWS = {1: ("exact_flow", "flow_status"), -1: ("exact_flow_back", "flow_back_status")}
"""Names of flow and status, by the number of frames to where they lead."""


class RenderedFrames(RenderedDataset):
    """A rendered dataset of a recipe whose scenes move, with flow from each frame to its neighbours.

    The recipe has a scene factor ``frame`` of whole numbers, and gives scenes and cameras also one frame before the
    first and one after the last, where flow of these frames leads: :class:`setsup.scenes.recipes.RoomFrames`,
    :class:`setsup.scenes.recipes.ObjectFrames`, or a recipe of your own. All scenes of a video have the same
    placements, meshes and scales (see :mod:`setsup.scenes.motion`).

    Beside the modalities of :class:`~setsup.rendered.dataset.RenderedDataset`, rows have:

    - ``exact_flow`` (H, W, 2) float32, pixels: from frame t to frame t + 1, u to the right, v down, unclipped; NaN
      where there is no surface or the point is behind the other camera;
    - ``flow_status`` (H, W) uint8: a :class:`~setsup.correspondence.Status`, whether frame t + 1 shows the point;
    - ``exact_flow_back`` and ``flow_back_status``: the same from frame t to frame t − 1;
    - on request ``scene_flow`` (H, W, 3) float32, metres: see :func:`setsup.correspondence.scene_flow`.

    The flow of TV-L1, ``flow``, has another form: see :class:`setsup.loading.views.FlowViews`.

    Parameters
    ----------
    recipe : Recipe
        A recipe with frames.
    factors, renderer, cache, modalities
        As for :class:`~setsup.rendered.dataset.RenderedDataset`.

    Raises
    ------
    DataError
        As for :class:`~setsup.rendered.dataset.RenderedDataset`, and if the recipe has no scene factor ``frame``, or
        one whose levels are not whole numbers. ``fetch`` raises one also if a scene before or after a row cannot be
        built, or has different placements.

    Examples
    --------
    >>> from setsup.scenes.recipes import RoomFrames
    >>> recipe = RoomFrames(rooms=1, frames=3, moving=1, size=(24, 32))
    >>> frames = RenderedFrames(recipe, renderer="embree", modalities=["image", "exact_flow", "flow_status"])
    >>> row = frames.fetch(2)
    >>> row["exact_flow"].shape, row["exact_flow"].dtype.name, row["flow_status"].shape
    ((24, 32, 2), 'float32', (24, 32))
    >>> points, status = frames.tracks(0, [[12, 8], [20, 16]])
    >>> points.shape, status.shape
    ((2, 3, 2), (2, 3))

    """

    def __init__(
        self,
        recipe: Recipe,
        factors: FactorTable | None = None,
        renderer: str | Renderer = "auto",
        cache: Path | str | None = None,
        modalities: Iterable[str] | None = None,
    ) -> None:
        scene_factors = getattr(recipe, "scene_factors", ())
        if FRAME not in scene_factors:
            raise DataError(
                f"a recipe with frames must have the scene factor {FRAME!r}, but {getattr(recipe, 'name', recipe)!r} "
                f"has {', '.join(scene_factors) or 'none'}; use RoomFrames, ObjectFrames or a recipe of your own"
            )
        levels = next((factor.levels for factor in recipe.factors if factor.name == FRAME), None)
        if levels is not None and not all(is_number(level) and float(level).is_integer() for level in levels):
            raise DataError(
                f"levels of the factor {FRAME!r} of {recipe.name} must be whole numbers, from which frames before and "
                f"after are counted, not {', '.join(map(repr, levels[:3]))}"
            )
        super().__init__(recipe, factors, renderer, cache, modalities)

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the modalities of flow."""
        return tuple(name for names in FLOWS.values() for name in names)

    @property
    def pair_factors(self) -> tuple[str, ...]:
        """Factors in which two frames of a video agree: what the recipe names so, else its scene factors but frame."""
        named = getattr(self.recipe, "pair_factors", None)
        return tuple(name for name in self.recipe.scene_factors if name != FRAME) if named is None else tuple(named)

    @property
    def moving(self) -> tuple[str, ...]:
        """Factors with which things move in a scene: ``frame``, and scene factors in which pairs need not agree."""
        return tuple(name for name in self.recipe.scene_factors if name == FRAME or name not in self.pair_factors)

    @property
    def extra(self) -> tuple[str, ...]:
        """Names of modalities that rows have on request only."""
        return (SCENE_FLOW,)

    def outputs(
        self, row: int, scene: Scene, camera: Camera, frame: Frame, names: Sequence[str]
    ) -> dict[str, npt.NDArray[Any]]:
        """Modalities of a row that was rendered; see :meth:`setsup.rendered.dataset.RenderedDataset.outputs`."""
        own = {*self.added, *self.extra}.intersection(names)
        arrays = super().outputs(row, scene, camera, frame, [name for name in names if name not in own])
        if not own:
            return arrays
        with RowErrors(self.name, [row]):
            traced = trace(scene, camera, camera.pixels())
            for step, (flow, status) in FLOWS.items():
                if own.intersection((flow, status)):
                    arrays[flow], arrays[status] = flow_of(traced, *self._at(row, step))
            if SCENE_FLOW in own:
                arrays[SCENE_FLOW] = displacement(traced, self._at(row, 1)[0])
        return {name: arrays[name] for name in names}

    @of_row
    def tracks(self, row: int, pixels: npt.ArrayLike) -> tuple[Reals, npt.NDArray[np.uint8]]:
        """Follow pixels of a row through all frames of its video, 0 … T − 1 as the recipe numbers them.

        Parameters
        ----------
        row : int
            Row of the query frame.
        pixels : (N, 2) float
            Pixels (x, y), whole or not.

        Returns
        -------
        points : (N, T, 2) float64, pixels
        status : (N, T) uint8
            See :func:`setsup.correspondence.scene_tracks`.

        """
        here = self.values(row)[FRAME]
        levels = next(factor.levels for factor in self.recipe.factors if factor.name == FRAME)
        if levels is None or here not in levels:
            raise SetsupError(f"{self.name}: the factor {FRAME!r} must have levels, which number the frames of a video")
        at = check_pixels(pixels)
        with RowErrors(self.name, [row]):
            # one by one, as all scenes of a video with what is made of them may not fit in memory
            frames = (self._at(row, other - here) for other in levels)
            found = tracks_of(trace(*self._at(row, 0), at), at, frames, levels.index(here))
        return found

    def _at(self, row: int, step: int) -> tuple[Scene, Camera]:
        """Scene and camera some frames after a row."""
        values = self.values(row)
        values[FRAME] += step
        pool = self._here()
        with pool.lock:
            scene = pool.scene(values)
            return scene, self._camera(values, scene)
