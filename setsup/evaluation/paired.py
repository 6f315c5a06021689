"""Paired tests of methods against a reference over shared re-splits."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_number
from setsup.errors import DataError, SetsupError, imported

__all__ = ["PairedTest", "paired_tests"]


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Result of a paired t-test.

    Attributes
    ----------
    difference : float
        Mean over re-splits of the method less the reference.
    t : float
        Statistic, of the sign of the difference; infinite where all differences are equal and not 0.
    p : float
        Two-sided.
    corrected : float
        p times the number of tests, at most 1 (Bonferroni).
    significant : bool
        Whether the corrected p is below the level.

    """

    difference: float
    t: float
    p: float
    corrected: float
    significant: bool


def paired_tests(
    reference: npt.ArrayLike, others: Mapping[str, npt.ArrayLike], *, level: float = 0.05
) -> dict[str, PairedTest]:
    """Test methods against a reference by paired t-tests over shared re-splits, with Bonferroni's correction.

    Re-splits that share images are not independent samples, as the test assumes: with many of them it finds small
    differences significant that another test set would not show.

    Parameters
    ----------
    reference : (resplits,) numbers
        Accuracy of the reference in each re-split, at least two.
    others : mapping of str to (resplits,) numbers
        Accuracy of each method in the same re-splits.
    level : float
        Of significance, above 0 and below 1.

    Returns
    -------
    dict of str to PairedTest
        In the order of `others`.

    Raises
    ------
    DataError, SetsupError
        When numbers of re-splits differ, one is not finite, there is no method, the level is out of range, or scipy is
        not installed.

    Examples
    --------
    >>> found = paired_tests([0.60, 0.64, 0.61, 0.66], {"OT": [0.36, 0.38, 0.33, 0.40], "EX": [0.61, 0.63, 0.60, 0.67]})
    >>> found["OT"].significant, found["EX"].significant, found["EX"].corrected
    (True, False, 1.0)

    References
    ----------
    .. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
       self-supervised visual experience", NeurIPS 2018, table 2.

    """
    check_arguments(paired_tests, locals(), DataError)
    if not 0 < check_number(level, "level", SetsupError) < 1:
        raise SetsupError(f"level must be between 0 and 1, not {level}")
    if not others:
        raise DataError("at least one method is required to compare with the reference")
    known = _check(reference, "the reference", None)
    tests = {}
    for name, accuracies in others.items():
        differences = _check(accuracies, name, len(known)) - known
        t, p = _test(differences)
        corrected = min(1.0, p * len(others))
        tests[name] = PairedTest(float(differences.mean()), t, p, corrected, corrected < level)
    return tests


def _test(differences: Reals) -> tuple[float, float]:
    """Statistic and two-sided p of the mean of differences being 0."""
    if (differences == differences[0]).all():  # no variance: scipy divides by 0
        return (0.0, 1.0) if differences[0] == 0 else (float(np.copysign(np.inf, differences[0])), 0.0)
    tested = imported("scipy.stats", "train").ttest_1samp(differences, 0.0)
    return float(tested.statistic), float(tested.pvalue)


def _check(accuracies: npt.ArrayLike, name: str, resplits: int | None) -> Reals:
    numbers = np.asarray(accuracies)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iuf" or len(numbers) < 2:
        raise DataError(
            f"{name} must be a 1-D numeric array with one value for each of at least two re-splits, not "
            f"{numbers.dtype} of shape {numbers.shape}"
        )
    if resplits is not None and len(numbers) != resplits:
        raise DataError(
            f"{name} must have the same number of re-splits as the reference, {resplits:,}, not {len(numbers):,}"
        )
    if not np.isfinite(numbers).all():
        raise DataError(f"{name}: the value of re-split {int(np.argmin(np.isfinite(numbers)))} is not finite")
    return numbers.astype(np.float64)
