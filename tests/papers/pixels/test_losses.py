"""Losses on single pixels against loops in double precision, and against values of the authors' code."""

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from setsup.errors import DataError, SetsupError
from setsup_papers.pixels import between_loss, pixel_distances, within_loss

NORMS = ("inf", "l1", "l2")

# from the authors' code: 2 images, 3 channels, 2 × 2 pixels
PUBLISHED = {"inf": (0.616472, 0.111578), "l1": (0.383412, 0.039173), "l2": (0.552441, 0.113486)}


def distance(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64], norm: str) -> float:
    """Of two features, (D,)."""
    apart = [abs(a - b) for a, b in zip(first, second, strict=True)]
    if norm == "inf":
        return 0.5 * max(apart)
    return 0.5 * sum(a if norm == "l1" else a * a for a in apart) / len(apart)


def within(first, second, partner, positive, valid, norm, balance="pooled"):  # type: ignore[no-untyped-def]
    """The loss within pairs, pixel by pixel."""
    losses = []
    for pair in range(len(first)):
        terms = {True: [], False: []}
        for pixel in range(first.shape[2]):
            if not valid[pair, pixel]:
                continue
            d = distance(first[pair, :, pixel], second[pair, :, partner[pair, pixel]], norm)
            terms[bool(positive[pair, pixel])].append(d * d + d if positive[pair, pixel] else d * d - d)
        if balance == "pooled":
            both = terms[True] + terms[False]
            share = positive[pair].mean()
            losses.append((np.mean(both) if both else 0.0) + 0.25 * (1 - share))
        else:
            parts = [np.mean(terms[True]) if terms[True] else 0.0]
            parts.append(np.mean(terms[False]) + 0.25 if terms[False] else 0.0)
            losses.append(sum(parts))
    return np.mean(losses)


def between(first, second, partner, valid, norm):  # type: ignore[no-untyped-def]
    """The loss between pairs, combination by combination and pixel by pixel."""
    losses = []
    for a, b in itertools.combinations(range(len(first)), 2):
        terms = [
            (distance(first[a, :, pixel], second[b, :, partner[b, pixel]], norm) - 0.5) ** 2
            for pixel in range(first.shape[2])
            if valid[a, pixel]
        ]
        losses.append(np.mean(terms) if terms else 0.0)
    return np.mean(losses) if losses else 0.0


def drawn(seed: int, pairs: int = 4, channels: int = 3, pixels: int = 6, others: int = 5, scale: float = 0.6):  # type: ignore[no-untyped-def]
    """Features of both views, partners, and flags; every kind of pair of views is among them."""
    random = np.random.default_rng(seed)
    first, second = (
        random.normal(0, scale, (pairs, channels, pixels)),
        random.normal(0, scale, (pairs, channels, others)),
    )
    partner = random.integers(0, others, (pairs, pixels))
    positive, valid = random.random((pairs, pixels)) < 0.4, random.random((pairs, pixels)) < 0.7
    positive[0], positive[1], valid[2] = True, False, False
    return first, second, partner, positive, valid


@pytest.mark.parametrize("norm", NORMS)
def test_published_values(norm: str) -> None:
    number = torch.arange(24.0)
    first, second = torch.sin(number).reshape(2, 3, 4), torch.cos(2 * number).reshape(2, 3, 4)
    partner = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])
    positive = torch.tensor([[1, 0, 1, 0], [0, 0, 1, 0]]).bool()
    valid = torch.ones(2, 4, dtype=torch.bool)
    valid[0, 3] = False
    found = (
        within_loss(first, second, partner, positive, valid, norm=norm).item(),
        between_loss(first, second, partner, valid, norm=norm).item(),
    )
    assert found == pytest.approx(PUBLISHED[norm], abs=1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(5))
def test_values_equal_loops(seed: int, norm: str) -> None:
    first, second, partner, positive, valid = drawn(seed)
    given = [torch.from_numpy(one) for one in (first, second, partner, positive, valid)]
    for balance in ("pooled", "per_part"):
        found = within_loss(*given, norm=norm, balance=balance)
        assert found.item() == pytest.approx(within(first, second, partner, positive, valid, norm, balance))
    found = between_loss(given[0], given[1], given[2], given[4], norm=norm)
    assert found.item() == pytest.approx(between(first, second, partner, valid, norm), rel=1e-5)
    everywhere = np.ones_like(valid)
    assert within_loss(*given[:4], norm=norm).item() == pytest.approx(
        within(first, second, partner, positive, everywhere, norm)
    )


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_equal_finite_differences_of_the_loops(norm: str) -> None:
    first, second, partner, positive, valid = drawn(11, pairs=3)
    views = [torch.from_numpy(one).requires_grad_() for one in (first, second)]
    flags = [torch.from_numpy(one) for one in (partner, positive, valid)]
    loss = within_loss(*views, *flags, norm=norm) + 0.5 * between_loss(*views, flags[0], flags[2], norm=norm)
    loss.backward()

    def value() -> float:
        one = within(first, second, partner, positive, valid, norm)
        return float(one + 0.5 * between(first, second, partner, valid, norm))

    for array, view in ((first, views[0]), (second, views[1])):
        assert view.grad is not None
        for place in np.ndindex(array.shape):
            kept, step = array[place], 1e-5
            array[place] = kept + step
            above = value()
            array[place] = kept - step
            slope = (above - value()) / (2 * step)
            array[place] = kept
            assert view.grad[place].item() == pytest.approx(slope, abs=2e-6)


