"""Recipes by name: what rendered datasets draw."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setsup.scenes.recipes.function import FunctionRecipe
    from setsup.scenes.recipes.models import Model, named_models
    from setsup.scenes.recipes.object import HEMISPHERE, ObjectView
    from setsup.scenes.recipes.room import Room
    from setsup.scenes.recipes.shapes3d import Shapes3D

__all__ = ["HEMISPHERE", "RECIPES", "FunctionRecipe", "Model", "ObjectView", "Room", "Shapes3D", "named_models"]

RECIPES = {"object": "ObjectView", "room": "Room", "shapes3d": "Shapes3D"}
"""Classes of the recipes, by the names that the command knows them by."""

if not TYPE_CHECKING:
    _HOMES = {
        "FunctionRecipe": "function",
        "HEMISPHERE": "object",
        "Model": "models",
        "ObjectView": "object",
        "Room": "room",
        "Shapes3D": "shapes3d",
        "named_models": "models",
    }

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'setsup.scenes.recipes' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"setsup.scenes.recipes.{_HOMES[name]}"), name)
        return found
