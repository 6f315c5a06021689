"""Encoders of DCoDR: sizes as published, and MoCo-v2's weights in the layout of its published file."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from setsup.errors import DataError, SetsupError  # noqa: E402
from setsup.methods.networks.files import load_state  # noqa: E402
from setsup_papers.dcodr import ResNetEncoder, contrast_head, small_encoder  # noqa: E402

WIDTHS, DEPTHS = (8, 16, 24, 32), (1, 1, 2, 1)


def tiny() -> "transformers.ResNetConfig":
    return transformers.ResNetConfig(embedding_size=4, hidden_sizes=list(WIDTHS), depths=list(DEPTHS))


def norm(saved: dict[str, Tensor], name: str, width: int, dice: torch.Generator) -> None:
    for leaf in ("weight", "bias", "running_mean", "running_var"):
        saved[f"{name}.{leaf}"] = 0.5 + torch.rand(width, generator=dice)
    saved[f"{name}.num_batches_tracked"] = torch.tensor(7)


def moco() -> dict[str, Tensor]:
    """The query encoder as MoCo-v2's training script names it: torchvision's ResNet with a head of two layers."""
    dice = torch.Generator().manual_seed(0)
    saved: dict[str, Tensor] = {}

    def convolution(name: str, after: int, before: int, side: int) -> None:
        saved[f"{name}.weight"] = 0.3 * torch.randn(after, before, side, side, generator=dice)

    convolution("conv1", 4, 3, 7)
    norm(saved, "bn1", 4, dice)
    before = 4
    for stage, (width, depth) in enumerate(zip(WIDTHS, DEPTHS, strict=True), start=1):
        for block in range(depth):
            name, inner = f"layer{stage}.{block}", width // 4
            for number, (after, inside, side) in enumerate(
                [(inner, before, 1), (inner, inner, 3), (width, inner, 1)], start=1
            ):
                convolution(f"{name}.conv{number}", after, inside, side)
                norm(saved, f"{name}.bn{number}", after, dice)
            if block == 0:
                convolution(f"{name}.downsample.0", width, before, 1)
                norm(saved, f"{name}.downsample.1", width, dice)
            before = width
    for layer, size in ((0, 32), (2, 16)):
        saved[f"fc.{layer}.weight"] = torch.randn(size, 32, generator=dice)
        saved[f"fc.{layer}.bias"] = torch.randn(size, generator=dice)
    return saved


def checkpoint(saved: dict[str, Tensor]) -> dict[str, object]:
    """What is in the published file: both encoders and the queue."""
    state = {f"module.encoder_q.{name}": one for name, one in saved.items()}
    state |= {f"module.encoder_k.{name}": one + 1 for name, one in saved.items()}
    state |= {"module.queue": torch.zeros(16, 64), "module.queue_ptr": torch.zeros(1, dtype=torch.long)}
    return {"epoch": 800, "arch": "resnet50", "state_dict": state, "optimizer": {"state": {}, "param_groups": []}}


def test_published_number_of_parameters() -> None:
    with torch.device("meta"):
        encoder = ResNetEncoder()
    assert sum(one.numel() for one in encoder.parameters()) == 27_966_656  # "27.97 M"


def test_codes_start_from_the_file(tmp_path: Path) -> None:
    """In evaluation mode the code is the last layer of the head's first layer of the average of the last stage."""
    torch.manual_seed(0)
    saved, path = moco(), tmp_path / "moco_v2_800ep_pretrain.pth.tar"
    torch.save(checkpoint(saved), path)
    encoder = ResNetEncoder(6, tiny()).eval()
    last = encoder.last.weight.clone()
    encoder.load_moco(load_state(path), path)
    assert torch.equal(encoder.last.weight, last)
    images = torch.rand(2, 3, 64, 64)

    def convolved(found: Tensor, name: str, stride: int = 1) -> Tensor:
        weight = saved[f"{name}.weight"]
        return functional.conv2d(found, weight, stride=stride, padding=weight.shape[-1] // 2)

    def normalised(found: Tensor, name: str) -> Tensor:
        parts = [saved[f"{name}.{leaf}"] for leaf in ("running_mean", "running_var", "weight", "bias")]
        return functional.batch_norm(found, *parts)

    found = normalised(convolved(images, "conv1", 2), "bn1").relu()
    found = functional.max_pool2d(found, 3, 2, 1)
    for stage, depth in enumerate(DEPTHS, start=1):
        for block in range(depth):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            short = found
            if block == 0:
                short = normalised(convolved(found, f"{name}.downsample.0", stride), f"{name}.downsample.1")
            inner = normalised(convolved(found, f"{name}.conv1"), f"{name}.bn1").relu()
            inner = normalised(convolved(inner, f"{name}.conv2", stride), f"{name}.bn2").relu()
            found = (normalised(convolved(inner, f"{name}.conv3"), f"{name}.bn3") + short).relu()
    first = functional.linear(found.mean((2, 3)), saved["fc.0.weight"], saved["fc.0.bias"])
    with torch.no_grad():
        torch.testing.assert_close(encoder(images), encoder.last(first), rtol=1e-4, atol=1e-3)


def test_grey_images_are_repeated() -> None:
    torch.manual_seed(1)
    encoder = ResNetEncoder(6, tiny()).eval()
    grey = torch.rand(2, 1, 32, 32)
    torch.testing.assert_close(encoder(grey), encoder(grey.repeat(1, 3, 1, 1)))


def test_files_of_other_networks_are_refused() -> None:
    encoder = ResNetEncoder(6, tiny())
    saved = moco()
    supervised = {name: one for name, one in saved.items() if not name.startswith("fc.")} | {"fc.weight": torch.eye(32)}
    with pytest.raises(DataError, match=r"r\.pth has no two-layer head.*MoCo-v2"):
        encoder.load_moco(supervised, "r.pth")
    with pytest.raises(DataError, match=r"'fc\.0\.weight' in .* has the shape \(4, 4\), but \(32, 32\) in the network"):
        encoder.load_moco(saved | {"fc.0.weight": torch.eye(4)})
    del saved["layer3.1.conv2.weight"]
    with pytest.raises(DataError, match="does not contain the weight"):
        encoder.load_moco(saved)


def test_the_small_encoder_halves_four_times() -> None:
    encoder = small_encoder((1, 48, 64), 7, (4, 8, 8, 16))
    strides = [(one.kernel_size, one.stride) for one in encoder.modules() if isinstance(one, nn.Conv2d)]
    assert strides == [((4, 4), (2, 2))] * 4
    assert encoder.code.in_features == 16 * 3 * 4
    assert encoder(torch.rand(2, 1, 48, 64)).shape == (2, 7)
    with pytest.raises(SetsupError, match="8 × 64 pixels cannot be halved 4 times"):
        small_encoder((3, 8, 64))


def test_the_head_has_three_layers_and_ends_linearly() -> None:
    head = contrast_head(5)
    slopes = [one.negative_slope for one in head if isinstance(one, nn.LeakyReLU)]
    assert [type(one) for one in head] == [nn.Linear, nn.LeakyReLU, nn.Linear, nn.LeakyReLU, nn.Linear]
    assert slopes == [0.01, 0.01]
    assert sum(one.numel() for one in head.parameters()) == 3 * (25 + 5)
