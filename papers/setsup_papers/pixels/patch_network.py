"""Features of pixels from a frozen vision transformer with trained low-rank updates and a trained head."""

import json
from collections.abc import Sequence
from copy import deepcopy
from hashlib import sha256
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError
from setsup.experiments.encoders.huggingface import UNUSED, hub_model
from setsup.experiments.encoders.patch_features import at_pixels, patch_colors, patch_maps, patch_size
from setsup.experiments.result_cache import digest_weights
from setsup_papers.pixels.low_rank import LowRankUpdate, find_projections, update_layer

__all__ = ["TINY", "FrozenTransformer", "PatchNetwork", "open_transformer", "sampled_features"]

TINY = "tiny"
"""Name of a transformer of two blocks with random weights, for tests of training."""
_UNRELATED = {
    *("_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version"),
    *("id2label", "label2id", "problem_type", "initializer_range"),
}
"""Parts of a configuration that do not change the features; weights are always opened as float32."""
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class FrozenTransformer(NamedTuple):
    """A model of transformers, the side of its patches in pixels, mean and standard deviation of colors, and a digest.

    `digest` covers what decides the features: the names, order, shapes, types and values of the weights, the
    configuration of the model, the side of the patches, and the mean and standard deviation.
    """

    model: Any
    patch: int
    mean: Sequence[float]
    std: Sequence[float]
    digest: str


def open_transformer(name: str) -> FrozenTransformer:
    """Open a vision transformer, ``hf:NAME``, ``hf:./FOLDER`` or ``tiny``, for fine-tuning; nothing is downloaded.

    Raises
    ------
    DataError
        When the weights are not on this machine, or damaged; the message says how to get them.
    SetsupError
        When the name has another form, or the model has no patches.

    """
    if name == TINY:
        return _frozen(_tiny(), 14, _MEAN, _STD)
    scheme, _, rest = name.partition(":")
    if scheme != "hf" or not rest:
        raise SetsupError(
            f"{name!r} is not the name of a vision transformer; pass hf:OWNER/NAME, such as hf:facebook/dinov2-small, "
            "or hf:./FOLDER"
        )
    model, processor, _ = hub_model(rest)
    return _frozen(model, patch_size(rest, model), *patch_colors(rest, processor))


def _frozen(model: Any, patch: int, mean: Sequence[float], std: Sequence[float]) -> FrozenTransformer:
    model.requires_grad_(False).eval()
    weights = {
        name: weight
        for name, weight in model.state_dict().items()
        if not any(part in name for part in UNUSED)  # random where the repository has none
    }
    config = {key: value for key, value in model.config.to_diff_dict().items() if key not in _UNRELATED}
    settings = [config, patch, list(mean), list(std), list(weights)]  # updates are numbered in the order of the layers
    described = json.dumps(settings, sort_keys=True, default=str) + digest_weights(weights)
    return FrozenTransformer(model, patch, mean, std, sha256(described.encode()).hexdigest())


def _tiny() -> Any:
    from transformers import Dinov2Config, Dinov2Model

    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)  # the same for all seeds of a run
        sizes: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "mlp_ratio": 2}
        return Dinov2Model(Dinov2Config(image_size=28, patch_size=14, **sizes))


