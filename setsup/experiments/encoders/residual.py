"""ResNets of torchvision's layout: from a checkpoint, or with random weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from setsup.errors import DataError, SetsupError, did_you_mean, require_modules
from setsup.experiments.encoders.preprocessing import Preprocessing
from setsup.methods.networks.pretrained import pretrained_resnet, read_weights
from setsup.random import stream_key

if TYPE_CHECKING:
    from transformers import ResNetConfig

__all__ = ["IMAGENET", "infer_config", "published_resnet", "random_resnet"]

IMAGENET = Preprocessing(resize=256, crop=(224, 224))
"""Of torchvision's ``IMAGENET1K_V1`` weights, and of MoCo-v2's linear evaluation."""

_DEPTHS = {
    "resnet18": ("basic", (2, 2, 2, 2)),
    "resnet34": ("basic", (3, 4, 6, 3)),
    "resnet50": ("bottleneck", (3, 4, 6, 3)),
    "resnet101": ("bottleneck", (3, 4, 23, 3)),
    "resnet152": ("bottleneck", (3, 8, 36, 3)),
}
_WIDTHS = {"basic": (64, 128, 256, 512), "bottleneck": (256, 512, 1024, 2048)}


class _Pooled(nn.Module):
    """The average over places of the last stage: (n, 3, H, W) to (n, d)."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, images: Tensor) -> Tensor:
        pooled: Tensor = self.backbone(images).pooler_output
        return pooled.flatten(1)


def published_resnet(path: Path) -> nn.Module:
    """The network of a checkpoint, whose depth and widths its weights tell, without its head."""
    require_modules("checkpoints of ResNets need", "transformers")
    return _Pooled(pretrained_resnet(path, infer_config(path, read_weights(path))))


def random_resnet(name: str, seed: int) -> nn.Module:
    """A ResNet with the weights that training begins with: normal by He's rule, determined by the seed."""
    require_modules(f"random:{name} needs", "transformers")
    from transformers import ResNetConfig, ResNetModel

    if name not in _DEPTHS:
        raise SetsupError(f"unknown encoder random:{name}{did_you_mean(name, _DEPTHS)}")
    kind, depths = _DEPTHS[name]
    config = ResNetConfig(layer_type=kind, depths=list(depths), hidden_sizes=list(_WIDTHS[kind]))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(stream_key(seed, "weights"))
        model: nn.Module = ResNetModel(config)
    return _Pooled(model)


def infer_config(path: Path, weights: Mapping[str, Tensor]) -> "ResNetConfig":
    """The shape of a network by its weights, which have the names of transformers."""
    from transformers import ResNetConfig

    stem, kind = weights.get("embedder.embedder.convolution.weight"), "basic"
    depths: list[int] = []
    widths: list[int] = []
    while (first := f"encoder.stages.{len(depths)}.layers") and f"{first}.0.layer.0.convolution.weight" in weights:
        block = f"{first}.0.layer"
        kind = "bottleneck" if f"{block}.2.convolution.weight" in weights else "basic"
        widths.append(len(weights[f"{block}.{2 if kind == 'bottleneck' else 1}.convolution.weight"]))
        depths.append(1)
        while f"{first}.{depths[-1]}.layer.0.convolution.weight" in weights:
            depths[-1] += 1
    if stem is None or not depths:
        shown = ", ".join(list(weights)[:3])
        raise DataError(
            f"{path} does not contain the weights of a ResNet (it contains {shown}, …); pass a checkpoint in "
            "torchvision's or MoCo's layout, or a repository of transformers as hf:./FOLDER"
        )
    return ResNetConfig(layer_type=kind, depths=depths, hidden_sizes=widths, embedding_size=len(stem))
