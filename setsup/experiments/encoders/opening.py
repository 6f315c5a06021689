"""Encoders by their names."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from setsup.checks import check_arguments
from setsup.errors import SetsupError
from setsup.experiments.encoders.encoder import Encoder, Pixels
from setsup.experiments.encoders.preprocessing import Preprocessing
from setsup.experiments.preset_registry import split_file_name
from setsup.files import content_digest
from setsup.files.expand_user import expanded

__all__ = ["FORMS", "open_encoder"]

FORMS = "hf:NAME, hf:./FOLDER, FILE.pt, timm:NAME, FILE.py:FUNCTION, random:resnet50, pixels or pixels:SIZE"
"""What names an encoder."""

_CHECKPOINTS = (".pt", ".pth", ".tar", ".bin", ".ckpt", ".safetensors")


def open_encoder(name: str, device: str | None = None, *, batch: int = 64, seed: int = 0) -> Encoder:
    """Open a frozen encoder; nothing is downloaded.

    =========================== ========================================================================================
    name                        encoder
    =========================== ========================================================================================
    ``hf:facebook/dinov2-small`` a repository of the Hugging Face hub that is in the hub's cache (``HF_HOME``), read by
                                transformers
    ``hf:./folder``             a folder with ``config.json``, ``preprocessor_config.json`` and weights
    ``resnet50.pth``            a ResNet in torchvision's, MoCo's or transformers' layout, as
                                :func:`~setsup.methods.networks.pretrained_resnet` reads it; its depth is told by the
                                names of its weights
    ``timm:NAME``               a model of timm, where timm is installed, with weights in the hub's cache
    ``my_file.py:build``        what a function returns: a ``torch.nn.Module`` from (n, 3, H, W) float32 in [0, 1] to
                                (n, d), or a module and a preprocessing of these images; ``build`` may be left out
    ``random:resnet50``         a ResNet-18, 34, 50, 101 or 152 with RANDOM WEIGHTS
    ``pixels``, ``pixels:16``   no network: pixels, as they are or resized to 16 × 16
    =========================== ========================================================================================

    An embedding is the vector that a classifier would see: the pooled output of a model of transformers if the file
    has weights for it, otherwise its first token, CLS; the mean over places of the last stage of a ResNet; projected
    image features of a model with a text tower, such as CLIP; the output of a model of timm without its classifier.

    Images are preprocessed in batches as the weights require: by the repository's ``preprocessor_config.json``; of a
    ResNet as torchvision does (shorter edge to 256, antialiased, bilinear; centre of 224 × 224; mean and standard
    deviation of ImageNet). Grey images get three channels.

    Parameters
    ----------
    name : str
        As above.
    device : str, optional
        Where the network runs: a GPU if there is one, by default.
    batch : int
        Images per forward pass, 1 to 256.
    seed : int
        Of random weights.

    Returns
    -------
    Encoder

    Raises
    ------
    DataError
        When weights are not on this machine, or damaged; the message says how to get them.
    SetsupError
        When the name names no encoder, a library is not installed, or a function of your own fails.

    Examples
    --------
    >>> encoder = open_encoder("pixels:8", "cpu")
    >>> images = torch.zeros(2, 3, 3, 64, 64, dtype=torch.uint8)
    >>> tuple(encoder.embed({"image": images}).shape)
    (2, 3, 192)

    """
    check_arguments(open_encoder, locals())
    network, preprocess, weights = _opened(name, seed)
    random = name.startswith("random:")
    encoder = Encoder(name, network, preprocess, batch=batch, random=random, weights=weights)
    return encoder.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))


def _opened(name: str, seed: int) -> tuple[nn.Module, Callable[[Tensor], Any], str]:
    """Network, preprocessing, and which weights these are."""
    scheme, colon, rest = name.partition(":")
    if (file := split_file_name(name)) is not None:
        from setsup.experiments.encoders.own import own_encoder

        return own_encoder(expanded(file[0]), file[1] or "build", seed)
    if colon and scheme in ("hf", "timm", "random") and rest:
        from setsup.experiments.encoders import huggingface, image_models, residual

        if scheme == "random":
            return residual.random_resnet(rest, seed), residual.IMAGENET, f"random, seed {seed}"
        return huggingface.hub_encoder(rest) if scheme == "hf" else image_models.timm_encoder(rest)
    if match := re.fullmatch(r"pixels(?::([1-9]\d{0,3}))?", name):
        side = int(match[1] or 0)
        plain = Preprocessing(resize=(side, side), mean=(0.0,) * 3, std=(1.0,) * 3)
        return Pixels(), plain if side else _as_they_are, "none"
    if name.endswith(_CHECKPOINTS):
        from setsup.experiments.encoders import residual

        path = expanded(Path(name))
        return residual.published_resnet(path), residual.IMAGENET, _digest(path)
    raise SetsupError(f"unknown encoder {name!r}; pass one of {FORMS}")


def _digest(path: Path) -> str:
    return f"sha256 {content_digest(path, 'sha256')}"


def _as_they_are(images: Tensor) -> Tensor:
    return images
