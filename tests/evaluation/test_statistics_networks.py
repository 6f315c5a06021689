"""Statistics networks: against plain autograd, one after the other, and where the information is known."""

import importlib
import math

import numpy as np
import pytest

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")

from setsup.evaluation import mine as estimate  # noqa: E402
from setsup.evaluation import noise_sweep  # noqa: E402
from setsup.evaluation.information import check_columns, draw_normal  # noqa: E402
from setsup.evaluation.statistics_networks import Training, drawn, initial, statistics_step  # noqa: E402
from setsup.random import stream_key  # noqa: E402
from tests.evaluation import channels  # noqa: E402

QUICK = {"steps": 500, "last": 200, "rate": 2e-3}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def six(rows: int = 500) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, levels, rows) for levels in (10, 10, 10, 8, 4, 15)], axis=1)
    embeddings = rng.standard_normal((rows, 9)) + factors @ rng.standard_normal((6, 9)) / 9
    return embeddings, factors


def plain_losses(points, values, sigma: float, steps: int, batch: int, rate: float, seed: int) -> list[float]:
    """One network by torch.nn, autograd and Adam, on the same draws and first weights; rows all known."""
    layers = [torch.nn.Linear(points.shape[1] + 1, 128), *(torch.nn.Linear(128, 128) for _ in range(2))]
    layers.append(torch.nn.Linear(128, 1))
    starting = initial(seed, points.shape[1])
    starting.append(torch.zeros(1, 1))
    with torch.no_grad():
        for at, layer in enumerate(layers):
            layer.weight.copy_(starting[2 * at].T)
            layer.bias.copy_(starting[2 * at + 1][0])
    relu = torch.nn.ReLU()
    network = torch.nn.Sequential(layers[0], relu, layers[1], relu, layers[2], relu, layers[3]).double()
    optimizer = torch.optim.Adam(network.parameters(), lr=rate, eps=1e-7)
    points, values, found = torch.tensor(points).double(), torch.tensor(values).double(), []
    for step in range(steps):
        rows, order = (torch.from_numpy(block[0]) for block in drawn(seed, step, 1, batch, len(points)))
        noisy = points[rows] + sigma * draw_normal(stream_key(seed, "mine noise"), step, (batch, points.shape[1]))
        g = values[rows, None]
        joint, marginal = network(torch.cat([noisy, g], 1)), network(torch.cat([noisy, g[order]], 1))
        loss = marginal.exp().mean().log() - joint.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(float(loss.detach()))
    return found


@pytest.mark.long("trainings")
def test_losses_are_those_of_plain_networks_trained_by_autograd() -> None:
    points, factors = six()
    sigmas = np.array([0.3, 1.0, 2.0])
    training = Training(check_columns(points, factors, 1, ""), [0, 4, 5], sigmas, 7, "cpu", torch.float64)
    found = torch.stack(list(training.losses(70, 64, 1e-3))).numpy()
    for network, (at, sigma) in enumerate(zip([0, 4, 5], sigmas.tolist(), strict=True)):
        wanted = plain_losses(points, factors[:, at], sigma, 70, 64, 1e-3, 7)
        np.testing.assert_allclose(found[:, network], wanted, atol=1e-8)


