"""Probes as one batched network: plain torch, one by one, and what must not leak."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.evaluation import linear_classifier, network_probes  # noqa: E402
from setsup.evaluation.batched.probe_networks import Probe, ProbeNetworks, probe_step  # noqa: E402
from setsup.random import permute, stream_key  # noqa: E402

DICE = np.random.default_rng(0)
FACTORS = DICE.integers(0, [2, 4, 7], (600, 3))
LAYERS = [
    np.eye(7)[FACTORS[:, 2]] + 0.5 * DICE.normal(size=(600, 7)),
    DICE.normal(size=(600, 12)),
    FACTORS[:, :2] + 20.0,
]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("hidden", [(), (5, 6)])
def test_gradients_are_those_of_autograd(hidden: tuple[int, ...], shared: bool) -> None:
    codes = FACTORS.astype(np.int64)
    rows = np.arange(600)
    probes = [Probe(0, codes[:, at], levels, rows, rows, seed=at) for at, levels in enumerate((2, 4, 7))]
    networks = ProbeNetworks([LAYERS[0]], probes, hidden)
    points = torch.from_numpy(DICE.normal(size=(1 if shared else 3, 50, 7))).float()
    wanted = torch.from_numpy(codes[:50].T.copy())
    losses = probe_step(networks.layers, networks.slopes, points, wanted, networks.barred)
    for at, probe in enumerate(probes):
        layers = [layer[at].clone().requires_grad_() for layer in networks.layers]
        x = points[0 if shared else at]
        for number, (weight, bias) in enumerate(zip(layers[::2], layers[1::2], strict=True)):
            x = (functional.relu(x) if number else x) @ weight + bias
        loss = functional.cross_entropy(x[:, : probe.levels], wanted[at])
        assert float(losses[at]) == pytest.approx(loss.item(), abs=1e-6)
        for slope, expected in zip(networks.slopes, torch.autograd.grad(loss, layers), strict=True):
            torch.testing.assert_close(slope[at], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("hidden", [(), (16,)])
def test_each_is_as_if_trained_alone(hidden: tuple[int, ...]) -> None:
    factors = FACTORS.copy()
    factors[:60, 1] = -1
    how = {"steps": 60, "batch": 32, "rate": 1e-2, "hidden": hidden, "held_out": 0.2}
    found = network_probes(LAYERS, factors, seeds=(4, 0), **how)
    assert found.accuracy.shape == found.nats.shape == (3, 3, 2)
    assert found.left_out.tolist() == [0, 60, 0]
    for layer, points in enumerate(LAYERS):
        for at in range(3):
            for place, seed in enumerate((4, 0)):
                alone = network_probes([points], factors[:, [at]], seeds=(seed,), **how)
                assert found.nats[layer, at, place] == pytest.approx(alone.nats.item(), abs=1e-4)
                assert found.accuracy[layer, at, place] == pytest.approx(alone.accuracy.item(), abs=0.01)
                assert found.majority[at, place] == alone.majority.item()


def test_linear_probes_find_what_is_there_and_nothing_else() -> None:
    found = network_probes(LAYERS, FACTORS, seeds=(0, 1), steps=400, batch=64, rate=2e-2, held_out=0.3)
    assert found.accuracy[2, 0].tolist() == [1, 1], "whatever the offset of embeddings"
    assert found.accuracy[1, 2].mean() == pytest.approx(1 / 7, abs=0.08)
    held = permute(stream_key(0, "probe split"), 600, np.arange(600)) < 180
    best = linear_classifier(LAYERS[0][~held], FACTORS[~held, 2], LAYERS[0][held], FACTORS[held, 2])
    assert found.accuracy[0, 2, 0] == pytest.approx(best.accuracy, abs=0.03)
    assert found.majority[2, 0] == best.majority


def test_more_networks_than_are_trained_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    how = {"seeds": (0, 1), "steps": 20, "batch": 16}
    whole = network_probes(LAYERS, FACTORS, **how)
    monkeypatch.setattr("setsup.evaluation.batched.probe_networks._TOGETHER", 5)
    np.testing.assert_allclose(network_probes(LAYERS, FACTORS, **how).nats, whole.nats, atol=1e-6)


def test_bad_input_is_refused_in_a_sentence() -> None:
    with pytest.raises(DataError, match="all layers must have the same number of rows, not 600, 599"):
        network_probes([LAYERS[0], LAYERS[1][1:]], FACTORS)
    with pytest.raises(DataError, match="factor 0 requires at least two known levels among 600 rows, not 1"):
        network_probes(LAYERS, np.zeros((600, 1), dtype=int))
    with pytest.raises(SetsupError, match="at least one seed, and all seeds must differ"):
        network_probes(LAYERS, FACTORS, seeds=(1, 1))
    with pytest.raises(SetsupError, match="factor 0 has too few rows, 0 to train on and 600 held out"):
        network_probes(LAYERS, FACTORS, held_out=1)
    with pytest.raises(SetsupError, match="each hidden width must be an integer of at least 1, not 0"):
        network_probes(LAYERS, FACTORS, hidden=(0,))
