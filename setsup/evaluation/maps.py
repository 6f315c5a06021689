"""Maps of embeddings: planes that preserve neighbourhoods, for plots only.

A map keeps neighbourhoods and nothing else. Distances between clusters, their sizes and their density mean nothing, and
another seed or another number of neighbours gives another map. Measure on the embeddings themselves.
"""

import warnings

import numpy as np
import numpy.typing as npt

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_integer, is_number
from setsup.errors import DataError, SetsupError, abbreviate, imported
from setsup.evaluation.inputs import check_embeddings
from setsup.random import stream_key

__all__ = ["tsne_map", "umap_map"]


_LEAST = 4  # points of a map


def tsne_map(embeddings: npt.ArrayLike, *, perplexity: float = 30.0, seed: int = 0) -> Reals:
    """Map of embeddings by t-SNE [1]_, for a plot.

    It begins with the two first principal components and takes 1,000 steps of the Barnes-Hut method, on one thread, so
    that the order in which sums are rounded is always the same. The scale of the embeddings changes nothing.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image; at least 4 rows and 2 dimensions. Time grows as n ln n.
    perplexity : float
        Neighbours that count, about; from 1 to below n.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    (n, 2) float64

    Raises
    ------
    DataError, SetsupError
        When an entry is not finite, all rows are equal, there are too few for the perplexity, or scikit-learn is not
        installed.

    References
    ----------
    .. [1] L. van der Maaten, G. Hinton, "Visualizing data using t-SNE", Journal of Machine Learning Research 9, 2008.

    Examples
    --------
    >>> angles = np.linspace(0, 6, 20)
    >>> tsne_map(np.stack([np.cos(angles), np.sin(angles), angles], axis=1), perplexity=5).shape
    (20, 2)

    """
    check_arguments(tsne_map, {"embeddings": embeddings, "seed": seed}, DataError)
    reals = _check_inputs(embeddings)
    if not is_number(perplexity) or not 1 <= perplexity < len(reals):
        raise SetsupError(
            f"perplexity must be at least 1 and below {len(reals):,} for {len(reals):,} rows, not "
            f"{abbreviate(perplexity)}"
        )
    manifold = imported("sklearn.manifold", "train")
    tsne = manifold.TSNE(
        n_components=2,
        perplexity=float(perplexity),
        early_exaggeration=12.0,
        learning_rate="auto",
        max_iter=1000,
        metric="euclidean",
        init="pca",
        method="barnes_hut",
        angle=0.5,
        random_state=_state(seed, "t-SNE"),
        n_jobs=1,
    )
    with imported("threadpoolctl", "train").threadpool_limits(1):
        return np.asarray(tsne.fit_transform(reals), dtype=np.float64)


def umap_map(embeddings: npt.ArrayLike, *, neighbours: int = 15, seed: int = 0) -> Reals:
    """Map of embeddings by UMAP [1]_, for a plot.

    It begins with a spectral embedding and takes the steps that are usual for so many rows, on one thread. The scale of
    the embeddings changes nothing. The first call of a process compiles for some seconds.

    Parameters
    ----------
    embeddings : (n, d) numbers
        One row per image; at least 4 rows and 2 dimensions.
    neighbours : int
        Of each row, which stay near; from 2 to below n.
    seed : int
        0 ≤ seed < 2⁶⁴.

    Returns
    -------
    (n, 2) float64

    Raises
    ------
    DataError, SetsupError
        When an entry is not finite, all rows are equal, there are too few for the neighbours, or umap-learn is not
        installed.

    References
    ----------
    .. [1] L. McInnes, J. Healy, J. Melville, "UMAP: Uniform manifold approximation and projection for dimension
       reduction", arXiv 1802.03426, 2018.

    Examples
    --------
    >>> angles = np.linspace(0, 6, 40)
    >>> umap_map(np.stack([np.cos(angles), np.sin(angles)], axis=1), neighbours=5).shape
    (40, 2)

    """
    check_arguments(umap_map, locals(), DataError)
    reals = _check_inputs(embeddings)
    if check_integer(neighbours, "neighbours", SetsupError, 2) >= len(reals):
        raise SetsupError(
            f"each of {len(reals):,} rows has {len(reals) - 1:,} neighbours, but {neighbours} were requested; request "
            "fewer"
        )
    state = _state(seed, "UMAP")
    with warnings.catch_warnings():
        # no TensorFlow, spectral start by another solver, one thread because of the seed: nothing that a user can fix
        warnings.simplefilter("ignore")
        umap = imported("umap", "umap").UMAP(
            n_components=2,
            n_neighbors=int(neighbours),
            min_dist=0.1,
            metric="euclidean",
            init="spectral",
            random_state=state,
            n_jobs=1,
        )
        return np.asarray(umap.fit_transform(reals), dtype=np.float64)


def _check_inputs(embeddings: npt.ArrayLike) -> Reals:
    """Embeddings (n, d) about 0, the farthest entry at ±1."""
    reals = check_embeddings(embeddings)
    if len(reals) < _LEAST or reals.shape[1] < 2:
        raise DataError(f"a map requires embeddings of at least {_LEAST} rows and 2 dimensions, not {reals.shape}")
    # both methods work in float32, and neither minds the scale
    scaled = reals / max(np.abs(reals).max(), np.finfo(np.float64).tiny)
    if not np.ptp(scaled, axis=0).any():
        raise DataError(
            f"all {len(reals):,} embeddings are equal, so they cannot be mapped; check whether the network has "
            "collapsed"
        )
    centred = scaled - scaled.mean(axis=0)
    return np.asarray(centred / np.abs(centred).max())


def _state(seed: int, stream: str) -> int:
    """The 32 bits that these libraries take for a seed."""
    return stream_key(seed, stream) >> 32
