"""Encoders of timm, with weights from the cache of the Hugging Face hub."""

from collections.abc import Callable, Sequence
from math import floor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setsup.errors import DataError, SetsupError, did_you_mean, require_modules
from setsup.experiments.encoders.preprocessing import Preprocessing
from setsup.files import content_digest

__all__ = ["timm_encoder", "timm_patches"]

_FILES = ("model.safetensors", "pytorch_model.bin")


def timm_encoder(name: str) -> tuple[nn.Module, Callable[[Tensor], Tensor], str]:
    """The network of a name that timm knows, without its classifier, its preprocessing, and which weights these are."""
    model, about, weights = _opened(name)
    return model, _preprocessing(name, about), weights


def timm_patches(
    name: str, layers: tuple[int, ...]
) -> tuple[Any, Callable[[Tensor, int, int], Tensor], int, tuple[Sequence[float], Sequence[float]], str, int]:
    """What :func:`setsup.experiments.encoders.patch_features.patch_features` needs of a transformer of timm."""
    model, about, weights = _opened(name, dynamic_img_size=True)
    size: Any = getattr(getattr(model, "patch_embed", None), "patch_size", None)
    blocks: Any = getattr(model, "blocks", None)
    if size is None or len(set(size)) != 1 or blocks is None or not hasattr(model, "forward_intermediates"):
        raise SetsupError(
            f"timm:{name} does not divide images into patches of one size; pass a vision transformer, for example "
            "timm:vit_small_patch14_dinov2.lvd142m"
        )
    model.eval()
    count = len(blocks)
    indices = [layer - 1 for layer in layers] or [count - 1]
    given = {"indices": indices, "norm": not layers, "output_fmt": "NCHW"}

    def patches(images: Tensor, rows: int, columns: int) -> Tensor:
        found: list[Tensor] = model.forward_intermediates(images, intermediates_only=True, **given)
        by_layer = dict(zip(sorted(set(indices)), found, strict=True))  # timm returns them in ascending order
        return torch.cat([by_layer[index] for index in indices], dim=1)

    normalisation = list(about["mean"]), list(about["std"])
    return model, patches, int(size[0]), normalisation, weights, count


def _opened(name: str, **options: Any) -> tuple[Any, dict[str, Any], str]:
    """A model of timm without its classifier, what its data are like, and which weights these are."""
    require_modules(f"timm:{name} needs", "timm", "huggingface_hub")
    import timm
    from huggingface_hub import try_to_load_from_cache
    from timm.models import get_pretrained_cfg

    if not timm.is_model(name):
        raise SetsupError(f"timm has no model {name!r}{did_you_mean(name, timm.list_models())}")
    described = get_pretrained_cfg(name, allow_unregistered=False)
    repository = getattr(described, "hf_hub_id", None)
    if not repository:
        raise SetsupError(f"timm has no weights of {name} on the Hugging Face hub; choose another model")
    cached = (try_to_load_from_cache(repository, file) for file in _FILES)
    path = next((file for file in cached if isinstance(file, str)), None)
    if path is None:
        raise DataError(
            f"the weights of timm:{name} are not in the cache of the Hugging Face hub, and setsup does not download "
            f"them; fetch them with `hf download {repository}`"
        )
    try:
        model: Any = timm.create_model(
            name, pretrained=True, num_classes=0, pretrained_cfg_overlay={"file": path}, **options
        )
        about = timm.data.resolve_model_data_config(model)
    except Exception as error:  # timm meets files with errors of many kinds
        reason = str(error).strip().partition("\n")[0].rstrip(".:") or type(error).__name__
        raise DataError(
            f"timm could not read {path} ({reason}); fetch the file again with `hf download {repository}`"
        ) from error
    return model, about, f"sha256 {content_digest(Path(path), 'sha256')}"


def _preprocessing(name: str, about: dict[str, Any]) -> Preprocessing:
    """Timm's transform of evaluation."""
    height, width = about["input_size"][1:]
    share, mode, interpolation = about["crop_pct"], about["crop_mode"], about["interpolation"]
    if mode not in ("center", "squash") or interpolation not in ("bilinear", "bicubic") or height != width:
        raise SetsupError(
            f"timm:{name} uses the crop mode {mode!r} and the interpolation {interpolation!r} at {height} × "
            f"{width}, which setsup does not support; wrap the model in your own file and pass FILE.py:FUNCTION"
        )
    size = floor(height / share)
    return Preprocessing(
        resize=(size, size) if mode == "squash" else size,
        crop=(height, width),
        mean=tuple(about["mean"]),
        std=tuple(about["std"]),
        interpolation=interpolation,
    )
