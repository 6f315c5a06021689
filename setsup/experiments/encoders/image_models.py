"""Encoders of timm, with weights from the cache of the Hugging Face hub."""

from collections.abc import Callable
from math import floor
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from setsup.errors import DataError, SetsupError, did_you_mean, require_modules
from setsup.experiments.encoders.preprocessing import Preprocessing
from setsup.files import content_digest

__all__ = ["timm_encoder"]

_FILES = ("model.safetensors", "pytorch_model.bin")


def timm_encoder(name: str) -> tuple[nn.Module, Callable[[Tensor], Tensor], str]:
    """The network of a name that timm knows, without its classifier, its preprocessing, and which weights these are."""
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
        model: Any = timm.create_model(name, pretrained=True, num_classes=0, pretrained_cfg_overlay={"file": path})
        about = timm.data.resolve_model_data_config(model)
    except Exception as error:  # timm meets files with errors of many kinds
        reason = str(error).strip().partition("\n")[0].rstrip(".:") or type(error).__name__
        raise DataError(
            f"timm could not read {path} ({reason}); fetch the file again with `hf download {repository}`"
        ) from error
    return model, _preprocessing(name, about), f"sha256 {content_digest(Path(path), 'sha256')}"


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
