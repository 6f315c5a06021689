"""Last stages: how far each face is turned aside, and which of a track is its canonical one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array

if TYPE_CHECKING:
    from setsup_papers.orbits.datasets.video_orbits.faces import Faces

__all__ = ["Canonical", "Yaw", "least_yaw", "yaw_of_points"]


Yaw = Callable[[npt.NDArray[np.uint8], "Faces"], npt.ArrayLike]
"""``yaw(frame, faces)`` gives the yaw of each face in degrees, NaN where unknown; 0 looks into the camera."""

Canonical = Callable[[Array, Array], int]
"""``canonical(yaw, score)`` gives the place of the canonical face among those of a track."""

_NOSE = 0.5


def yaw_of_points(frame: npt.NDArray[np.uint8], faces: "Faces") -> npt.NDArray[np.float64]:
    """Yaw by where the tip of the nose stands between the eyes.

    Seen from far, eyes at ±e beside the axis of a head that is turned by θ lie 2e·cos θ apart, and the tip of a nose
    that stands out by d lies d·sin θ beside the middle between them: tan θ is their ratio, divided by d/2e, for which
    0.5 is taken. Measured along the line through the eyes, so that a head may be tilted.

    Parameters
    ----------
    frame : (height, width, 3) uint8
        Not looked at.
    faces : Faces
        With points.

    Returns
    -------
    (n,) float64, deg
        Positive where the nose points to the right of the image; NaN where a point is unknown, or the eyes coincide.

    Notes
    -----
    Noses differ, so that angles are right to some ten degrees only; the order of the frames of one face suffers less.

    Examples
    --------
    >>> from setsup_papers.orbits.datasets.video_orbits import Faces
    >>> points = [[[40, 50], [60, 50], [55, 60], [43, 70], [57, 70]]]
    >>> yaw_of_points(np.zeros((99, 99, 3), np.uint8), Faces([[30, 30, 70, 80]], [1.0], points)).round(1).tolist()
    [26.6]

    """
    right, left, nose = faces.points[:, 0], faces.points[:, 1], faces.points[:, 2]
    between = left - right
    apart = np.sum(between**2, axis=1)
    beside = np.sum((nose - (left + right) / 2) * between, axis=1)
    ratio = np.where(apart > 0, beside / np.where(apart > 0, apart, 1), np.nan)
    return np.asarray(np.degrees(np.arctan(ratio / _NOSE)))


def least_yaw(yaw: npt.ArrayLike, score: npt.ArrayLike, step: float = 5.0) -> int:
    """Place of the face that is turned least; of those that are turned alike, the one with the best score.

    Parameters
    ----------
    yaw : (n,) float, deg
        Yaw of each face of a track, n ≥ 1; unknown (NaN) comes after every known one.
    score : (n,) float
        Score of the detector; unknown counts as the worst. The first of two that are equal is taken.
    step : float, deg
        Yaws alike: whole multiples of this are compared. 0 compares the yaws themselves, which hardly ever tie.

    Returns
    -------
    int

    Examples
    --------
    >>> least_yaw([-20.0, 3.0, -1.0, 40.0], [0.9, 0.7, 0.6, 0.9]), least_yaw([3.0, -1.0], [0.7, 0.6], step=0)
    (1, 1)

    """
    turned, sure = np.abs(np.asarray(yaw, np.float64)), np.asarray(score, np.float64)
    turned = np.where(np.isnan(turned), np.inf, turned // step if step > 0 else turned)
    return int(np.lexsort((-np.where(np.isnan(sure), -np.inf, sure), turned))[0])
