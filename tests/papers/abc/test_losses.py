"""ABC losses: published test vectors, closed forms, and the formulas one element at a time, in float64."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setsup.errors import DataError, SetsupError

torch = pytest.importorskip("torch")

from setsup_papers.abc import (  # noqa: E402
    augmentation_loss,
    correspondence_loss,
    directed_loss,
    double_augmentation_loss,
    soft_nearest_neighbours,
)

NAMES = ["l2sq", "l2", "l1", "linf", "cosine"]
TYPES = [torch.float32, torch.float64]


def table(rows, of):
    return torch.tensor([[of(i, k) for k in range(3)] for i in range(rows)], dtype=torch.float64)


U = table(4, lambda i, k: math.sin(1 + 3 * i + 7 * k))
V = table(5, lambda j, k: math.cos(2 + 5 * j + k))
U2 = U + table(4, lambda i, k: 0.1 * math.cos(i + k))
V2 = V + table(5, lambda j, k: 0.1 * math.sin(j + k))


def normal(seed, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def slow_similarity(name, x, y):
    """Of two lists of numbers."""
    if callable(name):
        return float(name(torch.tensor([x]).double(), torch.tensor([y]).double()))
    apart = [abs(a - b) for a, b in zip(x, y, strict=True)]
    if name == "cosine":
        return sum(a * b for a, b in zip(x, y, strict=True)) / (math.hypot(*x) * math.hypot(*y))
    square = sum(a * a for a in apart)
    return -{"l2sq": square, "l2": math.sqrt(square + 1e-9), "l1": sum(apart), "linf": max(apart)}[name]


def slow_neighbour(name, tau, query, keys):
    scores = [slow_similarity(name, query, key) / tau for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [sum(w * key[k] for w, key in zip(weights, keys, strict=True)) / sum(weights) for k in range(len(query))]


def slow_picking(name, tau, proxies, candidates):
    """Mean cross entropy; nothing but lists."""
    total = 0.0
    for i, proxy in enumerate(proxies):
        scores = [slow_similarity(name, proxy, candidate) / tau for candidate in candidates]
        top = max(scores)
        total += top + math.log(sum(math.exp(score - top) for score in scores)) - scores[i]
    return total / len(proxies)


def slow_directed(name, tau, queries, keys, candidates=None):
    queries, keys = torch.as_tensor(queries).tolist(), torch.as_tensor(keys).tolist()
    proxies = [slow_neighbour(name, tau, query, keys) for query in queries]
    return slow_picking(name, tau, proxies, queries if candidates is None else candidates.tolist())


def scaled(x, y):
    """A similarity of one's own, which depends on where 0 is and is not symmetric."""
    return torch.tanh(x @ y.T) - 0.1 * (y**4).sum(-1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("name", "tau", "there", "back", "double"),
    [
        ("l2sq", 1, 0.673597, 1.085349, 0.673350),
        ("l2", 1, 0.927126, 1.149442, 0.948296),
        ("cosine", 0.1, 0.666644, 2.676599, 0.668328),
    ],
)
def test_known_values(name, tau, there, back, double, dtype) -> None:
    u, v, u2, v2 = (x.to(dtype) for x in (U, V, U2, V2))
    assert directed_loss(u, v, name, tau).item() == pytest.approx(there, abs=1e-5)
    assert directed_loss(v, u, name, tau).item() == pytest.approx(back, abs=1e-5)
    assert directed_loss(u2, v2, name, tau, candidates=u).item() == pytest.approx(double, abs=1e-5)
    assert correspondence_loss(u, v, name, tau).item() == pytest.approx(there + back, abs=1e-5)
    assert correspondence_loss(u, v, name, tau).dtype == dtype


