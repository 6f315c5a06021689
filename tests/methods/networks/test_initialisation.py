import hashlib
import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup.methods.networks import glorot_  # noqa: E402
from setsup.methods.networks.initialisation import bare  # noqa: E402
from setsup_papers.abc import mnist_encoder  # noqa: E402


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


# layer, fan in + fan out as Keras counts them
LAYERS = {
    "linear": (lambda: nn.Linear(30, 50), 80),
    "conv": (lambda: nn.Conv2d(16, 32, 3), 9 * 48),
    "oblong": (lambda: nn.Conv2d(4, 8, (3, 5)), 15 * 12),
    "transposed": (lambda: nn.ConvTranspose2d(16, 32, 3), 9 * 48),
}


@pytest.mark.parametrize("name", LAYERS)
def test_weights_are_uniform_within_the_bound_and_biases_zero(name):
    make, fans = LAYERS[name]
    layer = glorot_(make(), _seeded(0))
    bound = math.sqrt(6 / fans)
    scaled = (layer.weight.detach().double().flatten() / bound).sort().values
    assert scaled.abs().max() <= 1 + 1e-6
    # Kolmogorov-Smirnov: the largest gap to the uniform distribution, below its 0.1 % point
    uniform = (torch.arange(len(scaled)) + 0.5) / len(scaled)
    assert (uniform - (scaled + 1) / 2).abs().max() < 1.95 / math.sqrt(len(scaled))
    assert not layer.bias.any()


def test_a_seed_gives_the_same_weights_whatever_the_type():
    one, other = mnist_encoder(_seeded(3)), glorot_(mnist_encoder(_seeded(4)).double(), _seeded(3))
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b.float())
    assert not torch.equal(next(one.parameters()), next(mnist_encoder(_seeded(4)).parameters()))


def test_a_seed_gives_these_weights_on_every_machine():
    weights = [parameter.detach().numpy().tobytes() for parameter in mnist_encoder(_seeded(0)).parameters()]
    assert hashlib.sha256(b"".join(weights)).hexdigest() == (
        "d14d6d52276b8f6201813ddf2f7d623dd2f36fc53347a0f0747af344968edb41"
    )


def test_weights_come_one_after_the_other_from_the_generator():
    pair = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Conv1d(3, 2, 1, bias=False))
    glorot_(pair, _seeded(5))
    drawn = torch.rand(12, generator=_seeded(5), dtype=torch.float64)
    expected = [(2 * drawn[:6] - 1) * math.sqrt(6 / 5), (2 * drawn[6:] - 1) * math.sqrt(6 / 5)]
    assert torch.equal(pair[0].weight.flatten(), expected[0].float())
    assert torch.equal(pair[2].weight.flatten(), expected[1].float())
    assert pair[1].weight.tolist() == [1, 1, 1]


def test_the_global_generator_is_neither_read_nor_moved():
    before = torch.random.get_rng_state()
    first = next(mnist_encoder(_seeded(0)).parameters())
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(1)
    assert torch.equal(first, next(mnist_encoder(_seeded(0)).parameters()))


def test_bare_layers_are_whole_layers():
    layer = bare(nn.Conv2d, 2, 3, 3, bias=False)
    assert layer.weight.shape == (3, 2, 3, 3)
    assert layer.weight.device.type == "cpu"
    assert layer.weight.requires_grad
    assert layer.bias is None


def test_a_generator_elsewhere_is_refused():
    class Elsewhere:
        device = torch.device("cuda:0")

    with pytest.raises(SetsupError, match="cuda:0"):
        glorot_(nn.Linear(1, 1), Elsewhere())


# Why all this: with torch's own initialisation the network for MNIST does not train.


def _torch_default(network, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for layer in network.modules():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
    return network


def _strokes(generator, n):
    """(n, 1, 28, 28): one closed curve, as a digit of its own, in n slants and thicknesses."""
    waves = torch.randn(3, 2, 2, generator=generator) / torch.arange(1, 4)[:, None, None]
    angles = torch.arange(1, 4)[:, None] * torch.linspace(0, 2 * math.pi, 64)
    curve = torch.einsum("kt,kc->tc", angles.cos(), waves[:, 0]) + torch.einsum("kt,kc->tc", angles.sin(), waves[:, 1])
    curve = 8 * curve / curve.abs().amax()
    slant = 1.2 * torch.rand(n, 1, generator=generator) - 0.6
    thickness = 0.7 + 1.5 * torch.rand(n, 1, 1, generator=generator)
    x, y = curve[:, 0] + slant * curve[:, 1], curve[:, 1].expand(n, -1)
    pixel = torch.arange(28) - 13.5
    squared = (pixel[None, None, None, :] - x[:, :, None, None]) ** 2 + (pixel[:, None] - y[:, :, None, None]) ** 2
    return (thickness + 0.5 - squared.amin(1).sqrt()).clamp(0, 1)[:, None]


def _directed(u, v):
    """Correspondence loss from u to v, by squared distances at temperature 1."""
    back = torch.softmax(-((u[:, None] - v) ** 2).sum(-1), 1) @ v
    return nn.functional.cross_entropy(-((back[:, None] - u) ** 2).sum(-1), torch.arange(len(u)))


def _trained(network, seed, steps, until=0.0):
    """Losses in units of 2 ln n, that of a network that tells nothing apart, up to a first one below `until`."""
    n, generator = 16, _seeded(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-4, eps=1e-7)  # three times the paper's rate: it is short
    losses = []
    while len(losses) < steps and (not losses or losses[-1] > until):
        u, v = network(torch.stack([_strokes(generator, n), _strokes(generator, n)]))
        loss = _directed(u, v) + _directed(v, u)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item() / (2 * math.log(n)))
    return losses


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small layers gain nothing from several, and lose much where others compute
    yield
    torch.set_num_threads(threads)


@pytest.mark.long("trainings")
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("seed", [0, 1])
def test_training_starts_with_glorot_and_stalls_with_torch_default(seed):
    found = _trained(mnist_encoder(_seeded(seed)), seed, steps=200, until=0.9)
    assert found[-1] < 0.9  # over five seeds after 18 to 85 steps
    stalled = _trained(_torch_default(mnist_encoder(_seeded(seed)), seed), seed, steps=2 * len(found))
    assert min(stalled) > 0.9999


@pytest.mark.usefixtures("one_thread")
def test_torch_default_puts_all_pictures_on_one_point():
    spreads = []
    for seed in range(5):
        images = torch.cat([_strokes(_seeded(seed), 16) for _ in range(2)])
        with torch.no_grad():
            glorot = mnist_encoder(_seeded(seed))(images).std(0).mean()
            default = _torch_default(mnist_encoder(_seeded(seed)), seed)(images).std(0).mean()
        spreads.append((glorot / default).item())
    assert min(spreads) > 5
