"""Points that rays through pixels meet, carried to where they are at another time, and whether a camera sees them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Numbers, Reals
from setsup.correspondence import planar
from setsup.correspondence.pixel_pairs import NO_SURFACE, OCCLUDED, OUTSIDE, VISIBLE
from setsup.correspondence.spatial_rays import Surfaces, exact_rays
from setsup.errors import SetsupError
from setsup.scenes.camera import Camera
from setsup.scenes.motion import same_placements
from setsup.scenes.scene import Scene

__all__ = ["Traced", "trace"]


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """What rays through pixels of a camera met first.

    Attributes
    ----------
    xyz : (n, 3) float64, metres
        Points in the world; NaN where there is no surface.

    """

    scene: Scene
    camera: Camera
    surfaces: Surfaces
    xyz: Reals

    @property
    def instance(self) -> Numbers:
        """Instance of each point, (n,) int32; −1 where there is no surface."""
        return exact_rays(self.scene).instance.take(self.surfaces.triangle, mode="wrap")

    def carried(self, scene: Scene) -> Reals:
        """Points where their triangles are in another scene of the same placements, (n, 3), or ``xyz`` itself."""
        if scene is self.scene:
            return self.xyz
        if not same_placements(self.scene, scene):
            raise SetsupError(
                "the two scenes have different placements, so points cannot be carried from one to the other; "
                "move the placements of one scene, for example with setsup.scenes.moved"
            )
        moving = [
            (number, one, two)
            for number, (one, two) in enumerate(zip(self.scene.placements, scene.placements, strict=True))
            if one is not two and not (_equal(one.rotation, two.rotation) and _equal(one.translation, two.translation))
        ]
        if not moving:
            return self.xyz
        moves = np.zeros(len(scene.placements) + 1, bool)
        moves[[number for number, _, _ in moving]] = True
        owner = np.append(self.scene.triangles.placement, np.int32(-1)).take(self.surfaces.triangle, mode="wrap")
        rows = np.flatnonzero(moves[owner])
        owner, xyz = owner[rows], self.xyz.copy()
        for number, one, two in moving:
            own = rows[owner == number]
            # rotations are orthogonal to 10⁻⁶ only: what is carried must stay on its triangle
            turn = two.rotation @ np.linalg.inv(one.rotation)
            xyz[own] = (self.xyz[own] - one.translation) @ turn.T + two.translation
        return xyz

    def seen(
        self, scene: Scene | None, camera: Camera, *, both_sides: bool = False
    ) -> tuple[Reals, npt.NDArray[np.uint8]]:
        """Pixels (n, 2) of a camera on which the points fall at another time, or in the same scene, and statuses."""
        there = self.scene if scene is None else scene
        rays, triangle = exact_rays(there), self.surfaces.triangle
        xyz, centre = self.carried(there), camera.centre
        points, _ = camera.project(xyz)
        status = np.where(triangle >= 0, np.uint8(OUTSIDE), np.uint8(NO_SURFACE))
        inside = np.flatnonzero(planar.inside(points, camera.height, camera.width))
        back = xyz.take(inside, axis=0)
        for axis in range(3):
            back[:, axis] -= centre[axis]
        before = after = self.surfaces.planes.take(inside, axis=0)
        own = exact_rays(self.scene)
        if there is not self.scene:
            # by number, so that both have one direction; planes of one scene are not about the middle of the other
            some = triangle.take(inside)
            before, after = own.planes(some), rays.planes(some)
        free = rays.free(centre, back, after)
        if not both_sides:
            free &= rays.same_side(own.sides(self.camera.centre, before), centre, back, after)
        status[inside] = np.where(free, VISIBLE, OCCLUDED)
        return points, status


def trace(scene: Scene, camera: Camera, pixels: Reals) -> Traced:
    """Trace rays through pixels (n, 2)."""
    ways, centre = camera.rays(pixels), camera.centre
    surfaces = exact_rays(scene).first(centre, ways)
    xyz = np.empty((len(pixels), 3))
    for axis in range(3):  # column by column, which is several times as fast as rows of three
        np.multiply(ways[:, axis], surfaces.reach, out=xyz[:, axis])
        xyz[:, axis] += centre[axis]
    return Traced(scene, camera, surfaces, xyz)


def _equal(one: Reals, two: Reals) -> bool:
    return bool((one == two).all())