class PatchNetwork(nn.Module):
    """Features of pixels from a frozen transformer, low-rank updates of its projections, and a linear head.

    The state dict contains only trained weights: the updates, ``updates.0.down``, ``updates.0.up`` and so on, in the
    order of the model's layers, and the head, ``head.weight`` and ``head.bias``.

    Parameters
    ----------
    frozen : FrozenTransformer
        Result of :func:`open_transformer`; its model is modified in place.
    rank : int
        Rank of the updates; 0 for none.
    alpha : float
        Updates are multiplied by alpha / rank.
    projections : sequence of str
        Layers that are updated: ``query``, ``key``, ``value``, ``output`` and ``mlp``.
    features : int
        Number of channels D of the head; 0 for the features of the transformer, without a head.
    name : str
        Name of the model, for errors.
    generator : torch.Generator, optional
        Generator of the initial weights.

    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        frozen: FrozenTransformer,
        *,
        rank: int,
        alpha: float,
        projections: Sequence[str],
        features: int,
        name: str,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.patch, self.model = frozen.patch, frozen.model.train()
        self.layers = find_projections(self.model, projections, name) if rank else []
        updated = [self.model.get_submodule(path) for path in self.layers]
        self.updates = nn.ModuleList(LowRankUpdate(layer, rank, alpha, generator) for layer in updated)
        for layer, update in zip(updated, self.updates, strict=True):
            update_layer(layer, update)  # type: ignore[arg-type]
        self.head: nn.Linear | None = None
        if features:
            self.head = nn.Linear(int(self.model.config.hidden_size), features)
            nn.init.orthogonal_(self.head.weight, generator=generator)  # distances are nearly kept
            nn.init.zeros_(self.head.bias)
        for kind, values in (("mean", frozen.mean), ("std", frozen.std)):
            self.register_buffer(kind, torch.tensor(values)[:, None, None], persistent=False)
        self.register_state_dict_post_hook(_drop_frozen)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_add_frozen)  # type: ignore[no-untyped-call]

    def maps(self, images: Tensor) -> Tensor:
        """Features (n, D, rows, columns) of the patches of images (n, C, H, W) in [0, 1], enlarged to whole patches.

        Grey images are repeated, and an alpha channel is left out.
        """
        if self.training:
            self.model.eval()  # here and not in __init__, since Lightning warns of a new method with parts in eval mode
        rows, columns = (-(-side // self.patch) for side in images.shape[-2:])
        pixels = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images[:, :3]
        whole = (rows * self.patch, columns * self.patch)
        if tuple(images.shape[-2:]) != whole:
            pixels = functional.interpolate(pixels, whole, mode="bilinear")
        maps = patch_maps(self.model, (pixels - self.mean) / self.std, rows, columns)
        if self.head is None:
            return maps
        projected: Tensor = self.head(maps.movedim(1, -1))
        return projected.movedim(-1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Features (n, D, H, W) of all pixels, interpolated bilinearly between the centres of patches."""
        return at_pixels(self.maps(images).float(), *images.shape[-2:])

    def merged(self) -> Any:
        """A copy of the transformer whose weights contain the updates, as transformers saves it; without the head."""
        model = deepcopy(self.model)
        with torch.no_grad():
            for path, update in zip(self.layers, self.updates, strict=True):
                layer = model.get_submodule(path)
                layer._forward_hooks.clear()
                layer.weight += update.matrix()  # type: ignore[operator]
        return model


def _drop_frozen(network: nn.Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    for name in [name for name in state if name.startswith(f"{prefix}model.")]:
        del state[name]


def _add_frozen(network: Any, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Add the weights of the frozen transformer to a state dict that is loaded."""
    for name, weight in network.model.state_dict().items():
        state.setdefault(f"{prefix}model.{name}", weight)


def sampled_features(maps: Tensor, pixels: Tensor, height: int, width: int) -> Tensor:
    """Features (k, D) of some pixels of an image, interpolated as :meth:`PatchNetwork.forward` does.

    Parameters
    ----------
    maps : (D, rows, columns) float
        Features of patches.
    pixels : (k,) int64
        Pixels, as y · width + x.
    height, width : int
        Size of the image, pixels.

    """
    columns = maps.shape[2]
    (y0, y1, dy), (x0, x1, dx) = (
        _between(place, side, count)
        for place, side, count in zip((pixels // width, pixels % width), (height, width), maps.shape[1:], strict=True)
    )
    tokens = maps.flatten(1)
    above, below = (
        torch.lerp(tokens[:, y * columns + x0], tokens[:, y * columns + x1], dx.to(maps.dtype)) for y in (y0, y1)
    )
    return torch.lerp(above, below, dy.to(maps.dtype)).T


def _between(place: Tensor, side: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Patches before and after pixels along an axis, and the weight of the patch after."""
    at = ((place + 0.5) * (count / side) - 0.5).clamp(min=0)
    before = at.floor().long().clamp(max=count - 1)
    return before, (before + 1).clamp(max=count - 1), at - before
