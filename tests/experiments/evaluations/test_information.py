"""Information and accuracy of methods whose embeddings are known, by closed formulas."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup.evaluation import mine, probe_information  # noqa: E402
from setsup.experiments import TrainedRun, presets  # noqa: E402
from setsup.experiments.evaluations import Accuracy, FactorInformation, NoiseSweep  # noqa: E402
from tests.evaluation.channels import two_codes  # noqa: E402
from tests.experiments.numbered import Numbered, OneHot, trained  # noqa: E402


@pytest.mark.long("trainings")
@pytest.mark.parametrize(("estimator", "steps"), [("mine", 1_200), ("probe", 600), ("neighbours", None)])
def test_a_factor_that_is_embedded_is_known_and_no_other_is(estimator: Any, steps: int | None) -> None:
    measure = FactorInformation(factors=("size", "shape"), samples=4_000, estimator=estimator, steps=steps)
    found = measure.measure(trained(OneHot("shape", 4, length=12), Numbered(6_000))).values
    assert list(found) == ["size", "shape"]
    assert found["shape"] == pytest.approx(math.log(4), abs=0.1)
    assert found["size"] == pytest.approx(0, abs=0.04)


@pytest.mark.long("trainings")
@pytest.mark.parametrize("estimator", ["probe", "neighbours"])
@pytest.mark.parametrize("temperature", [0.09, 1.0, 4.0])
def test_the_noise_is_the_root_of_the_temperature(estimator: Any, temperature: float) -> None:
    method = OneHot("colour", 2, temperature=temperature)
    steps = 600 if estimator == "probe" else None
    measure = FactorInformation(factors=("colour",), samples=4_000, estimator=estimator, steps=steps)
    found = measure.measure(trained(method, Numbered(6_000))).values["colour"]
    assert found == pytest.approx(two_codes(0, math.sqrt(temperature)), abs=0.04)


def similar(similarity: Any = None, temperature: float | None = None) -> OneHot:
    """A method with a similarity and a temperature, or without."""
    method = OneHot("colour", 2)
    del method.similarity, method.temperature
    if similarity is not None:
        method.similarity = similarity
    if temperature is not None:
        method.temperature = temperature
    return method


def test_the_noise_of_a_distance_is_its_temperature() -> None:
    measure = FactorInformation(factors=("colour",), samples=4_000, estimator="neighbours")
    found = measure.measure(trained(similar("l2", 4.0), Numbered(6_000))).values["colour"]
    assert found == pytest.approx(two_codes(0, 4.0), abs=0.04)


MEASURES = (FactorInformation, NoiseSweep, Accuracy)


@pytest.mark.parametrize("kind", MEASURES)
@pytest.mark.parametrize(
    "method",
    [
        similar(),
        similar("l2sq"),
        similar(None, 1.0),
        similar("cosine", 0.1),
        similar("l1", 4.0),
        similar(torch.dist, 1),
    ],
)
def test_no_noise_is_made_up_for_a_method_that_does_not_say_which(kind: Any, method: Any) -> None:
    dataset = Numbered(600)
    with pytest.raises(
        SetsupError, match=r"derived from OneHot, which has no similarity .*; set the evaluation's sigma"
    ) as caught:
        kind(factors=("colour",)).shrunk().measure(trained(method, dataset))
    assert "\n" not in str(caught.value)
    assert dataset.fetched == 0, "it is said before all is embedded"


@pytest.mark.long("trainings")
@pytest.mark.parametrize("method", [similar(), similar("cosine", 0.1), similar("l2sq", 100.0)])
def test_noise_that_is_given_is_taken(method: Any) -> None:
    some = trained(method, Numbered(6_000))
    measure = FactorInformation(factors=("colour",), samples=4_000, estimator="neighbours", sigma=1.0)
    assert measure.measure(some).values["colour"] == pytest.approx(two_codes(0, 1.0), abs=0.04)
    found = Accuracy(factors=("colour",), samples=5_000, steps=800, sigma=0.5).measure(some)
    assert found.values["colour"] == pytest.approx(NormalDist().cdf(math.sqrt(0.5) / 0.5), abs=0.02)
    sweep = NoiseSweep(factors=("colour",), scales=2, steps=1, samples=600, sigma=3.0).measure(some)
    assert sweep.curves["colour"][0] == pytest.approx([3e-3, 3e2])


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf])
def test_noise_that_is_none(sigma: float) -> None:
    with pytest.raises(SetsupError, match="sigma, the scale of the noise, must be a positive number, not"):
        Accuracy(factors=("colour",), sigma=sigma).measure(trained(OneHot(), Numbered(600)))


@pytest.mark.parametrize("name", ["steps", "batch", "rate", "last"])
def test_an_estimator_that_trains_nothing_takes_no_settings_of_a_training(name: str) -> None:
    options: dict[str, Any] = {name: 5_000}
    with pytest.raises(
        SetsupError, match=f"{name} must be None with estimator='neighbours', which trains no network, not 5000"
    ):
        FactorInformation(factors=("colour",), estimator="neighbours", **options)


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        *(
            (FactorInformation, {name: -1}, f"{name} must be a positive number, not -1")
            for name in ("steps", "batch", "rate")
        ),
        (FactorInformation, {"rate": math.nan}, "rate must be a positive number, not nan"),
        (
            FactorInformation,
            {"steps": 5, "last": 6, "estimator": "mine"},
            "last must be at most 5, the number of steps, not 6",
        ),
        (
            Accuracy,
            {"held_out": 1.0},
            "held_out must be between 0 and 1, and rate and steps must be positive, "
            "not held_out=1.0, rate=0.001 and steps=5000",
        ),
        (
            Accuracy,
            {"rate": 0.0},
            "held_out must be between 0 and 1, and rate and steps must be positive, "
            "not held_out=0.1, rate=0.0 and steps=5000",
        ),
        (
            Accuracy,
            {"steps": 0},
            "held_out must be between 0 and 1, and rate and steps must be positive, "
            "not held_out=0.1, rate=0.001 and steps=0",
        ),
        (NoiseSweep, {"steps": 0}, "steps must be a positive integer, not 0"),
    ],
)
def test_settings_of_a_training_that_are_none(kind: Any, options: Any, sentence: str) -> None:
    with pytest.raises(SetsupError) as caught:
        kind(factors=("colour",), **options)
    assert str(caught.value) == sentence


def test_a_probe_averages_no_steps() -> None:
    with pytest.raises(
        SetsupError, match=r"^last must be None with estimator='probe', which averages no steps, not 9$"
    ):
        FactorInformation(factors=("colour",), estimator="probe", last=9)


def embedded(some: TrainedRun, samples: int, *factors: str) -> tuple[Any, Any]:
    rows = some.sample(samples)
    return some.embed(rows=rows), np.stack([some.dataset.factors.codes(name, rows) for name in factors], axis=1)


@pytest.mark.long("trainings")
def test_settings_of_the_training_reach_it() -> None:
    some = trained(OneHot("shape"), Numbered(900), seed=2)
    given = embedded(some, 500, "shape", "size")
    how: dict[str, Any] = {"steps": 30, "batch": 40, "rate": 1e-2}
    measure = FactorInformation(factors=("shape", "size"), samples=500, estimator="mine", last=5, **how).measure(some)
    direct = mine(*given, seed=2, last=5, **how).nats
    assert list(measure.values.values()) == direct.tolist()
    assert direct.tolist() != mine(*given, seed=2, **how).nats.tolist(), "all 30 steps are another estimate"
    measure = FactorInformation(factors=("shape", "size"), samples=500, estimator="probe", **how).measure(some)
    assert list(measure.values.values()) == probe_information(*given, seed=2, **how).nats.tolist()
    found = Accuracy(factors=("size",), samples=500, steps=30, held_out=0.5, rate=1e-2).measure(some).values["size"]
    direct = probe_information(given[0], given[1][:, 1], steps=30, held_out=0.5, rate=1e-2, seed=2).accuracy
    assert found == direct
    assert found != Accuracy(factors=("size",), samples=500, steps=30, rate=1e-2).measure(some).values["size"]


@pytest.mark.long("trainings")
@pytest.mark.parametrize(
    ("estimator", "steps", "close"), [("mine", 1_000, 0.05), ("probe", 500, 0.05), ("neighbours", 1, 0.05)]
)
def test_a_sweep_of_any_range_by_any_estimator(estimator: Any, steps: int, close: float) -> None:
    sweep = NoiseSweep(factors=("colour",), samples=4_000, scales=3, low=0.5, high=8, estimator=estimator, steps=steps)
    ((sigmas, nats),) = sweep.measure(trained(OneHot("colour", 2, temperature=0.25), Numbered(6_000))).curves.values()
    assert sigmas == pytest.approx([0.25, 1, 4])
    assert nats == pytest.approx([two_codes(0, sigma) for sigma in sigmas], abs=close)


@pytest.mark.parametrize(
    "wrong", [{"low": 0}, {"low": -1}, {"low": 100}, {"high": math.inf}, {"low": math.nan}, {"scales": 0}]
)
def test_a_sweep_that_is_none(wrong: Any) -> None:
    with pytest.raises(
        SetsupError, match=r"^scales must be 1 or more, and low and high must satisfy 0 < low < high, not"
    ):
        NoiseSweep(factors=("colour",), **wrong)


def test_the_held_out_probe_is_asked_where_no_paper_asks_for_mine() -> None:
    some = trained(OneHot("shape"), Numbered(900), seed=2)
    given, how = embedded(some, 500, "shape"), {"steps": 30, "batch": 40, "rate": 1e-2}
    found = FactorInformation(factors=("shape",), samples=500, **how).measure(some).values["shape"]
    assert found == probe_information(*given, seed=2, **how).nats[0]
    asked = {
        (type(one), one.estimator)
        for preset in presets().values()
        for one in preset.evaluations.values()
        if hasattr(one, "estimator")
    }
    assert asked == {(FactorInformation, "mine"), (NoiseSweep, "mine")}, "as ABC's paper has it"


def test_estimates_are_functions_of_the_seed() -> None:
    measure = FactorInformation(factors=("colour", "size"), samples=500, estimator="neighbours")
    first, again, other = (measure.measure(trained(OneHot(), Numbered(900), seed=seed)).values for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.long("trainings")
def test_accuracy_is_that_of_the_best_guess() -> None:
    method = OneHot("colour", 2, temperature=0.25)
    found = Accuracy(factors=("colour", "shape"), samples=5_000, steps=800).measure(trained(method, Numbered(6_000)))
    # codes √2 apart, the border in the middle, noise of ½
    assert found.values["colour"] == pytest.approx(NormalDist().cdf(math.sqrt(0.5) / 0.5), abs=0.02)
    assert found.values["shape"] == pytest.approx(1 / 4, abs=0.05)


def test_information_falls_with_the_noise() -> None:
    sweep = NoiseSweep(factors=("colour",), samples=4_000, scales=4, estimator="neighbours", steps=1)
    curves = sweep.measure(trained(OneHot("colour", 2, temperature=0.25), Numbered(6_000))).curves
    ((name, (sigmas, nats)),) = curves.items()
    assert name == "colour"
    np.testing.assert_allclose(sigmas, 0.5 * 10 ** np.linspace(-3, 2, 4), rtol=1e-6)
    assert nats[0] > nats[2] > nats[3] - 0.02
    np.testing.assert_allclose(nats, [math.log(2), math.log(2), two_codes(0, sigmas[2]), 0], atol=0.05)
