"""Principal components: the directions in which embeddings vary most.

Convention
----------
Components are the right singular vectors of the centred embeddings, of length 1, the greatest variance first. The sign
of each is such that its entry of greatest magnitude is positive, the first one of those that are equal up to 1e-9.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_integer
from setsup.errors import DataError, SetsupError
from setsup.evaluation.inputs import check_embeddings

__all__ = ["Components", "principal_components"]


@dataclass(frozen=True, slots=True)
class Components:
    """Principal components of some embeddings.

    Attributes
    ----------
    mean : (d,) float64
        Of the embeddings.
    directions : (k, d) float64
        One component a row.
    explained : (k,) float64
        Share of the total variance that each carries, descending.

    """

    mean: Reals
    directions: Reals
    explained: Reals

    def project(self, embeddings: npt.ArrayLike) -> Reals:
        """Coordinates of embeddings along the components.

        Parameters
        ----------
        embeddings : (n, d) numbers
            These or others of the same network.

        Returns
        -------
        (n, k) float64

        Raises
        ------
        DataError
            When they have another number of dimensions, or an entry is not finite.

        Examples
        --------
        >>> found = principal_components([[0, 0], [2, 2]], 1)
        >>> found.project([[1, 1], [2, 0]]).round(9) + 0.0
        array([[0.],
               [0.]])

        """
        reals = check_embeddings(embeddings)
        if reals.shape[1] != len(self.mean):
            raise DataError(
                f"embeddings must have the {len(self.mean)} dimensions of the components, not {reals.shape[1]}"
            )
        return np.asarray((reals - self.mean) @ self.directions.T)


def principal_components(embeddings: npt.ArrayLike, k: int | None = None) -> Components:
    """Principal components by singular value decomposition.

    Parameters
    ----------
    embeddings : (n, d) numbers
        At least two rows that differ.
    k : int, optional
        Components, at most min(n, d); by default all.

    Returns
    -------
    Components

    Raises
    ------
    DataError, SetsupError
        When an entry is not finite, all rows are equal, or there are fewer than k components.

    Examples
    --------
    >>> found = principal_components([[3, 0], [-3, 0], [0, 1], [0, -1]])
    >>> found.explained.round(9), found.directions.round(9) + 0.0
    (array([0.9, 0.1]), array([[1., 0.],
           [0., 1.]]))

    """
    check_arguments(principal_components, locals(), DataError)
    reals = check_embeddings(embeddings)
    most = min(reals.shape)
    count = most if k is None else check_integer(k, "k", SetsupError, 1)
    if count > most:
        raise SetsupError(
            f"embeddings of shape {reals.shape} have only {most} components, fewer than k={count}; request fewer"
        )
    if not np.ptp(reals, axis=0).any():
        raise DataError(
            f"all {len(reals):,} embeddings are equal, so their variance is 0; check whether the network has collapsed"
        )
    mean = reals.mean(axis=0)
    _, lengths, directions = np.linalg.svd(reals - mean, full_matrices=False)
    sizes = np.abs(directions)
    largest = np.argmax(sizes >= sizes.max(axis=1, keepdims=True) * (1 - 1e-9), axis=1)
    signs = np.sign(np.take_along_axis(directions, largest[:, None], axis=1))
    share = (lengths / lengths[0]) ** 2
    return Components(mean, (directions * signs)[:count], (share / share.sum())[:count])