@pytest.mark.parametrize("name", [*NAMES, scaled])
def test_soft_neighbours_one_by_one(name) -> None:
    expected = [slow_neighbour(name, 0.3, query, V.tolist()) for query in U.tolist()]
    torch.testing.assert_close(soft_nearest_neighbours(U, V, name, 0.3), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(("neighbours", "of"), [("second", 1), ("first", 0)])
def test_double_augmentation_one_by_one(neighbours, of) -> None:
    u, v = (U, U2), (V, V2)
    expected = slow_directed("l2sq", 0.5, u[1], v[of], u[0]) + slow_directed("l2sq", 0.5, v[1], u[of], v[0])
    found = double_augmentation_loss(u, v, "l2sq", 0.5, neighbours=neighbours)
    assert found.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", [*NAMES, scaled])
def test_augmentation_alone_one_by_one(name) -> None:
    expected = slow_picking(name, 0.5, U.tolist(), U2.tolist())
    assert augmentation_loss(U, U2, name, 0.5).item() == pytest.approx(expected, rel=1e-9)


@given(
    seed=st.integers(0, 2**31),
    sizes=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=4),
    name=st.sampled_from(NAMES),
    tau=st.sampled_from([0.1, 1.0, 3.0]),
    junk=st.sampled_from([0.0, 1e30, math.nan, math.inf]),
    dtype=st.sampled_from(TYPES),
)
@settings(max_examples=30, deadline=None)
def test_ragged_sets_equal_a_loop_over_pairs(seed, sizes, name, tau, junk, dtype) -> None:
    generator = torch.Generator().manual_seed(seed)
    n, m = (max(1, max(each)) for each in zip(*sizes, strict=True))
    u, v = (torch.randn(2, len(sizes), size, 3, generator=generator).to(dtype) for size in (n, m))
    masks = [torch.zeros(len(sizes), size, dtype=torch.bool) for size in (n, m)]
    for pair, counts in enumerate(sizes):
        for mask, count in zip(masks, counts, strict=True):
            mask[pair, torch.randperm(mask.shape[1], generator=generator)[:count]] = True
    whole = [pair for pair, counts in enumerate(sizes) if min(counts) > 0]
    expected = [0.0, 0.0]
    for pair in whole:
        members = [some[:, pair, mask[pair]] for some, mask in ((u, masks[0]), (v, masks[1]))]
        (a, a2), (b, b2) = members
        expected[0] += slow_directed(name, tau, a, b) + slow_directed(name, tau, b, a)
        expected[1] += slow_directed(name, tau, a2, b2, a) + slow_directed(name, tau, b2, a2, b)
    expected = [total / max(1, len(whole)) for total in expected]
    for some, mask in ((u, masks[0]), (v, masks[1])):
        some[:, ~mask] = junk
    u, v = u.requires_grad_(), v.requires_grad_()
    named = {"u_mask": masks[0], "v_mask": masks[1]}
    found = [
        correspondence_loss(u[0], v[0], name, tau, **named),
        double_augmentation_loss((u[0], u[1]), (v[0], v[1]), name, tau, **named),
    ]
    assert [loss.item() for loss in found] == pytest.approx(expected, rel=2e-4, abs=2e-4 if dtype == TYPES[0] else 1e-7)
    (found[0] + found[1]).backward()
    for some, mask in ((u, masks[0]), (v, masks[1])):
        assert some.grad.isfinite().all()
        assert (some.grad[:, ~mask] == 0).all()


@pytest.mark.parametrize("name", [*NAMES, scaled])
def test_several_pairs_are_a_mean_and_axes_do_not_matter(name) -> None:
    u, v = normal(0, 2, 3, 4, 5), normal(1, 2, 3, 6, 5)
    each = [correspondence_loss(u[i, j], v[i, j], name) for i in range(2) for j in range(3)]
    torch.testing.assert_close(correspondence_loss(u, v, name), torch.stack(each).mean())
    assert soft_nearest_neighbours(u, v, name).shape == u.shape


@pytest.mark.parametrize("name", NAMES)
def test_members_have_no_order(name) -> None:
    u, v = normal(0, 7, 4), normal(1, 9, 4)
    orders = [torch.randperm(n, generator=torch.Generator().manual_seed(2)) for n in (7, 9)]
    torch.testing.assert_close(correspondence_loss(u[orders[0]], v[orders[1]], name), correspondence_loss(u, v, name))


@pytest.mark.parametrize("dtype", TYPES)
def test_perfect_match_has_its_closed_form(dtype) -> None:
    """Two sets of n corners of a simplex, so far apart that the soft neighbour is the partner itself."""
    n, side, tau = 6, 5.0, 1.0
    u = (side * torch.eye(n)).to(dtype)
    expected = 2 * math.log1p((n - 1) * math.exp(-2 * side**2 / tau))
    assert correspondence_loss(u, u.flip(0)).item() == pytest.approx(expected, abs=1e-5)
    # with cosine, the neighbour of corner i is w e_i + w' Σ e_j: weights in closed form, raw vectors averaged
    tau = 0.5
    own, rest = math.exp(1 / tau), 1.0
    length = math.sqrt(own**2 + (n - 1) * rest**2)
    expected = 2 * math.log1p((n - 1) * math.exp((rest - own) / length / tau))
    assert correspondence_loss(u, u.flip(0), "cosine", tau).item() == pytest.approx(expected, rel=1e-5)


