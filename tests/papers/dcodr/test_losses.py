"""The contrastive loss of DCoDR against a loop over anchors, and against values of the authors' code."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from setsup.errors import DataError, SetsupError
from setsup_papers.dcodr import domain_contrast_loss

# from the authors' code: 6 images of 2 domains, 4 dimensions, temperature 0.2
PUBLISHED = [({}, 0.434724), ({"negatives": "batch"}, 0.941702), ({"positives": None}, 0.408938)]


def published() -> tuple[Tensor, Tensor, Tensor]:
    image, dimension = torch.arange(6.0)[:, None], torch.arange(4.0)
    z = torch.sin(1 + 3 * image + 7 * dimension)
    return z, z + 0.2 * torch.cos(2 * image + dimension), torch.tensor([0, 0, 0, 1, 1, 1])


def drawn(seed: int, images: int = 23, size: int = 5) -> dict[str, Any]:
    """Domains of different sizes, one of one image; images of no known domain; padding."""
    dice = torch.Generator().manual_seed(seed)
    domains = torch.randint(0, 4, (images,), generator=dice)
    domains[:3] = torch.tensor([-1, 9, -1])
    mask = torch.rand(images, generator=dice) < 0.8
    mask[:2] = True
    one, other = (torch.randn(images, size, dtype=torch.float64, generator=dice) for _ in range(2))
    return {"embeddings": one, "positives": one + other, "domains": domains, "mask": mask}


def loop(
    embeddings: Tensor,
    positives: Tensor | None,
    domains: Tensor,
    *,
    temperature: float = 0.2,
    negatives: str = "domain",
    decoupled: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """Anchor after anchor, and negative after negative."""

    def similarity(first: Tensor, second: Tensor) -> Tensor:
        return (first @ second) / (first.square().sum().sqrt() * second.square().sum().sqrt()) / temperature

    count = range(len(domains))
    here = [i for i in count if (mask is None or mask[i]) and (negatives == "batch" or domains[i] >= 0)]
    terms = []
    for i in here:
        near = torch.tensor(1 / temperature) if positives is None else similarity(embeddings[i], positives[i])
        far = [
            similarity(embeddings[i], embeddings[j])
            for j in here
            if j != i and (negatives == "batch" or domains[i] == domains[j])
        ]
        if decoupled and not far:
            continue
        terms.append(-near + torch.stack(far + ([] if decoupled else [near.to(embeddings.dtype)])).exp().sum().log())
    return torch.stack(terms).mean()


@pytest.mark.parametrize(("options", "value"), PUBLISHED)
def test_published_values(options: dict[str, Any], value: float) -> None:
    z, copies, domains = published()
    found = domain_contrast_loss(**({"embeddings": z, "positives": copies, "domains": domains} | options))
    assert found.item() == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("negatives", ["domain", "batch"])
@pytest.mark.parametrize("copies", [True, False])
def test_values_and_gradients_equal_the_loop(negatives: str, copies: bool, decoupled: bool) -> None:
    for seed in range(3):
        given = drawn(seed)
        options = {"negatives": negatives, "decoupled": decoupled, "temperature": 0.3}
        found = []
        for function in (domain_contrast_loss, loop):
            leaves = [given[name].clone().requires_grad_() for name in ("embeddings", "positives")]
            value = function(leaves[0], leaves[1] if copies else None, given["domains"], mask=given["mask"], **options)
            value.backward()
            found.append([value, *(leaf.grad for leaf in leaves if leaf.grad is not None)])
        assert len(found[0]) == 2 + copies
        torch.testing.assert_close(*found)


def test_padding_and_unknown_domains_have_no_effect_whatever_they_hold() -> None:
    given = drawn(5)
    out = ~given["mask"] | (given["domains"] < 0)
    before = domain_contrast_loss(**given)
    given["embeddings"] = given["embeddings"].masked_fill(out[:, None], 1e9)
    given["positives"] = given["positives"].masked_fill(out[:, None], -3)
    assert domain_contrast_loss(**given).item() == pytest.approx(before.item())


def test_the_only_image_of_a_domain_has_no_loss() -> None:
    z, copies, _ = published()
    assert domain_contrast_loss(z, copies, torch.arange(6)).item() == pytest.approx(0, abs=1e-6)
    leaf = z.clone().requires_grad_()
    lone = domain_contrast_loss(leaf, copies, torch.arange(6), decoupled=True)
    lone.backward()
    assert lone.item() == 0
    assert leaf.grad is not None
    assert not leaf.grad.any()


def test_domains_of_one_size_are_taken_whole() -> None:
    z, copies, domains = published()
    state = torch.random.get_rng_state()
    found = domain_contrast_loss(z, copies, domains, short="replace")
    assert found.item() == pytest.approx(0.434724, abs=1e-6)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("sizes", "number"),
    # as many as the average domain has others: with replacement, from one too many, and at most 64
    [((32, 32, 25, 20), 26), ((5, 4), 3), ((90, 90), 64), ((200, 2), 64)],
)
def test_drawn_negatives_are_as_many_for_all_anchors(sizes: tuple[int, ...], number: int) -> None:
    """Where all embeddings are equal, the loss of an anchor with m negatives is log(1 + m)."""
    domains = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    z = torch.ones(len(domains), 3)
    found = domain_contrast_loss(z, z, domains, short="replace")
    assert found.item() == pytest.approx(math.log(1 + number), rel=1e-5)


def test_drawn_negatives_are_uniform_over_the_other_images_of_the_domain() -> None:
    """Domain 1 has one image unlike five equal ones; each of these draws it with probability 1/5, three times."""
    domains = torch.tensor([0, 0, 1, 1, 1, 1, 1, 1])
    z = torch.tensor([1.0, 0.0]).repeat(8, 1)
    z[1], z[2] = torch.tensor([0.0, 1.0]), torch.tensor([-1.0, 0.0])
    torch.manual_seed(0)
    draws = torch.stack([domain_contrast_loss(z, z, domains, temperature=1.0, short="replace") for _ in range(600)])
    small, unlike = math.log(1 + 3 * math.exp(-1)), math.log(1 + 3 * math.exp(-2))
    like = sum(math.comb(3, k) * 0.2**k * 0.8 ** (3 - k) * math.log(1 + k * math.exp(-2) + 3 - k) for k in range(4))
    error = draws.std().item() / math.sqrt(len(draws))
    assert 0 < error < 0.005
    assert draws.mean().item() == pytest.approx((2 * small + unlike + 5 * like) / 8, abs=4 * error)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_embeddings_may_be_halves_and_autocast_changes_nothing(dtype: torch.dtype) -> None:
    z, copies, domains = published()
    exact = domain_contrast_loss(z, copies, domains)
    half = domain_contrast_loss(z.to(dtype), copies.to(dtype), domains)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(exact.item(), rel=5e-2)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(domain_contrast_loss(z, copies, domains), exact)


def test_wrong_arguments_are_named() -> None:
    z, copies, domains = published()
    with pytest.raises(DataError, match="flatten sets and positions first"):
        domain_contrast_loss(z.reshape(2, 3, 4), copies, domains)
    with pytest.raises(DataError, match=r"positives must have the shape \(6, 4\) of the embeddings, not \(5, 4\)"):
        domain_contrast_loss(z, copies[:5], domains)
    with pytest.raises(DataError, match=r"mask must be .*, not torch.int64 of shape \(6,\)"):
        domain_contrast_loss(z, copies, domains, mask=domains)
    with pytest.raises(SetsupError, match="negatives must be one of domain, batch, not 'all'"):
        domain_contrast_loss(z, copies, domains, negatives="all")  # type: ignore[arg-type]
    with pytest.raises(SetsupError, match="short must be one of all, replace, not 'drop'"):
        domain_contrast_loss(z, copies, domains, short="drop")  # type: ignore[arg-type]
    with pytest.raises(SetsupError, match="temperature"):
        domain_contrast_loss(z, copies, domains, temperature=0)


@pytest.mark.parametrize("hole", [math.nan, math.inf])
@pytest.mark.parametrize("decoupled", [False, True])
@pytest.mark.parametrize("negatives", ["domain", "batch"])
def test_gradients_of_other_images_are_finite_whatever_padding_holds(
    negatives: Any, decoupled: bool, hole: float
) -> None:
    case = drawn(4)
    out = ~case["mask"] | (case["domains"] < 0) if negatives == "domain" else ~case["mask"]
    slopes = []
    for value in (hole, 1.0):
        given = [case.pop(name) if value == 1.0 else case[name] for name in ("embeddings", "positives")]
        leaves = [one.masked_fill(out[:, None], value).requires_grad_() for one in given]
        options = {name: one for name, one in case.items() if name not in ("embeddings", "positives")}
        domain_contrast_loss(*leaves, **options, negatives=negatives, decoupled=decoupled).backward()
        slopes.append([leaf.grad for leaf in leaves])
    for with_hole, without in zip(*slopes, strict=True):
        assert with_hole is not None
        assert torch.equal(with_hole, without)
        assert not with_hole[out].any()
