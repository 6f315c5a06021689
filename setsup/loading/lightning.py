"""Lightning's door: a data module whose checkpoints resume at the very draw, whatever the number of ranks."""

from collections.abc import Iterator
from typing import Any

from setsup.datasets.dataset import Dataset
from setsup.errors import SetsupError
from setsup.loading.batch import Batch
from setsup.loading.loader import Loader
from setsup.samplers import Sampler

try:
    from lightning.pytorch import LightningDataModule
except ImportError:
    raise SetsupError("Lightning is not installed: pip install -e '.[train]' in setsup's folder") from None

__all__ = ["LightningBatches"]


class LightningBatches(LightningDataModule):
    """Training batches for a Lightning ``Trainer``; each rank gets its share, on its device.

    A checkpoint holds the number of global draws on which training began. A resumed run goes on with the next draw,
    from any checkpoint and with any number of ranks. Lightning's own restoring of a loader cannot promise that: it
    takes one batch ahead of a loader without a length, reads a length as that of the whole epoch, and leaves the
    loader's state out where a checkpoint was written at the end of an epoch.

    An endless sampler makes one endless epoch: end it with ``Trainer(max_steps=…)``, or divide it into epochs with
    ``Trainer(limit_train_batches=…)``, a number of batches of each rank.

    Loaders for validation and tests are methods of a subclass: where there is a data module, Lightning does not ask the
    module that is trained for them.

    Parameters
    ----------
    dataset : Dataset
        Whose table the sampler was made of.
    sampler : Sampler
        What to draw.
    start : int
        Global draw to begin with.
    **options
        Further options of :func:`setsup.loader`, other than ``rank``, ``world`` and ``to``, which Lightning knows.

    Attributes
    ----------
    delivered : int
        Number of global draws on which training began.

    Raises
    ------
    SamplerError, DataError, SetsupError
        At once, for what :func:`setsup.loader` refuses.

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
        # refuses now what it refuses
        first = Loader(dataset, sampler, start=start, rank=0, world=1, to="torch", **options)
        self._dataset, self._sampler, self._options = dataset, sampler, options
        self._world = 1
        self.delivered: int = first.state_dict()["delivered"]

    def __str__(self) -> str:
        """Sampler and position; Lightning's own text asks for the batches of a trainer."""
        return f"{type(self).__name__}({self._dataset.name}, {self._sampler!r}, delivered={self.delivered})"

    def train_dataloader(self) -> "_Stream":
        """Batches of this rank, from the first draw on that no checkpoint counts."""
        if self.trainer is None:
            raise SetsupError("the batches have no trainer yet: pass them to Trainer.fit(module, datamodule=…)")
        # ranks that share a model between them read the same batches, so this is not always the rank of the process
        share = self.trainer.distributed_sampler_kwargs or {"num_replicas": 1, "rank": 0}
        self._world = share["num_replicas"]
        device = self.trainer.strategy.root_device
        to = "torch" if device.type == "cpu" else str(device)
        batches = Loader(self._dataset, self._sampler, rank=share["rank"], world=self._world, to=to, **self._options)
        return _Stream(self, batches)

    def on_before_batch_transfer(self, batch: Any, dataloader_idx: int) -> Any:
        """Count the batch that training begins with now; Lightning calls this for every batch."""
        if self.trainer is None:
            return batch
        if self.trainer.training:
            self.delivered += self._world
            if self._sampler.length is not None:
                self.delivered = min(self.delivered, self._sampler.length)
        # Lightning asks the data module alone, and the module may have such a hook too
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
    """What Lightning iterates over: without a length, and with the data module's position as its own."""

    def __init__(self, data: LightningBatches, batches: Loader) -> None:
        self._data, self._batches = data, batches
        # what Lightning restores at some checkpoints is what the data module restored before
        self.state_dict, self.load_state_dict = data.state_dict, data.load_state_dict

    def __iter__(self) -> Iterator[Batch]:
        self._batches.load_state_dict(self._data.state_dict())  # batches that were taken and not trained on come again
        return iter(self._batches)
