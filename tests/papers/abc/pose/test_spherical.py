"""Spherical regression: losses against the published formulas one by one, rotations against those of evaluations."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.factors import Factor, FactorTable, Kind  # noqa: E402
from setsup_papers.abc.pose import (  # noqa: E402
    AngleLogits,
    AngleTargets,
    SphericalHead,
    decode_angles,
    pose_rotation,
    rotation_from_euler,
    spherical_losses,
)


def _seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def _logits(*shape, seed=0):
    return AngleLogits(
        torch.randn(*shape, 2, generator=_seeded(seed), dtype=torch.float64),
        torch.randn(*shape, 4, generator=_seeded(seed + 1), dtype=torch.float64),
    )


def _one_by_one(logits, angles, magnitude):
    """The published formulas in plain numbers."""
    found = []
    for (first, second), quadrants, angle in zip(
        logits.magnitudes.reshape(-1, 2).tolist(),
        logits.quadrants.reshape(-1, 4).tolist(),
        angles.reshape(-1).tolist(),
        strict=True,
    ):
        if math.isnan(angle):
            found.append((0.0, 0.0))
            continue
        shares = [math.exp(first), math.exp(second)]
        shares = [share / sum(shares) for share in shares]
        cosine, sine = math.cos(angle), math.sin(angle)
        if magnitude == "cosine":
            of_magnitudes = 1 - (abs(cosine) * math.sqrt(shares[0]) + abs(sine) * math.sqrt(shares[1]))
        else:
            of_magnitudes = -(cosine**2 * math.log(shares[0]) + sine**2 * math.log(shares[1]))
        quadrant = [(True, True), (False, True), (False, False), (True, False)].index((cosine >= 0, sine >= 0))
        found.append((of_magnitudes, math.log(sum(map(math.exp, quadrants))) - quadrants[quadrant]))
    return np.array(found).T.reshape(2, *angles.shape)


@pytest.mark.parametrize("magnitude", ["cosine", "log"])
def test_losses_are_those_of_the_published_formulas(magnitude):
    logits = _logits(40, 3)
    angles = 20 * torch.rand(40, 3, generator=_seeded(2), dtype=torch.float64) - 10
    angles[::7] = torch.nan
    found = spherical_losses(logits, angles, magnitude)
    np.testing.assert_allclose(torch.stack(found), _one_by_one(logits, angles, magnitude), atol=1e-12)


@pytest.mark.parametrize("magnitude", ["cosine", "log"])
def test_unknown_angles_have_no_gradient(magnitude):
    logits = AngleLogits(*(one.float().requires_grad_() for one in _logits(4)))
    angles = torch.tensor([0.0, torch.nan, math.pi / 2, torch.nan])
    sum(one.sum() for one in spherical_losses(logits, angles, magnitude)).backward()
    for one in logits:
        assert one.grad.isfinite().all()
        assert one.grad[[1, 3]].abs().sum() == 0
        assert (one.grad[[0, 2]].abs().sum(-1) > 0).all()


@given(st.floats(-7, 7))
def test_the_best_logits_give_the_angle_again(angle):
    """Where the loss is least the angle is the true one, in every quadrant."""
    cosine, sine = math.cos(angle), math.sin(angle)
    squares = torch.tensor([[cosine**2, sine**2]], dtype=torch.float64).clamp(min=1e-30)
    quadrant = (0 if sine >= 0 else 3) if cosine >= 0 else (1 if sine >= 0 else 2)
    logits = AngleLogits(squares.log(), 60 * torch.nn.functional.one_hot(torch.tensor([quadrant]), 4).double())
    found = decode_angles(logits).item()
    assert abs((found - angle + math.pi) % (2 * math.pi) - math.pi) < 1e-6
    losses = spherical_losses(logits, torch.tensor([angle], dtype=torch.float64))
    assert max(one.item() for one in losses) < 1e-7


def test_the_head_is_three_layers_for_each_angle_after_a_unit_vector():
    head = SphericalHead(5, angles=2, width=7)
    embedded = torch.randn(3, 4, 5, generator=_seeded())
    found = head(embedded)
    assert [tuple(one.shape) for one in found] == [(3, 4, 2, 2), (3, 4, 2, 4)]
    torch.testing.assert_close(tuple(head(3 * embedded)), tuple(found))
    weights = dict(head.named_parameters())
    unit = embedded[1, 2] / embedded[1, 2].norm()
    hidden = torch.tanh(weights["hidden.1.0.weight"] @ unit + weights["hidden.1.0.bias"])
    torch.testing.assert_close(
        found.quadrants[1, 2, 1], weights["quadrants.1.weight"] @ hidden + weights["quadrants.1.bias"]
    )


def test_rotations_are_those_of_evaluations():
    angles = 360 * torch.rand(3, 50, generator=_seeded(), dtype=torch.float64) - 180
    found = pose_rotation(*torch.deg2rad(angles))
    np.testing.assert_allclose(found, rotation_from_euler(*angles.numpy()), atol=1e-12)
    np.testing.assert_allclose(
        pose_rotation(*torch.deg2rad(angles[:2])), rotation_from_euler(*angles[:2].numpy()), atol=1e-12
    )


def test_targets_of_levels_and_of_numbers():
    table = FactorTable(
        [
            Factor("azimuth", Kind.CYCLIC, (0.0, 90.0, 180.0, 270.0), unit="deg", period=360.0),
            Factor("elevation", Kind.CONTINUOUS, unit="rad"),
            Factor("hue", Kind.CONTINUOUS, unit="turn", period=1.0),
            Factor("size", Kind.CONTINUOUS, unit="m"),
        ],
        {"azimuth": [0], "elevation": [0.1], "hue": [0.5], "size": [1.0]},
    )
    batch = {
        "factors": {
            "azimuth": torch.tensor([[3, -1]], dtype=torch.int8),
            "elevation": torch.tensor([[0.25, torch.nan]]),
            "hue": torch.tensor([[0.25, 0.5]]),
        }
    }
    found = AngleTargets(table, ["azimuth", "elevation", "hue"]).angles(batch)
    expected = torch.tensor([[[1.5 * math.pi, 0.25, math.pi / 2], [torch.nan, torch.nan, math.pi]]])
    torch.testing.assert_close(found, expected, equal_nan=True)
    with pytest.raises(SetsupError, match="the unit of the factor 'size' must be one of deg, rad, turn, not 'm'"):
        AngleTargets(table, ["size"])
    with pytest.raises(SetsupError, match="'azimut'"):
        AngleTargets(table, ["azimut"])
    for wrong in ((), ("hue", "hue")):
        with pytest.raises(SetsupError, match="one or more distinct factors"):
            AngleTargets(table, wrong)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match=r"\(\.\.\., 2\) and \(\.\.\., 4\)"):
        spherical_losses(_logits(3), torch.zeros(2))
    with pytest.raises(SetsupError, match="cosine, log, not 'l2'"):
        spherical_losses(_logits(3), torch.zeros(3), "l2")
