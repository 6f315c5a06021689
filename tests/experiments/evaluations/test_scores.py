"""Disentanglement, retrieval and linear probes: closed forms, numpy, and direct calls of what they are made of."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup import evaluation  # noqa: E402
from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments import RunConfig, evaluate, train  # noqa: E402
from setsup.experiments.evaluations import Accuracy, Disentanglement, FactorInformation, Probes, Retrieval  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from tests.experiments.numbered import Numbered, OneHot, trained  # noqa: E402
from tests.experiments.small import PLAIN  # noqa: E402

FACTORS = ("colour", "shape", "size")
DCI = ("disentanglement", "completeness", "informativeness")
PAIRWISE = {"MIG": evaluation.mig, "modularity": evaluation.modularity}
OWN: Any = {"dci_learner": "additive", "sap_learner": "thresholds"}
TURN = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0].astype(np.float32)


class Product(Numbered):
    """Every combination of the factors, 30 times each."""

    def __init__(self) -> None:
        super().__init__()
        levels = {"colour": 2, "shape": 4, "size": 4, "copy": 30}
        self.factors = FactorTable([Factor(name, Kind.NOMINAL, tuple(range(n))) for name, n in levels.items()])


class Partly(Numbered):
    """Shapes are unknown of every tenth row, and there is an angle, unknown of others."""

    def __init__(self) -> None:
        super().__init__(900)
        rows, table = np.arange(900), self.factors
        columns = {name: table.codes(name) for name in table.names}
        columns["shape"] = np.where(rows % 10, columns["shape"], -1)
        angles = np.where(rows % 7, np.random.default_rng(3).random(900), np.nan).astype(np.float32)
        self.factors = FactorTable([*table.factors, Factor("angle", Kind.CONTINUOUS)], columns | {"angle": angles})


class Axes(LightningModule):
    """A dimension a factor, of unlike lengths, then turned."""

    def __init__(self, turn: Any = None) -> None:
        super().__init__()
        self.turn = torch.eye(3) if turn is None else torch.as_tensor(turn)

    def embed(self, batch: Any) -> torch.Tensor:
        codes = [length * batch["factors"][name].float() for name, length in zip(FACTORS, (1, -20, 5), strict=True)]
        return torch.stack(codes, -1) @ self.turn


class Random(LightningModule):
    """A vector a row, whatever is in it."""

    vectors = np.random.default_rng(2).normal(size=(4_000, 6)).astype(np.float32)

    def embed(self, batch: Any) -> torch.Tensor:
        numbers = batch["image"].long().flatten(2) @ torch.tensor([256, 1])
        return torch.from_numpy(self.vectors)[numbers]


class Angles(LightningModule):
    """Embeds an angle, and a shape beside it."""

    def embed(self, batch: Any) -> torch.Tensor:
        angle = batch["factors"]["angle"].nan_to_num()
        return torch.stack([2 * angle + 1, angle**2, 3.0 * batch["factors"]["shape"].float()], -1)


@pytest.mark.parametrize(("turn", "components"), [(None, None), (TURN, 3)])
def test_a_dimension_a_factor_has_the_best_scores(turn: Any, components: int | None) -> None:
    measure = Disentanglement(factors=FACTORS, components=components, **OWN)
    found = measure.measure(trained(Axes(turn), Product())).values
    best = dict.fromkeys(("MIG", "modularity", "FactorVAE", *DCI), 1.0)
    # the gap of a perfect code is 1 − 1/levels
    assert found == pytest.approx(best | {"SAP": np.mean([1 / 2, 3 / 4, 3 / 4])}, abs=1e-6)


def test_axes_that_are_turned_score_less() -> None:
    straight, turned = (
        Disentanglement(factors=FACTORS, **OWN).measure(trained(Axes(turn), Product())).values for turn in (None, TURN)
    )
    assert all(turned[name] < straight[name] - 0.05 for name in ("MIG", "SAP", "modularity", *DCI[:2]))


@pytest.mark.long("trainings")
@pytest.mark.parametrize(("seed", "learners"), [(0, {}), (3, OWN)])
def test_scores_are_those_of_the_functions(seed: int, learners: Any) -> None:
    some = trained(Random(), Numbered(), seed=seed)
    found = Disentanglement(factors=FACTORS, samples=300, **learners).measure(some).values
    rows = some.sample(300)
    levels = np.stack([some.dataset.factors.codes(name, rows) for name in FACTORS], axis=1)
    codes = Random.vectors[rows]
    for name, score in PAIRWISE.items():
        assert found[name] == score(codes, levels).value
    assert found["FactorVAE"] == evaluation.factor_vae(codes, levels, seed=seed).value
    sap = evaluation.sap(codes, levels, learner=learners.get("sap_learner", "svm"), seed=seed)
    assert found["SAP"] == sap.value
    dci = evaluation.dci(codes, levels, learner=learners.get("dci_learner", "boosting"), seed=seed)
    assert [found[name] for name in DCI] == [dci.disentanglement, dci.completeness, dci.informativeness]


def by_loops(vectors: Any, codes: Any, k: int, metric: str) -> tuple[float, float, float]:
    """Precision at k, mean average precision, and chance, one query after the other."""
    precisions, averages, chances = [], [], []
    reals = vectors.astype(np.float64)
    if metric == "cosine":
        reals /= np.linalg.norm(reals, axis=1, keepdims=True)
    for query in np.flatnonzero(codes >= 0):
        others = np.delete(np.arange(len(codes)), query)
        order = others[np.argsort(((reals[others] - reals[query]) ** 2).sum(1), kind="stable")]
        right = codes[order] == codes[query]
        precisions.append(right[:k].mean())
        chances.append(right.mean())
        if right.any():
            averages.append(np.mean([right[: place + 1].mean() for place in np.flatnonzero(right)]))
    return float(np.mean(precisions)), float(np.mean(averages)), float(np.mean(chances))


@pytest.mark.parametrize(("k", "metric"), [(1, "l2sq"), (5, "cosine")])
def test_retrieval_by_loops(k: int, metric: Any) -> None:
    some = trained(Random(), Partly())
    found = Retrieval(factors=("shape", "size"), samples=300, k=k, metric=metric).measure(some).values
    rows = some.sample(300)
    assert list(found) == [
        f"{what}: {name}" for what in ("precision", "average precision", "chance") for name in ("shape", "size")
    ]
    for name in ("shape", "size"):
        expected = by_loops(Random.vectors[rows], some.dataset.factors.codes(name, rows), k, metric)
        assert [found[f"{what}: {name}"] for what in ("precision", "average precision", "chance")] == pytest.approx(
            expected, rel=1e-9
        )


def test_what_is_embedded_is_retrieved() -> None:
    found = Retrieval(factors=("shape", "colour"), k=20).measure(trained(OneHot("shape", 4), Product())).values
    assert found["precision: shape"] == found["average precision: shape"] == 1
    assert found["chance: shape"] == pytest.approx(239 / 959)  # of 960 rows, 240 of each shape
    assert found["average precision: colour"] == pytest.approx(0.5, abs=0.05)


def test_linear_probes_read_what_is_there() -> None:
    found = Probes(factors=("shape", "size", "angle")).measure(trained(Angles(), Partly())).values
    assert list(found) == ["accuracy: shape", "accuracy: size", "majority: shape", "majority: size", "R²: angle"]
    assert found["accuracy: shape"] == 1
    assert found["R²: angle"] == pytest.approx(1)
    assert found["accuracy: size"] == pytest.approx(1 / 3, abs=0.15)
    some = trained(Random(), Numbered(), seed=4)
    values = Probes(factors=("colour",), samples=500).measure(some).values
    rows = some.sample(500)
    direct = evaluation.logistic_probe(Random.vectors[rows], some.dataset.factors.codes("colour", rows), seed=4)
    assert values == {"accuracy: colour": direct.accuracy, "majority: colour": direct.majority}


@pytest.mark.parametrize("kind", [Accuracy, Disentanglement, Retrieval])
def test_what_compares_levels_takes_no_numbers(kind: Any) -> None:
    dataset = Partly()
    with pytest.raises(
        SetsupError, match=r" requires factors with levels, but 'angle' is continuous; bin the factor, or omit it$"
    ):
        kind(factors=("size", "angle")).measure(trained(OneHot(), dataset))
    assert dataset.fetched == 0


@pytest.mark.long("trainings")
@pytest.mark.parametrize(("estimator", "steps"), [("mine", 60), ("neighbours", None)])
def test_levels_beside_numbers_are_what_they_are_alone(estimator: Any, steps: int | None) -> None:
    def information(*factors: str) -> dict[str, float]:
        measure = FactorInformation(factors=factors, samples=800, estimator=estimator, steps=steps, sigma=0.5)
        return dict(measure.measure(trained(Angles(), Partly())).values)

    both = information("shape", "angle")
    assert both["shape"] == pytest.approx(information("shape")["shape"], abs=1e-3)
    assert both["angle"] == pytest.approx(information("angle")["angle"], abs=1e-3)


def test_one_factor_cannot_be_disentangled() -> None:
    with pytest.raises(
        SetsupError, match=r"^disentanglement requires at least two factors, not 1; choose more factors$"
    ):
        Disentanglement(factors=("shape",))


def test_no_components_and_no_neighbours() -> None:
    with pytest.raises(SetsupError, match=r"^components must be 1 or more, or None for the original axes, not 0$"):
        Disentanglement(factors=FACTORS, components=0)
    with pytest.raises(SetsupError, match=r"^k must be 1 or more, not 0$"):
        Retrieval(factors=FACTORS, k=0)


def test_only_learners_of_scikit_learn_need_it() -> None:
    assert Disentanglement(factors=FACTORS, **OWN).needs == ()
    for name in OWN:
        assert Disentanglement(factors=FACTORS, **{key: OWN[key] for key in OWN if key != name}).needs == ("sklearn",)


@pytest.mark.long("trainings")
def test_a_run_is_measured_by_what_another_preset_lists(tmp_path: Path) -> None:
    factors = ("wall_hue", "object_hue")
    evaluations = {
        "scores": Disentanglement(factors=factors, samples=300),
        "neighbours": Retrieval(factors=factors, samples=300),
        "linear": Probes(factors=factors, samples=300),
    }
    run = train(replace(PLAIN, steps=2), tmp_path / "run", config=RunConfig(workers=0))
    found = evaluate(run, replace(PLAIN, name="mine/plain", steps=2, evaluations=evaluations), device="cpu")
    kept = run.results()
    assert {name: kept[name]["values"] for name in evaluations} == {
        name: pytest.approx(dict(measured.values)) for name, measured in found.items()
    }
    assert kept["scores"]["about"]["samples"] == 300
    assert all(math.isfinite(value) for entry in kept.values() for value in entry["values"].values())
