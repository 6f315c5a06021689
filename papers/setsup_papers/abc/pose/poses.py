"""Poses of the rows of a dataset: rotation matrices, whatever the data say of them.

Convention
----------
That of :mod:`setsup.datasets.benchmarks.pascal3d.pose`: a rotation takes directions of the object, whose z is up and
whose front is at −y, to those of the camera, x right, y up, z towards the viewer.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals, Rows
from setsup.checks import check_array
from setsup.errors import DataError
from setsup_papers.abc.pose.rotations import are_rotations, rotation_from_euler

if TYPE_CHECKING:
    from setsup.datasets import Dataset

__all__ = ["half_turned", "known_poses", "nearest_rotations", "read_rotations"]

_MODALITY = "rotation"
_DEGREES = {
    **dict.fromkeys(("", "deg", "degree", "degrees", "°"), 1.0),
    **dict.fromkeys(("rad", "radian", "radians"), 180 / np.pi),
    **dict.fromkeys(("turn", "turns"), 360.0),
}
"""Degrees of each unit."""
_ANGLES, _TILTS = ("azimuth", "elevation"), ("theta", "tilt")


def read_rotations(dataset: "Dataset", rows: npt.ArrayLike | None = None) -> Reals:
    """Rotations of rows of a dataset, from its modality ``rotation``, or from its factors of angles.

    Parameters
    ----------
    dataset : Dataset
        With a modality ``rotation``, (3, 3) numbers; or with factors ``azimuth`` and ``elevation``, and optionally
        ``theta`` or ``tilt``, in degrees, or as their unit says, "rad" or "turn". The angles are those of Pascal3D+, as
        of the folders that ``setsup render object`` writes.
    rows : (n,) int, optional
        Row numbers; all by default.

    Returns
    -------
    (n, 3, 3) float64
        NaN where a pose is unknown.

    Raises
    ------
    DataError
        When it has neither, a matrix is not a rotation, an angle is not a number, or its unit is not one of angles.

    Examples
    --------
    >>> import setsup
    >>> images = np.zeros((2, 8, 8, 3), np.uint8)
    >>> views = setsup.from_arrays(images, {"azimuth": [0.0, 90.0], "elevation": [0.0, 0.0]})
    >>> (read_rotations(views, [1]).round() + 0.0).tolist()  # seen from the side at +x
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]]

    """
    index = np.arange(len(dataset)) if rows is None else np.asarray(rows, dtype=np.int64)
    known = dataset.modalities.get(_MODALITY)
    if known is not None:
        if known.shape != (3, 3):
            raise DataError(f"{_MODALITY!r} of {dataset.name} must have the shape (3, 3), not {known.shape}")
        rotations = np.asarray(dataset.fetch(index, [_MODALITY])[_MODALITY], dtype=np.float64).reshape(-1, 3, 3)
        return _checked(
            np.where(np.isfinite(rotations).all(axis=(1, 2), keepdims=True), rotations, np.nan), dataset, index
        )
    table = dataset.factors
    missing = [name for name in _ANGLES if name not in table]
    if missing:
        raise DataError(
            f"{dataset.name} has no poses: expected the modality {_MODALITY!r} of shape (3, 3), or the factors "
            f"{' and '.join(_ANGLES)} in degrees (it has {', '.join(table.names) or 'no factors'})"
        )
    tilt = next((name for name in _TILTS if name in table), None)
    angles = [_degrees(dataset, name, index) for name in (*_ANGLES, *([] if tilt is None else [tilt]))]
    rotations = rotation_from_euler(*angles)
    return np.asarray(rotations, dtype=np.float64)


def known_poses(dataset: "Dataset", what: str) -> tuple[Rows, Reals]:
    """Rows of a dataset whose pose is known, (k,) int64, and their rotations, (k, 3, 3) float64.

    DataError where there are none, which calls the images of the dataset by `what` they are.
    """
    rotations = read_rotations(dataset)
    rows = np.flatnonzero(np.isfinite(rotations).all(axis=(1, 2)))
    if not len(rows):
        raise DataError(
            f"{dataset.name} has no {what} with a known pose; pass a dataset with at least one known rotation, or "
            "known angles"
        )
    return rows, rotations[rows]


def half_turned(rotations: npt.ArrayLike) -> Reals:
    """Poses of the same objects turned half around their vertical axes: front and back exchanged, (..., 3, 3)."""
    return np.asarray(_matrices(rotations) * np.array([-1.0, -1.0, 1.0]))


def nearest_rotations(matrices: npt.ArrayLike) -> Reals:
    """Rotations nearest to some matrices, in the sum of squared differences, (..., 3, 3).

    By the singular value decomposition: U·diag(1, 1, det(U·Vᵀ))·Vᵀ.

    Examples
    --------
    >>> nearest_rotations(2.1 * np.eye(3)).round(6).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]

    """
    numbers = _matrices(matrices)
    if not np.isfinite(numbers).all():
        raise DataError("a predicted rotation contains values that are not finite; train again")
    left, _, right = np.linalg.svd(numbers)
    left[..., :, 2] *= np.linalg.det(left @ right)[..., None]
    return np.asarray(left @ right)


def _checked(matrices: Reals, dataset: "Dataset", rows: Rows) -> Reals:
    """The same; DataError where one that is known is not a rotation."""
    known = np.flatnonzero(~np.isnan(matrices).any(axis=(1, 2)))
    sound = are_rotations(matrices[known])
    if not sound.all():
        wrong = known[np.argmin(sound)]
        raise DataError(
            f"{_MODALITY!r} of row {rows[wrong]} of {dataset.name} is not a rotation: "
            f"{matrices[wrong].round(3).tolist()}; columns must be orthogonal, of length 1 and not mirrored, or NaN "
            "where unknown"
        )
    return matrices


def _matrices(given: npt.ArrayLike) -> Reals:
    numbers = check_array(given, "rotations", DataError)
    if numbers.shape[-2:] != (3, 3) or numbers.dtype.kind not in "iuf":
        raise DataError(f"rotations must be numbers of shape (…, 3, 3), not {numbers.dtype} of shape {numbers.shape}")
    return numbers.astype(np.float64)


def _degrees(dataset: "Dataset", name: str, rows: Rows) -> Reals:
    unit = dataset.factors[name].unit
    if unit not in _DEGREES:
        raise DataError(
            f"the unit of the factor {name!r} of {dataset.name} must be 'deg', 'rad' or 'turn', not {unit!r}"
        )
    values = dataset.factors.values(name, rows)
    try:
        numbers = np.array([np.nan if value is None else value for value in values.tolist()], dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"the factor {name!r} of {dataset.name} must contain numbers of degrees, not values such as "
            f"{values.tolist()[0]!r}"
        ) from None
    return numbers * _DEGREES[unit]
