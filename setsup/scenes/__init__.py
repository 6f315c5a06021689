"""Scenes: what stands where, how it is lit and seen; recipes that build them, and how renderers are found. No GL."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setsup.scenes.camera import Camera
    from setsup.scenes.frame import Frame, Renderer
    from setsup.scenes.meshes.importing import load_mesh, mesh_from_trimesh
    from setsup.scenes.meshes.mesh import Material, Mesh
    from setsup.scenes.rays import Rays
    from setsup.scenes.recipe import Recipe
    from setsup.scenes.renderers import RendererState, renderer, renderer_states
    from setsup.scenes.scene import STUDIO, Ambient, Directional, Lamp, Light, Placement, Scene, Triangles
    from setsup.scenes.storage import load_scene, save_scene
    from setsup.scenes.units import check_size

__all__ = [
    "STUDIO",
    "Ambient",
    "Camera",
    "Directional",
    "Frame",
    "Lamp",
    "Light",
    "Material",
    "Mesh",
    "Placement",
    "Rays",
    "Recipe",
    "Renderer",
    "RendererState",
    "Scene",
    "Triangles",
    "check_size",
    "load_mesh",
    "load_scene",
    "mesh_from_trimesh",
    "renderer",
    "renderer_states",
    "save_scene",
]

if not TYPE_CHECKING:
    _HOMES = {
        "Camera": "camera",
        "Frame": "frame",
        "Material": "meshes.mesh",
        "Mesh": "meshes.mesh",
        "Rays": "rays",
        "Recipe": "recipe",
        "Renderer": "frame",
        "RendererState": "renderers",
        "check_size": "units",
        "load_mesh": "meshes.importing",
        "load_scene": "storage",
        "mesh_from_trimesh": "meshes.importing",
        "renderer": "renderers",
        "renderer_states": "renderers",
        "save_scene": "storage",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'setsup.scenes' has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"setsup.scenes.{_HOMES.get(name, 'scene')}"), name)
        return found
