"""Deep probes: the published network and its early stopping, by a plain loop over torch.nn; batched as one by one."""

import numpy as np
import pytest
import torch
from torch import nn

from setsup.errors import DataError, SetsupError
from setsup.evaluation import deep_probes, landmark_error
from setsup.evaluation.batched.deep_probes import DeepNetworks, Training, _batches, fit_networks
from setsup.evaluation.batched.probe_networks import split_rows

LEVELS = (3, 2, 6)


@pytest.fixture(scope="module")
def task():
    """Embeddings (900, 8) in which factors of 3, 2 and 6 levels are told well, hardly and not at all; 300 to test."""
    generator = np.random.default_rng(3)
    factors = np.stack([generator.integers(0, levels, 1200) for levels in LEVELS], axis=1)
    points = generator.standard_normal((1200, 8))
    points[:, :3] += 3 * np.eye(3)[factors[:, 0]]
    points[:, 3] += 1.5 * factors[:, 1]
    return points[:900], factors[:900], points[900:], factors[900:]


def plain(networks, at, classes, points, wanted, how, seed):
    """One network of torch.nn, fitted as the published code does; its test function, best epoch and score."""
    layers = []
    for place in range(how.layers - 1):
        linear = nn.Linear(*networks.weights[place].shape[1:], bias=False)
        linear.weight.data = networks.weights[place][at].T.clone()
        layers += [linear, nn.BatchNorm1d(how.width), nn.LeakyReLU()]
    last = nn.Linear(how.width, classes)
    last.weight.data = networks.weights[-1][at].T[:classes].clone()
    last.bias.data = networks.bias[at][:classes].clone()
    network = nn.Sequential(*layers, last)
    optimizer = torch.optim.Adam(network.parameters(), lr=how.rate)
    held = torch.from_numpy(split_rows(len(points), how.held, seed))
    fit = torch.nonzero(~held)[:, 0]
    l1 = wanted.dtype == torch.float32
    scores, kept = [], []
    for epoch in range(how.epochs):
        network.train()
        for rows in _batches(fit, how.batch, seed, epoch):
            found = network(points[rows])
            loss = (nn.functional.l1_loss if l1 else nn.functional.cross_entropy)(found, wanted[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            found = network(points[held])
        score = -(found - wanted[held]).abs().mean() if l1 else (found.argmax(1) == wanted[held]).double().mean()
        scores.append(float(score))
        kept.append({name: value.clone() for name, value in network.state_dict().items()})
        if epoch - int(np.argmax(scores)) > how.patience:
            break
    best = int(np.argmax(scores))
    network.load_state_dict(kept[best])
    return network, best, scores[best]


def test_networks_are_those_of_torch(task):
    points, factors, test, _ = task
    how = Training(width=16, layers=4, epochs=9, batch=128, patience=2)
    inputs, wanted = torch.tensor(points, dtype=torch.float32), torch.tensor(factors)
    networks = DeepNetworks.initial(8, LEVELS, how, 5, "cpu")
    best, epochs, scores = fit_networks(networks, inputs, wanted, how, 5, kind="classes")
    found = best.forward(torch.tensor(test, dtype=torch.float32))
    assert len(set(epochs)) > 1  # they stop at different epochs
    for at, levels in enumerate(LEVELS):
        network, epoch, score = plain(networks, at, levels, inputs, wanted[:, at], how, 5)
        assert epochs[at] == epoch
        assert scores[at] == pytest.approx(score)
        with torch.no_grad():
            expected = network(torch.tensor(test, dtype=torch.float32))
        torch.testing.assert_close(found[:, at, :levels], expected, rtol=1e-3, atol=1e-3)
        assert (found[:, at, levels:] == -torch.inf).all()


def test_landmarks_are_those_of_torch(task):
    points, _, test, _ = task
    truth = points @ np.random.default_rng(0).standard_normal((8, 5))
    how = Training(width=16, layers=3, epochs=10, patience=2, batch=64)
    networks = DeepNetworks.initial(8, [5], how, 1, "cpu")
    inputs, wanted = torch.tensor(points, dtype=torch.float32), torch.tensor(truth, dtype=torch.float32)
    network, _, _ = plain(networks, 0, 5, inputs, wanted, how, 1)
    tested = test @ np.random.default_rng(0).standard_normal((8, 5))
    with torch.no_grad():
        expected = np.abs(network(torch.tensor(test, dtype=torch.float32)).numpy() - tested).mean()
    options = {"width": 16, "layers": 3, "epochs": 10, "patience": 2, "batch": 64, "seed": 1, "normalize": False}
    assert landmark_error(points, truth, test, tested, **options) == pytest.approx(expected, rel=1e-3)


@pytest.mark.long("trainings")
def test_factors_together_are_those_one_by_one(task):
    points, factors, test, test_factors = task
    factors, test_factors = factors.copy(), test_factors.copy()
    factors[:100, 1] = -1  # known in other rows than the rest, and so fitted apart
    test_factors[:50, 1] = -1
    options = {"width": 16, "epochs": 14, "patience": 3, "batch": 64, "seed": 2}
    together = deep_probes(points, factors, test, test_factors, **options)
    assert len(set(together.epochs.tolist())) > 1
    for at in range(3):
        one = [given[:, at : at + 1] for given in (factors, test_factors)]
        alone = deep_probes(points, one[0], test, one[1], **options)
        assert together.epochs[at] == alone.epochs[0]
        assert together.accuracy[at] == pytest.approx(alone.accuracy[0], abs=0.004)
        assert together.held_out[at] == alone.held_out[0]
    known = test_factors[50:, 1]
    assert together.majority[1] == np.bincount(known).max() / len(known)
    again = deep_probes(points, factors, test, test_factors, **options)
    np.testing.assert_array_equal(again.accuracy, together.accuracy)


@pytest.mark.long("trainings")
def test_what_is_there_is_told_and_what_is_not_is_not(task):
    points, factors, test, test_factors = task
    found = deep_probes(points, factors, test, test_factors, epochs=20)
    assert found.accuracy[0] > 0.8
    assert 0.55 < found.accuracy[1] < 0.9
    assert abs(found.accuracy[2] - 1 / 6) < 0.09
    scaled = deep_probes(points * np.arange(1, 901)[:, None], factors, test, test_factors, epochs=20)
    np.testing.assert_allclose(scaled.accuracy, found.accuracy, atol=0.05)  # only directions count


def test_classes_that_only_the_test_has_are_told_wrong(task):
    points, factors, test, test_factors = task
    labels = 10 * factors[:, :1]
    others = np.where(np.arange(300)[:, None] < 30, 5, 10 * test_factors[:, :1])
    found = deep_probes(points, labels, test, others, epochs=6)
    whole = deep_probes(points, labels, test[30:], others[30:], epochs=6)
    assert found.accuracy[0] == pytest.approx(0.9 * whole.accuracy[0])


def test_refusals(task):
    points, factors, test, test_factors = task
    with pytest.raises(DataError, match="factor 1 has only one known class"):
        deep_probes(points, factors * [1, 0, 1], test, test_factors)
    with pytest.raises(DataError, match="factor 0 is known in 19 rows"):
        deep_probes(points, np.where(np.arange(900)[:, None] < 19, factors, -1), test, test_factors)
    with pytest.raises(DataError, match="factor 0 is unknown in all test rows"):
        deep_probes(points, factors, test, np.full_like(test_factors, -1))
    with pytest.raises(DataError, match="the same number of columns, not 3 and 2"):
        deep_probes(points, factors, test, test_factors[:, :2])
    with pytest.raises(DataError, match="the same number of dimensions, not 8 and 7"):
        deep_probes(points, factors, test[:, :7], test_factors)
    with pytest.raises(DataError, match="row 0 of embeddings is zero, so its cosine is undefined"):
        deep_probes(points * 0, factors, test, test_factors)
    for wrong in ({"layers": 1}, {"batch": 1}, {"epochs": 0}, {"rate": 0.0}, {"patience": -1}, {"device": "abacus"}):
        with pytest.raises(SetsupError, match=next(iter(wrong))):
            deep_probes(points, factors, test, test_factors, **wrong)
    with pytest.raises(DataError, match="landmarks must have one row for each embedding"):
        landmark_error(points, points[:5], test, test)
