"""What estimators share that train many networks as one batched network, side by side along the first axis."""

import math
from itertools import pairwise
from typing import Any

import torch
from torch.optim.adam import adam

__all__ = ["Adam", "dense_shapes", "products", "through_relu", "views"]

_ADAM: Any = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-7, "weight_decay": 0, "amsgrad": False, "maximize": False}


class Adam:
    """Adam with ε 1e-7 for one tensor of weights, without the optimizer around it, which takes longer than a step."""

    def __init__(self, weights: torch.Tensor, gradient: torch.Tensor, rate: float) -> None:
        self._tensors = [weights], [gradient], [torch.zeros_like(weights)], [torch.zeros_like(weights)]
        self._done, self._rate = [torch.zeros((), device=weights.device)], rate

    def step(self) -> None:
        """Update the weights by the gradient."""
        adam(*self._tensors, [], self._done, lr=self._rate, fused=True, **_ADAM)


def dense_shapes(count: int, widths: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes of weights (k, in, out) and biases (k, 1, out) of dense layers, in turn."""
    return [shape for into, out in pairwise(widths) for shape in ((count, into, out), (count, 1, out))]


def products(one: torch.Tensor, many: torch.Tensor) -> torch.Tensor:
    """Products (k, m, n) of (k or 1, m, l) and (k, l, n)."""
    return torch.bmm(one.expand(len(many), -1, -1), many)


def through_relu(back: torch.Tensor, after: torch.Tensor) -> None:
    """Make of a gradient after a ReLU that before it, in place."""
    torch.ops.aten.threshold_backward.grad_input(back, after, 0, grad_input=back)


def views(flat: torch.Tensor, shapes: list[tuple[int, ...]]) -> list[torch.Tensor]:
    """Parts of one tensor, each in its shape."""
    parts = torch.split(flat, [math.prod(shape) for shape in shapes])
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
