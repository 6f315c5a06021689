import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from setsup.methods.networks import glorot_  # noqa: E402
from setsup_papers.abc import Bottleneck, resnet50v2  # noqa: E402


def _seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def _published(stages):
    """Weights, and running statistics, of ResNet50-V2's first stages, counted from the layer table."""
    weights, statistics, channels = (7 * 7 * 3 + 1) * 64, 0, 64
    for stage in range(stages):
        width = 64 << stage
        for block in range((3, 4, 6, 3)[stage]):
            weights += channels * width + width * width * 9 + (width + 1) * 4 * width  # inner: the last has a bias
            weights += (channels + 1) * 4 * width if block == 0 else 0
            weights += 2 * (channels + 2 * width)
            statistics += 2 * (channels + 2 * width)
            channels = 4 * width
    return weights, statistics


def test_counts_are_those_of_the_published_network():
    # the formula, with stage conv5 and the last norm, gives Keras' figures for the network without its top
    weights, statistics = _published(4)
    assert (weights + 2 * 2048, statistics + 2 * 2048) == (23_519_360, 45_440)
    network = resnet50v2()
    buffers = [value for name, value in network.named_buffers() if not name.endswith("num_batches_tracked")]
    found = sum(value.numel() for value in network.parameters()), sum(value.numel() for value in buffers)
    assert found == _published(3) == (8_548_480, 24_960)


def test_sides_halve_at_the_last_block_of_each_stage():
    network, seen = glorot_(resnet50v2(), _seeded()).eval(), {}
    for name, part in network.named_children():
        part.register_forward_hook(lambda _part, _inputs, result, name=name: seen.update({name: result.shape[1:]}))
    with torch.no_grad():
        network(torch.rand(1, 3, 128, 128, generator=_seeded()))
    expected = {"conv1": (64, 64), "pool1": (64, 32)}
    for stage, depth, channels, side in ((2, 3, 256, 32), (3, 4, 512, 16), (4, 6, 1024, 8)):
        expected |= {f"conv{stage}_block{block}": (channels, side) for block in range(1, depth)}
        expected[f"conv{stage}_block{depth}"] = (channels, side // 2)
    assert {name: (shape[0], shape[1]) for name, shape in seen.items()} == expected
    assert all(shape[1] == shape[2] for shape in seen.values())


def test_the_pool_pads_by_zeros():
    pool = resnet50v2().pool1
    assert pool(torch.full((1, 1, 4, 4), -1.0)).tolist() == [[[[0, 0], [0, -1]]]]


def _norm(norm, x):
    shape = (1, -1, 1, 1)
    scale = norm.weight / (norm.running_var + 1.001e-5).sqrt()
    return ((x - norm.running_mean.reshape(shape)) * scale.reshape(shape) + norm.bias.reshape(shape)).clamp(min=0)


@pytest.mark.parametrize(("stride", "widens"), [(1, True), (1, False), (2, False), (2, True)])
def test_a_block_is_the_published_equation(stride, widens):
    channels = 6 if widens else 8
    block = glorot_(Bottleneck(channels, 2, stride=stride, widens=widens), _seeded()).eval().double()
    generator = _seeded(1)
    for part in block.modules():
        if isinstance(part, nn.BatchNorm2d):
            for tensor in (part.weight.data, part.bias.data, part.running_mean, part.running_var):
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=generator))
    if widens:
        block.shortcut.bias.data.fill_(0.3)
    x = torch.randn(2, channels, 6, 6, generator=generator, dtype=torch.float64)
    conv = nn.functional.conv2d
    first, first_norm, _, second, second_norm, _, third = block.layers
    active = _norm(block.preact[0], x)
    found = _norm(first_norm, conv(active, first.weight))
    found = _norm(second_norm, conv(found, second.weight, stride=stride, padding=1))
    found = conv(found, third.weight, third.bias)
    skipped = conv(active, block.shortcut.weight, block.shortcut.bias, stride) if widens else x[..., ::stride, ::stride]
    torch.testing.assert_close(block(x), found + skipped)


def test_running_statistics_move_by_one_hundredth():
    block = glorot_(Bottleneck(4, 1), _seeded()).train()
    block(torch.full((2, 4, 3, 3), 5.0))
    torch.testing.assert_close(block.preact[0].running_mean, torch.full((4,), 0.05))
