"""The U-Net and the classifier of pixels: sizes as published, and what their parts compute."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError
from setsup_papers.pixels import PixelClassifier, PixelUNet
from setsup_papers.pixels.networks import SelfAttention

TWO = ((32, 64, 64), (1, 2, 2))
THREE = ((16, 16, 32, 32, 64), (1, 1, 1, 2, 4))


def count(network: nn.Module, trained: bool = False) -> int:
    return sum(one.numel() for one in network.parameters() if one.requires_grad or not trained)


@pytest.mark.parametrize(("sizes", "all_", "trained"), [(TWO, 993_664, 993_600), (THREE, 1_031_408, 1_031_344)])
def test_published_numbers_of_parameters(
    sizes: tuple[tuple[int, ...], tuple[int, ...]], all_: int, trained: int
) -> None:
    network = PixelUNet(*sizes)
    assert (count(network), count(network, trained=True)) == (all_, trained)


def test_the_classifier_has_the_published_number() -> None:
    assert (count(PixelClassifier()), count(PixelClassifier(), trained=True)) == (28_511, 28_479)


@pytest.mark.parametrize("size", [(32, 32), (16, 40)])
def test_a_feature_for_every_pixel(size: tuple[int, int]) -> None:
    network = PixelUNet((8, 16, 16), (1, 2, 1), features=5)
    assert network(torch.rand(2, 3, *size)).shape == (2, 5, *size)


def test_the_middle_is_at_the_last_resolution() -> None:
    seen: list[tuple[int, ...]] = []
    network = PixelUNet((16, 16, 32, 32, 64), (1, 1, 1, 2, 4)).eval()
    network.middle[1].register_forward_hook(lambda _, given, __: seen.append(tuple(given[0].shape)))
    network(torch.rand(1, 3, 256, 256))
    assert seen == [(1, 64, 8, 8)]


def test_features_of_an_image_depend_on_it_alone() -> None:
    torch.manual_seed(0)
    network = PixelUNet((8, 16), (1, 1)).eval()
    images = torch.rand(4, 3, 16, 16)
    torch.testing.assert_close(network(images)[1:2], network(images[1:2]))


def test_an_untrained_network_adds_nearly_nothing_in_its_blocks() -> None:
    """Second convolutions begin near 0, so that a block begins as the identity."""
    torch.manual_seed(0)
    block = PixelUNet((8, 16), (1, 1)).eval().down[0][0]  # type: ignore[index]
    maps = torch.randn(2, 8, 12, 12)
    assert (block(maps) - maps).abs().max() < 1e-3


def test_dropout_is_in_the_last_two_stages_and_in_the_middle() -> None:
    network = PixelUNet((8, 8, 8, 8), (1, 1, 1, 1), dropout=0.3)
    rates = [[block.dropout.p for block in stage] for stage in network.down]  # type: ignore[union-attr]
    assert rates == [[0.0], [0.0], [0.3], [0.3]]
    assert [[block.dropout.p for block in stage] for stage in network.up] == [  # type: ignore[union-attr]
        *([[0.0] * 2] * 2),
        *([[0.3] * 2] * 2),
    ]
    assert [network.middle[place].dropout.p for place in (0, 2)] == [0.3, 0.3]  # type: ignore[union-attr]


def one_group(values: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    mean = values.mean(dims, keepdim=True)
    return (values - mean) / (values.var(dims, unbiased=False, keepdim=True) + eps).sqrt()


def test_attention_equals_its_formula() -> None:
    """The result is added to the normalised input; queries and keys are normalised over size, places and heads."""
    torch.manual_seed(1)
    heads, width = 2, 8
    layer = SelfAttention(width, heads)
    nn.init.normal_(layer.out.weight)
    inner = layer.attention
    for norm in (inner.norm, inner.query_norm, inner.key_norm):
        nn.init.normal_(norm.weight, 1, 0.2)
    nn.init.normal_(inner.query_norm.bias)
    maps = torch.randn(3, width, 4, 5)
    normalised = one_group(maps, (1, 2, 3), 1e-6) * inner.norm.weight[:, None, None]
    places = normalised.flatten(2).transpose(1, 2)  # (n, places, width)
    size = width // heads
    query, key, value = (part(places).reshape(3, 20, heads, size) for part in (inner.query, inner.key, inner.value))
    query = one_group(query, (1, 2, 3), 1e-5) * inner.query_norm.weight + inner.query_norm.bias
    key = one_group(key, (1, 2, 3), 1e-5) * inner.key_norm.weight + inner.key_norm.bias
    scores = torch.einsum("nqhc,nkhc->nhqk", query, key) / size**0.5
    attended = torch.einsum("nhqk,nkhc->nqhc", scores.softmax(-1), value).reshape(3, 20, width)
    wanted = normalised + layer.out(attended).transpose(1, 2).reshape(maps.shape)
    torch.testing.assert_close(layer(maps), wanted, rtol=1e-4, atol=1e-5)


def test_a_block_that_fuses_equals_its_formula() -> None:
    torch.manual_seed(2)
    block = PixelUNet((8, 16), (1, 1)).eval().up[0][0]  # type: ignore[index]
    nn.init.normal_(block.convolutions[1].weight)
    maps, kept = torch.randn(2, 8, 6, 6), torch.randn(2, 8, 6, 6)
    first, second = block.convolutions
    found = (one_group(maps, (1, 2, 3), 1e-5) + one_group(kept, (1, 2, 3), 1e-5)) / 2**0.5
    found = functional.conv2d(functional.silu(found), first.weight, first.bias, padding=1)
    found = functional.silu(one_group(found, (1, 2, 3), 1e-5))
    wanted = maps + functional.conv2d(found, second.weight, second.bias, padding=1)
    torch.testing.assert_close(block(maps, kept), wanted, rtol=1e-4, atol=1e-4)


def test_every_trained_parameter_gets_a_gradient() -> None:
    torch.manual_seed(3)
    for network, given in (
        (PixelUNet((8, 16), (1, 2)), torch.rand(2, 3, 8, 8)),
        (PixelClassifier(8), torch.rand(2, 8, 4, 4)),
    ):
        network(given).square().sum().backward()
        without = [name for name, one in network.named_parameters() if one.requires_grad and one.grad is None]
        assert without == []


def test_wrong_sizes_are_named() -> None:
    with pytest.raises(SetsupError, match="one number for each stage"):
        PixelUNet((16, 32), (1,))
    with pytest.raises(SetsupError, match=r"multiple of 4 \(heads"):
        PixelUNet((16, 30), (1, 1))
    with pytest.raises(SetsupError, match=r"images of 30 × 32 pixels cannot be halved 3 times.*multiples of 8"):
        PixelUNet((8, 8, 8), (1, 1, 1))(torch.rand(1, 3, 30, 32))
    for wrong in ({"widths": (0, 8)}, {"blocks": (1, -1)}, {"features": 0}, {"dropout": 1.5}):
        with pytest.raises(SetsupError, match=r"must be an? "):
            PixelUNet(**{"widths": (8, 8), "blocks": (1, 1), **wrong})
