"""Low-rank updates of frozen linear layers [1]_.

References
----------
.. [1] E. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022 (arXiv 2106.09685), section 4.

"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from setsup.errors import SetsupError

__all__ = ["PROJECTIONS", "LowRankUpdate", "find_projections", "update_layer"]

PROJECTIONS = {
    "query": ("q_proj", "query"),
    "key": ("k_proj", "key"),
    "value": ("v_proj", "value"),
    "output": ("o_proj", "out_proj", "attention.output.dense"),
    "mlp": ("fc1", "fc2", "weights_in", "weights_out", "intermediate.dense", "output.dense"),
}
"""Ends of the names of layers in vision transformers of transformers, by what they are here."""


class LowRankUpdate(nn.Module):
    """(alpha / rank) · B A x, to be added to the output of a linear layer: A is (rank, in), B (out, rank).

    B is 0 at first, so that the layer starts as it was.

    Parameters
    ----------
    layer : nn.Linear
        Only its sizes are read.
    rank : int
        Of the update.
    alpha : float
        Its weight, times the rank.
    generator : torch.Generator, optional
        Of the initial A, uniform in ±1/√in, as in the published code.

    """

    def __init__(self, layer: nn.Linear, rank: int, alpha: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.scale = alpha / rank
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        bound = 1 / math.sqrt(layer.in_features)
        nn.init.uniform_(self.down, -bound, bound, generator=generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Update (…, out) of inputs (…, in)."""
        return functional.linear(functional.linear(inputs, self.down), self.up) * self.scale

    def matrix(self) -> Tensor:
        """What it adds to the weight of the layer, (out, in)."""
        product: Tensor = self.scale * self.up @ self.down
        return product


def update_layer(layer: nn.Linear, update: LowRankUpdate) -> None:
    """Add an update to the output of a layer from now on; the layer itself stays as it is."""
    layer.register_forward_hook(partial(_updated, update))


def _updated(update: LowRankUpdate, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    updated: Tensor = output + update(inputs[0])
    return updated


def find_projections(model: nn.Module, projections: Sequence[str], name: str) -> list[str]:
    """Names of the linear layers of a model that are such projections, in the model's order.

    Raises
    ------
    SetsupError
        When a projection is unknown, named twice, or not in the model.

    """
    if unknown := [one for one in projections if one not in PROJECTIONS]:
        raise SetsupError(f"projections must be among {', '.join(PROJECTIONS)}, not {unknown[0]!r}")
    if not projections or len(set(projections)) < len(projections):
        raise SetsupError("projections must name one or more kinds of layers, each once, such as query value")
    layers = [path for path, part in model.named_modules() if isinstance(part, nn.Linear)]
    found = [(path, kind) for path in layers if (kind := _kind(path)) in projections]
    for kind in projections:
        if kind not in {one for _, one in found}:
            listed = ", ".join(dict.fromkeys(path.rpartition(".")[2] for path in layers)) or "none"
            raise SetsupError(
                f"{name} has no linear layers known as {kind!r} (its linear layers are named {listed}); choose other "
                "projections, or another model"
            )
    return [path for path, _ in found]


def _kind(path: str) -> str | None:
    """Which projection a layer is, by the longest end of its name."""
    ends = {end: kind for kind, names in PROJECTIONS.items() for end in names if f".{path}".endswith(f".{end}")}
    return ends[max(ends, key=len)] if ends else None
