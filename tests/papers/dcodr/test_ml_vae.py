"""ML-VAE: posteriors of groups and the evidence lower bound, against torch.distributions and loops over images."""

import math

import pytest

pytest.importorskip("torch")
pytest.importorskip("lightning")

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Normal, kl_divergence

from setsup.errors import DataError, SetsupError
from setsup.factors import Factor, FactorTable, Kind
from setsup.methods.gaussians import gaussian_divergence, gaussian_product
from setsup.methods.groups import GroupCodes
from setsup_papers.dcodr.baseline_settings import MLVAESettings
from setsup_papers.dcodr.ml_vae import MLVAE
from setsup_papers.dcodr.networks.ml_vae import convolutional_vae, dense_vae

STYLE, GROUP, SIDE = 3, 2, 8
TABLE = FactorTable([Factor("toy", Kind.NOMINAL, ("a", "b", "c", "d"))], {"toy": [0, 1, 3, 0]})

pytestmark = pytest.mark.filterwarnings("ignore:You are trying to `self.log")


def dice(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made(likelihood: str = "gaussian", **options: object) -> MLVAE:
    networks = dense_vae(
        (2, SIDE, SIDE), STYLE, GROUP, width=7, parts=2 if likelihood == "gaussian" else 1, generator=dice()
    )
    settings = MLVAESettings(domain=("toy",), likelihood=likelihood, **options)  # type: ignore[arg-type]
    return MLVAE(settings, *networks, settings.domains(TABLE))


def drawn() -> dict:
    """Three sets of four images: toy a twice, d with two images and padding; one toy is unknown."""
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1, 2:] = False
    toys = torch.tensor([[0, 0, 0, 0], [3, 3, 3, 3], [0, 0, 0, -1]])
    images = torch.randint(0, 256, (3, 4, 2, SIDE, SIDE), dtype=torch.uint8, generator=dice(1))
    return {"image": images, "factors": {"toy": toys}, "mask": mask}


def groups_of(batch: dict) -> list[list[Tensor]]:
    """Images of each toy that take part."""
    found: dict[int, list[Tensor]] = {}
    for number in range(3):
        for place in range(4):
            toy = int(batch["factors"]["toy"][number, place])
            if batch["mask"][number, place] and toy >= 0:
                found.setdefault(toy, []).append(batch["image"][number, place] / 255)
    return [found[toy] for toy in sorted(found)]


def test_the_product_is_that_of_the_densities() -> None:
    means, logs = (
        torch.randn(5, 1, generator=dice(), dtype=torch.float64),
        torch.randn(5, 1, generator=dice(1)).double(),
    )
    groups = torch.tensor([1, 0, 1, 1, 0])
    mean, log = gaussian_product(means, logs, groups, 2)
    grid = torch.linspace(-30, 30, 200_001, dtype=torch.float64)
    for number in range(2):
        density = sum(Normal(means[i, 0], (logs[i, 0] / 2).exp()).log_prob(grid) for i in (groups == number).nonzero())
        density = density.exp() / density.exp().sum()  # type: ignore[union-attr]
        first = (density * grid).sum()
        assert mean[number].item() == pytest.approx(first.item(), rel=1e-6)
        assert log[number].exp().item() == pytest.approx((density * (grid - first) ** 2).sum().item(), rel=1e-6)


def test_the_product_of_extreme_variances_is_finite() -> None:
    means, logs = torch.tensor([[1.0], [3.0]]), torch.tensor([[-300.0], [300.0]])
    mean, log = gaussian_product(means, logs, torch.zeros(2, dtype=torch.int64), 1)
    assert mean.item() == 1.0
    assert log.item() == -300.0


def test_a_group_of_one_image_has_its_posterior() -> None:
    means, logs = torch.randn(3, 4, generator=dice()), torch.randn(3, 4, generator=dice(1))
    mean, log = gaussian_product(means, logs, torch.tensor([2, 0, 1]), 3)
    torch.testing.assert_close(mean, means[[1, 2, 0]])
    torch.testing.assert_close(log, logs[[1, 2, 0]])


def test_a_product_of_other_shapes_is_an_error() -> None:
    with pytest.raises(
        DataError, match=r"must have the shape \(n, d\), and groups the shape \(n,\), not \(3, 2\), \(3, 2\) and \(2,\)"
    ):
        gaussian_product(torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64), 1)


def test_the_divergence_is_that_of_torch() -> None:
    means, logs = torch.randn(5, 4, generator=dice()), torch.randn(5, 4, generator=dice(1))
    expected = kl_divergence(Normal(means, (logs / 2).exp()), Normal(0.0, 1.0)).sum(1)
    torch.testing.assert_close(gaussian_divergence(means, logs), expected)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(("samples", "noise"), [("image", 1.0), ("group", 0.1)])
