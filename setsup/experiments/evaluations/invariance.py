"""How well the domain and other factors can be read from the codes of any encoder or run: `setsup report invariance`.

Each factor with levels is read by a deep probe, each continuous one by a linear regression; rows that are tested are
not fitted. What the same probes find of permuted labels tells how much of a number is chance: the share of the most
frequent level, and the error of a test of so many rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup import evaluation
from setsup.errors import SetsupError
from setsup.evaluation.batched.probe_networks import split_rows
from setsup.experiments.evaluations.classes import number_classes, split_attribute
from setsup.experiments.trained_run import TrainedRun, need_vectors
from setsup.factors import FactorTable
from setsup.random import fold, permute, stream_key

__all__ = ["StudiedInvariance", "study_invariance"]

Array = npt.NDArray[Any]

_DOMAIN = "domain"
_TEST = 0.2  # share of the rows that is tested
_PER_LEVEL = 5  # rows of each level, on average, without which a factor is left out by default
_FEWEST = 40
_SEEN = 0.5  # share of the tested rows whose level is one of the fit, without which nothing is read, of any code
_BATCH, _EPOCHS, _PATIENCE = 128, 100, 7  # of the published probes
_STEPS = 32  # per epoch, on average, below which probes get more epochs: two hundred rows are two steps


@dataclass(frozen=True, slots=True)
class StudiedInvariance:
    """What :func:`study_invariance` finds in one embedding, by name.

    Attributes
    ----------
    names : tuple of str
        ``"domain"``, then the other factors; a factor of that name is called ``"factor domain"``.
    accuracy : dict of str to float
        Share of test rows with the correct level; R² for a continuous factor.
    ideal : dict of str to float
        Ideal accuracy: the share of the most frequent domain, and 1 for other factors.
    permuted : dict of str to float
        Accuracy of the same probe on permuted labels.
    left_out : dict of str to str
        Factors that were not measured, and why.

    """

    names: tuple[str, ...]
    accuracy: dict[str, float]
    ideal: dict[str, float]
    permuted: dict[str, float]
    left_out: dict[str, str]


def study_invariance(
    trained: TrainedRun,
    domain: Sequence[str],
    factors: Sequence[str] = (),
    *,
    samples: int = 10_000,
    untrained: bool = False,
    embedding: str | None = None,
) -> StudiedInvariance:
    """Read the domain and other factors from the embedding of a method.

    Probes are those of :func:`setsup.evaluation.deep_probes`. Where an epoch has fewer than 32 steps, of 4,000 rows or
    fewer, they get as many more epochs, and patience: otherwise they would stop before they fit anything, and every
    code would look invariant.

    Parameters
    ----------
    trained : TrainedRun
        Method and dataset, also from :func:`~setsup.experiments.encoders.encoder_run`.
    domain : sequence of str
        Factors whose combinations are the domains.
    factors : sequence of str
        What else is read; ``"elevation+azimuth"`` is the combinations of both. By default all other factors of at least
        5 rows per level on average.
    samples : int
        Rows at most, drawn with the seed of the run; a fifth of them is tested.
    untrained : bool
        Read from the method with its initial weights.
    embedding : str, optional
        Name of the embedding, if the method has several.

    Returns
    -------
    StudiedInvariance

    Raises
    ------
    SetsupError, DataError
        When there are fewer than 40 rows or two domains, a factor is unknown, or the method gives maps.

    Examples
    --------
    >>> import setsup
    >>> from setsup.experiments.encoders import encoder_run, open_encoder
    >>> shapes = setsup.load("shapes3d-procedural", where="scale == 1.25 and orientation == 0")
    >>> pixels = encoder_run(open_encoder("pixels:4", "cpu"), shapes)
    >>> found = study_invariance(pixels, ["shape"], ["wall_hue"], samples=400)
    >>> found.names, found.ideal["wall_hue"], found.accuracy["wall_hue"] > found.permuted["wall_hue"] + 0.3
    (('domain', 'wall_hue'), 1.0, True)

    """
    dataset, table = trained.dataset, trained.dataset.factors
    rows = trained.sample(samples, table)
    if len(rows) < _FEWEST:
        raise SetsupError(
            f"{dataset.name} has {len(rows)} rows, but fitting and testing probes requires at least {_FEWEST}; "
            "use more rows"
        )
    test = split_rows(len(rows), _TEST, trained.seed)
    columns = {_DOMAIN: number_classes(table, domain, rows)}
    numbers: dict[str, Array] = {}
    left_out: dict[str, str] = {}
    for name in factors or _others(table, domain):
        column, label = _column(table, name, rows), f"factor {name}" if name == _DOMAIN else name
        reason = _unfit(column, test, asked=bool(factors))
        if reason:
            left_out[label] = reason
        elif column.dtype.kind == "f":
            numbers[label] = column
        else:
            columns[label] = column
    if reason := _unfit(columns[_DOMAIN], test, asked=True):
        raise SetsupError(f"the domain ({', '.join(domain)}) cannot be predicted: {reason}; choose another domain")
    embedded = _embed(trained, rows, embedding, untrained)
    accuracy, permuted, majority = _probe(trained, embedded, columns, test)
    for at, (name, values) in enumerate(numbers.items()):
        known = np.flatnonzero(~np.isnan(values))
        shuffled = values[known][_permutation(trained.seed, at, len(known))]
        accuracy[name], permuted[name] = (
            evaluation.ridge_probe(embedded[known], some, seed=trained.seed).r2 for some in (values[known], shuffled)
        )
    names = (_DOMAIN, *(name for name in accuracy if name != _DOMAIN))
    ideal = {name: majority if name == _DOMAIN else 1.0 for name in names}
    return StudiedInvariance(names, accuracy, ideal, permuted, left_out)


def _probe(
    trained: TrainedRun, embedded: Array, columns: dict[str, Array], test: Array
) -> tuple[dict[str, float], dict[str, float], float]:
    """Accuracies of all factors with levels and of their permuted labels, and the share of the largest domain.

    Labels are permuted among the rows where they are known, so that either are fitted in the same networks.
    """
    codes, count = np.stack(list(columns.values()), axis=1), len(columns)
    shuffled = codes.copy()
    for at in range(count):
        known = np.flatnonzero(codes[:, at] >= 0)
        shuffled[known, at] = codes[known[_permutation(trained.seed, at, len(known))], at]
    both = np.concatenate([codes, shuffled], axis=1)
    more = max(1, _STEPS * _BATCH // int(np.count_nonzero(~test)))
    probes = evaluation.deep_probes(
        embedded[~test],
        both[~test],
        embedded[test],
        both[test],
        batch=_BATCH,
        epochs=more * _EPOCHS,
        patience=more * _PATIENCE,
        seed=trained.seed,
        device=trained.device,
    )
    accuracy = {name: float(probes.accuracy[at]) for at, name in enumerate(columns)}
    permuted = {name: float(probes.accuracy[count + at]) for at, name in enumerate(columns)}
    return accuracy, permuted, float(probes.majority[0])


def _permutation(seed: int, at: int, count: int) -> Array:
    return np.asarray(permute(int(fold(stream_key(seed, "permuted labels"), at)), count, np.arange(count)))


def _others(table: FactorTable, domain: Sequence[str]) -> list[str]:
    """Factors that vary and are not of the domain: neither keys nor splits."""
    return [factor.name for factor in table.factors if factor.name not in domain and factor.role == "variation"]


def _column(table: FactorTable, name: str, rows: Array) -> Array:
    """Classes, or the numbers of a continuous factor."""
    parts = split_attribute(name, table)
    if len(parts) == 1 and table[name].continuous:
        return np.asarray(table.codes(name, rows), np.float64)
    return number_classes(table, parts, rows)


def _unfit(column: Array, test: Array, *, asked: bool) -> str:
    """Why a factor cannot be read, or is not by default; empty where it can."""
    known = ~np.isnan(column) if column.dtype.kind == "f" else column >= 0
    levels = np.unique(column[known])
    if len(levels) < 2:
        return f"it has {len(levels)} known level{'s' * (len(levels) != 1)} among the rows"
    tested = (known & test).sum()
    if min(known.sum() - tested, tested / _TEST) < _FEWEST // 2:
        return f"it is known in {known.sum():,} rows only"
    if column.dtype.kind == "f":
        return ""
    if len(np.unique(column[known & ~test])) < 2:
        return "it has a single level in the rows used for fitting"
    seen = np.isin(column[known & test], column[known & ~test])
    if asked and seen.mean() < _SEEN:
        return (
            f"{np.count_nonzero(~seen):,} of {len(seen):,} test rows have a level that does not occur in the rows "
            "used for fitting"
        )
    if not asked and known.sum() < _PER_LEVEL * len(levels):
        return f"it has {len(levels):,} levels in {known.sum():,} rows, fewer than {_PER_LEVEL} for each"
    return ""


def _embed(trained: TrainedRun, rows: Array, embedding: str | None, untrained: bool) -> Array:
    if not untrained:
        return trained.embed_vectors(rows=rows, name=embedding)
    from setsup.experiments.embedding import embed

    options = trained.embedding(trained.dataset)
    embedded = embed(trained.untrained, trained.dataset, rows, name=embedding, **options)
    return need_vectors(embedded, trained.method, embedding)
