"""Recipes by name: what rendered datasets draw."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.scenes.recipes.function import FunctionRecipe
    from setsup.scenes.recipes.model_folders import find_models
    from setsup.scenes.recipes.models import Model, named_models
    from setsup.scenes.recipes.object import HEMISPHERE, ObjectView
    from setsup.scenes.recipes.object_frames import ObjectFrames
    from setsup.scenes.recipes.room import Room, RoomFrames
    from setsup.scenes.recipes.shapes3d import Shapes3D

__all__ = [
    "HEMISPHERE",
    "IN_FRAMES",
    "RECIPES",
    "FunctionRecipe",
    "Model",
    "ObjectFrames",
    "ObjectView",
    "Room",
    "RoomFrames",
    "Shapes3D",
    "find_models",
    "named_models",
]

RECIPES = {"object": "ObjectView", "room": "Room", "shapes3d": "Shapes3D"}
"""Classes of the recipes, by the names that the command knows them by."""

IN_FRAMES = {"object": "ObjectFrames", "room": "RoomFrames"}
"""Classes of the recipes that move, by the names of those that stand still."""

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "function": ("FunctionRecipe",),
            "model_folders": ("find_models",),
            "models": ("Model", "named_models"),
            "object": ("HEMISPHERE", "ObjectView"),
            "object_frames": ("ObjectFrames",),
            "room": ("Room", "RoomFrames"),
            "shapes3d": ("Shapes3D",),
        },
    )