def test_cosine_averages_vectors_as_they_are() -> None:
    keys = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    torch.testing.assert_close(soft_nearest_neighbours(torch.ones(1, 2), keys, "cosine"), torch.tensor([[2.0, 0.5]]))


def test_temperature_of_l2sq_is_a_squared_length() -> None:
    torch.testing.assert_close(
        correspondence_loss(3 * U, 3 * V, "l2sq", 9 * 0.7), correspondence_loss(U, V, "l2sq", 0.7)
    )


@pytest.mark.parametrize("offset", [1e3, 1e4])
@pytest.mark.parametrize("name", ["l2sq", "l2", "l1", "linf"])
def test_offsets_lose_no_digits(name, offset) -> None:
    u, v = (normal(seed, 3, 40, 16, dtype=torch.float32) + offset for seed in (0, 1))  # rounded here, alike for both
    for loss in (directed_loss, correspondence_loss):
        assert loss(u, v, name).item() == pytest.approx(loss(u.double(), v.double(), name).item(), rel=2e-5)
    u, v = u.requires_grad_(), v.requires_grad_()
    found = torch.autograd.grad(correspondence_loss(u, v, name), (u, v))
    expected = torch.autograd.grad(correspondence_loss(u.double(), v.double(), name), (u, v))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=2e-6)


def test_large_norms_and_far_sets_stay_finite() -> None:
    for name in NAMES:
        u, v = (1e6 * normal(1, 8, 4).float()).requires_grad_(), normal(2, 8, 4).float()
        assert correspondence_loss(u, v, name).isfinite()
        assert torch.autograd.grad(correspondence_loss(u, v, name), u)[0].isfinite().all()


