"""What errors of poses say: their median, shares below limits, and where front and back are taken for each other.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, tables 1 and 2.

"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Counts, Reals
from setsup.checks import check_arguments, check_array, check_integer
from setsup.errors import DataError, SetsupError
from setsup_papers.abc.pose.poses import half_turned
from setsup_papers.abc.pose.rotations import euler_from_rotation, geodesic_error, pose_errors

__all__ = ["BINS", "OverAzimuth", "confused", "disagreement", "over_azimuth", "summarise"]

BINS = 24
"""Parts of the circle in curves over azimuth."""
_LIMIT = 30.0  # degrees from the pose with front and back exchanged


@dataclass(frozen=True, slots=True)
class OverAzimuth:
    """Errors by the true azimuth; made by :func:`over_azimuth`.

    Attributes
    ----------
    azimuth : (b,) float64, degrees
        Centres of the bins that contain an image.
    count : (b,) int64
        Images of each.
    median : (b,) float64, degrees
        Median error; of several predictions of an image all count.
    confused : (b,) float64
        Share of predictions in which front and back are exchanged.

    """

    azimuth: Reals
    count: Counts
    median: Reals
    confused: Reals


def summarise(predicted: npt.ArrayLike, truth: npt.ArrayLike) -> dict[str, float]:
    """Measures of tables 1 and 2 [1]_, as means over codebooks, and the standard errors of these means.

    Parameters
    ----------
    predicted : (c, n, 3, 3) float
        Rotations of n images by each of c codebooks; c is 1 for a regression.
    truth : (n, 3, 3) float
        Their rotations.

    Returns
    -------
    dict of str to float
        ``median error``, degrees; ``Acc@15`` and ``Acc@30``, the share of errors below so many degrees;
        ``front-back``, the share of :func:`confused` predictions; and for c > 1 each with ``: s.e.m.`` after its name.

    Raises
    ------
    DataError
        When a shape is wrong, or these are not rotations.

    Examples
    --------
    >>> from setsup_papers.abc.pose.rotations import rotation_from_euler
    >>> truth = rotation_from_euler([0, 90], 10)
    >>> summarise(rotation_from_euler([[10, 270]], 10), truth)["front-back"]
    0.5

    """
    check_arguments(summarise, locals(), DataError)
    rotations, true = _pair(predicted, truth)
    by_codebook = [pose_errors(errors) for errors in geodesic_error(rotations, true)]
    by_measure: dict[str, list[float]] = {
        "median error": [errors.median for errors in by_codebook],
        "Acc@15": [errors.accuracy15 for errors in by_codebook],
        "Acc@30": [errors.accuracy30 for errors in by_codebook],
        "front-back": confused(rotations, true).mean(axis=1).tolist(),
    }
    return {name: float(np.mean(values)) for name, values in by_measure.items()} | _standard_errors(by_measure)


def confused(predicted: npt.ArrayLike, truth: npt.ArrayLike) -> Bools:
    """Whether front and back are exchanged: a pose is within 30° of the truth turned half around the vertical axis.

    Parameters
    ----------
    predicted, truth : (..., 3, 3) float
        Rotations, broadcast against each other.

    Returns
    -------
    (...) bool

    Examples
    --------
    >>> from setsup_papers.abc.pose.rotations import rotation_from_euler
    >>> confused(rotation_from_euler([10, 90, 175], 20), rotation_from_euler(0, 20)).tolist()
    [False, False, True]

    """
    check_arguments(confused, locals(), DataError)
    return np.asarray(geodesic_error(predicted, half_turned(truth)) < _LIMIT)


def over_azimuth(predicted: npt.ArrayLike, truth: npt.ArrayLike, bins: int = BINS) -> OverAzimuth:
    """Errors by the true azimuth, in equal parts of the circle, of which the first has its middle at 0.

    Parameters
    ----------
    predicted, truth : (c, n, 3, 3) float, (n, 3, 3) float
        As for :func:`summarise`.
    bins : int
        Parts of the circle.

    Returns
    -------
    OverAzimuth

    Examples
    --------
    >>> from setsup_papers.abc.pose.rotations import rotation_from_euler
    >>> truth = rotation_from_euler([0, 358, 180], 10)
    >>> found = over_azimuth(rotation_from_euler([[2, 2, 0]], 10), truth)
    >>> found.azimuth.tolist(), found.median.round().tolist(), found.confused.tolist()
    ([0.0, 180.0], [3.0, 180.0], [0.0, 1.0])

    """
    check_arguments(over_azimuth, locals(), DataError)
    count = check_integer(bins, "bins", SetsupError, 1)
    rotations, true = _pair(predicted, truth)
    azimuth = euler_from_rotation(true)[0]
    # each bin with its lower end, which rint has or not, and the rounding of angles too
    bin_of_row = np.floor((azimuth * count / 360.0).round(9) + 0.5).astype(np.int64) % count
    errors, turned = geodesic_error(rotations, true), confused(rotations, true)
    there = np.unique(bin_of_row)
    return OverAzimuth(
        azimuth=there * 360.0 / count,
        count=np.array([np.count_nonzero(bin_of_row == number) for number in there], dtype=np.int64),
        median=np.array([np.median(errors[:, bin_of_row == number]) for number in there]),
        confused=np.array([turned[:, bin_of_row == number].mean() for number in there]),
    )


def disagreement(rotations: npt.ArrayLike) -> Reals:
    """Mean angle between all pairs of some rotations: how far nearest neighbours disagree about a pose.

    Parameters
    ----------
    rotations : (..., k, 3, 3) float
        k poses of each of some images.

    Returns
    -------
    (...) float64, degrees
        0 for k = 1.

    Examples
    --------
    >>> from setsup_papers.abc.pose.rotations import rotation_from_euler
    >>> disagreement(rotation_from_euler([0, 0, 30], 0)).round(6).item()
    20.0

    """
    check_arguments(disagreement, locals(), DataError)
    matrices = np.asarray(rotations)
    if matrices.ndim < 3 or matrices.shape[-2:] != (3, 3):
        raise DataError(f"rotations must have the shape (…, k, 3, 3), not {matrices.shape}")
    first, second = np.triu_indices(matrices.shape[-3], 1)
    if not len(first):
        return np.zeros(matrices.shape[:-3])
    return np.asarray(geodesic_error(matrices[..., first, :, :], matrices[..., second, :, :]).mean(axis=-1))


def _standard_errors(by_measure: Mapping[str, list[float]]) -> dict[str, float]:
    return {
        # from the first: of equal values the mean is rounded, and their spread would not be 0
        f"{name}: s.e.m.": float(np.std(np.array(values) - values[0], ddof=1) / np.sqrt(len(values)))
        for name, values in by_measure.items()
        if len(values) > 1
    }


def _pair(predicted: npt.ArrayLike, truth: npt.ArrayLike) -> tuple[Reals, Reals]:
    poses, true = check_array(predicted, "predicted poses", DataError), check_array(truth, "true poses", DataError)
    if poses.ndim != 4 or not poses.size or poses.shape[1:] != true.shape or poses.shape[2:] != (3, 3):
        raise DataError(
            "predicted poses must have the shape (codebooks, n, 3, 3), and true poses the shape (n, 3, 3), not "
            f"{poses.shape} and {true.shape}"
        )
    if not all(rotations.dtype.kind in "iuf" and np.isfinite(rotations).all() for rotations in (poses, true)):
        raise DataError("predicted and true poses must be finite numbers; exclude images with unknown poses")
    return poses.astype(np.float64), true.astype(np.float64)
