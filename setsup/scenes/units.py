"""A warning about meshes and scenes in the wrong unit."""

import logging

import numpy as np

from setsup.checks import check_arguments
from setsup.errors import DataError
from setsup.scenes.meshes.mesh import Mesh
from setsup.scenes.scene import Scene

__all__ = ["check_size"]

_log = logging.getLogger("setsup")


def check_size(thing: Mesh | Scene, what: str, expected: tuple[float, float] = (0.01, 100.0)) -> None:
    """Log a warning where something is so large or small that its unit will be a mistake.

    Parameters
    ----------
    thing : Mesh or Scene
        Whose longest side is looked at.
    what : str
        What the warning calls it: ``"the room sofa.ply"``.
    expected : (least, most), metres
        Between which the longest side should be.

    Examples
    --------
    >>> check_size(Mesh([[0, 0, 0], [4, 0, 0], [0, 3, 0]], [[0, 1, 2]]), "the triangle")

    """
    check_arguments(check_size, locals(), DataError)
    sides = np.ptp(thing.bounds, axis=0)
    longest = float(sides.max())
    least, most = expected
    if least <= longest <= most or (isinstance(thing, Scene) and not thing.placements):
        return
    # what is in millimetres, centimetres, inches or feet; and what is in metres, but was scaled as if it were not
    fits = [
        f"{factor:g}" for factor in (0.001, 0.01, 0.0254, 0.3048, 1000.0, 100.0) if least <= longest * factor <= most
    ]
    _log.warning(
        "%s measures %s m, but its longest side should be %g … %g m: check that its unit is the metre%s",
        what,
        " × ".join(f"{side:.4g}" for side in sides),
        least,
        most,
        f", or pass a scale of {' or '.join(fits)}" if fits else "",
    )
