"""Losses between views, against loops over their formulas."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup_papers.cmc import in_batch_loss, nce_loss, patch_loss, softmax_loss  # noqa: E402


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def nce_by_loops(scores: torch.Tensor, images: int, normaliser: float, temperature: float) -> float:
    total, noise, epsilon = 0.0, (scores.shape[1] - 1) / images, 1e-7
    for positive, *negatives in scores.tolist():
        p = math.exp(positive / temperature) / normaliser
        total -= math.log(p / (p + noise + epsilon))
        for score in negatives:
            p = math.exp(score / temperature) / normaliser
            total -= math.log(noise / (p + noise + epsilon))
    return total / len(scores)


@pytest.mark.parametrize("normaliser", [1.0, 50.0, 1e6])
def test_nce_is_its_formula(normaliser: float) -> None:
    scores = numbers(5, 8).clamp(-1, 1)
    expected = nce_by_loops(scores, 40, normaliser, 0.1)
    assert float(nce_loss(scores, 40, normaliser, 0.1)) == pytest.approx(expected, rel=1e-12)
    assert float(nce_loss(scores.float(), 40, normaliser, 0.1)) == pytest.approx(expected, rel=1e-5)


def test_nce_of_thousands_of_negatives_loses_no_digits_in_float32() -> None:
    scores = 0.1 * numbers(3, 4097)
    images, normaliser = 1_281_167, 1_281_167 * 3.0
    expected = nce_by_loops(scores, images, normaliser, 0.07)
    assert float(nce_loss(scores.float(), images, normaliser, 0.07)) == pytest.approx(expected, rel=1e-6)


def test_the_gradient_of_nce_is_that_of_its_formula() -> None:
    scores = numbers(3, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda some: nce_loss(some, 20, 30.0, 0.5), (scores,))


def test_softmax_is_its_formula() -> None:
    scores = numbers(5, 8)
    lines = [[value / 0.2 for value in line] for line in scores.tolist()]
    expected = sum(math.log(sum(map(math.exp, line))) - line[0] for line in lines) / 5
    assert float(softmax_loss(scores, 0.2)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("groups", [None, [0, 1, 0, 2, 1], [0, 1, 2, 3, 4]])
def test_in_batch_is_its_formula(groups: list[int] | None) -> None:
    one, other, found = numbers(5, 3, seed=1), numbers(5, 3, seed=2), 0.0
    for i in range(5):
        among = [j for j in range(5) if j == i or groups is None or groups[i] != groups[j]]
        scores = [float(one[i] @ other[j]) / 0.3 for j in among]
        found += (math.log(sum(map(math.exp, scores))) - scores[among.index(i)]) / 5
    given = None if groups is None else torch.tensor(groups)
    assert float(in_batch_loss(one, other, 0.3, given)) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("groups", [None, [0, 1, 0, 2]])
def test_patches_are_chosen_among_places_of_other_images(groups: list[int] | None) -> None:
    vectors, maps, found = numbers(4, 3, seed=1), numbers(4, 3, 2, 3, seed=2), []
    for b in range(4):
        others = [j for j in range(4) if (groups[j] != groups[b] if groups else j != b)]
        negatives = [
            float(vectors[b] @ maps[j, :, row, column]) for j in others for row in range(2) for column in range(3)
        ]
        for row in range(2):
            for column in range(3):
                positive = float(vectors[b] @ maps[b, :, row, column])
                found.append(math.log(sum(map(math.exp, [positive, *negatives]))) - positive)
    given = None if groups is None else torch.tensor(groups)
    assert float(patch_loss(vectors, maps, given)) == pytest.approx(sum(found) / len(found), rel=1e-12)


def test_large_scores_of_places_stay_finite() -> None:
    vectors, maps = (1e3 * numbers(4, 3)).float().requires_grad_(), (1e3 * numbers(4, 3, 2, 2)).float()
    loss = patch_loss(vectors, maps)
    loss.backward()
    assert loss.isfinite()
    assert vectors.grad is not None
    assert vectors.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_are_float32_under_autocast_and_of_half_features(dtype: torch.dtype) -> None:
    one, other = numbers(4, 3).to(dtype), numbers(4, 3, seed=1).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = in_batch_loss(one, other)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(in_batch_loss(one.double(), other.double())), rel=1e-5)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"\(n, 1 \+ m\)"):
        nce_loss(torch.zeros(3, 1), 8, 1.0)
    with pytest.raises(SetsupError, match="positive"):
        nce_loss(torch.zeros(3, 2), 8, 0.0)
    with pytest.raises(SetsupError, match="temperature"):
        softmax_loss(torch.zeros(3, 2), 0.0)
    with pytest.raises(DataError, match=r"\(n, d\)"):
        in_batch_loss(torch.zeros(3, 2), torch.zeros(4, 2))
    with pytest.raises(DataError, match="groups"):
        in_batch_loss(torch.zeros(3, 2), torch.zeros(3, 2), groups=torch.zeros(2))
    with pytest.raises(DataError, match=r"\(n, d, h, w\)"):
        patch_loss(torch.zeros(3, 2), torch.zeros(3, 4, 1, 1))
