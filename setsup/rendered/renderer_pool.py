"""What a process keeps between rows: scenes, and renderers that have them loaded; and errors of rows."""

import shlex
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np

from setsup.errors import DataError, LibraryError, SetsupError
from setsup.factors.table import FactorTable
from setsup.rendered.rows import RowFiles
from setsup.scenes import Recipe, Renderer, Scene
from setsup.scenes import renderer as make_renderer

__all__ = ["Failed", "RendererPool", "RowErrors", "spread_rows", "without_scene"]

Failed = Callable[[int, SetsupError], object]
"""Called with a row that cannot be rendered, and the error."""

_SCENES = 8  # per process
_RENDERERS = 4  # each with a loaded scene, since loading a large one takes 0.2 s
_TRIED = 64  # rows that are tried before all count as broken


class RowErrors:
    """Adds the row to errors, or passes them to a function for all rows concerned."""

    __slots__ = ("_failed", "_name", "_rows", "good")

    def __init__(self, name: str, rows: Sequence[int], failed: Failed | None = None) -> None:
        self._name, self._rows, self._failed, self.good = name, rows, failed, True

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, LibraryError):
            return False  # not a fault of the row
        if isinstance(error, SetsupError):
            if self._failed is None:
                raise DataError(f"{self._name}, row {self._rows[0]}: {error}") from error
            self.good = False
            for row in self._rows:
                self._failed(row, error)
        elif isinstance(error, Exception):
            error.add_note(f"while row {self._rows[0]} of {self._name} was rendered")
        return not self.good


class RendererPool:
    """The most recent scenes and renderers of one process, and its open cache."""

    def __init__(self, recipe: Recipe) -> None:
        self.lock = RLock()
        self.loaded: OrderedDict[tuple[Any, ...], Renderer] = OrderedDict()
        self.kept: RowFiles | None = None
        self._recipe = recipe
        self._scenes: OrderedDict[tuple[Any, ...], Scene] = OrderedDict()

    def key(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Key of the scene of a row."""
        return tuple(values[name] for name in self._recipe.scene_factors)

    def scene(self, values: Mapping[str, Any]) -> Scene:
        """Scene of a row."""
        key = self.key(values)
        if key not in self._scenes:
            self._scenes[key] = self._recipe.scene(values)
            if len(self._scenes) > _SCENES:
                self._scenes.popitem(last=False)
        self._scenes.move_to_end(key)
        return self._scenes[key]

    def free(self, values: Mapping[str, Any], given: str | Renderer) -> Renderer:
        """Renderer for the scene of a row, which it may have loaded; `given` itself if it is a renderer."""
        if not isinstance(given, str):
            return given
        key = self.key(values)
        if key in self.loaded:
            return self.loaded.pop(key)
        if len(self.loaded) < _RENDERERS:
            return make_renderer(given)
        return self.loaded.popitem(last=False)[1]

    def keep(self, values: Mapping[str, Any], given: str | Renderer, renderer: Renderer) -> None:
        """Keep a renderer that has loaded the scene of a row."""
        if isinstance(given, str):
            self.loaded[self.key(values)] = renderer


def spread_rows(rows: int) -> list[int]:
    """The first row of a table, and others evenly spread over it: one of them should be renderable."""
    return [int(row) for row in np.unique(np.linspace(0, rows - 1, _TRIED).astype(np.int64))]


def without_scene(table: FactorTable, scene: Sequence[str], values: Mapping[str, Any]) -> str:
    """End of a message that says how to leave the rows of a scene out; empty if there are no others."""
    expression = " or ".join(f"{name} != {values[name]!r}" for name in scene)
    try:
        others = bool(scene) and bool(table.mask(expression).any())
    except SetsupError:  # a name or value that expressions cannot have
        others = False
    if not others:
        return ""
    quoted = shlex.quote(expression) if set(expression) & set('"$`\\') else f'"{expression}"'
    return f"; if only this scene cannot be rendered, exclude it: --where {quoted}"
