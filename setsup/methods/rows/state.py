"""An array with an entry for each row of the training data, divided among ranks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from setsup.errors import RowError, SetsupError
from setsup.methods.rows.exchange import Route, add_up, ranks
from setsup.methods.rows.history import History
from setsup.methods.rows.products import Products
from setsup.methods.rows.saving import all_rows, is_left_out

__all__ = ["Initial", "RowState", "UnseenRows"]

Initial = Tensor | Callable[[Tensor], Tensor] | float | None

_BLOCK = 1 << 16  # rows that are made at a time


class UnseenRows(RowError):
    """Values were read for rows that training never wrote, or that are not in the training data."""


class RowState(nn.Module):
    """An array with one entry per row of the training data, which a method reads and writes at the rows of a batch.

    Under ``torch.distributed`` each rank has the rows r, r + W, r + 2W, …, and :meth:`gather`, :meth:`scores`,
    :meth:`update` and :meth:`seen` are collective: all ranks call them, in the same order, each with rows of its own.
    The values are neither a parameter nor a buffer: DDP does not broadcast them, and optimisers do not train them.

    Parameters
    ----------
    rows : int
        Rows of the training data, ``len(table)``.
    *shape : int
        Shape of an entry.
    dtype : torch.dtype
        Of the values, such as ``torch.float16`` for half the memory; ``.half()`` and the like do not change it.
    initial : (rows, *shape) tensor, callable or float, optional
        Initial values. A callable gets row numbers, (n,) int64, and returns their values, (n, *shape): each rank calls
        it with its own rows, some at a time. Torch's generator is seeded for it by the run, but random numbers are
        others with another number of ranks, unless they are a function of the rows alone. 0 by default.
    seen : bool, optional
        Whether initial values may be read like written ones; by default if `initial` is given.

    Attributes
    ----------
    rows : int
        As given.
    shape : tuple of int
        As given.

    Notes
    -----
    In a checkpoint the state has the entries ``values``, (rows, *shape), and ``seen``, (rows,) bool, in the order of
    rows; it is restored with any number of ranks. ``state_dict()`` is collective too: all ranks call it, as
    ``Trainer.save_checkpoint`` does, and only the first gets the values; called on one rank alone, it waits for the
    others. ``load_state_dict`` takes the rank's own rows, and is not collective.

    Examples
    --------
    A memory bank of two-dimensional features, with momentum 0.5:

    >>> import torch
    >>> bank = RowState(1000, 2, initial=lambda rows: torch.ones(len(rows), 2))
    >>> rows, features = torch.tensor([3, 999]), torch.tensor([[0.0, 1.0], [2.0, 3.0]], requires_grad=True)
    >>> bank.scores(features, torch.tensor([[3, 0, 1], [999, 3, 2]])).tolist()  # of three rows for each feature
    [[1.0, 1.0, 1.0], [5.0, 5.0, 5.0]]
    >>> bank.update(rows, 0.5 * bank.gather(rows) + 0.5 * features)
    >>> bank.gather(torch.tensor([[999], [0]])).tolist()
    [[[1.5, 2.0]], [[1.0, 1.0]]]

    """

    def __init__(
        self,
        rows: int,
        *shape: int,
        dtype: torch.dtype = torch.float32,
        initial: Initial = None,
        seen: bool | None = None,
    ) -> None:
        super().__init__()
        if rows < 1 or any(size < 1 for size in shape):
            raise SetsupError(f"a RowState must have at least 1 row and positive sizes, not {(rows, *shape)}")
        if isinstance(initial, Tensor) and tuple(initial.shape) != (rows, *shape):
            raise SetsupError(f"initial values must have the shape {(rows, *shape)}, not {tuple(initial.shape)}")
        self.rows, self.shape, self.dtype = rows, shape, dtype
        self._prefilled = initial is not None if seen is None else seen
        self.has_initial = initial is not None
        self._initial: Tensor | Callable[[Tensor], Tensor] | float = 0.0 if initial is None else initial
        self._seed = int(torch.randint(2**62, ())) if callable(initial) else 0  # of the run, whose seed built this
        self._device = torch.device("cpu")
        self._share: tuple[int, int] | None = None  # rank and world that the values are of
        self._held, self._written = torch.empty(0), torch.empty(0)
        self._history = History()

    @torch.no_grad()
    def gather(self, rows: Tensor) -> Tensor:
        """Values of rows, without gradient.

        Parameters
        ----------
        rows : (…) integer tensor
            Row numbers; they may repeat.

        Returns
        -------
        (…, *shape) tensor

        Raises
        ------
        UnseenRows
            On all ranks, when any of them names a row that was never written, or that is none of the training data,
            such as the -1 of evaluations.

        """
        return self._read(rows, strict=not self._prefilled)

    @torch.no_grad()
    def seen(self, rows: Tensor) -> Tensor:
        """Whether rows have values that :meth:`gather` returns: (…) bool, False for -1."""
        rows = _integers(rows)
        exists, asked = self._existing(rows)
        route = Route(asked)
        self._values()
        written = torch.zeros_like(exists)
        written[exists] = route.answer(self._written[route.places])
        return written.view(rows.shape)

    @torch.no_grad()
    def update(self, rows: Tensor, values: Tensor) -> None:
        """Write values of rows.

        Where a row repeats, the last value is kept: of the last rank that names it, at its last place there. So W
        ranks write what one process would, given their batches one after the other. In evaluation mode nothing is
        written, as batch normalisation keeps its statistics then: a loss that updates a bank can be validated.

        Parameters
        ----------
        rows : (…) integer tensor
            Row numbers.
        values : (…, *shape) tensor
            Their values; gradients do not flow into them.

        Raises
        ------
        RowError
            On all ranks, when any of them names a row that is none of the training data.

        """
        rows = _integers(rows)
        if tuple(values.shape) != (*rows.shape, *self.shape):
            wanted = (*rows.shape, *self.shape)
            raise SetsupError(
                f"values for rows of shape {tuple(rows.shape)} must have the shape {wanted}, not {tuple(values.shape)}"
            )
        exists, asked = self._existing(rows)
        if wrong := int(add_up((~exists).sum())):
            raise RowError(f"{wrong} of the rows to write are not among the {self.rows:,} rows of the training data")
        if not self.training:
            return
        route = Route(asked)
        arrived = route.send(values.detach().to(self._device, self.dtype).reshape(-1, *self.shape))
        places, inverse = torch.unique(route.places, return_inverse=True)
        position = torch.arange(len(inverse), device=inverse.device)
        last = torch.zeros_like(places).scatter_reduce_(0, inverse, position, "amax")
        self._write(places, arrived[last])

    def scores(self, queries: Tensor, rows: Tensor) -> Tensor:
        """Dot products of queries with rows, computed where the rows are: only queries and products are sent.

        They are differentiable in the queries, and the gradient is that of the values that were read, also if
        :meth:`update` was called before the backward pass.

        Parameters
        ----------
        queries : (n, d) float tensor
            Another rank may have more or fewer.
        rows : (n, m) integer tensor
            Rows for each query, of a state of the shape (d,).

        Returns
        -------
        (n, m) tensor
            float32, or of the dtype of the queries if that is wider.

        Raises
        ------
        UnseenRows
            As :meth:`gather` does.

        """
        rows = _integers(rows)
        if len(self.shape) != 1 or tuple(queries.shape[1:]) != self.shape or rows.shape[:-1] != queries.shape[:1]:
            raise SetsupError(
                "queries must have the shape (n, d), and rows the shape (n, m), for a RowState of shape (d,), not "
                f"{tuple(queries.shape)} and {tuple(rows.shape)} for a RowState of shape {self.shape}"
            )
        with torch.no_grad():
            self._check(rows)
        queries = queries.to(torch.promote_types(queries.dtype, torch.float32))
        return Products.apply(queries, rows, self._values(), self._history)  # type: ignore[no-any-return,no-untyped-call]

    def mark_seen(self) -> None:
        """Let all initial values be read like written ones."""
        self._values()
        self._written.fill_(True)

    @torch.no_grad()
    def finite(self) -> Tensor:
        """Whether all values of this rank are finite, () bool; not collective."""
        return torch.stack(torch.aminmax(self._values())).isfinite().all()  # without an array of its size

    def _read(self, rows: Tensor, strict: bool) -> Tensor:
        """Values of rows; with `strict` after a check that all were written."""
        rows = _integers(rows)
        exists, asked = self._existing(rows)
        # without other ranks, the same row read twice costs less than finding that it is the same
        asked, inverse = (asked, None) if ranks()[1] == 1 else torch.unique(asked, return_inverse=True)
        route, held = Route(asked), self._values()
        good = route.answer(self._written[route.places]) if strict else torch.ones_like(asked, dtype=torch.bool)
        self._need(exists, good if inverse is None else good[inverse])
        values = route.answer(held.index_select(0, route.places))
        return (values if inverse is None else values[inverse]).view(*rows.shape, *self.shape)

    def _check(self, rows: Tensor) -> None:
        """Raise UnseenRows, on all ranks, unless values of all rows may be read."""
        exists, asked = self._existing(rows)
        good = torch.ones_like(asked, dtype=torch.bool) if self._prefilled else self.seen(asked)
        self._need(exists, good)

    def _existing(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Which row numbers are of the training data (k,), and these on the device of the values."""
        flat = rows.reshape(-1).to(self._device)
        exists = (flat >= 0) & (flat < self.rows)
        return exists, flat if bool(exists.all()) else flat[exists]

    def _need(self, exists: Tensor, good: Tensor) -> None:
        counts = torch.stack([(~exists).sum(), (~good).sum(), torch.as_tensor(len(exists), device=good.device)])
        other, unseen, count = add_up(counts).tolist()
        if other or unseen:
            kinds = {"never seen in training": unseen, "not in the training data": other}
            listed = ", ".join(f"{kind}: {number:,}" for kind, number in kinds.items() if number)
            raise UnseenRows(f"no values for {other + unseen:,} of {count:,} rows ({listed})")

    def _write(self, places: Tensor, values: Tensor) -> None:
        """Write values at places of this rank, each once."""
        held = self._values()
        self._history.record(held, places)
        held[places] = values.to(held.dtype)
        self._written[places] = True

    @torch.no_grad()
    def _values(self) -> Tensor:
        """Values of this rank's rows, made or divided at the first use with a number of ranks."""
        share = ranks()
        if self._share == share:
            return self._held
        rank, world = share
        if self._share not in (None, (0, 1)):
            raise SetsupError(
                f"the values of this RowState are divided among {self._share[1]} ranks, but there are now "
                f"{world}; save a checkpoint, and load it on all ranks"
            )
        with torch.inference_mode(False):
            if self._share is None:
                own = torch.arange(rank, self.rows, world)
                self._hold(self._make(own), torch.full((len(own),), self._prefilled, device=self._device))
            else:
                held, written = self._held[rank::world], self._written[rank::world]
                self._hold(self._copied(held, self.dtype), self._copied(written, torch.bool))
        return self._held

    def _make(self, own: Tensor) -> Tensor:
        """Initial values of rows, some at a time: there is no second array of the size."""
        initial = torch.empty((len(own), *self.shape), dtype=self.dtype, device=self._device)
        for start in range(0, len(own), _BLOCK):
            rows = own[start : start + _BLOCK]
            initial[start : start + _BLOCK] = self._make_initial(rows)
        return initial

    def _make_initial(self, rows: Tensor) -> Tensor | float:
        if isinstance(self._initial, Tensor):
            return self._initial.detach()[rows.to(self._initial.device)]
        if not callable(self._initial):
            return self._initial
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed + int(rows[0]) if len(rows) else self._seed)  # ranks and blocks differ
            made, shape = self._initial(rows), (len(rows), *self.shape)
        if tuple(made.shape) != shape:
            raise SetsupError(
                f"initial values of {len(rows):,} rows must have the shape {shape}, not {tuple(made.shape)}"
            )
        return made.detach()

    def _hold(self, values: Tensor, written: Tensor) -> None:
        """Keep the values of this rank's rows, which nothing else holds."""
        self._held, self._written = values, written
        self._share, self._initial = ranks(), 0.0  # initial values are not needed again
        self._history.clear()

    def _copied(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Copy of values on the device, which a whole checkpoint does not stay in memory for."""
        with torch.inference_mode(False):
            return values.detach().to(self._device, dtype, copy=True, memory_format=torch.contiguous_format)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "RowState":
        """Move with the module, and keep the dtype."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = fn(torch.empty(0, device=self._device)).device
        if device != self._device and device.type != "meta":
            self._device = device
            if self._share is not None:
                self._values()
                self._hold(self._held.to(device), self._written.to(device))
        return self

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """All rows once, on the first rank."""
        if is_left_out():
            return
        values = self._values()
        destination[f"{prefix}values"] = all_rows(values, self.rows)
        destination[f"{prefix}seen"] = all_rows(self._written, self.rows)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take the rows of this rank."""
        shapes = {f"{prefix}values": (self.rows, *self.shape), f"{prefix}seen": (self.rows,)}
        missing = [name for name in shapes if name not in state_dict]
        missing_keys += missing
        wrong = [name for name in shapes.keys() - missing if tuple(state_dict[name].shape) != shapes[name]]
        error_msgs += [f"{name} is {tuple(state_dict[name].shape)}, not {shapes[name]}" for name in wrong]
        if not missing and not wrong:
            rank, world = ranks()
            values, seen = (state_dict[name][rank::world] for name in shapes)
            self._hold(self._copied(values, self.dtype), self._copied(seen, torch.bool))

    def compile(self, *args: Any, **options: Any) -> None:
        """Nothing: what ranks send each other is not compiled."""

    def extra_repr(self) -> str:
        """Rows and shape."""
        return ", ".join(map(str, (self.rows, *self.shape)))


def _integers(rows: Tensor) -> Tensor:
    if not isinstance(rows, Tensor) or rows.is_floating_point() or rows.is_complex() or rows.dtype == torch.bool:
        kind = rows.dtype if isinstance(rows, Tensor) else type(rows).__name__
        raise RowError(f"row numbers must be an integer tensor, such as batch['indices'], not {kind}")
    return rows.long()
