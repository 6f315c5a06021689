"""Similarities: formulas in float64 on differences, not on products; torch's own where it has one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")

from setsup.methods.embeddings import fill_padding  # noqa: E402
from setsup.methods.similarity import logits, origin, similarities  # noqa: E402

NAMES = ["l2sq", "l2", "l1", "linf", "cosine"]


def by_differences(x, y, name):
    x, y = x.double().unsqueeze(-2), y.double().unsqueeze(-3)
    if name == "cosine":
        return torch.nn.functional.cosine_similarity(x, y, dim=-1)
    apart = (x - y).abs()
    square = apart.square().sum(-1)
    return -{"l2sq": square, "l2": (square + 1e-9).sqrt(), "l1": apart.sum(-1), "linf": apart.amax(-1)}[name]


def normal(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6)),
    name=st.sampled_from(NAMES),
    offset=st.sampled_from([0.0, 1e4]),
)
def test_values(seed, shape, name, offset) -> None:
    pairs, n, m, d = shape
    x, y = normal(seed, pairs, n, d) + offset, normal(seed + 1, pairs, m, d) + offset
    expected = by_differences(x, y, name)
    torch.testing.assert_close(similarities(x, y, name), expected, rtol=1e-7, atol=1e-7)
    one, other = x.float(), y.float()
    expected = by_differences(one, other, name).float()
    torch.testing.assert_close(similarities(one, other, name), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_softmax_of_logits_is_that_of_similarities(name) -> None:
    x, y = normal(0, 2, 5, 3), normal(1, 2, 4, 3)
    expected = (similarities(x, y, name) / 0.3).softmax(-1)
    torch.testing.assert_close(logits(x, y, name, 0.3).softmax(-1), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squares_are_never_negative(dtype) -> None:
    x = (normal(0, 50, 64) + 1e3).to(dtype)
    assert (similarities(x, x, "l2sq") <= 0).all()
    assert similarities(x, x, "l2").isfinite().all()
    assert similarities(x[:1], x[:1], "l2").item() == pytest.approx(-(1e-9**0.5), rel=1e-5)


def test_cosine_of_nothing_is_0_without_gradient() -> None:
    x = torch.tensor([[0.0, 0.0], [1.0, 1.0]], requires_grad=True)
    found = similarities(x, x.detach(), "cosine")
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.0], [0.0, 1.0]]))
    (gradient,) = torch.autograd.grad(found.square().sum() + found.sum(), x)
    assert gradient[0].tolist() == [0, 0]
    assert gradient.isfinite().all()


def test_cosine_has_no_scale_down_to_small_numbers() -> None:
    x, y = normal(0, 5, 3).float(), normal(1, 4, 3).float()
    for scale in (1e-15, 1e15):
        torch.testing.assert_close(similarities(scale * x, y, "cosine"), similarities(x, y, "cosine"))


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name) -> None:
    x, y = normal(0, 3, 2).requires_grad_(), normal(1, 4, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: similarities(x, y, name), (x, y))


def test_a_function_of_ones_own_sees_one_pair_at_a_time() -> None:
    seen = []

    def similarity(x, y):
        seen.append((x, y))
        return x @ y.T

    x, y = normal(0, 2, 3, 5, 4), normal(1, 2, 3, 6, 4)
    torch.testing.assert_close(similarities(x, y, similarity), x @ y.mT)
    assert [(one.shape, other.shape) for one, other in seen] == [((5, 4), (6, 4))] * 6
    torch.testing.assert_close(seen[4][0], x[1, 1])  # as given, not moved
    assert origin(x[0], similarity) is None


def test_half_precision_is_computed_in_float32() -> None:
    x, y = normal(0, 3, 2).half(), normal(1, 4, 2).bfloat16()
    torch.testing.assert_close(similarities(x, y), similarities(x.float(), y.float()), rtol=0, atol=0)
    assert similarities(x, y.double()).dtype == torch.float64


def test_padding_becomes_a_member() -> None:
    sets = torch.tensor([[1.0, 2, 3], [4, 5, 6]]).unsqueeze(-1)
    mask = torch.tensor([[False, True, False], [False, False, False]])
    found, flat = fill_padding(sets, mask)
    assert found.squeeze(-1).tolist() == [[2, 2, 2], [0, 0, 0]]
    assert flat.tolist() == mask.tolist()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(SetsupError, match=r"'l3'.*l2sq"):
        similarities(torch.ones(2, 3), torch.ones(2, 3), "l3")
    with pytest.raises(DataError, match=r"\(3,\)"):
        similarities(torch.ones(3), torch.ones(2, 3))
    with pytest.raises(DataError, match=r"for x of shape \(2, 4\) and y of shape \(3, 4\), not of shape \(3, 2\)"):
        similarities(torch.ones(2, 4), torch.ones(3, 4), lambda x, y: y @ x.T)
