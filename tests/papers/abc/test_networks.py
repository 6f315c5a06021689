import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.methods.networks import convolutional  # noqa: E402
from setsup_papers.abc import mnist_encoder, pose_encoder, shapes3d_encoder  # noqa: E402


def _seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def _parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


# (network, parameters, shape of an image, sides after each convolution, width of the embedding)
CASES = {
    "shapes3d": (shapes3d_encoder, 2_654_688, (3, 64, 64), [62, 60, 29, 27, 25, 12], 64),
    "mnist": (mnist_encoder, 239_176, (1, 28, 28), [26, 24, 11, 9, 7], 8),
}


@pytest.mark.parametrize("name", CASES)
def test_layers_are_those_of_the_paper(name):
    make, parameters, image, sides, width = CASES[name]
    network = make(_seeded())
    assert _parameters(network) == parameters
    seen = []
    for layer in network.layers:
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda _layer, _inputs, result: seen.append(result.shape[-1]))
    assert network(torch.zeros(2, 3, *image, dtype=torch.uint8)).shape == (2, 3, width)
    assert seen == sides


@pytest.mark.parametrize("name", CASES)
def test_forward_equals_the_layers_one_by_one(name):
    make, _, image, _, _ = CASES[name]
    network = make(_seeded(1)).double()
    images = torch.randint(256, (4, *image), dtype=torch.uint8, generator=_seeded(2))
    strides = {"shapes3d": [1, 1, 2, 1, 1, 2], "mnist": [1, 1, 2, 1, 1]}[name]
    *weights, w1, b1, w2, b2 = list(network.parameters())
    found = images.double() / 255
    for weight, bias, stride in zip(weights[::2], weights[1::2], strides, strict=True):
        found = nn.functional.conv2d(found, weight, bias, stride).clamp(min=0)
    found = (found.reshape(4, -1) @ w1.T + b1).clamp(min=0) @ w2.T + b2
    torch.testing.assert_close(network(images), found)
    assert (found < 0).any()  # the embedding has no ReLU


def test_pose_encoder_is_a_backbone_and_a_head():
    network = pose_encoder(_seeded())
    assert _parameters(network.layers.head) == (9 * 1024 + 1) * 256 + 257 * 128 + 129 * 64 == 2_400_704
    network.eval()
    images = torch.randint(256, (2, 1, 3, 128, 128), dtype=torch.uint8, generator=_seeded(2))
    with torch.no_grad():
        features = network.layers.backbone(images[:, 0] / 255)
        assert features.shape == (2, 1024, 4, 4)
        assert features[0].numel() == 16_384  # the paper's baseline
        found = network(images)
        conv, _, _, _, dense = network.layers.head
        first, _, last = dense.layers
        by_hand = nn.functional.conv2d(features, conv.weight, conv.bias).clamp(min=0).mean((2, 3))
        by_hand = torch.tanh(by_hand @ first.weight.T + first.bias) @ last.weight.T + last.bias
    assert found.shape == (2, 1, 64)
    torch.testing.assert_close(found[:, 0], by_hand)


def test_embeddings_are_not_rounded_to_8_bits_under_autocast():
    """Cosines of neighbouring bfloat16 numbers differ by a tenth of the temperature of regression."""
    network = convolutional((3, 8, 8), [(4, 2)], [16, 6], _seeded()).eval()
    head = pose_encoder(_seeded()).layers.head.eval()
    features = torch.rand(2, 1024, 4, 4, generator=_seeded(1))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for found in (network(torch.rand(4, 3, 8, 8, generator=_seeded(1))), head(features)):
            assert found.dtype == torch.float32
            assert not torch.equal(found, found.bfloat16().float())


def test_every_weight_of_the_pose_encoder_is_set_by_the_seed():
    one, other = pose_encoder(_seeded(7)).state_dict(), pose_encoder(_seeded(7)).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert all(value.isfinite().all() for value in one.values())


@pytest.mark.parametrize("make", [shapes3d_encoder, mnist_encoder])
def test_gradients_reach_every_weight(make):
    network = make(_seeded())
    network(torch.rand(2, *network.image, generator=_seeded())).square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in network.parameters())


def test_networks_without_convolutions_and_with_one_dense_layer():
    network = convolutional((2, 3, 3), [], [4], _seeded())
    assert _parameters(network) == 19 * 4
    assert network(torch.zeros(5, 2, 3, 3)).shape == (5, 4)


def test_tables_that_cannot_be_built_are_refused():
    with pytest.raises(SetsupError, match=r"convolution 1 requires an input of at least .* not 2 × 3"):
        convolutional((1, 4, 5), [(8, 1), (8, 1)], [2], _seeded())
    with pytest.raises(SetsupError, match="dense must have at least one width"):
        convolutional((1, 4, 5), [(8, 1)], [], _seeded())
