"""Vectors that are learned, one for each row of the training data."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from setsup.errors import SetsupError
from setsup.methods.rows.exchange import Route, add_up, ranks
from setsup.methods.rows.saving import is_left_out
from setsup.methods.rows.state import Initial, RowState

__all__ = ["RowCodes"]


class RowCodes(nn.Module):
    """Vectors that are learned, one for each row of the training data, by Adam.

    In training mode ``codes(batch["indices"])`` has gradients, and :meth:`step` applies them: call it in the hook
    ``on_before_optimizer_step`` of a LightningModule, or after ``manual_backward``. Rows that a step did not use stay
    as they are, also their moments, as with :class:`torch.optim.SparseAdam` on a sparse :class:`torch.nn.Embedding`;
    with ``lazy=False`` they move by their moments, which decay, as with :class:`torch.optim.Adam`. Gradients of
    several backward passes before a step are added up. They are not parameters of the method: its optimisers,
    schedules and clipping do not affect them.

    Under ``torch.distributed`` codes and moments are divided among ranks as :class:`RowState` describes; forward and
    step are collective. Gradients are averaged over ranks, those of a row that several of them used too, as DDP
    averages those of parameters.

    Parameters
    ----------
    rows : int
        Rows of the training data, ``len(table)``.
    *shape : int
        Shape of a code.
    rate : float or callable
        Learning rate; a callable gets the number of steps before, 0, 1, 2, …, and returns that of the step.
    betas : (float, float)
        Decay of the moments.
    eps : float
        Added to the root of the second moment.
    initial : (rows, *shape) tensor, callable or float, optional
        Initial codes, as for :class:`RowState`; 0 by default. They count as no code in evaluation mode, where a row
        that was never trained on is an error.
    lazy : bool
        Whether rows that a step did not use stay as they are; without, a step takes time for all rows.

    Examples
    --------
    >>> import torch
    >>> codes = RowCodes(1000, 2, rate=0.1)
    >>> rows = torch.tensor([3, 999, 3])
    >>> loss = (codes(rows) - 1).square().sum()
    >>> loss.backward()
    >>> codes.step()
    >>> codes.eval()(torch.tensor([999]))
    tensor([[0.1000, 0.1000]])
    >>> codes(torch.tensor([4, 999]))
    Traceback (most recent call last):
        ...
    setsup.methods.rows.state.UnseenRows: no values for 1 of 2 rows (never seen in training: 1)

    """

    def __init__(
        self,
        rows: int,
        *shape: int,
        rate: float | Callable[[int], float],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        initial: Initial = None,
        lazy: bool = True,
    ) -> None:
        super().__init__()
        self.rate, self.betas, self.eps, self.lazy = rate, betas, eps, lazy
        self.codes = RowState(rows, *shape, initial=initial, seen=False)
        self.means = RowState(rows, *shape, initial=0.0)
        self.squares = RowState(rows, *shape, initial=0.0)
        self.steps: Tensor
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self._used: list[tuple[Tensor, Tensor]] = []  # rows, and their codes, which collect gradients

    def forward(self, rows: Tensor) -> Tensor:
        """Codes of rows.

        Parameters
        ----------
        rows : (…) integer tensor
            Row numbers; they may repeat.

        Returns
        -------
        (…, *shape) float32 tensor

        Raises
        ------
        UnseenRows
            When a row is none of the training data or, in evaluation mode, was never trained on.

        """
        if not (self.training and torch.is_grad_enabled()):
            with torch.no_grad():
                return self.codes._read(rows, strict=not self.training)
        unique, inverse = torch.unique(rows, return_inverse=True)
        with torch.no_grad():
            leaf = self.codes._read(unique, strict=False)
        self._used.append((unique, leaf.requires_grad_()))
        return leaf[inverse]

    @torch.no_grad()
    def step(self, scale: float = 1.0) -> None:
        """Apply the gradients since the last step.

        Parameters
        ----------
        scale : float
            What the loss was multiplied by: that of a ``GradScaler`` in float16. Then a step whose gradients are not
            finite is left out on all ranks.

        """
        shape, device = self.codes.shape, self.codes._device
        used = [(rows, leaf.grad) for rows, leaf in self._used if leaf.grad is not None]
        self._used.clear()
        if not int(add_up(torch.tensor(len(used), device=device))):
            return  # codes were not used
        rows = torch.cat([rows.to(device) for rows, _ in used]) if used else torch.empty(0, dtype=torch.int64)
        gradients = torch.cat([gradient for _, gradient in used]) if used else torch.empty(0, *shape)
        rows, gradients = _summed(rows.to(device), gradients.to(device) / (scale * ranks()[1]))
        route = Route(rows)
        places, gradients = _summed(route.places, route.send(gradients))
        if scale != 1.0 and int(add_up((~gradients.isfinite()).sum())):
            return
        self.steps += 1
        self._adam(places, gradients)

    def _adam(self, places: Tensor, gradients: Tensor) -> None:
        """One step at places of this rank; operations are in the order of SparseAdam's, or of Adam's on all places."""
        step, (first, second) = int(self.steps), self.betas
        rate = self.rate(step - 1) if callable(self.rate) else self.rate
        if not self.lazy:
            codes, means, squares = (state._values() for state in (self.codes, self.means, self.squares))
            means.mul_(first).index_add_(0, places, gradients, alpha=1 - first)
            squares.mul_(second).index_add_(0, places, gradients.square(), alpha=1 - second)
            codes.addcdiv_(
                means,
                squares.sqrt().div_((1 - second**step) ** 0.5).add_(self.eps),
                value=-rate / (1 - first**step),
            )
            self.codes._write(places, codes[places])  # these rows have codes now
            return
        means, squares = self.means._values()[places], self.squares._values()[places]
        means = means + (gradients - means) * (1 - first)
        squares = squares + (gradients.square() - squares) * (1 - second)
        size = rate * (1 - second**step) ** 0.5 / (1 - first**step)
        self.means._write(places, means)
        self.squares._write(places, squares)
        self.codes._write(places, self.codes._values()[places] - size * (means / (squares.sqrt() + self.eps)))

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Refuse gradients that would be lost, which is how a missing hook shows."""
        if not is_left_out() and any(leaf.grad is not None for _, leaf in self._used):
            raise SetsupError(
                f"gradients of {prefix.rstrip('.') or 'the codes'} were never applied; call step() of the codes in the "
                "hook on_before_optimizer_step of the method, or after manual_backward"
            )
        super()._save_to_state_dict(destination, prefix, keep_vars)

    def compile(self, *args: Any, **options: Any) -> None:
        """Nothing: what ranks send each other is not compiled."""


def _summed(rows: Tensor, gradients: Tensor) -> tuple[Tensor, Tensor]:
    """Rows without repeats, and the sums of their gradients."""
    unique, inverse = torch.unique(rows, return_inverse=True)
    sums = gradients.new_zeros(len(unique), *gradients.shape[1:])
    return unique, sums.index_add_(0, inverse, gradients)
