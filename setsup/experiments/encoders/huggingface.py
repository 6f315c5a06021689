"""Encoders in the layout of the Hugging Face hub, read by transformers from the hub's cache or from a folder."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setsup.errors import DataError, SetsupError, require_modules
from setsup.experiments.encoders.preprocessing import Preprocessing, as_rgb
from setsup.files import content_digest
from setsup.files.expand_user import expanded

__all__ = ["UNUSED", "cached_folder", "hub_encoder", "hub_model", "normalization"]

_INTERPOLATIONS = {0: "nearest", 2: "bilinear", 3: "bicubic"}
"""Pillow's numbers of filters."""
UNUSED = ("pooler", "mask_token")
"""Parts of names of weights that a frozen encoder does without."""
_CLOSE = 0.02
"""Mean difference, in units of normalised images, from the repository's own processor: about a level of 255."""


def hub_encoder(name: str) -> tuple[nn.Module, Callable[[Tensor], Any], str]:
    """The network of a repository, its preprocessing, and which weights these are."""
    with _opened(name) as folder:
        model, missing = _model(name, folder)
        network = _Pooled(model, not any("pooler" in key for key in missing))
        return network, _preprocessing(folder), _revision(folder)


def hub_model(name: str) -> tuple[Any, Any, str]:
    """A model of transformers, its processor, and which weights these are."""
    from transformers import AutoImageProcessor

    processors: Any = AutoImageProcessor  # not annotated
    with _opened(name) as folder:
        processor = processors.from_pretrained(folder, local_files_only=True)
        return _model(name, folder)[0].eval(), processor, _revision(folder)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[Path]:
    """The folder of a repository; errors of transformers say which."""
    require_modules(f"hf:{name} needs", "transformers", "huggingface_hub")
    folder = cached_folder(name)
    for file in ("config.json", "preprocessor_config.json"):
        if not (folder / file).is_file():
            raise DataError(f"{folder} is not a complete repository of an image model: {file} is missing{_fetch(name)}")
    try:
        with _quiet():
            yield folder
    except SetsupError:
        raise
    except Exception as error:  # transformers meets configurations and files with errors of many kinds
        reason = str(error).strip().partition("\n")[0].rstrip(".:") or type(error).__name__
        raise DataError(
            f"transformers could not read hf:{name} ({reason}); pass a complete repository{_fetch(name)}"
        ) from error


def _revision(folder: Path) -> str:
    """The commit of a repository in the cache; otherwise the digests of files of weights."""
    if folder.parent.name == "snapshots":
        return f"revision {folder.name}"
    files = sorted(path for path in folder.iterdir() if path.suffix in (".safetensors", ".bin"))
    return ", ".join(f"{path.name} sha256 {content_digest(path, 'sha256')}" for path in files)


def cached_folder(name: str) -> Path:
    """The folder of a repository, in the hub's cache unless it is a path; nothing is downloaded."""
    if name.startswith((".", "/", "~")) or os.path.isdir(name):
        folder = expanded(Path(name))
        if not folder.is_dir():
            raise DataError(
                f"{folder} does not exist; pass the name of a repository as hf:OWNER/NAME, or its folder as hf:./FOLDER"
            )
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, local_files_only=True))
    except HFValidationError:
        raise SetsupError(
            f"hf:{name} is not the name of a repository; pass hf:OWNER/NAME, or the folder of one as hf:./FOLDER"
        ) from None
    except LocalEntryNotFoundError:
        raise DataError(
            f"{name} is not in the cache of the Hugging Face hub, and setsup does not download it{_fetch(name)}"
        ) from None


def _fetch(name: str) -> str:
    """How to get a repository, if it has a name."""
    return "" if name.startswith((".", "/", "~")) else f"; fetch the repository with `hf download {name}`"


class _Pooled(nn.Module):
    """One vector per image from the output of a model of transformers."""

    def __init__(self, model: Any, pooled: bool) -> None:
        super().__init__()
        self.model, self.pooled = model, pooled

    def forward(self, images: Tensor) -> Tensor:
        """The pooled output; without one the first token, or the mean over places.

        `images` (n, 3, H, W); returns (n, d).
        """
        both = hasattr(self.model, "get_image_features")  # with a text tower
        output = self.model.get_image_features(pixel_values=images) if both else self.model(pixel_values=images)
        if isinstance(output, Tensor):
            return output
        pooled = getattr(output, "pooler_output", None) if self.pooled else None
        if isinstance(pooled, Tensor):
            return pooled.flatten(1)
        last: Tensor = output.last_hidden_state
        return last[:, 0] if last.ndim == 3 else last.flatten(2).mean(dim=2)


