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
    "mlp": (
        *("fc1", "fc2", "intermediate.dense", "output.dense"),
        *("weights_in", "weights_out", "gate_proj", "up_proj", "down_proj"),  # of gated MLPs, such as SwiGLU
    ),
}
"""Endings of the names of layers in the vision transformers of transformers, by projection."""


class LowRankUpdate(nn.Module):
    """(alpha / rank) · B A x, added to the output of a linear layer; A is (rank, in), B is (out, rank).

    B is initially 0, so that the layer is initially unchanged.

    Parameters
    ----------
    layer : nn.Linear
        The layer, of which only the sizes are used.
    rank : int
        Rank of the update.
    alpha : float
        The update is multiplied by alpha / rank.
    generator : torch.Generator, optional
        Generator of the initial A, uniform in ±1/√in, as in the published code.

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
        """The update of the weight of the layer, (out, in)."""
        product: Tensor = self.scale * self.up @ self.down
        return product


def update_layer(layer: nn.Linear, update: LowRankUpdate) -> None:
    """Register a hook that adds an update to the output of a layer; the weights of the layer do not change."""
    layer.register_forward_hook(partial(_updated, update))


def _updated(update: LowRankUpdate, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
    updated: Tensor = output + update(inputs[0])
    return updated


def find_projections(model: nn.Module, projections: Sequence[str], name: str) -> list[str]:
    """Names of the linear layers of a model that are one of the projections, in the model's order.

    Raises
    ------
    SetsupError
        When no projection is named, or one is unknown, repeated, or not in the model.

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
    """The projection that a layer is, by the longest matching ending of its name; None if it is none."""
    ends = {end: kind for kind, names in PROJECTIONS.items() for end in names if f".{path}".endswith(f".{end}")}
    return ends[max(ends, key=len)] if ends else None
