"""Losses on orbits against loops over triplets, and their gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup_papers.orbits import mine_triplets, rectification_loss, triplet_loss  # noqa: E402


def by_loops(points: "torch.Tensor", groups: list[int], margin: float) -> "torch.Tensor":
    """The mean over anchors and positives, each negative chosen as the text says."""
    terms = []
    for a in range(len(groups)):
        for p in range(len(groups)):
            if a == p or groups[a] != groups[p] or groups[a] < 0:
                continue
            far = (points[a] - points[p]).square().sum()
            others = [
                (points[a] - points[n]).square().sum() for n in range(len(groups)) if groups[n] not in (groups[a], -1)
            ]
            if not others:
                continue
            beyond = [one for one in others if one.item() > far.item()]
            negative = min(beyond, key=torch.Tensor.item) if beyond else max(others, key=torch.Tensor.item)
            terms.append((far + margin - negative).clamp(min=0))
    return torch.stack(terms).mean() if terms else points.sum() * 0


GROUPS = {
    "equal": [0, 0, 0, 1, 1, 1, 2, 2, 2],
    "ragged": [0, 0, 1, 1, 1, 1, 2, 3, 3],
    "unknown": [0, 0, 0, -1, 1, 1, 2, 2, -1],
    "alone": [0, 1, 2, 3, 4, 5, 6, 7, 8],
    "one": [0] * 9,
    "two, unsorted": [1, 0, 1, 0, 1, 0, 1, 0, 1],
}


@pytest.mark.parametrize("margin", [0.0, 0.2, 3.0])
@pytest.mark.parametrize("name", GROUPS)
def test_loss_and_gradient_are_those_of_loops(name: str, margin: float) -> None:
    for seed in range(4):
        draw = torch.Generator().manual_seed(seed)
        points = torch.randn(9, 3, generator=draw, dtype=torch.float64)
        if seed % 2:
            points = torch.nn.functional.normalize(points, dim=1)
        mine, theirs = (points.clone().requires_grad_() for _ in range(2))
        found = triplet_loss(mine, torch.tensor(GROUPS[name]), margin=margin)
        expected = by_loops(theirs, GROUPS[name], margin)
        assert found.item() == pytest.approx(expected.item(), abs=1e-12)
        found.backward()
        expected.backward()
        torch.testing.assert_close(mine.grad, theirs.grad, atol=1e-10, rtol=1e-9)


def test_a_mask_is_as_if_its_images_were_not_there() -> None:
    points = torch.randn(8, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    groups = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2])
    mask = torch.tensor([1, 1, 0, 1, 1, 1, 0, 1], dtype=torch.bool)
    assert triplet_loss(points, groups, mask=mask) == triplet_loss(points[mask], groups[mask])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_mined_as_they_are(dtype: "torch.dtype") -> None:
    points = torch.randn(12, 3, generator=torch.Generator().manual_seed(2)).to(dtype)
    groups = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    found = triplet_loss(points, torch.tensor(groups), margin=1.0)
    assert found.dtype == dtype
    assert found.item() == pytest.approx(by_loops(points.double(), groups, 1.0).item(), rel=0.05)


def test_distances_keep_their_precision_in_mixed_precision() -> None:
    """Products of near points in 16 bits would say little of their distance."""
    draw = torch.Generator().manual_seed(3)
    points = torch.nn.functional.normalize(torch.ones(24, 64) + 0.05 * torch.randn(24, 64, generator=draw), dim=1)
    groups = torch.arange(24) // 4
    found = []
    for mixed in (False, True):
        given = points.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            loss = triplet_loss(given, groups, margin=0.01)
        loss.backward()
        found.append((loss, given.grad))
    torch.testing.assert_close(found[0], found[1])


def test_equal_distances() -> None:
    # on a square each neighbour of a corner is as far as the other: no negative is farther than the positive but one
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    groups = [0, 0, 1, 1]
    assert triplet_loss(corners, torch.tensor(groups)).item() == pytest.approx(by_loops(corners, groups, 0.2).item())
    same = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    loss = triplet_loss(same, torch.tensor(groups))
    loss.backward()
    assert loss.item() == pytest.approx(0.2)
    assert not same.grad.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_among_equally_distant_negatives_the_order_of_the_batch_decides(dtype: "torch.dtype") -> None:
    """The nearest is the first of them, the farthest the last, whatever a processor's fastest sort would give."""
    groups = torch.arange(60) // 3
    levels = torch.tensor([-0.5, -0.0, 0.0, 0.25, 1.0], dtype=dtype)
    distances = levels[torch.randint(5, (60, 60), generator=torch.Generator().manual_seed(4))]
    found = torch.stack(mine_triplets(distances, groups), 1).tolist()
    assert len(found) == 120
    for anchor, positive, negative in found:
        others = [image for image in range(60) if groups[image] != groups[anchor]]
        beyond = [image for image in others if distances[anchor, image] > distances[anchor, positive]]
        best = min(beyond, key=lambda image: distances[anchor, image]) if beyond else None
        farthest = max(reversed(others), key=lambda image: distances[anchor, image])
        assert negative == (farthest if best is None else best)


def test_random_negatives_are_farther_than_the_positive_and_inside_of_the_margin() -> None:
    # from 0 the positive is at 1, and negatives at distances 1.21, 1.44, 1.69 and 100
    points = torch.tensor([[0.0], [1.0], [-1.1], [-1.2], [-1.3], [-10.0]], dtype=torch.float64)
    groups = torch.tensor([0, 0, 1, 2, 3, 4])
    torch.manual_seed(0)
    # of anchor 1 all negatives are beyond the margin: its term is 0
    seen = {round(2 * triplet_loss(points, groups, margin=0.5, negatives="random").item(), 6) for _ in range(60)}
    assert seen == {round(1.5 - one, 6) for one in (1.21, 1.44)}


def test_rectification_is_a_mean_of_squared_lengths() -> None:
    draw = np.random.default_rng(0)
    mine, theirs = draw.random((5, 2, 3, 4)), draw.random((5, 2, 3, 4))
    each = ((mine - theirs) ** 2).reshape(5, -1).sum(1)
    tensors = torch.from_numpy(mine), torch.from_numpy(theirs)
    assert rectification_loss(*tensors).item() == pytest.approx(each.mean())
    kept = [True, False, True, True, False]
    assert rectification_loss(*tensors, torch.tensor(kept)).item() == pytest.approx(each[kept].mean())


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="flatten sets and positions first"):
        triplet_loss(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(SetsupError, match="hardest, random, not 'easiest'"):
        triplet_loss(torch.zeros(2, 4), torch.zeros(2, dtype=torch.int64), negatives="easiest")
    with pytest.raises(DataError, match="one target for each"):
        rectification_loss(torch.zeros(2, 1, 4, 4), torch.zeros(2, 1, 4, 5))
