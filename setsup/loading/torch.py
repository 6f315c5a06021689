"""The integration with torch: batches as tensors, and datasets and samplers for torch's own DataLoader."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from setsup.arrays import Array
from setsup.checks import check_integer, explains_foreign
from setsup.datasets.dataset import Dataset, Modality
from setsup.errors import LibraryError, SamplerError, SetsupError, abbreviate
from setsup.factors.column_storage import check_rows
from setsup.loading.batch import Batch
from setsup.optional import extra_command
from setsup.samplers import Sampler, Shard
from setsup.samplers.callers import epoch_of_lightning, processes_of_accelerate, refuse_sampler_of_rows
from setsup.samplers.iteration import log_pass, steps_to_pass
from setsup.samplers.steps import LAST, pass_end

__all__ = ["SetBatches", "TensorConverter", "TorchRows", "as_torch", "set_batches"]

_log = logging.getLogger("setsup")
_BLOCK = 64  # steps drawn at a time


def _torch(what: str, instead: str = "") -> Any:
    try:
        return import_module("torch")
    except ImportError as error:
        raise LibraryError(
            f"{what} requires torch, which is not installed: {extra_command('torch')}{instead}"
        ) from error


class TensorConverter:
    """Converts batches of arrays to batches of tensors on one device."""

    def __init__(self, to: str) -> None:
        self._torch, self._to = _torch("a batch of tensors", ", or pass to='numpy' for arrays"), to
        try:
            self.device = None if to in ("torch", "cpu") else self._torch.device(to)
        except RuntimeError:
            raise SetsupError(
                f"to must be 'numpy', 'torch' or a torch device such as 'cuda:0', not {abbreviate(to)}"
            ) from None
        try:
            self._torch.empty(0, device=self.device)
        except (AssertionError, RuntimeError) as error:
            raise SetsupError(f"device {to!r} is not available: {str(error).splitlines()[0]}") from None

    def __reduce__(self) -> tuple[type["TensorConverter"], tuple[str]]:
        """Leave out the torch module, which does not pickle."""
        return TensorConverter, (self._to,)

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Allocate an array; page-locked if the device is a GPU, for faster copies."""
        if self.device is None or self.device.type != "cuda":
            return np.empty(shape, dtype)
        # a base array: views of a view would refer to its base, and Ring counts references
        page_locked: Array = self._torch.from_numpy(np.empty(shape, dtype)).pin_memory().numpy()
        return page_locked

    def deliver(self, batch: Batch, described: Mapping[str, Modality], modalities: Sequence[str]) -> Batch:
        """Return the batch as tensors; images become (…, channels, height, width), as views of the same memory."""
        images = {name for name in modalities if described[name].color}
        images |= {f"canonical_{name}" for name in images}
        return {name: self._tensors(value, name in images) for name, value in batch.items()}

    def _tensors(self, value: Any, is_image: bool) -> Any:
        if isinstance(value, dict):
            return {name: self._tensors(inner, False) for name, inner in value.items()}
        if not isinstance(value, np.ndarray):
            return value
        # indices may be a view of a block that other steps share, and torch accepts no read-only memory
        array = value if value.flags.writeable else value.copy()
        if is_image:  # numpy's transpose costs a tenth of torch's
            array = array.transpose(*range(array.ndim - 3), -1, -3, -2)
        tensor = self._torch.from_numpy(array)
        # synchronous: the buffer may be reused as soon as nothing refers to it
        return tensor if self.device is None else tensor.to(self.device)