def test_loss_and_gradients_are_those_of_loops(likelihood: str, samples: str, noise: float) -> None:
    mine, theirs = (made(likelihood, samples=samples, noise=noise) for _ in range(2))
    batch = drawn()
    groups = groups_of(batch)
    assert list(map(len, groups)) == [7, 2]
    torch.manual_seed(5)
    found = mine.loss(batch)
    # the same noise: of styles in the order of images, then of groups
    torch.manual_seed(5)
    order = [(0, i) for i in range(4)] + [(1, i) for i in range(2)] + [(0, i) for i in range(4, 7)]
    of_styles, of_groups = torch.randn(9, STYLE), torch.randn(9 if samples == "image" else 2, GROUP)
    place = {image: number for number, image in enumerate(order)}
    bound = torch.zeros(())
    for number, images in enumerate(groups):
        encoded = [theirs.encoder(image[None]) for image in images]
        precision = sum((-group.log_variance[0]).exp() for _, group in encoded)
        mean = sum((-group.log_variance[0]).exp() * group.mean[0] for _, group in encoded) / precision
        deviation = precision**-0.5
        bound = bound - kl_divergence(Normal(mean, deviation), Normal(0.0, 1.0)).sum()
        for i, (style, _) in enumerate(encoded):
            spread = (style.log_variance[0] / 2).exp()
            bound = bound - kl_divergence(Normal(style.mean[0], spread), Normal(0.0, 1.0)).sum()
            own = style.mean[0] + spread * of_styles[place[number, i]]
            shared = mean + noise * deviation * of_groups[place[number, i] if samples == "image" else number]
            maps = theirs.decoder(own[None], shared[None])[:, 0]
            if likelihood == "bernoulli":
                pixels = Bernoulli(logits=maps[0], validate_args=False).log_prob(images[i])
            else:
                pixels = Normal(maps[0], (maps[1].tanh() / 2).exp()).log_prob(images[i])
            bound = bound + pixels.sum()
    expected = -bound / 2
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    found.backward()
    expected.backward()
    for (name, weights), other in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        assert weights.grad is not None
        torch.testing.assert_close(weights.grad, other.grad, rtol=1e-3, atol=1e-4, msg=name)


def test_embeddings_are_means_of_styles() -> None:
    method, batch = made(), drawn()
    found = method.embed(batch)
    assert found.shape == (3, 4, STYLE)
    style, _ = method.encoder(batch["image"][2, 1][None] / 255)
    torch.testing.assert_close(found[2, 1], style.mean[0])


def test_dense_networks_have_the_parameters_of_the_published_ones() -> None:
    pixels, style, group = 28 * 28, 10, 10
    encoder, decoder = dense_vae((1, 28, 28), style, group, generator=dice())
    assert count(encoder) == (pixels + 1) * 500 + 501 * 2 * (style + group)
    assert count(decoder) == (style + group + 1) * 500 + 501 * 2 * pixels
    weights = [one.weight for one in encoder.modules() if isinstance(one, torch.nn.Linear)]
    assert weights[0].std().item() == pytest.approx(pixels**-0.5, rel=0.01)
    assert weights[0].mean().item() == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize(
    ("channels", "kernels"), [((32, 32, 64, 64), (4, 4, 2, 2)), ((32, 64, 128, 256), (4, 4, 4, 4))]
)
def test_convolutional_networks_have_the_parameters_of_the_published_ones(
    channels: tuple[int, ...], kernels: tuple[int, ...]
) -> None:
    encoder, decoder = convolutional_vae((3, 64, 64), 6, 5, channels=channels, kernels=kernels, parts=1)
    steps = list(zip((3, *channels), channels, kernels, strict=False))
    top = channels[-1] * 16
    assert count(encoder) == sum(k * k * a * b + b for a, b, k in steps) + (top + 1) * 256 + 257 * 2 * 11
    back = sum(16 * a * b + a for a, b, _ in steps)
    assert count(decoder) == (11 + 1) * 256 + 257 * top + back
    images = torch.rand(2, 3, 64, 64, generator=dice())
    style, group = encoder(images)
    assert decoder(style.mean, group.mean).shape == (1, 2, 3, 64, 64)


def count(network: torch.nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(SetsupError, match=r"multiples of 16 .*, not 28 × 28"):
        convolutional_vae((1, 28, 28), 2, 2)
    with pytest.raises(SetsupError, match="kernels must contain one size, 2 or 4 pixels"):
        convolutional_vae((1, 64, 64), 2, 2, kernels=(4, 4, 3, 2))
    networks = dense_vae((1, 4, 4), 2, 2, generator=dice())
    with pytest.raises(SetsupError, match="bernoulli requires 1"):
        MLVAE(MLVAESettings(domain=("toy",), likelihood="bernoulli"), *networks, GroupCodes(TABLE, ["toy"], "domain"))


def test_the_bound_is_below_the_evidence() -> None:
    """Of one image whose decoder ignores its codes, the evidence is the likelihood itself."""
    method = made()
    with torch.no_grad():
        for layer in method.decoder.layers:
            if isinstance(layer, torch.nn.Linear):
                layer.weight.zero_()
    batch = drawn()
    batch["mask"] = torch.zeros(3, 4, dtype=torch.bool)
    batch["mask"][0, 0] = True
    image, bias = batch["image"][0, 0] / 255, method.decoder.layers[-1].bias
    mean, log = bias.reshape(2, 2, SIDE, SIDE)
    evidence = Normal(mean, (log.tanh() / 2).exp()).log_prob(image).sum()
    loss = method.loss(batch)
    assert -loss < evidence
    style, group = method.encoder(image[None])
    gap = gaussian_divergence(*style) + gaussian_divergence(*group)
    assert (evidence + loss).item() == pytest.approx(gap.item(), rel=1e-3)
    assert math.isfinite(loss.item())


def test_a_batch_without_a_known_domain_is_named() -> None:
    batch = drawn()
    batch["factors"]["toy"] = torch.full((3, 4), -1)
    with pytest.raises(SetsupError, match=r"the domain \(toy\) is unknown for all images of a batch"):
        made().loss(batch)
