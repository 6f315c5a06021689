"""Integration with Lightning: a data module whose checkpoints resume at the exact draw, for any number of ranks."""

# ruff: noqa: E402

from setsup.errors import SetsupError, require_modules

require_modules("LightningBatches needs", "lightning")  # before what imports it

from collections.abc import Iterator
from typing import Any

from lightning.pytorch import LightningDataModule

from setsup.datasets.dataset import Dataset
from setsup.loading.batch import Batch
from setsup.loading.loader import Loader
from setsup.samplers import Sampler
from setsup.samplers.steps import after_steps

__all__ = ["LightningBatches"]


class LightningBatches(LightningDataModule):
    """Training batches for a Lightning ``Trainer``; each rank gets its share, on its device.

    A checkpoint holds the number of global draws used for training. A resumed run continues with the next draw, from
    any checkpoint and with any number of ranks. Lightning's own restoring of a loader cannot guarantee that: it
    prefetches one batch of a loader without a length, treats a length as that of the whole epoch, and omits the
    loader's state from checkpoints written at the end of an epoch.

    An endless sampler makes one endless epoch: end it with ``Trainer(max_steps=…)``, or divide it into epochs with
    ``Trainer(limit_train_batches=…)``, the number of batches per rank. A finite sampler makes an epoch of each pass:
    ``Trainer(max_epochs=3)`` trains three passes, each in its own order.

    Define loaders for validation and tests as methods of a subclass: with a data module, Lightning ignores those of
    the trained module.

    Parameters
    ----------
    dataset : Dataset
        The dataset that the sampler was made for.
    sampler : Sampler
        The sampler to draw from.
    start : int
        First global draw, counted over all passes.
    **options
        Further options of :func:`setsup.loader`, except ``rank``, ``world`` and ``to``, which Lightning sets.

    Attributes
    ----------
    delivered : int
        Number of global draws used for training, over all passes.

    Raises
    ------
    SamplerError, DataError, SetsupError
        As :func:`setsup.loader` does, at construction.

    Examples
    --------
    >>> import setsup
    >>> from setsup.loading.lightning import LightningBatches
    >>> shapes = setsup.load("shapes3d-procedural")
    >>> batches = LightningBatches(shapes, setsup.SetSampler(shapes.factors, inactive=["shape"], size=8), start=3)
    >>> batches.state_dict()
    {'delivered': 3}

    """

    def __init__(self, dataset: Dataset, sampler: Sampler, *, start: int = 0, **options: Any) -> None:
        super().__init__()
        # raises its errors now
        first = Loader(dataset, sampler, start=start, rank=0, world=1, to="torch", **options)
        self._dataset, self._sampler, self._options = dataset, sampler, options
        self._world = 1
        self.delivered: int = first.state_dict()["delivered"]

    def __str__(self) -> str:
        """Show sampler and position; Lightning's own version needs a trainer."""
        return f"{type(self).__name__}({self._dataset.name}, {self._sampler!r}, delivered={self.delivered})"

    def train_dataloader(self) -> "_Stream":
        """Batches of this rank, from the position on."""
        if self.trainer is None:
            raise SetsupError(
                "the batches are not attached to a trainer; pass them to Trainer.fit(module, datamodule=…)"
            )
        # ranks that share one model read the same batches, so this may differ from the rank of the process
        share = self.trainer.distributed_sampler_kwargs or {"num_replicas": 1, "rank": 0}
        self._world = share["num_replicas"]
        device = self.trainer.strategy.root_device
        to = "torch" if device.type == "cpu" else str(device)
        batches = Loader(self._dataset, self._sampler, rank=share["rank"], world=self._world, to=to, **self._options)
        batches.tells_passes = False  # the trainer has an end
        return _Stream(self, batches)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Count the batch that is about to be trained on; Lightning calls this for every batch."""
        if self.trainer is None:
            return batch
        if self.trainer.training:
            self.delivered = after_steps(self.delivered, 1, self._world, self._sampler.length)
        # Lightning calls only the data module's hook, and the module may have one too
        return self.trainer.lightning_module.on_before_batch_transfer(batch, dataloader_idx)

    def state_dict(self) -> dict[str, Any]:
        """Position, as :meth:`setsup.loading.Loader.state_dict` gives it."""
        return {"delivered": self.delivered}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go to a position: of a Lightning checkpoint, or of a loader."""
        position = Loader(self._dataset, self._sampler, to="numpy")
        position.load_state_dict(state_dict)
        self.delivered = position.state_dict()["delivered"]


class _Stream:
    """The iterable that Lightning gets: without a length, and with the data module's position."""

    def __init__(self, data: LightningBatches, batches: Loader) -> None:
        self._data, self._batches = data, batches
        # Lightning restores the same position in some checkpoints
        self.state_dict, self.load_state_dict = data.state_dict, data.load_state_dict

    def __iter__(self) -> Iterator[Batch]:
        self._batches.load_state_dict(self._data.state_dict())  # prefetched batches are repeated
        return iter(self._batches)
