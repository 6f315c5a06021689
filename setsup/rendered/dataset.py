"""Rendered datasets: a recipe's scenes and cameras, one image per row, with the geometry behind its pixels."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from setsup.datasets.base import Array, BaseDataset, Rows
from setsup.datasets.dataset import Modality, check_modalities, of_row
from setsup.errors import DataError, FactorError, LibraryError, advice, did_you_mean
from setsup.factors.column_storage import check_rows
from setsup.factors.table import FactorTable
from setsup.files.expand_user import expanded
from setsup.rendered.create import open_cache
from setsup.rendered.layout import one_row
from setsup.rendered.modalities import KEPT, LABELS, OUTPUTS, POSES, describe
from setsup.rendered.outputs import COMPUTED, OF_INSTANCES, pixel_outputs
from setsup.rendered.renderer_pool import Failed, RendererPool, RowErrors, spread_rows
from setsup.rendered.rows import RowFiles
from setsup.scenes import Camera, Frame, Recipe, Renderer, Scene
from setsup.scenes.renderers import choose

__all__ = ["RenderedDataset"]

Take = Callable[[int, Scene, Camera, Frame], object]

_MOST = 1 << 12  # instances that masks and poses have room for

_log = logging.getLogger("setsup")


class RenderedDataset(BaseDataset):
    """Images rendered on demand: the factors of a row determine its scene and its camera.

    Modalities are ``image`` (H, W, 3) uint8 sRGB, or (H, W, 4) with alpha where scenes have no background; ``depth``
    (H, W) float32 in metres along the camera's axis, 0 where there is nothing; ``normals`` (H, W, 3) float32, unit
    vectors in the camera's frame (x right, y down, z forward), 0 where there is nothing; ``instances`` and
    ``triangles`` (H, W) int32, −1 where there is nothing (see :class:`setsup.scenes.Frame`). Of a recipe with classes,
    such as a room that is generated, also ``labels`` (H, W) uint8: the class of what is seen, 0 where there is nothing.

    Others are computed where ``modalities=`` names them: ``nocs``, ``object_coordinates``, ``uv``, ``barycentrics``,
    ``albedo``, ``material``, ``mask``, ``pose``, ``intrinsics`` and ``object_poses``; see
    :func:`setsup.rendered.outputs.pixel_outputs`. ``mask`` and ``object_poses`` have room for ``recipe.instances``
    objects, or as many as the scene of the first row has; they are not available above 4,096.

    The bytes of a row depend only on the recipe, its values and the renderer. ``fetch`` raises a DataError where a row
    cannot be rendered, or the renderer does not work here. Rows of one fetch that share a scene are
    rendered together, and recent scenes are cached. Other processes make their own renderers; a fork of a process that
    has rendered with OpenGL cannot, and raises an error. A renderer object is sent to other processes by pickling.

    Parameters
    ----------
    recipe : Recipe
        Builds scenes and cameras from values, such as :class:`setsup.scenes.recipes.Shapes3D`.
    factors : FactorTable, optional
        Rows, with at least the factors of the recipe, and levels or numbers that it accepts. By default the full grid
        of the recipe's factors; :func:`setsup.rendered.table.sampled` makes others.
    renderer : str or Renderer
        A name of :func:`setsup.scenes.renderer`; ``"auto"`` is the best available, or the one that the cache was
        started with. Renderers differ in single pixels, so name one to get the same images elsewhere. A renderer
        object belongs to this dataset: it has one scene loaded at a time.
    cache : Path or str, optional
        Folder on disk that stores rendered rows, for any number of processes;
        :func:`setsup.rendered.writing.render` renders the rest of it.
    modalities : iterable of str, optional
        Names of the modalities of this dataset, any of ``available``; those above by default.

    Attributes
    ----------
    recipe : Recipe
        As given.
    available : dict of str to Modality
        All modalities that the rows can have.
    pair_factors : tuple of str
        Factors in which two views of one scene agree: what the recipe names so, else its scene factors.
    classes : dict of str to tuple of str
        For ``labels``, if there are any, the name of each class.

    Raises
    ------
    DataError
        If the recipe or the renderer is invalid, there are no rows, a value or a modality is unknown, or of 64 rows
        that are spread over the table no scene can be built.
    FactorError
        If the table lacks a factor of the recipe, or the recipe has no grid and no table is given.

    Examples
    --------
    >>> import math
    >>> from setsup.factors import Factor, Kind
    >>> from setsup.scenes import Mesh, Placement
    >>> from setsup.scenes.recipes import FunctionRecipe
    >>> def build(values):
    ...     return Scene((Placement(Mesh([[0, 0, 0], [1, 0, 0], [0, 0, 1]], [[0, 1, 2]])),))
    >>> def look(values, scene):
    ...     return Camera.look_at((values["x"], -3, 0), (values["x"], 0, 0), height=8, width=8, focal_length=9)
    >>> steps = Factor("x", Kind.ORDINAL, (-1.0, 0.0, 1.0))
    >>> triangle = RenderedDataset(FunctionRecipe("triangle", [steps], build, look, [], (8, 8), "1"))
    >>> triangle, triangle.modalities["depth"].unit, triangle.camera(2).centre.tolist()
    (RenderedDataset('rendered triangle', 3 rows), 'm', [1.0, -3.0, 0.0])

    """

    cpu_bound = True
    previews = False  # the first image may start a renderer and load meshes

    def __init__(
        self,
        recipe: Recipe,
        factors: FactorTable | None = None,
        renderer: str | Renderer = "auto",
        cache: Path | str | None = None,
        modalities: Iterable[str] | None = None,
    ) -> None:
        if isinstance(recipe, type) or not hasattr(recipe, "scene_factors"):
            raise DataError(f"recipe must be a recipe, for example Shapes3D(), not {recipe!r}")
        if isinstance(renderer, type) or not isinstance(renderer, str | Renderer):
            raise DataError(
                f"renderer must be a name, for example 'embree', or an object with load and render, not {renderer!r}"
            )
        self.name = f"rendered {recipe.name}"
        self.recipe = recipe
        self.factors = _grid(recipe) if factors is None else _checked(factors, recipe)
        self.renderer = renderer
        self.cache = None if cache is None else expanded(cache)
        self._pools: dict[int, RendererPool] = {}  # by process
        self.classes: dict[str, tuple[str, ...]] = {}
        if classes := tuple(getattr(recipe, "classes", ())):
            self.classes[LABELS] = classes
        self.available = self._describe(self._first())
        usual = [name for name in self.available if name in {*OUTPUTS, LABELS, *self.added}]
        known = {*self.available, *OF_INSTANCES}
        names = check_modalities(self, usual if modalities is None else modalities, sorted(known, key=KEPT.index))
        if lacking := [name for name in names if name not in self.available]:
            raise DataError(
                f"{self.name} cannot have {' and '.join(lacking)}, which need room for 1 to {_MOST:,} instances, not "
                f"{self._instances:,}; give the recipe an attribute instances, 1 + the largest number of an instance"
            )
        self.modalities = {name: self.available[name] for name in names}

    @property
    def added(self) -> tuple[str, ...]:
        """Names of modalities that a subclass adds; rows have them by default."""
        return ()

    @property
    def extra(self) -> tuple[str, ...]:
        """Names of modalities that a subclass adds; rows have them on request only."""
        return ()

    @property
    def pair_factors(self) -> tuple[str, ...]:
        """Factors in which two views of one scene agree."""
        return tuple(getattr(self.recipe, "pair_factors", self.recipe.scene_factors))

    @property
    def kept_factors(self) -> tuple[str, ...]:
        """Factors in which two rows of a folder agree that show one scene at one time; its ``pair_factors``."""
        return (*self.pair_factors, *(name for name in self.moving if name not in self.pair_factors))

    @property
    def moving(self) -> tuple[str, ...]:
        """Factors with which things move in a scene, such as ``frame``."""
        shared = getattr(self.recipe, "pair_factors", self.recipe.scene_factors)
        return tuple(name for name in self.recipe.scene_factors if name not in shared)

    @property
    def renderer_name(self) -> str:
        """Name of the renderer, never ``"auto"``; for an object, with options that differ from the defaults."""
        if not isinstance(self.renderer, str):
            return _described(self.renderer)
        if self.renderer == "auto":
            chosen = choose()
            _log.info("%s is rendered by %s: %s (%s)", self.recipe.name, chosen.name, chosen.why, chosen.detail)
            self.renderer = chosen.name
        return self.renderer

    @of_row
    def values(self, row: int) -> dict[str, Any]:
        """Values of all factors of a row, as passed to the recipe."""
        return self._values([one_row(row, len(self))])[0]

    @of_row
    def scene(self, row: int) -> Scene:
        """Scene of a row."""
        values, pool = self.values(row), self._here()
        with pool.lock, RowErrors(self.name, [row]):
            built = pool.scene(values)
        return built

    def _first(self) -> Scene:
        """Scene of the first of some rows that can be built; raises what is wrong with row 0 if none can be."""
        first: DataError | None = None
        for row in spread_rows(len(self)):
            try:
                return self.scene(row)
            except LibraryError:
                raise
            except DataError as error:
                first = first or error
        raise first or DataError(f"{self.name}: the table has no rows")

    @of_row
    def camera(self, row: int) -> Camera:
        """Camera of a row."""
        scene = self.scene(row)
        with RowErrors(self.name, [row]):
            placed = self._camera(self.values(row), scene)
        return placed

    @of_row
    def frame(self, row: int) -> Frame:
        """Render all outputs of a row at once, without the cache."""
        frames: list[Frame] = []
        self.render([one_row(row, len(self))], lambda row, scene, camera, frame: frames.append(frame))
        return frames[0]

    @of_row
    def names(self, row: int) -> dict[int, str]:
        """Names of the numbers in the ``instances`` of a row."""
        return self.scene(row).names

    def render(self, rows: Sequence[int], take: Take, failed: Failed | None = None) -> None:
        """Render rows, those of one scene together.

        Parameters
        ----------
        rows : sequence of int
            Row numbers.
        take : callable of (row, scene, camera, frame)
            Called for each rendered row; other threads wait meanwhile.
        failed : callable of (row, error), optional
            Called instead for each row that fails: its scene cannot be built or loaded, its camera cannot be placed, or
            it cannot be rendered. By default the first SetsupError is raised.

        """
        pool = self._here()
        groups: dict[tuple[Any, ...], list[tuple[int, dict[str, Any]]]] = {}
        for row, values in zip(rows, self._values(rows), strict=True):
            groups.setdefault(pool.key(values), []).append((row, values))
        given = self.renderer_name if isinstance(self.renderer, str) else self.renderer
        with pool.lock:
            # loaded scenes first, before others replace them
            for key in sorted(groups, key=lambda key: key not in pool.loaded):
                self._render_scene(pool, given, groups[key], take, failed)

    def outputs(self, row: int, scene: Scene, camera: Camera, frame: Frame, names: Sequence[str]) -> dict[str, Array]:
        """Modalities of a rendered row; a subclass adds more here."""
        arrays = {name: getattr(frame, OUTPUTS[name]) for name in names if name in OUTPUTS}
        if LABELS in names:
            arrays[LABELS] = self._labels(scene, frame)
        if computed := [name for name in names if name in COMPUTED]:
            arrays |= pixel_outputs(scene, camera, frame.triangle, computed, self._instances)
        return arrays

    def bound(self, rows: Rows) -> Rows:
        """Rows that are left out when the given rows are; a subclass may add rows that depend on them."""
        return rows

    def _describe(self, scene: Scene) -> dict[str, Modality]:
        """All modalities that rows can have, of which the first row has a scene."""
        instances = self._instances = getattr(self.recipe, "instances", None) or 1 + max(scene.names, default=-1)
        names = {*OUTPUTS, *COMPUTED, *self.classes, *self.added, *self.extra}
        if not 0 < instances <= _MOST:
            names -= {*OF_INSTANCES}
        lengths = {"image": 3 if scene.background is not None else 4, "mask": -(-instances // 8), POSES: instances}
        height, width = self.recipe.size
        return {name: describe(name, (height, width), lengths.get(name)) for name in KEPT if name in names}

    def _labels(self, scene: Scene, frame: Frame) -> Array:
        """Class of the instance of each pixel."""
        label = getattr(self.recipe, "label")  # noqa: B009  # of recipes with classes only
        codes = np.zeros(max(scene.names, default=-1) + 2, np.uint8)  # the last one is that of nothing, −1
        for number, name in scene.names.items():
            codes[number] = label(name)
        return codes[frame.instance]

    def _render_scene(
        self,
        pool: RendererPool,
        given: str | Renderer,
        rows: Sequence[tuple[int, dict[str, Any]]],
        take: Take,
        failed: Failed | None,
    ) -> None:
        values = rows[0][1]
        at = RowErrors(self.name, [row for row, _ in rows], failed)
        with at:
            scene = pool.scene(values)
        if at.good:
            renderer = pool.free(values, given)
            with at:
                renderer.load(scene)
                pool.keep(values, given, renderer)
        if not at.good:
            return
        for row, values in rows:
            at = RowErrors(self.name, [row], failed)
            with at:
                camera = self._camera(values, scene)
                frame = renderer.render(camera)
                self._check(frame)
            if at.good:
                take(row, scene, camera, frame)

    def _read_all(self, rows: Rows, out: Mapping[str, Array]) -> Mapping[str, Array]:
        indices: dict[int, list[int]] = {}
        for index, row in enumerate(rows.tolist()):
            indices.setdefault(row, []).append(index)
        if not indices or not out:
            return out

        def put(row: int, arrays: Mapping[str, Array]) -> None:
            for name, array in out.items():
                for index in indices[row]:
                    array[index] = arrays[name]

        kept = self._kept()
        missing = list(indices) if kept is None else kept.read(list(indices), tuple(out), put)

        def take(row: int, scene: Scene, camera: Camera, frame: Frame) -> None:
            with RowErrors(self.name, [row]):
                arrays = self.outputs(row, scene, camera, frame, tuple(out))
            put(row, arrays)
            if kept is not None:
                kept.keep(row, arrays, camera, scene)

        if missing:
            self.render(missing, take)
        return out

    def _kept(self) -> RowFiles | None:
        """The cache, opened at its first use in a process."""
        if self.cache is None:
            return None
        pool = self._here()
        if pool.kept is None:
            pool.kept = open_cache(self, self.cache)
            if self.renderer == "auto":  # the renderer of the rows that exist
                self.renderer = pool.kept.layout.renderer
        return pool.kept

    def _values(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        index = check_rows(rows, len(self))
        columns = []
        for factor in self.factors.factors:
            codes = self.factors.codes(factor.name, index)
            levels = factor.levels
            missing = np.isnan(codes) if levels is None else codes < 0
            if missing.any() and factor.name in {own.name for own in self.recipe.factors}:
                raise DataError(
                    f"{self.name}: row {index[missing][0]} has no value for {factor.name!r}, which the recipe "
                    "requires; fill it in, or remove the row"
                )
            known = codes.tolist() if levels is None else [levels[code] for code in codes.tolist()]
            columns.append([None if lost else value for value, lost in zip(known, missing.tolist(), strict=True)])
        return [dict(zip(self.factors.names, values, strict=True)) for values in zip(*columns, strict=True)]

    def _camera(self, values: Mapping[str, Any], scene: Scene) -> Camera:
        camera = self.recipe.camera(values, scene)
        if (camera.height, camera.width) != tuple(self.recipe.size):
            raise DataError(
                f"the camera has {camera.height} × {camera.width} pixels, but the recipe has the size "
                f"{' × '.join(map(str, self.recipe.size))}; return a camera of that size from the recipe"
            )
        return camera

    def _check(self, frame: Frame) -> None:
        if frame.rgb.shape != self.available["image"].shape:
            raise DataError(
                f"its image has the shape {frame.rgb.shape}, but the first row has {self.available['image'].shape}; "
                "either all scenes of a recipe must have a background, or none of them"
            )

    def _here(self) -> RendererPool:
        """The pool of this process; a fork makes its own, since it may have inherited a held lock.

        The parent's pool stays in memory, since closing its renderers in a fork could hang.
        """
        process = os.getpid()
        if process not in self._pools:
            self._pools.setdefault(process, RendererPool(self.recipe))  # atomic if two threads come first
        return self._pools[process]

    def __getstate__(self) -> dict[str, Any]:
        """Leave out scenes, renderers and open files."""
        return {**self.__dict__, "_pools": {}}


def _grid(recipe: Recipe) -> FactorTable:
    for factor in recipe.factors:
        if factor.continuous:
            raise FactorError(
                f"recipe {recipe.name!r} has the continuous factor {factor.name!r}, so the recipe has no grid; "
                + advice(
                    "pass factors, for example setsup.rendered.table.sampled(recipe, rows=1000, ranges=…)",
                    f"use --rows N --ranges {factor.name}=LOW:HIGH",
                )
            )
    return FactorTable(recipe.factors)


def _checked(table: FactorTable, recipe: Recipe) -> FactorTable:
    if not isinstance(table, FactorTable):
        raise FactorError(f"factors of a rendered dataset must be a FactorTable, not {type(table).__name__}")
    for factor in recipe.factors:
        if factor.name not in table:
            hint = did_you_mean(factor.name, table.names)
            raise FactorError(f"recipe {recipe.name!r} requires the factor {factor.name!r}{hint}")
    if not len(table):
        raise DataError(f"rendered {recipe.name}: the table has no rows, so there is nothing to render")
    return table


def _described(renderer: Renderer) -> str:
    """Name of a renderer, with those public options that differ from the defaults."""
    try:
        usual = getattr(type(renderer)(), "__dict__", {})
    except TypeError:
        usual = {}
    options = [
        f"{name}={value!r}"
        for name, value in sorted(getattr(renderer, "__dict__", {}).items())
        if not name.startswith("_") and name != "name" and isinstance(value, bool | int | float | str)
        if usual.get(name) != value
    ]
    return " ".join([renderer.name, *options])