def test_both_balances_are_one_where_all_is_positive() -> None:
    first, second, partner, positive, _ = (torch.from_numpy(one) for one in drawn(3))
    everywhere = torch.ones_like(positive)
    found = [within_loss(first, second, partner, everywhere, balance=balance) for balance in ("pooled", "per_part")]
    assert found[0].item() == pytest.approx(found[1].item())


def test_the_least_loss_is_0() -> None:
    """Partners that are equal, and random ones at a half; pixels of different images at a half."""
    first = torch.tensor([[[0.0, 1.0]], [[2.0, 3.0]]])
    partner, positive = torch.tensor([[0, 0], [0, 0]]), torch.tensor([[True, False], [True, False]])
    assert within_loss(first, first, partner, positive).item() == 0
    apart = torch.tensor([[[0.0, 0.0]], [[1.0, 1.0]]])
    assert between_loss(apart, apart, partner).item() == 0


def test_one_pair_of_views_has_nothing_between() -> None:
    first = torch.randn(1, 3, 4, requires_grad=True)
    loss = between_loss(first, first, torch.zeros(1, 4, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    assert first.grad is not None
    assert not first.grad.any()


@pytest.mark.long("subprocesses")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc/self/status")
def test_memory_between_pairs_does_not_grow_with_channels() -> None:
    """All differences would be 528 MB here; the loss takes about a quarter of it, mostly copies of features."""
    script = """
import re, torch
from setsup_papers.pixels import between_loss

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])

first = torch.randn(64, 256, 256, requires_grad=True)
before = peak()
between_loss(first, first, torch.randint(256, (64, 256))).backward()
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 2**20 < int(done.stdout) < 2**28


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_features_may_be_halves(dtype: torch.dtype) -> None:
    first, second, partner, positive, valid = (torch.from_numpy(one) for one in drawn(5))
    some = [one.to(dtype) for one in (first, second)]
    exact = within_loss(first, second, partner, positive, valid) + between_loss(first, second, partner, valid)
    found = within_loss(*some, partner, positive, valid) + between_loss(*some, partner, valid)
    assert found.item() == pytest.approx(exact.item(), rel=2e-2)


def test_losses_keep_their_precision_in_mixed_precision() -> None:
    first, second, partner, positive, valid = (torch.from_numpy(one) for one in drawn(6))
    first, second = first.float(), second.float()

    def both() -> torch.Tensor:
        within = within_loss(first, second, partner, positive, valid)
        return torch.stack([within, between_loss(first, second, partner, valid)])

    with torch.autocast("cpu", torch.bfloat16):
        mixed = both()
    torch.testing.assert_close(mixed, both())


def test_wrong_arguments_are_named() -> None:
    first, partner = torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.int64)
    flags = torch.ones(2, 4, dtype=torch.bool)
    with pytest.raises(SetsupError, match="norm must be one of inf, l1, l2, not 'l3'"):
        pixel_distances(first, first, "l3")  # type: ignore[arg-type]
    with pytest.raises(SetsupError, match="balance"):
        within_loss(first, first, partner, flags, balance="even")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="flatten height and width first"):
        within_loss(first[..., None], first, partner, flags)
    with pytest.raises(
        DataError, match=r"partner must have the shape \(2, 4\), one value per pixel of view 1, not \(2, 3\)"
    ):
        between_loss(first, first, partner[:, :3])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("view", [0, 1])
def test_what_is_no_number_is_not_passed_over(view: int, norm: str) -> None:
    views = [torch.randn(3, 2, 4), torch.randn(3, 2, 4)]
    views[view][1, 0, 2] = torch.nan
    partner = torch.arange(4).expand(3, -1)
    assert between_loss(*views, partner, norm=norm).isnan()  # type: ignore[arg-type]
    assert within_loss(*views, partner, partner > 1, norm=norm).isnan()  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", NORMS)
def test_what_does_not_count_may_be_nan(norm: str) -> None:
    """Values and gradients are those of any other features there."""
    first, second, partner, positive, valid = (torch.from_numpy(one) for one in drawn(5))
    valid[:, 1] = False
    partner[partner == 0] = 1
    partner[:, 1] = 0  # what view 2 has there is asked for only where nothing counts

    def found(filling: float) -> tuple[list[float], list[torch.Tensor]]:
        views = [first.clone(), second.clone()]
        views[0].masked_fill_(~valid[:, None], filling)
        views[1][:, :, 0] = filling
        views = [view.requires_grad_() for view in views]
        losses = [
            within_loss(*views, partner, positive, valid, norm=norm, balance=one) for one in ("pooled", "per_part")
        ]
        losses.append(between_loss(*views, partner, valid, norm=norm))
        sum(losses).backward()
        return [loss.item() for loss in losses], [view.grad for view in views]

    values, gradients = found(0.3)
    again, others = found(torch.nan)
    assert again == values
    for one, other in zip(gradients, others, strict=True):
        torch.testing.assert_close(other, one)