def _model(name: str, folder: Path) -> tuple[Any, list[str]]:
    """A model, and the names of weights that its files lack."""
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    if hasattr(config, "mask_ratio"):  # of masked autoencoders, which otherwise see a random quarter of an image
        config.mask_ratio = 0.0
    model, report = AutoModel.from_pretrained(
        folder, config=config, local_files_only=True, output_loading_info=True, dtype=torch.float32
    )
    missing = sorted(map(str, report["missing_keys"]))
    if lacking := [key for key in missing if not any(part in key for part in UNUSED)]:
        raise DataError(
            f"hf:{name} does not contain the weight {lacking[0]!r} of its model; pass a complete "
            f"repository{_fetch(name)}"
        )
    return model, missing


def _preprocessing(folder: Path) -> Callable[[Tensor], Tensor]:
    """The processor's work in batches of tensors where that gives the same, otherwise by the processor itself."""
    from transformers import AutoImageProcessor

    processors: Any = AutoImageProcessor  # not annotated
    by_processor = _ByProcessor(processors.from_pretrained(folder, local_files_only=True))
    batched = _described(by_processor.processor)
    return batched if batched is not None and _alike(batched, by_processor) else by_processor


def _alike(batched: Preprocessing, by_processor: "_ByProcessor") -> bool:
    """Whether both give the same for an image that is enlarged and one that is reduced, a wide one and a high one."""
    generator = torch.Generator().manual_seed(0)
    for height, width in ((97, 150), (1301, 903)):
        coarse = torch.rand(1, 3, height // 10, width // 10, generator=generator)
        smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear")
        image = smooth.mul_(255).to(torch.uint8)
        expected = by_processor(image)
        try:
            preprocessed = batched(image)
        except SetsupError:
            return False
        if preprocessed.shape != expected.shape or float((preprocessed - expected).abs().mean()) > _CLOSE:
            return False
    return True


def _described(processor: Any) -> Preprocessing | None:
    """What a processor says that it does, if these are known operations."""
    size, crop = getattr(processor, "size", None), getattr(processor, "crop_size", None)
    resize: Any = None
    if getattr(processor, "do_resize", False):
        resize = _length(size, "shortest_edge") or _height_width(size)
        if resize is None:
            return None
    resample = getattr(processor, "resample", None)
    interpolation: Any = None if resample is None else _INTERPOLATIONS.get(int(resample))
    known = normalization(processor)
    if interpolation is None or known is None:
        return None
    mean, std = known
    return Preprocessing(
        resize=resize,
        crop=_height_width(crop) if getattr(processor, "do_center_crop", False) else None,
        mean=mean,
        std=std,
        interpolation=interpolation,
        half="down",
    )


def normalization(processor: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Means and standard deviations of colors in [0, 1]: 0 and 1 without ``do_normalize``; None if they are missing."""
    if not getattr(processor, "do_normalize", False):
        return (0.0,) * 3, (1.0,) * 3
    mean, std = getattr(processor, "image_mean", None), getattr(processor, "image_std", None)
    return (tuple(map(float, mean)), tuple(map(float, std))) if mean and std else None


def _length(size: Any, key: str) -> int | None:
    length = size.get(key) if hasattr(size, "get") else getattr(size, key, None)
    return None if length is None else int(length)


def _height_width(size: Any) -> tuple[int, int] | None:
    height, width = _length(size, "height"), _length(size, "width")
    return None if height is None or width is None else (height, width)


class _ByProcessor:
    """Preprocessing by a processor of transformers, image by image."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor

    def __call__(self, images: Tensor) -> Tensor:
        rgb = as_rgb(images)
        whole = rgb if rgb.dtype == torch.uint8 else rgb.mul(255).round_().clamp_(0, 255).to(torch.uint8)
        listed: list[np.ndarray[Any, Any]] = [image.permute(1, 2, 0).cpu().numpy() for image in whole]
        processed: Tensor = self.processor(listed, return_tensors="pt")["pixel_values"]
        return processed.to(images.device)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the progress bars and reports of transformers."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging  # not annotated

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
