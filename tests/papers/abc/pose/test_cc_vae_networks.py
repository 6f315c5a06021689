"""Networks of CC-VAE: the published layers for digits, and sizes of images in general."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from setsup.errors import SetsupError  # noqa: E402
from setsup_papers.abc.pose.cc_vae_networks import CycleDecoder, CycleEncoder, cycle_vae  # noqa: E402


def _seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def _count(network):
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize(("unspecified", "specified"), [(16, 16), (8, 64)])
def test_parameters_are_those_of_the_published_layers(unspecified, specified):
    encoder, decoder = cycle_vae((1, 28, 28), unspecified, specified, generator=_seeded())
    convolutions = (25 + 1) * 16 + (25 * 16 + 1) * 32 + (25 * 32 + 1) * 64
    assert _count(encoder) == convolutions + 257 * (2 * unspecified + specified)
    transposed = (16 * 128 + 0) * 32 + 32 + 16 * 32 * 16 + 16 + 16 * 16 + 1
    assert _count(decoder) == (unspecified + 1 + specified + 1) * 256 + transposed


def test_digits_pass_the_published_layers_one_by_one():
    encoder, decoder = cycle_vae((1, 28, 28), 5, 7, generator=_seeded())
    images = torch.rand(3, 1, 28, 28, generator=_seeded(1))
    found, posterior, specified = images, *encoder(images)
    w = dict(encoder.named_parameters())
    for place in (0, 3, 6):
        found = functional.conv2d(found, w[f"layers.{place}.weight"], w[f"layers.{place}.bias"], 2, 1)
        found = functional.relu(functional.instance_norm(found))
    found = found.reshape(3, 256)
    for code, name in ((posterior.mean, "unspecified_mean"), (posterior.log_variance, "unspecified_log_variance")):
        torch.testing.assert_close(code, found @ w[f"{name}.weight"].T + w[f"{name}.bias"])
    torch.testing.assert_close(specified, found @ w["specified.weight"].T + w["specified.bias"])

    w = dict(decoder.named_parameters())
    codes = [
        functional.leaky_relu(code @ w[f"{name}.weight"].T + w[f"{name}.bias"], 0.2)
        for code, name in ((posterior.mean, "unspecified"), (specified, "specified"))
    ]
    found = torch.cat(codes, 1).reshape(3, 128, 2, 2)
    for place, padding in ((0, 0), (3, 0)):
        found = functional.conv_transpose2d(found, w[f"layers.{place}.weight"], w[f"layers.{place}.bias"], 2, padding)
        found = functional.leaky_relu(functional.instance_norm(found), 0.2)
    found = functional.conv_transpose2d(found, w["layers.6.weight"], w["layers.6.bias"], 2, 1).sigmoid()
    torch.testing.assert_close(decoder(posterior.mean, specified), found)
    assert found.shape == images.shape


@pytest.mark.parametrize("running", [True, False])
def test_norms_use_running_statistics_in_evaluation_if_they_have_some(running):
    encoder, _ = cycle_vae((1, 28, 28), 5, 7, running_statistics=running, generator=_seeded())
    images = torch.rand(3, 1, 28, 28, generator=_seeded(1))
    trained = encoder(images)[0].mean
    assert torch.equal(encoder.eval()(images)[0].mean, trained) is not running
    assert bool(list(encoder.buffers())) is running


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(28, 64), (64, 28), (48, 30), (100, 62), (96, 128)])
def test_decoders_give_images_of_the_encoders_size_or_an_error(size, count):
    """A side n that convolutions bring to m is reached again where n − m · 2^count is even, which all here are."""
    sides = list(size)
    for _ in range(count):
        sides = [(side - 3) // 2 + 1 for side in sides]
    with torch.device("meta"):
        if min(sides) < 1 or any(not 0 <= (one - m * 2**count) // 2 < 2**count for one, m in zip(size, sides)):  # noqa: B905
            with pytest.raises(SetsupError):
                CycleDecoder(CycleEncoder((3, *size), 2, 2, [2] * count))
            return
        decoder = CycleDecoder(CycleEncoder((3, *size), 2, 2, [2] * count))
        assert decoder(torch.zeros(2, 2), torch.zeros(2, 2)).shape == (2, 3, *size)


@pytest.mark.parametrize(("side", "channels"), [(28, (16, 32, 64)), (64, (16, 32, 64)), (64, (16, 32, 64, 128))])
def test_sizes_of_the_papers(side, channels):
    encoder, decoder = cycle_vae((3, side, side), 4, 4, channels, generator=_seeded())
    images = torch.rand(2, 3, side, side, generator=_seeded(1))
    posterior, specified = encoder(images)
    assert decoder(posterior.mean, specified).shape == images.shape


def test_sizes_that_do_not_fit():
    with pytest.raises(SetsupError, match="too small for 4 convolutions"):
        CycleEncoder((1, 28, 28), 2, 2, (2, 2, 2, 2))
    with pytest.raises(SetsupError, match="too small for 0"):
        CycleEncoder((1, 28, 28), 2, 2, ())
    with pytest.raises(SetsupError, match="cannot upsample 2 to 29 pixels"):
        CycleDecoder(CycleEncoder((1, 29, 28), 2, 2))


def test_initial_weights_are_the_published_ones():
    encoder, decoder = cycle_vae((1, 28, 28), 16, 16, generator=_seeded())
    for layer in [*encoder.modules(), *decoder.modules()]:
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.weight.numel() > 2_000:
            assert abs(layer.weight.std().item() - 0.05) < 0.004
            assert layer.bias.abs().max() == 0
    again, _ = cycle_vae((1, 28, 28), 16, 16, generator=_seeded())
    assert all(torch.equal(one, other) for one, other in zip(encoder.parameters(), again.parameters(), strict=True))
