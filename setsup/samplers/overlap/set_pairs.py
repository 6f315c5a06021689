"""Which views of a set are pairs, by the form in which the set was drawn."""

from typing import get_args

import numpy as np

from setsup.arrays import Rows
from setsup.checks import check_choice, check_integer
from setsup.errors import SetsupError
from setsup.samplers.overlap.forms import Form

__all__ = ["pair_positions"]


def pair_positions(size: int, form: Form = "chain") -> Rows:
    """Positions of the pairs of views in a set that :class:`setsup.OverlapSampler` draws.

    These are the pairs that lie in its bands. In a chain, each view and the next one; in a star, the first view and
    each other one; in a clique, any two, the earlier one first: all of them were drawn to be in the bands, and a part
    would leave out matches that the set has.

    Parameters
    ----------
    size : int
        Number of views of a set, without negatives; from 2.
    form : {"chain", "star", "clique"}
        The form of the sets.

    Returns
    -------
    (pairs, 2) int64
        Positions of view 1 and view 2: size − 1 pairs, or size · (size − 1) / 2 in a clique.

    Raises
    ------
    SetsupError
        If the form is none of these, or the size less than 2.

    Examples
    --------
    >>> [pair_positions(3, form).tolist() for form in ("chain", "star", "clique")]
    [[[0, 1], [1, 2]], [[0, 1], [0, 2]], [[0, 1], [0, 2], [1, 2]]]

    Rows of the pairs of a draw, in the order of its sets::

        pairs = draw.indices[:, pair_positions(3, "star")].reshape(-1, 2)

    """
    check_choice(form, get_args(Form), "form", SetsupError)
    check_integer(size, "the number of views of a set", SetsupError, 2)
    first, second = np.triu_indices(size, 1)
    if form != "clique":
        kept = first == (0 if form == "star" else second - 1)
        first, second = first[kept], second[kept]
    return np.stack([first, second], axis=1).astype(np.int64)
