"""What is measured on methods whose embeddings are known: numpy's components, and information by closed formulas."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")

from lightning.pytorch import LightningModule  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.experiments.measures import Accuracy, Components, FactorInformation, NoiseSweep  # noqa: E402
from tests.evaluation.channels import two_codes  # noqa: E402
from tests.experiments.numbered import Numbered, OneHot, trained  # noqa: E402

FACTORS = ("shape", "colour", "size")


class Mixed(LightningModule):
    """Embeds all factors, mixed by a matrix."""

    def embed(self, batch: Any) -> torch.Tensor:
        codes = torch.stack([batch["factors"][name].float() for name in FACTORS], -1)
        return codes @ torch.tensor([[3.0, 1, 0, 0, 2], [0, 1, 1, 0, 0], [0, 0, 0.5, 0, 1]])


def test_shares_of_components_are_those_of_the_singular_values() -> None:
    some = trained(Mixed(), Numbered(900))
    found = Components(factors=FACTORS, samples=500, shown=100).measure(some)
    embedded = some.embed(rows=some.sample(500)).astype(np.float64)
    lengths = np.linalg.svd(embedded - embedded.mean(0), compute_uv=False)
    shares = np.cumsum(lengths**2) / (lengths**2).sum()
    assert list(found.values) == ["first 1", "first 2", "first 3"]
    np.testing.assert_allclose(list(found.values.values()), shares[:3], rtol=1e-6)
    assert found.values["first 3"] == pytest.approx(1)
    (picture,) = found.pictures.values()
    assert picture.size[0] > picture.size[1] > 100, "panels of three factors beside each other"


def test_shares_of_few_dimensions() -> None:
    found = Components(factors=("colour",), samples=200).measure(trained(OneHot("colour", 2), Numbered(200)))
    assert list(found.values) == ["first 1", "first 2"]
    assert found.values["first 1"] == pytest.approx(1)  # two codes lie on a line


@pytest.mark.parametrize(("estimator", "steps"), [("mine", 1_200), ("probe", 600), ("neighbours", None)])
def test_a_factor_that_is_embedded_is_known_and_no_other_is(estimator: Any, steps: int | None) -> None:
    measure = FactorInformation(factors=("size", "shape"), samples=4_000, estimator=estimator, steps=steps)
    found = measure.measure(trained(OneHot("shape", 4, length=12), Numbered(6_000))).values
    assert list(found) == ["size", "shape"]
    assert found["shape"] == pytest.approx(math.log(4), abs=0.1)
    assert found["size"] == pytest.approx(0, abs=0.04)


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
    with pytest.raises(SetsupError, match=r"^OneHot does not say .*: give the evaluation a sigma") as caught:
        kind(factors=("colour",)).shrunk().measure(trained(method, dataset))
    assert "\n" not in str(caught.value)
    assert dataset.fetched == 0, "it is said before all is embedded"


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


def test_an_estimator_that_trains_nothing_takes_no_steps() -> None:
    with pytest.raises(SetsupError, match="the estimator neighbours trains nothing: give it steps None, not 5000"):
        FactorInformation(factors=("colour",), estimator="neighbours", steps=5_000)


def test_estimates_are_functions_of_the_seed() -> None:
    measure = FactorInformation(factors=("colour", "size"), samples=500, estimator="neighbours")
    first, again, other = (measure.measure(trained(OneHot(), Numbered(900), seed=seed)).values for seed in (0, 0, 1))
    assert first == again != other


def test_accuracy_is_that_of_the_best_guess() -> None:
    method = OneHot("colour", 2, temperature=0.25)
    found = Accuracy(factors=("colour", "shape"), samples=5_000, steps=800).measure(trained(method, Numbered(6_000)))
    # codes √2 apart, the border in the middle, noise of ½
    assert found.values["colour"] == pytest.approx(NormalDist().cdf(math.sqrt(0.5) / 0.5), abs=0.02)
    assert found.values["shape"] == pytest.approx(1 / 4, abs=0.05)


def test_information_falls_with_the_noise() -> None:
    sweep = NoiseSweep(factors=("colour",), samples=4_000, scales=4, steps=1_200)
    curves = sweep.measure(trained(OneHot("colour", 2, temperature=0.25), Numbered(6_000))).curves
    ((name, (sigmas, nats)),) = curves.items()
    assert name == "colour"
    np.testing.assert_allclose(sigmas, 0.5 * 10 ** np.linspace(-3, 2, 4), rtol=1e-6)
    assert nats[0] > nats[2] > nats[3] - 0.02
    np.testing.assert_allclose(nats, [math.log(2), math.log(2), two_codes(0, sigmas[2]), 0], atol=0.05)


def test_small_versions_fit_what_is_drawn() -> None:
    some = trained(OneHot(), Numbered(600))
    for measure in (
        Components(factors=FACTORS),
        FactorInformation(factors=FACTORS),
        FactorInformation(factors=FACTORS, estimator="probe"),
        FactorInformation(factors=FACTORS, estimator="neighbours"),
        NoiseSweep(factors=FACTORS),
        Accuracy(factors=FACTORS),
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
