"""Rooms with objects, seen by pairs of cameras: `recipe` first, and each of its steps in a module of its own."""

from setsup.scenes.recipes.room.recipe import Room

__all__ = ["Room"]