class TorchRows:
    """A map-style dataset for torch's own DataLoader; made by :func:`as_torch`."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.dataset)

    def __getitem__(self, row: int) -> Batch:
        """One row as a dict of tensors."""
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Iterable[int]) -> list[Batch]:
        """Several rows, fetched at once."""
        index = np.atleast_1d(check_rows(list(rows), len(self.dataset)))  # a draw is no array
        fetched: Batch = dict(self.dataset.fetch(index))
        names = tuple(fetched)
        fetched["index"] = index
        fetched["factors"] = self.dataset.factors.all_codes(index)
        tensors = TensorConverter("torch").deliver(fetched, self.dataset.modalities, names)
        return [_item(tensors, row) for row in range(len(index))]


@explains_foreign("pass it to the DataLoader that receives the result")
def as_torch(dataset: Dataset) -> TorchRows:
    """A map-style dataset for torch's own DataLoader, with worker processes or without.

    An item is a dict of the modalities, images as (channels, height, width) uint8 tensors, with the row number under
    ``index`` and the codes under ``factors``. DataLoader fetches whole batches at once if it can.

    Raises
    ------
    SetsupError
        If this is not a dataset.
    LibraryError
        If torch is not installed.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.loading.as_torch(setsup.load("shapes3d-procedural"))
    >>> len(shapes), tuple(shapes[0]["image"].shape)
    (480000, (3, 64, 64))

    """
    if not hasattr(dataset, "fetch"):
        raise SetsupError(
            f"as_torch requires a dataset, such as the result of setsup.load, not {type(dataset).__name__}; pass "
            "samplers to set_batches"
        )
    _torch("as_torch")
    return TorchRows(dataset)


def _item(batch: Batch, row: int) -> Batch:
    return {k: _item(v, row) if isinstance(v, dict) else v[row] for k, v in batch.items()}


class SetBatches:
    """Rows of each draw as a list, set after set, one pass at each call of ``iter``; made by :func:`set_batches`.

    Attributes
    ----------
    source : Sampler
        The sampler to draw from.
    rank, world : int
        This rank, and the number of ranks.
    sampler : object
        Has :meth:`set_epoch` too: Lightning calls it there, and not at the batches themselves.

    """

    def __init__(self, source: Sampler, rank: int, world: int, start: int, length: int | None) -> None:
        self.source, self.rank, self.world = source, rank, world
        self._start = self._next = start  # first global step of the next pass
        self._length = length  # global steps of a pass
        self._tells = True  # where the first pass over an endless sampler ends
        self.sampler = _Passes(self)

    def __iter__(self) -> Iterator[list[int]]:
        """Rows of this rank's draws in the next pass, which begins at the first ``next``."""
        refuse_sampler_of_rows(self)
        if self.world > 1 and (processes := processes_of_accelerate() or 1) > 1:
            raise SetsupError(
                f"accelerate would shard these batches of rank {self.rank} among {processes} processes again, which "
                "loses draws; pass the sampler itself to set_batches, and leave the sharding to accelerator.prepare"
            )
        if (epoch := epoch_of_lightning()) is not None:
            self.set_epoch(epoch)
        # a DataLoader with workers makes two iterators and uses one
        begin, end, count = self._next, pass_end(self._next, self._length), LAST
        until_told = steps_to_pass(self.source, begin, self.world) if end is None and self._tells else None
        if end is not None:
            count, self._next = self._count(end), end
        for first in range(0, count, _BLOCK):
            steps = begin + self.rank + np.arange(first, min(first + _BLOCK, count), dtype=np.int64) * self.world
            if end is not None:  # ranks without draws left repeat the last one, so that no rank waits for another
                steps = np.minimum(steps, end - 1)
            try:
                draws = self.source.draws(steps)
            except SamplerError:  # a step that cannot be drawn is an error once it is reached
                draws = None
            for offset in range(len(steps)):
                if until_told == first + offset:
                    log_pass(self.source)
                    self._tells = False
                draw = self.source[int(steps[offset])] if draws is None else draws.at(offset)
                if end is None:
                    self._next = begin + (first + offset + 1) * self.world
                yield list(draw)

    def __len__(self) -> int:
        """Number of this rank's draws in the next pass; TypeError for an endless sampler."""
        refuse_sampler_of_rows(self)
        end = pass_end(self._next, self._length)
        if end is None:
            raise TypeError(
                "batches of an infinite sampler have no length; pass steps=, or use an EpochSampler with epochs="
            )
        return self._count(end)

    def set_epoch(self, epoch: int) -> None:
        """Select the next pass, counted from 0, as trainers do; has no effect for an endless sampler.

        A pass that ``start`` lies within keeps its position.
        """
        length = self._length
        check_integer(epoch, "the number of a pass", SamplerError, 0, LAST // (length or 1) - 1)
        if length is None or self._next // length == epoch:
            return
        if self._next == self._start > 0:
            _log.warning(
                "the trainer begins with pass %d, so start=%d, which is in pass %d, is ignored; resume the trainer, "
                "too, or pass start=0",
                epoch,
                self._start,
                self._start // length,
            )
        self._start, self._next = 0, int(epoch) * length

    def _count(self, end: int) -> int:
        """Draws per rank up to the end of the next pass."""
        return -(-(end - self._next) // self.world)


class _Passes:
    """What Lightning finds at ``batch_sampler.sampler``."""

    def __init__(self, batches: SetBatches) -> None:
        self._batches = batches

    def set_epoch(self, epoch: int) -> None:
        """Select the next pass of the batches, as :meth:`SetBatches.set_epoch` does."""
        self._batches.set_epoch(epoch)


@explains_foreign()
def set_batches(sampler: Sampler | Shard, start: int = 0, steps: int | None = None) -> SetBatches:
    """Rows of each draw as a list, set after set: a ``batch_sampler`` for torch's own DataLoader.

    Padding is left out, so the list of a padded draw is shorter.

    Each pass over a DataLoader continues with the next steps: pass p over a sampler of n draws has the steps p·n to
    (p + 1)·n − 1. Passes over an :class:`setsup.EpochSampler` with ``epochs=1`` are its epochs, each in its own order.
    An endless sampler continues after the last draw that DataLoader requested, or with ``steps`` has passes of that
    many draws.

    Parameters
    ----------
    sampler : Sampler or Shard
        The sampler to draw from; ``sampler.shard(rank, world)`` for one of several ranks. All ranks get the same number
        of draws per pass: those without draws left repeat the last one.
    start : int
        First step, counted over all passes: the number of draws that all ranks had before. The pass that contains it
        is shorter.
    steps : int, optional
        Number of draws per rank in a pass over an endless sampler, which gives it a length: pass p of a single rank
        has the steps p·steps to (p + 1)·steps − 1.

    Raises
    ------
    SamplerError
        If this is not a sampler, ``start`` is out of range, or ``steps`` is given for a finite sampler.

    Examples
    --------
    >>> import setsup
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> sets = setsup.SetSampler(shapes.factors, inactive=["shape"], size=4, sets=2)
    >>> len(next(iter(setsup.loading.set_batches(sets))))
    8
    >>> once = setsup.EpochSampler(shapes.factors, size=1000, epochs=1)
    >>> batches = setsup.loading.set_batches(once.shard(rank=0, world=2))
    >>> first, second = list(batches), list(batches)
    >>> len(first), len(second), first == second
    (240, 240, False)
    >>> len(setsup.loading.set_batches(sets, steps=1000))
    1000

    """
    rank, world = 0, 1
    if isinstance(sampler, Shard):
        if start != 0 and sampler.start != 0:
            raise SamplerError(
                f"start={abbreviate(start)} and the shard's start={sampler.start} are mutually exclusive; pass one of "
                "them"
            )
        rank, world, start = sampler.rank, sampler.world, sampler.start or start
        sampler = sampler.sampler
    if not isinstance(sampler, Sampler):
        raise SamplerError(
            f"set_batches requires a sampler, such as setsup.SetSampler, not {type(sampler).__name__}; pass datasets "
            "to as_torch"
        )
    length = sampler.length
    if steps is not None:
        steps = check_integer(steps, "steps", SamplerError, 1, (LAST - 1) // world)
        if length is not None:
            raise SamplerError(
                f"steps={steps} requires an infinite sampler, but a pass of this {type(sampler).__name__} has "
                f"{length:,} draws; leave out steps="
            )
        length = steps * world
    return SetBatches(sampler, rank, world, check_integer(start, "start", SamplerError, 0, LAST - 1), length)
