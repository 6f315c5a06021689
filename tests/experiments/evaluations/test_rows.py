"""What measurements have in common: rows, embeddings that are shared, factors that are checked first."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments.evaluations import (  # noqa: E402
    Accuracy,
    Components,
    Disentanglement,
    FactorInformation,
    NoiseSweep,
    Probes,
    Retrieval,
)
from tests.experiments.numbered import Numbered, OneHot, trained  # noqa: E402

FACTORS = ("shape", "colour", "size")
KINDS = (Accuracy, Disentanglement, FactorInformation, NoiseSweep, Probes, Retrieval)


@pytest.mark.long("trainings")
def test_small_versions_fit_what_is_drawn() -> None:
    some = trained(OneHot(), Numbered(600))
    for measure in (
        Components(factors=FACTORS),
        FactorInformation(factors=FACTORS),
        FactorInformation(factors=FACTORS, estimator="mine"),
        FactorInformation(factors=FACTORS, estimator="neighbours"),
        NoiseSweep(factors=FACTORS),
        NoiseSweep(factors=FACTORS, estimator="mine"),
        FactorInformation(factors=FACTORS, estimator="mine", batch=512, last=1_000, rate=1e-3),
        NoiseSweep(factors=FACTORS, estimator="neighbours"),
        Accuracy(factors=FACTORS, held_out=0.2),
        Disentanglement(factors=FACTORS),
        Retrieval(factors=FACTORS),
        Probes(factors=FACTORS),
    ):
        small = measure.shrunk()
        assert type(small) is type(measure)
        assert small.factors == FACTORS
        found = small.measure(some)
        assert all(math.isfinite(value) for value in found.values.values())


def test_evaluations_share_their_embeddings() -> None:
    dataset = Numbered(900)
    some = trained(OneHot(), dataset)
    FactorInformation(factors=("size",), samples=300, estimator="neighbours").measure(some)
    fetched = dataset.fetched
    Components(factors=("size",), samples=300, shown=20).measure(some)
    assert dataset.fetched == fetched


@pytest.mark.parametrize("kind", KINDS)
def test_factors_are_checked_before_all_is_embedded(kind: Any) -> None:
    dataset = Numbered(900)
    with pytest.raises(SetsupError, match=r"shap.*did you mean 'shape'"):
        kind(factors=("colour", "shap")).measure(trained(OneHot(), dataset))
    assert dataset.fetched == 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Disentanglement])
def test_no_factor_at_all(kind: Any) -> None:
    with pytest.raises(SetsupError, match=r"^factors must contain at least one factor$"):
        kind(factors=()).measure(trained(OneHot(), Numbered(900)))
