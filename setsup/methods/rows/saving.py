"""State by row in checkpoints: all rows once, or left out."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

from setsup.methods.rows.exchange import gather_first, ranks

__all__ = ["all_rows", "is_left_out", "saving_without_rows"]

_BLOCK = 1 << 26  # bytes that ranks send at a time

_left_out: ContextVar[bool] = ContextVar("_left_out", default=False)


@contextmanager
def saving_without_rows() -> Iterator[None]:
    """Let ``state_dict()`` of a method leave out state by row for a while, so that it is not collective."""
    token = _left_out.set(True)
    try:
        yield
    finally:
        _left_out.reset(token)


def is_left_out() -> bool:
    """Whether ``state_dict()`` leaves out state by row now."""
    return _left_out.get()


def all_rows(own: Tensor, rows: int) -> Tensor:
    """All rows, on the first rank of several in the CPU's memory; none on the others."""
    rank, world = ranks()
    own = own.detach()
    if world == 1:
        return own
    gathered = own.new_empty((rows if rank == 0 else 0, *own.shape[1:]), device="cpu")
    most = -(-rows // world)
    block = max(1, _BLOCK // (max(1, own[:1].numel() * own.element_size()) * world))
    for start in range(0, most, block):
        part = own.new_zeros((min(block, most - start), *own.shape[1:]))  # the last ranks may have a row less
        some = own[start : start + len(part)]
        part[: len(some)] = some
        for number, sent in enumerate(gather_first(part)):
            there = gathered[number::world][start : start + len(part)]
            there.copy_(sent[: len(there)])
    return gathered
