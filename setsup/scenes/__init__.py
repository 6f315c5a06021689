"""Scenes: what stands where, how it is lit and seen; recipes that build them, and how renderers are found. No GL."""

from typing import TYPE_CHECKING

from setsup.lazy import lazy_names

if TYPE_CHECKING:
    from setsup.scenes.camera import Camera
    from setsup.scenes.frame import Frame, Renderer
    from setsup.scenes.meshes.importing import load_mesh, mesh_from_trimesh
    from setsup.scenes.meshes.mesh import Material, Mesh
    from setsup.scenes.motion import Keyframes, Path, Velocity, moved
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
    "Keyframes",
    "Lamp",
    "Light",
    "Material",
    "Mesh",
    "Path",
    "Placement",
    "Rays",
    "Recipe",
    "Renderer",
    "RendererState",
    "Scene",
    "Triangles",
    "Velocity",
    "check_size",
    "load_mesh",
    "load_scene",
    "mesh_from_trimesh",
    "moved",
    "renderer",
    "renderer_states",
    "save_scene",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "camera": ("Camera",),
            "frame": ("Frame", "Renderer"),
            "meshes.importing": ("load_mesh", "mesh_from_trimesh"),
            "meshes.mesh": ("Material", "Mesh"),
            "motion": ("Keyframes", "Path", "Velocity", "moved"),
            "rays": ("Rays",),
            "recipe": ("Recipe",),
            "renderers": ("RendererState", "renderer", "renderer_states"),
            "scene": ("STUDIO", "Ambient", "Directional", "Lamp", "Light", "Placement", "Scene", "Triangles"),
            "storage": ("load_scene", "save_scene"),
            "units": ("check_size",),
        },
    )
