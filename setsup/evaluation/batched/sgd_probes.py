"""Probes by stochastic gradient descent: a linear classifier or a small network for many factors, layers and seeds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from setsup.arrays import Reals
from setsup.checks import check_arguments, check_integer, check_number
from setsup.errors import DataError, SetsupError
from setsup.evaluation.batched.probe_networks import Probe, make_probe, split_rows, train_probes
from setsup.evaluation.devices import check_device
from setsup.evaluation.inputs import check_embeddings, check_factors, select_known

__all__ = ["NetworkProbes", "network_probes"]


@dataclass(frozen=True, slots=True)
class NetworkProbes:
    """Scores of probes that predict factors from layers, on held-out rows.

    Attributes
    ----------
    accuracy : (l, k, s) float64
        Share of held-out rows with the right class, for each layer, factor and seed.
    nats : (l, k, s) float64, nats
        Cross-entropy of held-out rows.
    majority : (k, s) float64
        Share of the most frequent class of the fit among held-out rows: the accuracy without any embedding.
    left_out : (k,) int64
        Rows of unknown class.

    """

    accuracy: Reals
    nats: Reals
    majority: Reals
    left_out: npt.NDArray[np.int64]


def network_probes(
    embeddings: Sequence[npt.ArrayLike],
    factors: npt.ArrayLike,
    *,
    seeds: Sequence[int] = (0,),
    hidden: Sequence[int] = (),
    steps: int = 2_000,
    batch: int = 256,
    rate: float = 1e-3,
    held_out: float = 0.1,
    device: str | torch.device = "cpu",
) -> NetworkProbes:
    """Train a probe for every layer, factor and seed, 64 at a time as one batched network, and test it.

    A probe without hidden layers is a multinomial logistic regression. Embeddings are standardised by the mean and
    standard deviation of the rows of the fit; weights start Glorot-uniform, biases at zero. A step draws ``batch`` rows
    with replacement and minimises their cross-entropy with Adam (ε 1e-7), without a penalty. Initial weights, batches
    and split are functions of (seed, step), so that a probe does not depend on the others, up to rounding.

    Parameters
    ----------
    embeddings : sequence of (n, d) numbers
        A layer each, of the same n rows; d may differ. Of one layer: ``[embeddings]``.
    factors : (n, k) integers
        Codes of classes, -1 where unknown; at least two classes of each factor.
    seeds : sequence of int
        Different ones, each 0 ≤ seed < 2⁶⁴: of initial weights, batches and split.
    hidden : sequence of int
        Widths of hidden layers with ReLU; none for linear probes.
    steps, batch : int
        Training steps, and rows per step.
    rate : float
        Learning rate.
    held_out : float
        Share of the rows held out, between 0 and 1.
    device : str or torch.device
        Where the probes are trained.

    Returns
    -------
    NetworkProbes

    Raises
    ------
    DataError
        When layers or factors have another shape or are not finite, or a factor has fewer than two classes.
    SetsupError
        When an option is out of range, or no row of a factor is left to train on or to hold out.

    Notes
    -----
    Linear probes equal those trained one by one up to 10⁻⁶ nats. With hidden layers, rounding grows over the steps: to
    10⁻⁴ nats after 500, more where there is nothing to learn. Layers of unequal d are padded to the largest.

    Examples
    --------
    >>> angles = np.linspace(0, 6.28, 400)
    >>> circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    >>> codes = np.stack([angles > 3.14, angles // 1.57], axis=1).astype(int)
    >>> found = network_probes([circle, circle[:, :1]], codes, seeds=(0, 1), steps=300, batch=64, rate=1e-2)
    >>> found.accuracy.shape, bool(found.accuracy[0, 0].min() > 0.9), bool(found.accuracy[1, 0].max() < 0.8)
    ((2, 2, 2), True, True)

    """
    check_arguments(network_probes, locals(), DataError)
    steps, batch = check_integer(steps, "steps", SetsupError, 1), check_integer(batch, "batch", SetsupError, 1)
    rate = check_number(rate, "the learning rate", SetsupError, positive=True)
    share = check_number(held_out, "held_out", SetsupError, 0, 1)
    widths = tuple(check_integer(width, "each hidden width", SetsupError, 1) for width in hidden)
    check_device(device)
    if not len(embeddings) or not len(seeds) or len(set(seeds)) < len(seeds):
        raise SetsupError("probes require at least one layer and at least one seed, and all seeds must differ")
    layers = [check_embeddings(layer, f"embeddings of layer {at}") for at, layer in enumerate(embeddings)]
    if len({len(layer) for layer in layers}) > 1:
        raise DataError(
            f"all layers must have the same number of rows, not {', '.join(str(len(layer)) for layer in layers)}"
        )
    codes = check_factors(factors, len(layers[0]))
    probes = _probes(len(layers), codes, seeds, share)
    training: dict[str, Any] = {"steps": steps, "batch": batch, "rate": rate}
    costs, right = train_probes(layers, probes, widths, **training, standardize=True, device=device)
    shape = (len(layers), len(seeds), codes.shape[1])
    return NetworkProbes(
        accuracy=right.reshape(shape).swapaxes(1, 2),
        nats=costs.reshape(shape).swapaxes(1, 2),
        majority=np.array([_majority(probe) for probe in probes]).reshape(shape)[0].T,
        left_out=np.count_nonzero(codes < 0, axis=0),
    )


def _probes(layers: int, codes: npt.NDArray[np.int64], seeds: Sequence[int], share: float) -> list[Probe]:
    """Probes by layer, seed and factor."""
    count = len(codes)
    classes = []
    for at in range(codes.shape[1]):
        known, dense = select_known(codes, at)
        column = np.full(count, -1)
        column[known] = dense
        classes.append(column)
    tests = {seed: split_rows(count, share, seed) for seed in seeds}
    return [
        make_probe(at, layer, column, tests[seed], int(seed))
        for layer in range(layers)
        for seed in seeds
        for at, column in enumerate(classes)
    ]


def _majority(probe: Probe) -> Any:
    return (probe.classes[probe.held] == np.bincount(probe.classes[probe.fit]).argmax()).mean()
