"""Features of the patches of a vision transformer, at the patches or for every pixel of an image."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.experiments.encoders.huggingface import hub_model, normalization
from setsup.experiments.encoders.image_models import timm_patches

__all__ = ["as_arrays", "at_pixels", "patch_colors", "patch_features", "patch_maps", "patch_size"]

Images = npt.NDArray[np.uint8]
Maps = npt.NDArray[np.float32]
Patches = Callable[[Tensor, int, int], Tensor]
"""From normalised images (n, 3, H, W), and the rows and columns of their patches, to (n, D, rows, columns)."""


def patch_features(
    name: str, device: str = "cpu", *, layers: Sequence[int] = (), grid: bool = False
) -> tuple[Callable[[Images], Maps], str]:
    """Open a vision transformer, such as DINOv2 [1]_, for features of pixels.

    Images are normalised as its processor says, and enlarged to whole patches, the least that are as large. Features
    of patches are interpolated bilinearly to pixels, unless `grid` asks for those of the patches. Nothing is
    downloaded.

    Parameters
    ----------
    name : str
        ``"hf:facebook/dinov2-small"``, in the cache of the Hugging Face hub, ``"hf:./folder"``, or ``"timm:NAME"``,
        where timm is installed.
    device : str
        Where it runs.
    layers : sequence of int
        Numbers of blocks, from 1, whose outputs are concatenated; before the normalisation that follows the last one.
        By default, the output of the whole network, after it.
    grid : bool
        Whether to return features of patches.

    Returns
    -------
    function
        From (n, h, w, 3) uint8 to (n, h, w, D) float32, or to (n, rows, columns, D) of the patches.
    str
        Which weights these are.

    Raises
    ------
    DataError
        When weights are not on this machine, or damaged.
    SetsupError
        When the name is no such name, the model has no patches, or no such block.

    References
    ----------
    .. [1] M. Oquab et al., "DINOv2: learning robust visual features without supervision", 2023 (arXiv 2304.07193).

    """
    scheme, _, rest = name.partition(":")
    if scheme not in ("hf", "timm") or not rest:
        raise SetsupError(
            f"{name!r} is not the name of a model on the Hugging Face hub; pass hf:OWNER/NAME, hf:./FOLDER or timm:NAME"
        )
    opened = _hub_patches if scheme == "hf" else timm_patches
    model, patches, patch, normalisation, weights, blocks = opened(rest, tuple(layers))
    for layer in layers:
        if not 1 <= layer <= blocks:
            raise SetsupError(f"{name} has no block {layer}; pass numbers from 1 to {blocks}")
    mean, std = (torch.tensor(numbers, device=device)[:, None, None] for numbers in normalisation)
    model.to(device)

    def features(images: Images) -> Maps:
        height, width = images.shape[1:3]
        rows, columns = -(-height // patch), -(-width // patch)
        pixels = torch.from_numpy(images).to(device).movedim(-1, 1) / 255
        enlarged = functional.interpolate(pixels, (rows * patch, columns * patch), mode="bilinear")
        with torch.inference_mode():
            maps = patches((enlarged - mean) / std, rows, columns)
            return as_arrays(maps if grid else at_pixels(maps, height, width))

    return features, weights


def at_pixels(maps: Tensor, height: int, width: int) -> Tensor:
    """Maps (n, D, rows, columns), interpolated bilinearly to (n, D, height, width)."""
    return functional.interpolate(maps, (height, width), mode="bilinear")


def as_arrays(maps: Tensor) -> Maps:
    """Maps (n, D, h, w) as arrays (n, h, w, D) float32."""
    return np.asarray(maps.movedim(1, -1).float().cpu().numpy())


def _hub_patches(
    name: str, layers: tuple[int, ...]
) -> tuple[Any, Patches, int, tuple[Sequence[float], Sequence[float]], str, int]:
    """A model of transformers, its patches, their size, mean and deviation of its colours, weights, and blocks."""
    model, processor, weights = hub_model(name)
    patch = patch_size(name, model)

    def patches(images: Tensor, rows: int, columns: int) -> Tensor:
        return patch_maps(model, images, rows, columns, layers)

    blocks = int(getattr(model.config, "num_hidden_layers", 0))
    return model, patches, patch, patch_colors(name, processor), weights, blocks


def patch_colors(name: str, processor: Any) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Means and standard deviations of colors by which the processor of a model normalises."""
    found = normalization(processor)
    if found is None:
        raise SetsupError(f"the processor of {name} normalises images, but has no image_mean and image_std; add them")
    return found


def patch_size(name: str, model: Any) -> int:
    """Side of the patches of a model of transformers, in pixels; SetsupError if it has none."""
    patch = getattr(model.config, "patch_size", None)
    if not isinstance(patch, int):
        raise SetsupError(
            f"hf:{name} does not divide images into patches of one size; pass a vision transformer, for example "
            "facebook/dinov2-small"
        )
    return patch


def patch_maps(model: Any, images: Tensor, rows: int, columns: int, layers: Sequence[int] = ()) -> Tensor:
    """Features (n, D, rows, columns) that a model of transformers gives the patches of normalised images.

    `images` (n, 3, H, W) float, of so many rows and columns of patches; `layers` as for :func:`patch_features`.
    """
    given: dict[str, Any] = {"output_hidden_states": True} if layers else {}
    if "interpolate_pos_encoding" in signature(model.forward).parameters:
        given["interpolate_pos_encoding"] = True
    output = model(pixel_values=images, **given)
    chosen = [output.hidden_states[layer] for layer in layers] if layers else [output.last_hidden_state]
    tokens = torch.cat([states[:, -rows * columns :] for states in chosen], dim=2)  # after CLS and registers
    maps: Tensor = tokens.movedim(1, 2).unflatten(2, (rows, columns))  # type: ignore[no-untyped-call]
    return maps
