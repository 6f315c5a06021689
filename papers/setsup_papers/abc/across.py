"""Neighbours across classes: whether what two images of different classes share brings them together.

References
----------
.. [1] "Learning ABCs: Approximate Bijective Correspondence for isolating factors of variation with weak supervision",
   arXiv 2103.03240, figure 5.

"""

import numpy as np
import numpy.typing as npt

from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_embeddings, check_labels
from setsup.evaluation.retrieval import nearest

__all__ = ["centred_correlation", "nearest_across", "nearest_of_each"]

Reals = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # of the squared measure: less is what rounding leaves of a constant


def nearest_of_each(embeddings: npt.ArrayLike, labels: npt.ArrayLike, first: int = 512) -> tuple[Codes, Codes, Codes]:
    """For the first image of each digit, the nearest among the first images of every digit, by squared L2 [1]_.

    The protocol of figure 5 for MNIST's test images. Among its own digit the nearest to a query is the query itself
    (or an equal embedding in front of it).

    Parameters
    ----------
    embeddings : (n, d) numbers
        In the order of the dataset.
    labels : (n,) integers
        Digits; -1 where unknown, which takes no part.
    first : int
        Images of each digit that are searched; all where there are fewer.

    Returns
    -------
    digits : (c,) int64
        That occur, ascending.
    queries : (c,) int64
        Row of the first image of each.
    rows : (c, c) int64
        ``rows[i, j]``: of the images of ``digits[j]`` the nearest to ``queries[i]``.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, or no label is known.

    Examples
    --------
    >>> digits, queries, rows = nearest_of_each([[0.0], [5.0], [1.0], [4.0]], [0, 1, 1, 0])
    >>> queries.tolist(), rows.tolist()
    ([0, 1], [[0, 2], [3, 1]])

    """
    check_arguments(nearest_of_each, locals(), DataError)
    reals, digits, members = _first_of_each(embeddings, labels, first)
    queries = np.array([rows[0] for rows in members])
    nearest_rows = [rows[nearest(reals[queries], reals[rows])[0][:, 0]] for rows in members]
    return digits, queries, np.stack(nearest_rows, axis=1)


def nearest_across(embeddings: npt.ArrayLike, labels: npt.ArrayLike, first: int = 512) -> tuple[Codes, Codes]:
    """For each of the first images of a class, the nearest among the first images of every other, by squared L2.

    The gallery of :func:`nearest_of_each`, all of whose images are queries here, so that neighbours can be correlated.

    Parameters
    ----------
    embeddings : (n, d) numbers
        In the order of the dataset.
    labels : (n,) integers
        Classes; -1 where unknown, which takes no part.
    first : int
        Images of each class that take part; all where there are fewer.

    Returns
    -------
    queries, rows : (p,) int64
        Row of each query, by class and then by the class that is searched, and row of its neighbour. Of c classes of
        which k images take part there are p = c (c − 1) k pairs.

    Raises
    ------
    DataError, SetsupError
        When shapes disagree, an entry is not finite, or fewer than two classes are known.

    Examples
    --------
    >>> queries, rows = nearest_across([[0.0], [5.0], [1.0], [4.0]], [0, 1, 1, 0])
    >>> queries.tolist(), rows.tolist()
    ([0, 3, 1, 2], [2, 1, 3, 0])

    """
    check_arguments(nearest_across, locals(), DataError)
    reals, digits, members = _first_of_each(embeddings, labels, first)
    if len(digits) < 2:
        raise DataError(f"neighbours across classes require at least two classes, but all known labels are {digits[0]}")
    pairs = [(own, others) for own in members for others in members if own is not others]
    queries = [own for own, _ in pairs]
    rows = [others[nearest(reals[own], reals[others])[0][:, 0]] for own, others in pairs]
    return np.concatenate(queries), np.concatenate(rows)


def centred_correlation(
    query_values: npt.ArrayLike, neighbour_values: npt.ArrayLike, query_labels: npt.ArrayLike, labels: npt.ArrayLike
) -> float:
    """Correlation of a measure of queries with that of their neighbours, each less the mean of its class.

    Parameters
    ----------
    query_values, neighbour_values : (q,) numbers
        A measure, such as the slant of a digit, of each query and of its neighbour.
    query_labels, labels : (q,) integers
        Classes of the queries and of the neighbours; a pair counts where both are known.

    Returns
    -------
    float
        −1 … 1.

    Raises
    ------
    DataError
        When shapes disagree, or the measure does not vary within classes.

    Examples
    --------
    >>> centred_correlation([1.0, 2.0, 11.0, 12.0], [5.0, 6.0, 0.0, 1.0], [0, 0, 1, 1], [1, 1, 0, 0])
    1.0

    """
    check_arguments(centred_correlation, locals(), DataError)
    pair = [
        check_embeddings(np.reshape(np.asarray(values), (-1, 1)), "values")[:, 0]
        for values in (query_values, neighbour_values)
    ]
    if len(pair[0]) != len(pair[1]):
        raise DataError(
            f"queries and neighbours must have the same number of values, one per pair, not {len(pair[0]):,} and "
            f"{len(pair[1]):,}"
        )
    classes = [check_labels(given, len(pair[0])) for given in (query_labels, labels)]
    known = (classes[0] >= 0) & (classes[1] >= 0)
    if not known.any():
        raise DataError(f"none of the {len(known):,} pairs has two known labels, so there is nothing to correlate")
    first, second = (_centre(v[known], c[known]) for v, c in zip(pair, classes, strict=True))
    length = float(np.sqrt((first @ first) * (second @ second)))
    if length <= _ROUNDING * len(first) * np.abs(pair[0]).max() * np.abs(pair[1]).max():
        raise DataError("the values are constant within each class, so their correlation is undefined")
    return float(np.clip(first @ second / length, -1.0, 1.0))


def _centre(values: Reals, classes: Codes) -> Reals:
    _, dense = np.unique(classes, return_inverse=True)
    return np.asarray(values - (np.bincount(dense, weights=values) / np.bincount(dense))[dense])


def _first_of_each(embeddings: npt.ArrayLike, labels: npt.ArrayLike, first: int) -> tuple[Reals, Codes, list[Codes]]:
    """Embeddings, the labels that occur, and the first rows of each."""
    reals = check_embeddings(embeddings)
    known = check_labels(labels, len(reals))
    check_integer(first, "first", SetsupError, 1)
    digits = np.unique(known[known >= 0])
    if not len(digits):
        raise DataError(f"none of the {len(known):,} labels is known, so no image can be a query")
    return reals, digits, [np.flatnonzero(known == digit)[:first] for digit in digits]
