"""Random re-splits of a dataset: groups for validation and test, and one labelled image per class.

Convention
----------
All is a function of the seed, and drawn before anything is measured, so that different embeddings are compared on the
same re-splits. Re-splits are independent of each other: the first ones do not depend on how many are drawn.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from setsup.arrays import Bools, Codes
from setsup.checks import check_arguments, check_integer, check_number
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_labels
from setsup.random import below_few, fold, permute, stream_key

__all__ = ["check_disjoint", "check_known", "draw_labelled", "draw_parts"]


def check_disjoint(
    first: npt.ArrayLike, second: npt.ArrayLike, names: tuple[str, str] = ("the first part", "the second")
) -> None:
    """Raise an error where two parts have images of one orbit.

    Parameters
    ----------
    first, second : (n,) and (m,) integers, or (n, k) and (m, k)
        Orbit of each image, or the levels of the k factors that determine it, numbered alike in both.
    names : pair of str
        What the parts are called in the error.

    Raises
    ------
    DataError
        When an orbit is in both parts, with the first such orbit; or when shapes disagree.

    Examples
    --------
    >>> check_disjoint([0, 0, 1], [2, 3])
    >>> check_disjoint([0, 0, 1], [2, 1], names=("train", "test"))
    Traceback (most recent call last):
        ...
    setsup.errors.DataError: orbit 1 is in both train and test (1 orbit is in both); split by orbit, not by image

    """
    check_arguments(check_disjoint, locals(), DataError)
    orbits1, orbits2 = np.asarray(first), np.asarray(second)
    for name, part in zip(names, (orbits1, orbits2), strict=True):
        if part.ndim not in (1, 2) or part.dtype.kind not in "iub":
            raise DataError(
                f"orbits of {name} must be an integer array of shape (n,) or (n, k), not {part.dtype} of shape "
                f"{part.shape}"
            )
    if orbits1.shape[1:] != orbits2.shape[1:]:
        raise DataError(
            f"orbits of {names[0]} and {names[1]} must have the same number of factors, not {orbits1.shape} and "
            f"{orbits2.shape}"
        )
    both = np.concatenate([orbits1, orbits2])
    codes = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    shared = np.intersect1d(codes[: len(orbits1)], codes[len(orbits1) :])
    if len(shared):
        orbit = both[np.argmax(codes == shared[0])]
        counted = f"{len(shared):,} orbit{'s are' if len(shared) > 1 else ' is'} in both"
        raise DataError(
            f"orbit {tuple(orbit.tolist()) if orbit.ndim else orbit} is in both {names[0]} and {names[1]} ({counted}); "
            "split by orbit, not by image"
        )


def draw_parts(
    groups: npt.ArrayLike, labels: npt.ArrayLike, resplits: int, *, share: float = 0.5, seed: int = 0
) -> Bools:
    """Split groups of images at random in two parts, such as validation and test, each class by itself.

    In each re-split ``round(share · g)`` of the g groups of a class, but at least one and not all, form the first part.
    A group is what must not be divided: an orbit, or something larger, such as the object that several orbits show.

    Parameters
    ----------
    groups : (n,) integers
        Group of each image, from 0 on.
    labels : (n,) integers
        Class of each image, from 0 on; the same for all images of a group.
    resplits : int
        How many re-splits, at least 1.
    share : float
        Of the groups of a class in the first part, above 0 and below 1. On NORB 2 of 5 toys per category are for
        validation: 0.4.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    (resplits, n) bool
        Whether an image is in the first part.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, a group or class is unknown, a group has images of two classes, a class has a single
        group, or an option is out of range.

    Examples
    --------
    >>> parts = draw_parts([0, 0, 1, 1, 2, 3], [0, 0, 0, 0, 1, 1], resplits=2)
    >>> parts[:, 0].tolist() == parts[:, 1].tolist(), (parts[:, 0] ^ parts[:, 2]).all().item()
    (True, True)

    References
    ----------
    .. [1] A. Tacchetti, S. Voinea, G. Evangelopoulos, "Trading robust representations for sample complexity through
       self-supervised visual experience", NeurIPS 2018, section 4.

    """
    check_arguments(draw_parts, locals(), DataError)
    if not 0 < check_number(share, "share", SetsupError) < 1:
        raise SetsupError(f"share must be between 0 and 1, not {share}")
    check_integer(resplits, "resplits", SetsupError, 1)
    of_image = check_known(groups, len(np.asarray(labels)), "groups")
    classes = check_known(labels, len(of_image), "labels")
    names, first_image, dense = np.unique(of_image, return_index=True, return_inverse=True)
    of_group = classes[first_image]
    if (mixed := of_group[dense] != classes).any():
        image = int(np.argmax(mixed))
        raise DataError(
            f"group {of_image[image]} must contain images of only one class to be split by class, not of classes "
            f"{of_group[dense[image]]} and {classes[image]}"
        )
    first = np.zeros((resplits, len(names)), dtype=np.bool_)
    keys = fold(stream_key(seed, "draw_parts"), np.arange(resplits, dtype=np.uint64))
    for label in np.unique(of_group):
        own = np.flatnonzero(of_group == label)
        if len(own) < 2:
            raise DataError(
                f"class {label} has only one group, but two parts require at least two; leave out the class"
            )
        count = min(max(round(share * len(own)), 1), len(own) - 1)
        where = np.broadcast_to(np.arange(count), (resplits, count))
        np.put_along_axis(first, own[permute(fold(keys, int(label)), len(own), where)], True, axis=1)
    return np.asarray(first[:, dense])


def draw_labelled(
    labels: npt.ArrayLike,
    orbits: npt.ArrayLike,
    resplits: int,
    *,
    candidates: npt.ArrayLike | None = None,
    within: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Codes:
    """Draw one labelled image per class for each of many re-splits, uniformly among the candidates of the class.

    Parameters
    ----------
    labels : (n,) integers
        Class of each image, from 0 on; at least two classes.
    orbits : (n,) integers
        Orbit of each image, from 0 on.
    resplits : int
        How many re-splits, at least 1.
    candidates : (n,) bool, optional
        Images that may be drawn, such as the first member of each orbit; all by default.
    within : (resplits, n) bool, optional
        Images that take part in each re-split, from :func:`draw_parts`; all by default.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    (resplits, classes) int64
        Images, in the order of the codes of their classes.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, a class or orbit is unknown, there is one class, a class has no candidate in a re-split,
        or only one orbit, so that none of its images could be a query.

    Examples
    --------
    >>> drawn = draw_labelled([0, 0, 0, 1, 1], [0, 0, 1, 2, 3], resplits=4, candidates=[1, 0, 1, 1, 1])
    >>> drawn.shape, set(drawn[:, 0].tolist()) <= {0, 2}, set(drawn[:, 1].tolist()) <= {3, 4}
    ((4, 2), True, True)

    """
    check_arguments(draw_labelled, locals(), DataError)
    check_integer(resplits, "resplits", SetsupError, 1)
    of_image = check_known(labels, len(np.asarray(orbits)), "labels")
    orbit = check_known(orbits, len(of_image), "orbits")
    classes, dense = np.unique(of_image, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"one-shot accuracy requires at least two classes, not {len(classes)}")
    allowed = check_mask(candidates, (len(of_image),), "candidates")
    part = None if within is None else check_mask(within, (resplits, len(of_image)), "within")
    order = np.argsort(dense, kind="stable")
    keys = fold(stream_key(seed, "draw_labelled"), np.arange(resplits, dtype=np.uint64))
    bits = fold(keys[:, None], np.arange(len(classes), dtype=np.uint64))
    labelled = np.empty((resplits, len(classes)), dtype=np.int64)
    for label, name in enumerate(classes):
        own = order[dense[order] == label]
        if part is None:
            _check_class(name, orbit[own], None)
            drawable = own[allowed[own]]
            if not len(drawable):
                raise DataError(
                    f"class {name} has no candidate among its {len(own):,} images that may be labelled; allow other "
                    "candidates"
                )
            labelled[:, label] = drawable[below_few(bits[:, label], len(drawable))]
            continue
        for split in range(resplits):
            inside = own[part[split, own]]
            _check_class(name, orbit[inside], split)
            drawable = inside[allowed[inside]]
            if not len(drawable):
                raise DataError(
                    f"class {name} has no candidate among its {len(inside):,} images of re-split {split} that may be "
                    "labelled; allow other candidates"
                )
            labelled[split, label] = drawable[below_few(bits[split, label], len(drawable))]
    return labelled


def check_known(codes: npt.ArrayLike, rows: int, name: str) -> Codes:
    """Codes (n,) int64 of which none is unknown."""
    known = check_labels(codes, rows, name)
    if not rows:
        raise DataError(f"{name} must contain at least one image")
    if (unknown := known < 0).any():
        raise DataError(
            f"{name} contains unknown values (-1) for {int(unknown.sum()):,} of {rows:,} images (first: image "
            f"{int(np.argmax(unknown))}); leave out such images"
        )
    return known


def check_mask(mask: npt.ArrayLike | None, shape: Sequence[int], name: str) -> Bools:
    """Booleans of a shape; all True where there is no mask."""
    if mask is None:
        return np.ones(shape, dtype=np.bool_)
    kept = np.asarray(mask)
    if kept.shape != tuple(shape) or not (kept.dtype == np.bool_ or np.isin(kept, (0, 1)).all()):
        raise DataError(
            f"{name} must be a boolean array of shape {tuple(shape)}, not {kept.dtype} of shape {kept.shape}"
        )
    return kept.astype(np.bool_)


def _check_class(label: int, orbits: Codes, split: int | None) -> None:
    """Check that a class has two orbits, of which one has the labelled image and the other queries."""
    if not len(orbits) or (orbits == orbits[0]).all():
        where = "" if split is None else f" of re-split {split}"
        many = f"1 orbit among its {len(orbits):,} images" if len(orbits) else "no image"
        raise DataError(
            f"class {label} has {many}{where}, but requires two orbits, because the orbit of its labelled image "
            "cannot be queried; leave out the class, or choose other orbits"
        )
