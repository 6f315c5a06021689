"""Networks of the orbit papers: sizes, the decoder as the encoder's transpose, and unpooling."""

import pytest

torch = pytest.importorskip("torch")

from setsup.errors import SetsupError  # noqa: E402
from setsup_papers.orbits import OrbitDecoder, OrbitEncoder, SpatialTransformer  # noqa: E402

SIZES = {
    "MNIST": ((1, 40, 40), (16, 32, 64, 128), (2, 2)),
    "NORB": ((1, 96, 96), (32, 64, 128, 256), (6, 6)),
    "Late Night": ((3, 96, 96), (64, 128, 256, 512), (6, 6)),
}


@pytest.mark.parametrize("name", SIZES)
def test_maps_and_parameters_are_those_of_the_papers(name: str) -> None:
    image, channels, last = SIZES[name]
    with torch.device("meta"):
        encoder = OrbitEncoder(image, channels)
    assert encoder.sides[-1] == last
    before, expected = image[0], 0
    for width in channels:
        expected += (9 * before + 1) * width + (9 * width + 1) * width + 4 * width
        before = width
    expected += (channels[-1] * last[0] * last[1] + 1) * 1024
    assert sum(one.numel() for one in encoder.parameters()) == expected


@pytest.mark.parametrize("unpooling", ["fixed", "nearest", "switches"])
@pytest.mark.parametrize("tied", [True, False])
def test_images_of_odd_sizes_are_decoded(unpooling: str, tied: bool) -> None:
    encoder = OrbitEncoder((2, 13, 10), (3, 4), 7, (2, 2))
    decoder = OrbitDecoder(encoder, tied, unpooling)
    images = torch.rand(5, 2, 13, 10)
    code, switches = encoder(images)
    assert code.shape == (5, 7)
    found = decoder(encoder, code, switches)
    assert found.shape == images.shape
    found.sum().backward()
    own = {one.shape for one in decoder.weights}
    assert bool(own) is not tied
    assert encoder.code.weight.grad is not None


def test_a_tied_linear_decoder_is_the_transpose() -> None:
    # without normalisation and with one stage: <A x, y> = <x, Aᵀ y> for the layers between two ReLU
    encoder = OrbitEncoder((1, 4, 4), (2,), 3, (2,))
    weights = encoder.mirrored_weights()
    x, y = torch.randn(1, 2, 4, 4), torch.randn(1, 2, 4, 4)
    forward = torch.nn.functional.conv2d(x, encoder.convolutions[1].weight, padding=1)
    back = torch.nn.functional.conv_transpose2d(y, weights[1], padding=1)
    torch.testing.assert_close((forward * y).sum(), (x * back).sum())
    torch.testing.assert_close(weights[0], encoder.code.weight.T)
    assert weights[2].shape == encoder.convolutions[0].weight.shape


def test_where_values_go_when_maps_get_larger() -> None:
    from setsup_papers.orbits.networks import _unpool

    values = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    image = torch.zeros(1, 1, 5, 5)
    image[0, 0, 1, 0], image[0, 0, 0, 3], image[0, 0, 3, 1], image[0, 0, 2, 2] = 1, 2, 3, 4
    pooled, switches = torch.nn.functional.max_pool2d(image, 2, return_indices=True)
    assert torch.equal(pooled, values)
    assert torch.equal(_unpool(values, switches, 2, (5, 5), "switches"), image)
    fixed = torch.zeros(5, 5)
    fixed[0, 0], fixed[0, 2], fixed[2, 0], fixed[2, 2] = 1, 2, 3, 4
    assert torch.equal(_unpool(values, switches, 2, (5, 5), "fixed")[0, 0], fixed)
    nearest = torch.zeros(5, 5)
    nearest[:2, :2], nearest[:2, 2:4], nearest[2:4, :2], nearest[2:4, 2:4] = 1, 2, 3, 4
    assert torch.equal(_unpool(values, switches, 2, (5, 5), "nearest")[0, 0], nearest)


def test_a_spatial_transformer_begins_with_the_identity() -> None:
    images = torch.rand(3, 1, 40, 40)
    torch.testing.assert_close(SpatialTransformer((1, 40, 40))(images), images, atol=1e-5, rtol=1e-5)


def test_sizes_that_leave_nothing_are_refused() -> None:
    with pytest.raises(SetsupError, match="too small for pools"):
        OrbitEncoder((1, 15, 15))
    with pytest.raises(SetsupError, match="one number for each of the 2 stages"):
        OrbitEncoder((1, 40, 40), (4, 8))
    with pytest.raises(SetsupError, match="at least 26 × 26"):
        SpatialTransformer((1, 20, 20))
    with pytest.raises(SetsupError, match="unpooling must be one of"):
        OrbitDecoder(OrbitEncoder((1, 8, 8), (2,), 3, (2,)), unpooling="lost")
    for wrong in ({"channels": (0,)}, {"size": 0}, {"pools": (0,)}):
        with pytest.raises(SetsupError, match="must be an integer of at least 1, not 0"):
            OrbitEncoder((1, 8, 8), **{"channels": (2,), "size": 3, "pools": (2,), **wrong})
