"""Pretrained ResNets, by name or from checkpoint files, in torchvision's layout or in that of transformers.

The network is transformers' ``ResNetModel``: ResNet V1.5, which has its stride on the 3 × 3 convolution as torchvision
has it. A file may hold

- torchvision's names (``layer1.0.conv1.weight``, ``fc.weight``), as supervised ImageNet weights do, bare or under
  ``state_dict``, with or without the prefix ``module.`` of parallel training;
- a MoCo-v2 run: the query encoder's weights are taken (``module.encoder_q.``), key encoder and queue are not;
- transformers' names (``encoder.stages.0.…``), with or without the prefix ``resnet.``;

and is a torch file, old or new, or a safetensors file. Torch files are loaded with weights only: none can run code.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from setsup.errors import DataError, require_modules
from setsup.methods.networks.files import load_state
from setsup.methods.networks.published import is_repository, weights_file

if TYPE_CHECKING:
    from transformers import ResNetConfig, ResNetModel

__all__ = ["check_weights", "named_weights", "pretrained_resnet", "read_weights", "transformers_name"]

_HEADS = ("fc.", "classifier.")
_QUERY = "encoder_q."
_COUNTER = ".num_batches_tracked"
_STEM = re.compile(r"(conv|bn)1\.(\w+)")
_BLOCK = re.compile(r"layer([1-9])\.(\d+)\.(?:(conv|bn)([1-3])|downsample\.([01]))\.(\w+)")
_PARTS = {"conv": "convolution", "bn": "normalization", "0": "convolution", "1": "normalization"}


def transformers_name(name: str) -> str:
    """Name in transformers of a ResNet's weight `name` in torchvision; other names are unchanged."""
    if stem := _STEM.fullmatch(name):
        part, leaf = stem.groups()
        return f"embedder.embedder.{_PARTS[part]}.{leaf}"
    if block := _BLOCK.fullmatch(name):
        stage, number, part, position, shortcut, leaf = block.groups()
        where = f"layer.{int(position) - 1}.{_PARTS[part]}" if part else f"shortcut.{_PARTS[shortcut]}"
        return f"encoder.stages.{int(stage) - 1}.layers.{number}.{where}.{leaf}"
    return name


def read_weights(source: str | Path) -> dict[str, Tensor]:
    """Weights of a checkpoint under transformers' names, with its head: ``fc.…`` or ``classifier.…``.

    Of a MoCo-v2 run, the head is the two-layer one of its query encoder: ``fc.0.weight``, ``fc.2.weight`` and biases.
    """
    path = weights_file(source)
    return {name: weight for name, (_, weight) in named_weights(load_state(path), path).items()}


def pretrained_resnet(source: str | Path, config: "ResNetConfig | None" = None) -> "ResNetModel":
    """A ResNet with the weights of a checkpoint, without its head."""
    require_modules("pretrained networks need", "transformers")
    from transformers import ResNetConfig, ResNetModel

    path = weights_file(source)
    if config is None:
        config = _read_config(source, path) if is_repository(source) else ResNetConfig()
    named = named_weights(load_state(path), path)
    body = {name: weight for name, weight in named.items() if not name.startswith(_HEADS)}
    # without storage, as the file gives every number: nothing is drawn, and nothing allocated twice
    with torch.device("meta"):
        model = ResNetModel(config)
    model.load_state_dict(check_weights(path, body, model.state_dict()), assign=True)
    nn.Module.eval(model)  # transformers states no type of its own
    return model


def _read_config(name: str | Path, path: Path) -> "ResNetConfig":
    """The shape of a repository's network, from the configuration next to its weights."""
    from transformers import ResNetConfig

    try:
        values = json.loads(path.with_name("config.json").read_bytes())
        kind = values["model_type"]
        if kind == "resnet":
            return ResNetConfig.from_dict(values)
    except Exception as error:  # values that make no config are met with errors of many kinds
        raise DataError(
            f"config.json of {name} does not describe a ResNet ({type(error).__name__}); pass the config of a ResNet"
        ) from None
    raise DataError(
        f"{name} must contain a 'resnet' of transformers, not {kind!r}; pass a repository with a ResNet, or a file"
    )


def check_weights(
    path: Path | str, found: Mapping[str, tuple[str, Tensor]], expected: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Weights that fit `expected` one to one; files older than the counters of batch norms may lack these.

    `found` has the file's own name of each, for errors, as `path` is.
    """
    weights: dict[str, Tensor] = {}
    for name, tensor in expected.items():
        if name not in found:
            if not name.endswith(_COUNTER):
                raise DataError(
                    f"{path} does not contain the weight {name!r} (its name in transformers); pass the complete "
                    "checkpoint of a ResNet, and the config that it was trained with"
                )
            weights[name] = torch.zeros((), dtype=torch.long)
            continue
        original, weight = found[name]
        weights[name] = _fitting(path, original, weight, tensor)
    if more := next((original for name, (original, _) in found.items() if name not in expected), None):
        raise DataError(
            f"{path} contains the weight {more!r}, which the network does not have; pass a checkpoint of the same "
            "architecture, or its config"
        )
    return weights


def _fitting(path: Path | str, original: str, weight: Tensor, parameter: Tensor) -> Tensor:
    """The weight as the network has it; a copy, so that no two share memory, whatever the file says."""
    if weight.shape != parameter.shape:
        raise DataError(
            f"{original!r} in {path} has the shape {tuple(weight.shape)}, but {tuple(parameter.shape)} in the "
            "network; pass a checkpoint of the same architecture, or its config"
        )
    if weight.is_floating_point() != parameter.is_floating_point():
        raise DataError(
            f"{original!r} in {path} has the type {_short(weight.dtype)}, but {_short(parameter.dtype)} in the "
            "network; pass a checkpoint with floating-point weights, neither packed nor complex"
        )
    copied = torch.empty(parameter.shape, dtype=parameter.dtype, device="cpu").copy_(weight)
    if not copied.isfinite().all():
        raise DataError(
            f"{original!r} in {path} has values that are not finite; fetch the file again, or pass the checkpoint of a "
            "run that did not diverge"
        )
    return copied


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def named_weights(state: Mapping[str, Any], path: Path | str) -> dict[str, tuple[str, Tensor]]:
    """Names that transformers uses, each with the file's own name and the weight; `path` is for errors."""
    queried = any(name.removeprefix("module.").startswith(_QUERY) for name in state)
    named: dict[str, tuple[str, Tensor]] = {}
    for original, weight in state.items():
        name = original.removeprefix("module.")
        if queried and not name.startswith(_QUERY):
            continue  # the key encoder, and the queue
        name = transformers_name(name.removeprefix(_QUERY).removeprefix("resnet."))
        if not isinstance(weight, Tensor) or weight.layout != torch.strided or weight.is_meta or weight.is_quantized:
            kind = type(weight).__name__
            raise DataError(
                f"{original!r} in {path} must be a dense tensor, not a {kind}; pass the file of a state_dict"
            )
        if name in named:
            raise DataError(
                f"{path} contains {name!r} twice, as {named[name][0]!r} and {original!r}; pass the weights of one "
                "network"
            )
        named[name] = original, weight.detach()
    if not named:
        raise DataError(f"{path} contains no weights; fetch it again, or pass the file of a state_dict")
    return named
