"""What a renderer gives, and what it is; renderers are found by name.

A renderer is one of the installed packages' entry points of the group ``setsup.renderers``: a class that makes one
without arguments, and whose ``check()`` says on what it would draw, or raises a DataError that says why it cannot here.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from setsup.scenes.camera import Camera
from setsup.scenes.scene import Scene

__all__ = ["Frame", "Renderer"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One image of a scene and the geometry behind each of its pixels.

    Geometry is that of the ray through the centre of the pixel, in all renderers; colours may be averaged over a pixel.

    Attributes
    ----------
    rgb : (H, W, 3) or (H, W, 4) uint8
        sRGB; with alpha, 0 … 255 and not multiplied in, for scenes without a background.
    depth : (H, W) float32, metres
        Along the camera's axis; 0 where there is nothing.
    normal : (H, W, 3) float32
        Unit vectors in the camera's frame (x right, y down, z forward); 0 where there is nothing. The normal of the
        triangle where its mesh has no normals, else that interpolated between the unit normals of its corners (in the
        world, where a scaled mesh has those of its inverse transpose). Either is on the side of the triangle's plane on
        which the camera stands; near a silhouette an interpolated one may still lean away.
    instance : (H, W) int32
        −1 where there is nothing.
    triangle : (H, W) int32
        Numbered as :attr:`Scene.triangles`; −1 where there is nothing.

    """

    rgb: npt.NDArray[np.uint8]
    depth: npt.NDArray[np.float32]
    normal: npt.NDArray[np.float32]
    instance: npt.NDArray[np.int32]
    triangle: npt.NDArray[np.int32]


@runtime_checkable
class Renderer(Protocol):
    """Draws scenes; found by name with :func:`setsup.scenes.renderer`.

    A renderer may be used by several threads, one call at a time. It pickles as its options, without a scene. It keeps
    one scene: ``load`` builds what drawing it needs, which may take long; loading the scene that is loaded already
    costs nothing.

    Attributes
    ----------
    name : str
        ``"embree"``, ``"gl"``, ``"pyrender"``, or whatever a package registers.

    """

    name: str

    @classmethod
    def check(cls) -> str:
        """Return the device that renders on this machine, such as ``"llvmpipe (LLVM 15.0.6, 256 bits), software"``.

        The word software is in it where no GPU draws: ``"auto"`` goes by it.

        Raises
        ------
        DataError
            When it cannot render here: what is missing, and what to install.

        """
        ...

    def load(self, scene: Scene) -> None:
        """Make a scene the one that is drawn."""
        ...

    def render(self, camera: Camera) -> Frame:
        """Draw the scene.

        Raises
        ------
        SetsupError
            When no scene was loaded, or the renderer was closed.

        """
        ...

    def close(self) -> None:
        """Give back what it holds; calling it again does nothing."""
        ...
