"""How well a network tells the domain and other factors from embeddings: invariance and informativeness.

Invariance is the accuracy of a probe of the domain, which is to be as low as naming the most frequent domain;
informativeness is the mean accuracy of probes of the other factors [1]_. The rows that are tested are not fitted.

References
----------
.. [1] J. Kahana, Y. Hoshen, "A Contrastive Objective for Learning Disentangled Representations", ECCV 2022
   (arXiv 2203.11284), section 5.1.

"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setsup.arrays import Codes, Reals
from setsup.checks import check_arguments, check_integer, check_number
from setsup.errors import DataError, SetsupError
from setsup.evaluation.batched.deep_probes import DeepNetworks, Training, fit_networks, outputs
from setsup.evaluation.devices import check_device
from setsup.evaluation.distances import directions
from setsup.evaluation.inputs import check_embeddings, check_factors

__all__ = ["DeepProbes", "deep_probes", "landmark_error"]


_FEWEST = 20  # rows, of which two are held out


@dataclass(frozen=True, slots=True)
class DeepProbes:
    """How well probes predict factors from embeddings of held-out rows.

    Attributes
    ----------
    accuracy : (k,) float64
        Share of the tested rows of known class with the right class.
    majority : (k,) float64
        Share of the most frequent class of the tested rows: what no embedding is needed for, the ideal of invariance.
    held_out : (k,) float64
        Accuracy on the rows that the epoch was chosen by.
    epochs : (k,) int64
        Epoch that was chosen, from 0.

    """

    accuracy: Reals
    majority: Reals
    held_out: Reals
    epochs: Codes


def deep_probes(
    embeddings: npt.ArrayLike,
    factors: npt.ArrayLike,
    test: npt.ArrayLike,
    test_factors: npt.ArrayLike,
    *,
    normalize: bool = True,
    width: int = 128,
    layers: int = 6,
    rate: float = 1e-3,
    batch: int = 128,
    epochs: int = 100,
    patience: int = 7,
    seed: int = 0,
    device: str = "cpu",
) -> DeepProbes:
    """Fit a network to each factor and test it on other rows; all networks as one batched network.

    Layers but the last are linear without bias, batch normalisation and LeakyReLU, as in the published code. A tenth of
    the rows is held out of the fit; a network stops when more than `patience` epochs were not better there than the
    best one before, whose weights are tested. Each factor stops by itself, as if it were fitted alone.

    Parameters
    ----------
    embeddings, test : (n, d) and (m, d) numbers
        Rows that are fitted, and rows that are tested.
    factors, test_factors : (n, k) and (m, k) integers
        Codes of classes, -1 where unknown.
    normalize : bool
        Scale embeddings to length 1 first.
    width, layers : int
        Numbers in a hidden layer, and of linear layers, at least 2.
    rate : float
        Of Adam.
    batch : int
        Rows of a step; the last of an epoch has the rest.
    epochs, patience : int
        At most so many epochs, and so many without an improvement.
    seed : int
        Of initial weights, the order of rows, and the held-out ones.
    device : str
        Where networks are fitted.

    Returns
    -------
    DeepProbes

    Raises
    ------
    DataError
        When shapes disagree, an entry is not finite, an embedding has no direction, or a factor has fewer than two
        classes or too few rows.
    SetsupError
        When an option is out of range.

    Examples
    --------
    >>> angles = np.linspace(0, 20 * np.pi, 2000)
    >>> circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> sides = (circle > 0).astype(int)
    >>> found = deep_probes(circle[::2], sides[::2], circle[1::2], sides[1::2], epochs=3)
    >>> bool((found.accuracy > 0.9).all()), found.majority.round(1)
    (True, array([0.5, 0.5]))

    """
    check_arguments(deep_probes, locals(), DataError)
    how = _training(width, layers, rate, batch, epochs, patience)
    points, tested = _points(embeddings, test, normalize)
    codes, test_codes = check_factors(factors, len(points)), check_factors(test_factors, len(tested), "test factors")
    if codes.shape[1] != test_codes.shape[1]:
        raise DataError(
            f"factors and test factors must have the same number of columns, not {codes.shape[1]} and "
            f"{test_codes.shape[1]}"
        )
    check_device(device)
    count = codes.shape[1]
    accuracy, majority, held = np.zeros(count), np.zeros(count), np.zeros(count)
    chosen = np.zeros(count, np.int64)
    for some in _alike(codes):
        rows = np.flatnonzero(codes[:, some[0]] >= 0)
        dense = [_dense(codes[rows, at], test_codes[:, at], at) for at in some]
        sizes = [1 + max(int(fitted_codes.max()), int(other.max(initial=-1))) for fitted_codes, other in dense]
        networks = DeepNetworks.initial(points.shape[1], sizes, how, seed, device)
        wanted = torch.as_tensor(np.stack([fitted_codes for fitted_codes, _ in dense], axis=1), device=device)
        best, epoch, scores = fit_networks(networks, _tensor(points[rows], device), wanted, how, seed, kind="classes")
        guess = np.concatenate([part.argmax(dim=2).cpu().numpy() for part in outputs(best, _tensor(tested, device))])
        for position, at in enumerate(some):
            truth = dense[position][1]
            known = truth >= 0
            accuracy[at] = (guess[known, position] == truth[known]).mean()
            majority[at] = np.bincount(truth[known]).max() / known.sum()
            held[at], chosen[at] = scores[position], epoch[position]
    return DeepProbes(accuracy, majority, held, chosen)


def landmark_error(
    embeddings: npt.ArrayLike,
    landmarks: npt.ArrayLike,
    test: npt.ArrayLike,
    test_landmarks: npt.ArrayLike,
    *,
    normalize: bool = True,
    width: int = 128,
    layers: int = 6,
    rate: float = 1e-3,
    batch: int = 128,
    epochs: int = 100,
    patience: int = 7,
    seed: int = 0,
    device: str = "cpu",
) -> float:
    """Mean absolute error of a network that predicts numbers, such as landmarks in pixels, on rows not fitted.

    The network and its fit are those of :func:`deep_probes`, with the mean absolute error as the loss and to choose the
    epoch.

    Parameters
    ----------
    embeddings, test : (n, d) and (m, d) numbers
        Rows that are fitted, and rows that are tested.
    landmarks, test_landmarks : (n, p) and (m, p) numbers
        What is predicted.
    normalize, width, layers, rate, batch, epochs, patience, seed, device
        As for :func:`deep_probes`.

    Returns
    -------
    float
        Mean over rows and numbers of the distance to the truth, in its unit.

    Raises
    ------
    DataError, SetsupError
        As for :func:`deep_probes`.

    Examples
    --------
    >>> angles = np.linspace(0, 20 * np.pi, 2000)
    >>> circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> landmark_error(circle[::2], 10 * circle[::2], circle[1::2], 10 * circle[1::2], epochs=15) < 2
    True

    """
    check_arguments(landmark_error, locals(), DataError)
    how = _training(width, layers, rate, batch, epochs, patience)
    points, tested = _points(embeddings, test, normalize)
    wanted, truth = check_embeddings(landmarks, "landmarks"), check_embeddings(test_landmarks, "test landmarks")
    if len(wanted) != len(points) or len(truth) != len(tested) or wanted.shape[1] != truth.shape[1]:
        raise DataError(
            "landmarks and test landmarks must have one row for each embedding and the same number of columns, not "
            f"shapes {wanted.shape} and {truth.shape} for {len(points):,} and {len(tested):,} embeddings"
        )
    check_device(device)
    networks = DeepNetworks.initial(points.shape[1], [wanted.shape[1]], how, seed, device)
    numbers = _tensor(wanted, device)[:, None]
    best, _, _ = fit_networks(networks, _tensor(points, device), numbers, how, seed, kind="l1")
    predicted = np.concatenate([part[:, 0].cpu().numpy() for part in outputs(best, _tensor(tested, device))])
    return float(np.abs(predicted - truth).mean())


def _training(width: int, layers: int, rate: float, batch: int, epochs: int, patience: int) -> Training:
    return Training(
        width=check_integer(width, "width", SetsupError, 1),
        layers=check_integer(layers, "layers", SetsupError, 2),
        rate=check_number(rate, "rate", SetsupError, positive=True),
        batch=check_integer(batch, "batch", SetsupError, 2),
        epochs=check_integer(epochs, "epochs", SetsupError, 1),
        patience=check_integer(patience, "patience", SetsupError, 0),
    )


def _points(embeddings: npt.ArrayLike, test: npt.ArrayLike, normalize: bool) -> tuple[Reals, Reals]:
    points, tested = check_embeddings(embeddings), check_embeddings(test, "test")
    if points.shape[1] != tested.shape[1]:
        raise DataError(
            f"embeddings and test embeddings must have the same number of dimensions, not {points.shape[1]} and "
            f"{tested.shape[1]}"
        )
    if not normalize:
        return points, tested
    return directions(points, "embeddings"), directions(tested, "test")


def _alike(codes: Codes) -> list[list[int]]:
    """Factors that are known in the same rows, which are fitted together."""
    by_known: dict[bytes, list[int]] = {}
    for at in range(codes.shape[1]):
        by_known.setdefault((codes[:, at] >= 0).tobytes(), []).append(at)
    return list(by_known.values())


def _dense(fit: Codes, test: Codes, at: int) -> tuple[Codes, Codes]:
    """Classes without gaps: those of the fit first; a class that is only tested is known and never told."""
    levels, dense = np.unique(fit, return_inverse=True)
    if len(fit) < _FEWEST:
        raise DataError(
            f"factor {at} is known in {len(fit)} rows, but {_FEWEST} are required; add rows, or leave out the factor"
        )
    if len(levels) < 2:
        raise DataError(
            f"factor {at} has only one known class in the rows to fit, but two are required; leave out the factor"
        )
    if not (test >= 0).any():
        raise DataError(f"factor {at} is unknown in all test rows; leave out the factor")
    every = np.concatenate([levels, np.setdiff1d(test[test >= 0], levels)])
    order = np.argsort(every)
    known = test >= 0
    test_dense = np.full(len(test), -1, np.int64)
    test_dense[known] = order[np.searchsorted(every[order], test[known])]
    return dense.astype(np.int64), test_dense


def _tensor(values: Any, device: str) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(values), dtype=torch.float32, device=device)