def test_sets_far_from_each_other() -> None:
    """With the origin at the mean of both sets, or where it was, float32 would be off by about a nat."""
    u, v = normal(1, 8, 4).float(), normal(2, 8, 4).float() + 1e3
    for one, other in ((u, v), (v, u)):
        found, expected = directed_loss(one, other), directed_loss(one.double(), other.double())
        assert found.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("name", [*NAMES, scaled])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients(name, masked) -> None:
    u, v = normal(3, 2, 2, 3, 2).requires_grad_(), normal(4, 2, 2, 4, 2).requires_grad_()
    u_mask = torch.tensor([[True, False, True], [True, True, True]]) if masked else None
    v_mask = torch.tensor([[True, True, False, True], [False, True, True, False]]) if masked else None

    def full(u, v):
        return correspondence_loss(u, v, name, 0.7, u_mask=u_mask, v_mask=v_mask)

    def double(u, v):
        return double_augmentation_loss((u[0], u[1]), (v[0], v[1]), name, 0.7, u_mask=u_mask, v_mask=v_mask)

    assert torch.autograd.gradcheck(full, (u[0].detach().requires_grad_(), v[0].detach().requires_grad_()))
    assert torch.autograd.gradcheck(double, (u, v), fast_mode=True)
    assert torch.autograd.gradcheck(
        lambda u: augmentation_loss(u[0], u[1], name, 0.7, mask=u_mask), (u,), fast_mode=True
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_coincident_points_and_zero_vectors_have_finite_gradients(name, dtype) -> None:
    for members in (torch.zeros(4, 3), torch.ones(4, 3), torch.tensor([[0.0, 0, 0], [1, 2, 3], [1, 2, 3], [0, 0, 0]])):
        u, v = members.to(dtype).requires_grad_(), members.flip(0).to(dtype).requires_grad_()
        loss = correspondence_loss(u, v, name) + double_augmentation_loss((u, u), (v, v), name)
        loss = loss + augmentation_loss(u, u, name)
        for gradient in torch.autograd.grad(loss, (u, v)):
            assert gradient.isfinite().all()
            assert gradient.abs().max() < 100


def test_empty_pairs_count_for_nothing() -> None:
    u, v = normal(0, 2, 4, 3).requires_grad_(), normal(1, 2, 4, 3)
    none = torch.tensor([[True] * 4, [False] * 4])
    expected = correspondence_loss(u[0], v[0])
    torch.testing.assert_close(correspondence_loss(u, v, u_mask=none), expected)
    torch.testing.assert_close(correspondence_loss(u, v, v_mask=none), expected)
    nothing = correspondence_loss(u, v, u_mask=none & False)
    assert nothing.item() == 0
    assert (torch.autograd.grad(nothing, u)[0] == 0).all()
    assert augmentation_loss(u, v, mask=none & False).item() == 0


def test_autocast_computes_in_float32() -> None:
    u, v = normal(0, 6, 4).bfloat16().requires_grad_(), normal(1, 6, 4).bfloat16()
    expected = correspondence_loss(u.float(), v.float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = correspondence_loss(u, v)
        torch.testing.assert_close(correspondence_loss(u.float(), v.float()), expected, rtol=0, atol=0)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert torch.autograd.grad(found, u)[0].dtype == torch.bfloat16


@pytest.mark.parametrize("name", [*NAMES, "own"])
@pytest.mark.parametrize("masked", [False, True])
def test_without_gradients_all_is_the_same_and_nothing_given_is_written_over(name, masked) -> None:
    u, v, u2, v2 = (normal(seed, 2, 3, 4) for seed in range(4))
    kept = normal(5, 3, 3)  # a similarity of one's own may give what it keeps
    similarity = (lambda x, y: kept) if name == "own" else name
    mask = torch.tensor([[True, False, True], [True, True, True]]) if masked else None
    before = [some.clone() for some in (u, v, u2, v2, kept)]

    def losses():
        masks = {"u_mask": mask, "v_mask": mask}
        yield correspondence_loss(u, v, similarity, 0.7, **masks)
        yield double_augmentation_loss((u, u2), (v, v2), similarity, 0.7, **masks)
        yield augmentation_loss(u, u2, similarity, 0.7, mask=mask)
        yield soft_nearest_neighbours(u, v, similarity, 0.7, key_mask=mask)

    recorded = list(losses())
    with torch.no_grad():
        torch.testing.assert_close(list(losses()), recorded)
    for some, was in zip((u, v, u2, v2, kept), before, strict=True):
        assert torch.equal(some, was)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, within jvp
@pytest.mark.parametrize("name", ["l2sq", "l2", "cosine"])
def test_transforms_of_functions(name) -> None:
    u, v = normal(0, 3, 4, 2), normal(1, 3, 5, 2)
    each = torch.stack([directed_loss(*pair, name) for pair in zip(u, v, strict=True)])
    torch.testing.assert_close(torch.func.vmap(lambda x, y: directed_loss(x, y, name))(u, v), each)
    leaf, towards = u.clone().requires_grad_(), normal(2, 3, 4, 2)
    (slope,) = torch.autograd.grad(directed_loss(leaf, v, name), leaf)
    torch.testing.assert_close(torch.func.grad(lambda x: directed_loss(x, v, name))(u), slope)
    _, along = torch.func.jvp(lambda x: directed_loss(x, v, name), (u,), (towards,))
    torch.testing.assert_close(along, (slope * towards).sum())


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(SetsupError, match="temperature must be a positive number, not 0"):
        correspondence_loss(U, V, "l2sq", 0)
    with pytest.raises(SetsupError, match=r"unknown similarity 'cosin'.*'cosine'"):
        correspondence_loss(U, V, "cosin")
    with pytest.raises(SetsupError, match="'third'"):
        double_augmentation_loss((U, U2), (V, V2), neighbours="third")
    with pytest.raises(DataError, match=r"\(4, 3\) and \(5, 2\)"):
        correspondence_loss(U, V[:, :2])
    with pytest.raises(DataError, match=r"\(1, 4, 3\) and \(2, 4, 3\)"):
        correspondence_loss(U[None], torch.stack([U, U]))
    with pytest.raises(DataError, match="at least 1"):
        correspondence_loss(U, V[:0])
    with pytest.raises(DataError, match="int64"):
        correspondence_loss(U.long(), V)
    with pytest.raises(DataError, match=r"torch.bool tensor of shape \(4,\), not .*\(5,\)"):
        correspondence_loss(U, V, u_mask=torch.ones(5, dtype=torch.bool))
    with pytest.raises(DataError, match=r"not torch\.float32"):
        correspondence_loss(U, V, u_mask=torch.ones(4))
    with pytest.raises(DataError, match="must have the same shape"):
        directed_loss(U, V, candidates=V)
    with pytest.raises(DataError, match="must have the same shape"):
        augmentation_loss(U, V)
    with pytest.raises(DataError, match=r"similarity must return .*, not of shape \(4,\)"):
        correspondence_loss(U, V, lambda x, y: x.sum(-1))


@pytest.mark.long("trainings")
@pytest.mark.parametrize("loss", [directed_loss, correspondence_loss, soft_nearest_neighbours, augmentation_loss])
def test_losses_compile_whole(loss):
    u, v = normal(1, 2, 4, 3), normal(2, 2, 4, 3)
    torch.testing.assert_close(torch.compile(loss, backend="eager", fullgraph=True)(u, v), loss(u, v))
