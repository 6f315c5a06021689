"""How symmetric a model looks: whether its mirror plane is one, and whether it has no other symmetry, by renderings."""

import math

import numpy as np

from setsup.arrays import Array
from setsup.scenes.renderers import renderer
from setsup_papers.abc.pose.datasets.abc_pose_procedural.models import Model
from setsup_papers.abc.pose.datasets.abc_pose_procedural.shading import rendering
from setsup_papers.abc.pose.datasets.abc_pose_procedural.views import fit_camera

__all__ = ["AZIMUTHS", "asymmetries", "views_around"]

AZIMUTHS = tuple(range(0, 360, 15))
_CHANGED = 16  # levels of 255


def views_around(model: Model, elevation: float = 15.0, size: int = 64) -> Array:
    """Views of a model on black from :data:`AZIMUTHS`, (24, size, size, 4) uint8."""
    engine = renderer("embree")
    engine.load(model.scene)
    images = []
    for azimuth in AZIMUTHS:
        camera = fit_camera(model, (azimuth, elevation, 0.0, 8.0), 2 * size, 0)
        images.append(rendering(model, engine.render(camera), camera))
    engine.close()
    return np.stack(images)


def asymmetries(images: Array) -> tuple[float, float]:
    """Share of pixels that change under the mirror plane, and the least that changes under any other symmetry.

    Of each symmetry, a turn or a mirror image that is turned, the most that changes in a view counts: 0 would be a
    symmetry of the model.
    """
    views = images.astype(np.int16)
    count = len(views)
    flipped = views[:, :, ::-1]

    def change(others: Array) -> float:
        return float((np.abs(others - views).max(axis=-1) > _CHANGED).mean(axis=(1, 2)).max())

    places = np.arange(count)
    mirror = change(flipped[-places % count])
    other = math.inf
    for turn in range(1, count):
        other = min(other, change(views[(places + turn) % count]), change(flipped[(turn - places) % count]))
    return mirror, other
