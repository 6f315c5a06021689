"""Encoders of views: sizes and numbers of weights from the paper's tables, which are written here as it has them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from setsup.errors import SetsupError  # noqa: E402
from setsup_papers.cmc import (  # noqa: E402
    ViewDecoder,
    ViewEncoder,
    alexnet_view,
    caffenet_view,
    nyu_view,
    resnet_view,
    small_view,
    stl10_view,
)

# channels, kernel, stride, padding; a pool has no channels
ALEXNET = [
    ("conv1", [(48, 11, 4, 2), (None, 3, 2, 0)]),
    ("conv2", [(128, 5, 1, 2), (None, 3, 2, 0)]),
    ("conv3", [(192, 3, 1, 1)]),
    ("conv4", [(192, 3, 1, 1)]),
    ("conv5", [(128, 3, 1, 1), (None, 3, 2, 0)]),
]
STL10 = [
    ("conv1", [(48, 3, 1, 1), (None, 3, 2, 0)]),
    ("conv2", [(96, 3, 1, 1), (None, 3, 2, 0)]),
    ("conv3", [(192, 3, 1, 1)]),
    ("conv4", [(192, 3, 1, 1)]),
    ("conv5", [(96, 3, 1, 1), (None, 3, 2, 0)]),
]
NYU = [
    ("conv1", [(64, 8, 2, 3)]),
    ("pool1", [(None, 2, 2, 0)]),
    ("conv2", [(128, 4, 2, 1)]),
    ("conv3", [(256, 4, 2, 1)]),
    ("conv4", [(256, 3, 1, 1)]),
    ("conv5", [(512, 4, 2, 1)]),
    ("conv6", [(512, 4, 1, 0)]),
]
Table = Sequence[tuple[str, Sequence[tuple[int | None, int, int, int]]]]


def walk(table: Table, channels: int, side: int, width: float = 1.0) -> tuple[dict[str, tuple[int, int, int]], int]:
    """Sizes after each stage, and weights of convolutions without bias and of their normalisation."""
    sizes, weights = {}, 0
    for name, layers in table:
        for out, kernel, stride, padding in layers:
            side = (side + 2 * padding - kernel) // stride + 1
            if out is not None:
                out = int(out * width)
                weights += out * channels * kernel**2 + 2 * out
                channels = out
        sizes[name] = (channels, side, side)
    return sizes, weights


def dense(before: int, hidden: int, features: int) -> int:
    """Weights of two normalised layers and of the features."""
    return before * hidden + 3 * hidden + hidden * hidden + 3 * hidden + hidden * features + features


def on_meta(build: Callable[[], Any]) -> Any:
    """A network without storage: sizes only."""
    with torch.device("meta"):
        return build()


def shapes(encoder: ViewEncoder, *image: int) -> dict[str, tuple[int, ...]]:
    layers = encoder.eval().layers(torch.empty(1, *image, device="meta"))
    return {name: tuple(found.shape[1:]) for name, found in layers.items()}


def count(network: torch.nn.Module) -> int:
    return sum(weights.numel() for weights in network.parameters())


@pytest.mark.parametrize(
    ("build", "table", "side", "features"), [(alexnet_view, ALEXNET, 224, 128), (stl10_view, STL10, 64, 64)]
)
@pytest.mark.parametrize(("channels", "width"), [(1, 1.0), (2, 1.0), (3, 0.5), (2, 0.25)])
def test_half_alexnets_have_the_layers_of_their_tables(
    build: Any, table: Table, side: int, features: int, channels: int, width: float
) -> None:
    encoder = on_meta(lambda: build((channels, side, side), width=width))
    sizes, weights = walk(table, channels, side, width)
    c, h, w = sizes["conv5"]
    hidden = int(2048 * width)
    assert shapes(encoder, channels, side, side) == sizes | {"fc6": (hidden,), "fc7": (hidden,), "out": (features,)}
    assert count(encoder) == weights + dense(c * h * w, hidden, features)
    assert (h, w) == ((6, 6) if build is alexnet_view else (7, 7))


@pytest.mark.parametrize(("channels", "width", "side"), [(1, 1.0, 128), (3, 1.0, 128), (2, 0.5, 64), (1, 0.5, 96)])
def test_the_encoder_of_rooms_has_the_layers_of_its_table(channels: int, width: float, side: int) -> None:
    table = [*NYU[:-1], ("conv6", [(512, side // 32, 1, 0)])]
    sizes, weights = walk(table, channels, side, width)
    encoder = on_meta(lambda: nyu_view((channels, side, side), width=width))
    assert shapes(encoder, channels, side, side) == sizes | {"out": (256,)}
    assert sizes["conv6"][1:] == (1, 1)
    assert count(encoder) == weights + int(512 * width) * 256 + 256
    if side == 128:
        assert sizes["conv3"][1:] == (8, 8)


def test_a_larger_image_has_the_average_of_the_features_of_its_places() -> None:
    encoder = nyu_view((1, 64, 64), features=8, width=0.125).eval()
    images = torch.rand(2, 1, 64, 96)
    layers = encoder.layers(images)
    assert layers["conv6"].shape[2:] == (1, 2)
    expected = torch.stack([encoder.head(layers["conv6"][..., at : at + 1]) for at in range(2)]).mean(0)
    torch.testing.assert_close(layers["out"], expected)


def bottlenecks(channels: int, depths: Sequence[int], width: float, features: int) -> int:
    """Weights of a ResNet of bottlenecks with a stem of 64 channels."""
    found, before = 64 * channels * 49 + 128, 64
    for stage, depth in enumerate(depths):
        inside = int(64 * 2**stage * width)
        for block in range(depth):
            found += before * inside + 9 * inside**2 + 4 * inside**2 + 2 * (inside + inside + 4 * inside)
            found += 4 * inside * before + 8 * inside if block == 0 else 0  # the shortcut
            before = 4 * inside
    return found + before * features + features


@pytest.mark.parametrize(("name", "depths"), [("resnet50", (3, 4, 6, 3)), ("resnet101", (3, 4, 23, 3))])
@pytest.mark.parametrize("width", [0.5, 1.0, 2.0])
def test_resnets_of_three_widths_keep_the_stem(name: str, depths: Sequence[int], width: float) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    encoder = on_meta(lambda: resnet_view(name, (2, 224, 224), width=width))
    assert count(encoder) == bottlenecks(2, depths, width, 128)
    found = shapes(encoder, 2, 224, 224)
    assert found["stem"] == (64, 56, 56)
    for stage, side in enumerate((56, 28, 14, 7)):
        assert found[f"stage{stage + 1}"] == (int(256 * 2**stage * width), side, side)
    assert found["pool"] == (int(2048 * width),)
    if (name, width) == ("resnet50", 1.0):  # torchvision's has 25,557,032 with three channels and 1,000 classes
        assert bottlenecks(3, depths, 1.0, 1000) == 25_557_032


@pytest.mark.parametrize("norm", ["batch", "local"])
def test_caffenet_is_that_of_caffe_up_to_fc6(norm: Any) -> None:
    encoder = on_meta(lambda: caffenet_view((3, 227, 227), norm=norm))
    sides = {"conv1": 27, "conv2": 13, "conv3": 13, "conv4": 13, "conv5": 6}
    widths = {"conv1": 96, "conv2": 256, "conv3": 384, "conv4": 384, "conv5": 256}
    expected = {name: (widths[name], side, side) for name, side in sides.items()}
    assert shapes(encoder, 3, 227, 227) == expected | {"fc6": (4096,), "out": (128,)}
    # Caffe's numbers of weights, with biases
    convolutions = 96 * 3 * 121 + 256 * 48 * 25 + 384 * 256 * 9 + 384 * 192 * 9 + 256 * 192 * 9
    channels = sum(widths.values())
    whole = convolutions + channels + 9216 * 4096 + 4096 + 4096 * 128 + 128
    assert count(encoder) == whole + (channels + 2 * 4096 if norm == "batch" else 0)  # no biases, but two for each


def test_the_small_encoder_reads_halves_of_digits() -> None:
    encoder = small_view((1, 28, 14), features=64)
    assert tuple(encoder(torch.rand(3, 1, 28, 14)).shape) == (3, 64)
    expected = sum(a * b * 9 + 2 * b for a, b in ((1, 32), (32, 64), (64, 128)))
    assert count(encoder) == expected + 3 * 128 * 256 + 3 * 256 + 256 * 64 + 64


def test_layers_are_computed_as_far_as_they_are_asked_for() -> None:
    encoder = small_view((1, 16, 16), width=0.25).eval()
    ran: list[str] = []
    for name, stage in encoder.stages.items():
        stage.register_forward_hook(lambda *_, name=name: ran.append(name))
    images = torch.rand(2, 1, 16, 16)
    found = encoder.layers(images, ["conv2"])
    assert (list(found), ran) == (["conv2"], ["conv1", "conv2"])
    torch.testing.assert_close(encoder.layers(images)["conv2"], found["conv2"])
    torch.testing.assert_close(encoder.layers(images)["out"], encoder(images))
    with pytest.raises(SetsupError, match="'conv4'"):
        encoder.layers(images, ["conv4"])


@pytest.mark.parametrize("skips", [True, False])
def test_the_decoder_mirrors_the_encoder_of_rooms(skips: bool) -> None:
    encoder = on_meta(lambda: nyu_view((1, 128, 128)))
    decoder = on_meta(lambda: ViewDecoder(encoder, channels=14, skips=skips))
    layers = encoder.eval().layers(torch.empty(1, 1, 160, 192, device="meta"), decoder.reads)
    assert tuple(decoder.eval()(layers).shape) == (1, 14, 160, 192)
    twice = 2 if skips else 1
    widths = [(512, 512, 4), (512 * twice, 256, 4), (256 * twice, 256, 3), (256 * twice, 128, 4), (128 * twice, 64, 4)]
    expected = sum(before * after * side**2 + 2 * after for before, after, side in widths)
    assert count(decoder) == expected + 64 * twice * 14 * 64 + 14


def test_the_decoder_uses_every_map_that_it_reads() -> None:
    encoder = nyu_view((1, 64, 64), width=0.125).eval()
    decoder = ViewDecoder(encoder, channels=3).eval()
    layers = {name: found.detach().requires_grad_() for name, found in encoder.layers(torch.rand(2, 1, 64, 64)).items()}
    decoder(layers).square().sum().backward()
    used = [name for name, found in layers.items() if found.grad is not None and found.grad.abs().sum() > 0]
    assert used == list(decoder.reads)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SetsupError, match="too small"):
        stl10_view((1, 28, 14))
    with pytest.raises(SetsupError, match="multiples of 32"):
        nyu_view((1, 100, 128))
    with pytest.raises(SetsupError, match="mirrors"):
        ViewDecoder(small_view((1, 16, 16)), channels=3)


def test_caffenet_rounds_sizes_up_as_caffe_does() -> None:
    """Of 224 pixels as of 227, fc6 reads 6 × 6 places: 54 → 27 → 13 → 6."""
    encoder = on_meta(lambda: caffenet_view((3, 224, 224)))
    found = shapes(encoder, 3, 224, 224)
    assert [found[f"conv{at}"][1:] for at in (1, 2, 5)] == [(27, 27), (13, 13), (6, 6)]
    assert encoder.stages["fc6"][1].in_features == 9216  # type: ignore[index]
    assert on_meta(lambda: caffenet_view((1, 55, 59))).stages["fc6"][1].in_features == 256  # type: ignore[index]
    with pytest.raises(SetsupError, match="54 × 55 pixels are too small: the input of conv5 would be 2 × 3"):
        on_meta(lambda: caffenet_view((1, 54, 55)))


@pytest.mark.parametrize("side", range(3, 12))
@pytest.mark.parametrize("options", [(2, 2, 0), (3, 2, 0), (3, 2, 1), (2, 3, 1), (3, 4, 1)])
def test_sizes_of_pools_that_round_up_are_those_of_torch(side: int, options: tuple[int, int, int]) -> None:
    from setsup.methods.networks.layers import flat_size

    pool = torch.nn.MaxPool2d(*options, ceil_mode=True)
    shape = pool(torch.zeros(1, 2, side, side + 1)).shape
    assert flat_size({"pool": pool}, (2, side, side + 1)) == shape[1] * shape[2] * shape[3]


def test_features_have_no_channels_of_a_map() -> None:
    encoder = on_meta(lambda: small_view((1, 16, 16)))
    with pytest.raises(SetsupError, match="'out' is the vector of features, not a feature map; choose a stage, conv1"):
        encoder.channels("out")
    with pytest.raises(SetsupError, match=r"^unknown layer 'stem'; choose from conv1, conv2, conv3, fc4, out$"):
        encoder.channels("stem")


@pytest.mark.parametrize("build", [small_view, stl10_view, nyu_view])
def test_images_of_another_size_than_the_encoders_end_in_a_sentence(build: Callable[..., ViewEncoder]) -> None:
    encoder = build((2, 32, 32), width=0.125).eval()
    sentence = r"images must be 2 × 32 × 32 \(channels × height × width\) for this encoder, not {}; crop or"
    with pytest.raises(SetsupError, match=sentence.format("3 × 32 × 32")):
        encoder(torch.zeros(2, 3, 32, 32))
    if build is not nyu_view:  # whose features are averaged over larger images
        with pytest.raises(SetsupError, match=sentence.format("2 × 64 × 40")):
            encoder(torch.zeros(2, 2, 64, 40))
    first = next(name for name in encoder.names if name.startswith("conv"))
    assert encoder.layers(torch.zeros(2, 2, 64, 48), [first])[first].shape[0] == 2  # maps of any size
