"""The generator of LORD and DCoDR: sizes as published, and what its layers compute."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError
from setsup_papers.dcodr import AdaINGenerator, class_embedding


def count(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())


def test_published_numbers_of_parameters() -> None:
    with torch.device("meta"):
        generator = AdaINGenerator((3, 64, 64))
    assert count(generator.modulation) == 526_336
    assert count(generator) - count(generator.modulation) == 7_569_155


def layer_by_layer(generator: AdaINGenerator, content: Tensor, style: Tensor) -> Tensor:
    """Of one image, with the normalisation written out channel by channel."""
    found = content
    for dense in generator.dense:
        found = functional.leaky_relu(dense(found), 0.01)
    found = found.reshape(generator.start)
    for convolution, modulation in zip(generator.convolutions, generator.modulation, strict=True):
        found = found.repeat_interleave(2, 1).repeat_interleave(2, 2)
        found = functional.leaky_relu(convolution(found[None])[0], 0.01)
        both = modulation(style)
        channels = []
        for number, channel in enumerate(found):
            normal = (channel - channel.mean()) / (channel.var(unbiased=False) + 1e-5).sqrt()
            channels.append(both[2 * number] + both[2 * number + 1] * normal)  # bias, then scale: no "+1"
        found = torch.stack(channels)
    found = functional.leaky_relu(functional.conv2d(found, generator.last[0].weight, generator.last[0].bias, padding=2))
    return functional.conv2d(found, generator.last[2].weight, generator.last[2].bias, padding=3).sigmoid()


def test_images_equal_layers_one_by_one() -> None:
    torch.manual_seed(0)
    generator = AdaINGenerator((1, 32, 48), content=5, style=7, width=16)
    content, style = torch.randn(3, 5), torch.randn(3, 7)
    found = generator(content, style)
    assert found.shape == (3, 1, 32, 48)
    for number in range(3):
        wanted = layer_by_layer(generator, content[number], style[number])
        torch.testing.assert_close(found[number], wanted, rtol=1e-4, atol=1e-5)


def test_the_style_alone_sets_means_and_spreads_of_channels() -> None:
    torch.manual_seed(1)
    generator = AdaINGenerator((3, 16, 16), content=4, style=4, width=8)
    for convolution in generator.convolutions:
        nn.init.normal_(convolution.weight)  # spreads that are far above the ε of the normalisation
    seen: list[Tensor] = []
    generator.last.register_forward_hook(lambda _, given, __: seen.append(given[0].detach()))
    style = torch.randn(1, 4)
    generator(torch.randn(6, 4), style.expand(6, -1))
    bias, scale = generator.modulation[-1](style)[0].reshape(-1, 2).unbind(1)
    torch.testing.assert_close(seen[0].mean((2, 3)), bias.expand(6, -1), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(seen[0].std((2, 3), correction=0), scale.abs().expand(6, -1), rtol=1e-3, atol=1e-4)


def test_every_parameter_gets_a_gradient_also_in_mixed_precision() -> None:
    torch.manual_seed(2)
    generator = AdaINGenerator((3, 16, 16), content=4, style=4, width=8)
    content = torch.randn(2, 4, requires_grad=True)
    for mixed in (False, True):
        generator.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            images = generator(content, torch.randn(2, 4))
        images.float().square().sum().backward()
        assert all(one.grad is not None and one.grad.isfinite().all() for one in generator.parameters())
        # a bias before a normalisation has none, but for the slope of the leaky ReLU
        assert all(one.grad.any() for one in generator.modulation.parameters())
    assert content.grad is not None
    assert content.grad.any()


def test_embeddings_begin_uniform_within_a_twentieth() -> None:
    torch.manual_seed(3)
    weights = class_embedding(50, 256).weight
    assert weights.shape == (50, 256)
    assert weights.abs().max() <= 0.05
    assert weights.std().item() == pytest.approx(0.1 / 12**0.5, rel=0.02)


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(SetsupError, match=r"40 × 64 pixels.*multiples of 16"):
        AdaINGenerator((3, 40, 64))
    with pytest.raises(SetsupError, match="multiple of 8, not 12"):
        AdaINGenerator((3, 64, 64), width=12)