@pytest.mark.parametrize("shared", [False, True])
def test_written_gradients_are_those_of_autograd(shared: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 6, 128), (3, 1, 128), (3, 128, 128), (3, 1, 128), (3, 128, 128), (3, 1, 128), (3, 128, 1)]
    layers = [torch.randn(shape, generator=generator, dtype=torch.float64) / 8 for shape in shapes]
    noisy = torch.randn(1 if shared else 3, 16, 5, generator=generator, dtype=torch.float64)
    values = torch.randn(3, 2, 16, generator=generator, dtype=torch.float64)
    slopes = [torch.full(shape, math.nan, dtype=torch.float64) for shape in shapes]
    losses = statistics_step(layers, slopes, noisy, values)
    for layer in layers:
        layer.requires_grad_()
    scores = []
    for which in range(2):
        inner = torch.cat([noisy.expand(3, -1, -1), values[:, which, :, None]], dim=2)
        for weight, bias in zip(layers[:-1:2], layers[1::2], strict=True):
            inner = torch.relu(inner @ weight + bias)
        scores.append((inner @ layers[-1])[..., 0])
    wanted = scores[1].exp().mean(dim=1).log() - scores[0].mean(dim=1)
    wanted.sum().backward()
    torch.testing.assert_close(losses, wanted.detach(), rtol=1e-10, atol=1e-12)
    for slope, layer in zip(slopes, layers, strict=True):
        torch.testing.assert_close(slope, layer.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.long("trainings")
@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("sigma", [1.0, [0.5, 2.0]])
def test_six_at_once_give_what_each_gives_alone(sigma, unknown: bool) -> None:
    points, factors = six()
    if unknown:
        factors[:40, 1], factors[100:, 5][::3] = -1, -1
    how = {"sigma": sigma, "steps": 70, "batch": 64, "last": 30, "seed": 3}
    together = estimate(points, factors, **how)
    for at in range(6):
        alone = estimate(points, factors[:, at], **how)
        # what Adam makes of rounding in gradients near zero grows with the steps; float64 below leaves none
        np.testing.assert_allclose(together.nats[..., at], alone.nats[..., 0], atol=5e-3)
        assert together.left_out[at] == alone.left_out[0] == np.count_nonzero(factors[:, at] < 0)
        assert together.ceilings[at] == alone.ceilings[0]


@pytest.mark.long("trainings")
@pytest.mark.parametrize("sigmas", [np.ones(6), np.linspace(0.5, 2, 6)])
def test_losses_of_six_at_once_are_those_of_each_alone_to_rounding(sigmas: np.ndarray) -> None:
    points, factors = six()
    factors[::7, 3] = -1
    table = check_columns(points, factors, 1, "")

    def losses(which: list[int]) -> np.ndarray:
        training = Training(table, which, sigmas[which], 2, "cpu", torch.float64)
        return torch.stack(list(training.losses(70, 64, 3e-4))).numpy()

    together = losses(list(range(6)))
    for at in range(6):
        np.testing.assert_allclose(together[:, at], losses([at])[:, 0], atol=1e-8)


def test_estimates_are_a_function_of_the_seed() -> None:
    points, factors = six(300)
    torch.manual_seed(0)
    first = estimate(points, factors, steps=5, last=2)
    torch.manual_seed(1)
    np.testing.assert_array_equal(
        first.nats, estimate(torch.tensor(points), torch.tensor(factors), steps=5, last=2).nats
    )
    assert (first.nats != estimate(points, factors, steps=5, last=2, seed=1).nats).all()


def test_the_estimate_is_the_mean_of_the_last_losses() -> None:
    points, factors = six(300)
    training = Training(check_columns(points, factors, 1, ""), [2], np.ones(1), 0, "cpu")
    losses = [float(loss) for loss in training.losses(12, 64, 3e-4)]
    found = estimate(points, factors[:, 2], steps=12, batch=64, last=5)
    assert found.nats[0] == pytest.approx(-np.mean(losses[-5:]), abs=1e-6)


@pytest.mark.long("trainings")
@pytest.mark.parametrize(("steps", "last"), [(3, 3), (1_002, 1_000)])
def test_a_thousand_steps_or_all_are_averaged(steps: int, last: int) -> None:
    points, factors = six(20)
    how = {"steps": steps, "batch": 4}
    found, expected = (estimate(points, factors[:, 5], **how, **more).nats for more in ({}, {"last": last}))
    np.testing.assert_array_equal(found, expected)


def test_the_network_is_that_of_the_paper() -> None:
    layers = initial(0, 64)
    assert [tuple(layer.shape) for layer in layers[::2]] == [(65, 128), (128, 128), (128, 128), (128, 1)]
    assert sum(layer.numel() for layer in layers) + 1 == 65 * 128 + 128 + 2 * (128 * 128 + 128) + 128 + 1
    for weight in layers[::2]:
        limit = math.sqrt(6 / sum(weight.shape))
        assert 0.9 * limit < float(weight.abs().max()) <= limit
        assert float(weight.std()) == pytest.approx(limit / math.sqrt(3), rel=0.15)
    assert not any(bias.any() for bias in layers[1::2])


def test_draws_are_a_function_of_the_step() -> None:
    rows, order = drawn(5, 10, 8, 32, 1000)
    for step in range(8):
        np.testing.assert_array_equal(rows[step], drawn(5, 10 + step, 1, 32, 1000)[0][0])
        np.testing.assert_array_equal(order[step], drawn(5, 10 + step, 1, 32, 1000)[1][0])
        assert sorted(order[step].tolist()) == list(range(32))
    assert rows.min() >= 0
    assert rows.max() < 1000


@pytest.mark.long("trainings")
def test_correlated_gaussians() -> None:
    for rho in (0.0, 0.9):
        x, y, wanted = channels.gaussians(rho, 8000)
        assert estimate(x, y, sigma=0, **QUICK).nats[0] == pytest.approx(wanted, abs=0.05)
    assert estimate(x, y, steps=1, last=1).ceilings[0] == math.inf


@pytest.mark.long("trainings")
def test_noise_on_a_gaussian_lowers_its_correlation() -> None:
    x, y, _ = channels.gaussians(0.9, 8000)
    wanted = -0.5 * math.log(1 - 0.9**2 / (1 + 1.5**2))
    assert estimate(x, y, sigma=1.5, **QUICK).nats[0] == pytest.approx(wanted, abs=0.05)


@pytest.mark.long("trainings")
@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_binary_symmetric_channel_under_noise(sigma: float) -> None:
    levels, codes = channels.sent(channels.symmetric(2, 0.1), 8000)
    wanted = channels.two_codes(0.1, sigma)
    assert estimate(codes, levels, sigma=sigma, **QUICK).nats[0] == pytest.approx(wanted, abs=0.05)


@pytest.mark.long("trainings")
@pytest.mark.parametrize("channel", [channels.symmetric(4, 0.3), channels.erasure(4, 0.3)])
def test_channels_of_four_levels(channel: np.ndarray) -> None:
    levels, codes = channels.sent(channel, 8000)
    found = estimate(codes, levels, sigma=0.05, **QUICK)
    assert found.nats[0] == pytest.approx(channels.without_noise(channel), abs=0.06)
    assert found.ceilings[0] == math.log(4)


def test_factors_without_a_choice_have_no_information() -> None:
    points, factors = six(300)
    factors[:, 1] = 7
    found = estimate(points, factors, steps=2, last=1)
    assert found.nats[1] == found.ceilings[1] == 0
    assert estimate(points, np.full(300, 0.5)).nats.tolist() == [0]  # at once: nothing is trained


def test_a_sweep_has_forty_scales_about_the_root_of_the_temperature() -> None:
    points, factors = six(64)
    sigmas, found = noise_sweep(points, factors[:, 0], tau=4, steps=1, batch=8, last=1)
    np.testing.assert_allclose(sigmas, 2 * np.logspace(-3, 2, 40))
    assert found.nats.shape == (40, 1)
    np.testing.assert_allclose(noise_sweep(points, factors, [3], steps=1, batch=8, last=1)[0], [3])


def test_a_sweep_over_more_networks_than_are_trained_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    points, factors = six(100)
    how = {"steps": 3, "batch": 16, "last": 2}
    _, whole = noise_sweep(points, factors, [0.1, 1, 10], **how)
    monkeypatch.setattr(
        importlib.import_module("setsup.evaluation.statistics_networks"), "_TOGETHER", 5
    )  # the function hides it
    np.testing.assert_allclose(noise_sweep(points, factors, [0.1, 1, 10], **how)[1].nats, whole.nats, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"batch": 1}, "batch must be an integer of at least 2"),
        ({"last": 2.5}, "last must be an integer"),
        ({"steps": 10, "last": 11}, "last must be at most steps, not 11 with steps=10"),
        ({"rate": 0.0}, "learning rate"),
        ({"rate": math.nan}, "learning rate"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": []}, "sigma"),
        ({"sigma": [[1.0]]}, "sigma"),
        ({"sigma": math.inf}, "sigma"),
        ({"seed": -1}, "seed"),
    ],
)
def test_options_out_of_range_are_refused(options, said: str) -> None:
    points, factors = six(300)
    with pytest.raises(SetsupError, match=said):
        estimate(points, factors, **options)


def test_fewer_rows_than_a_batch_are_refused() -> None:
    points, factors = six(300)
    factors[:50, 3] = -1
    with pytest.raises(DataError, match="factor 3 is known in 250 rows, but a batch of 256 requires at least 256"):
        estimate(points, factors)
