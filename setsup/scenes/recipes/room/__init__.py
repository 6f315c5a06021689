"""Rooms with objects in them, and cameras that look at them."""

from setsup.scenes.recipes.room.frames import RoomFrames
from setsup.scenes.recipes.room.recipe import Room

__all__ = ["Room", "RoomFrames"]
