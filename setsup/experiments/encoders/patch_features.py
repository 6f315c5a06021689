"""Features of the patches of a vision transformer, for every pixel of an image."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.experiments.encoders.huggingface import hub_model

__all__ = ["patch_features"]

Images = npt.NDArray[np.uint8]
Maps = npt.NDArray[np.float32]


def patch_features(name: str, device: str = "cpu") -> tuple[Callable[[Images], Maps], str]:
    """Open a vision transformer of the Hugging Face hub, such as DINOv2 [1]_, for features of pixels.

    Images are normalised as its processor says, and enlarged to whole patches, the least that are as large. Features
    of patches, of the last layer, are interpolated bilinearly to pixels. Nothing is downloaded.

    Parameters
    ----------
    name : str
        ``"hf:facebook/dinov2-small"``, in the hub's cache, or ``"hf:./folder"``.
    device : str
        Where it runs.

    Returns
    -------
    function
        From (n, h, w, 3) uint8 to (n, h, w, D) float32.
    str
        Which weights these are.

    Raises
    ------
    DataError
        When weights are not on this machine, or damaged.
    SetsupError
        When the name is no such name, or the model has no patches.

    References
    ----------
    .. [1] M. Oquab et al., "DINOv2: learning robust visual features without supervision", 2023 (arXiv 2304.07193).

    """
    scheme, _, rest = name.partition(":")
    if scheme != "hf" or not rest:
        raise SetsupError(
            f"{name!r} is not the name of a model on the Hugging Face hub; pass hf:OWNER/NAME or hf:./FOLDER"
        )
    model, processor, weights = hub_model(rest)
    patch = getattr(model.config, "patch_size", None)
    if not isinstance(patch, int):
        raise SetsupError(
            f"{name} does not divide images into patches of one size; pass a vision transformer, for example "
            "facebook/dinov2-small"
        )
    mean, std = (
        torch.tensor(getattr(processor, of), device=device)[:, None, None] for of in ("image_mean", "image_std")
    )
    model = model.to(device)
    given: dict[str, Any] = {}
    if "interpolate_pos_encoding" in signature(model.forward).parameters:
        given["interpolate_pos_encoding"] = True

    def features(images: Images) -> Maps:
        height, width = images.shape[1:3]
        rows, columns = -(-height // patch), -(-width // patch)
        pixels = torch.from_numpy(images).to(device).movedim(-1, 1) / 255
        enlarged = functional.interpolate(pixels, (rows * patch, columns * patch), mode="bilinear")
        with torch.inference_mode():
            tokens = model(pixel_values=(enlarged - mean) / std, **given).last_hidden_state
            maps = tokens[:, -rows * columns :].movedim(1, 2).unflatten(2, (rows, columns))  # after CLS and registers
            whole = functional.interpolate(maps, (height, width), mode="bilinear")
        return np.asarray(whole.movedim(1, -1).float().cpu().numpy())

    return features, weights
