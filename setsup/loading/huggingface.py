"""Integration with Hugging Face's Trainer: a callback that keeps a loader's position in every checkpoint."""

# ruff: noqa: E402

from setsup.errors import SetsupError, require_modules

require_modules("PositionCallback needs", "transformers")  # before what imports it

from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from setsup.loading.loader import Loader

__all__ = ["PositionCallback"]


class PositionCallback(TrainerCallback, ExportableState):
    """Makes ``Trainer.train(resume_from_checkpoint=…)`` resume at the exact draw, for any number of ranks.

    It needs a trainer whose ``get_train_dataloader`` returns a :func:`setsup.loader`. The loader goes to its position
    by arithmetic, so the callback turns off skipping by reading batches (``ignore_data_skip``).

    Raises
    ------
    SetsupError
        If training starts with another loader, or from a checkpoint without a position.

    Examples
    --------
    Use ``Trainer(model, arguments, callbacks=[PositionCallback()])``. The callback adds to ``trainer_state.json``:

    >>> from setsup.loading.huggingface import PositionCallback
    >>> PositionCallback().state()
    {'args': {}, 'attributes': {'position': None}}

    """

    def __init__(self) -> None:
        self.position: dict[str, Any] | None = None
        self._batches: Loader | None = None

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Turn off skipping by reading batches."""
        args.ignore_data_skip = True

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """Move the loader to the checkpoint's position, if there is one."""
        if not isinstance(train_dataloader, Loader):
            raise SetsupError(
                "PositionCallback requires a setsup.loader; return one from get_train_dataloader, not "
                f"{type(train_dataloader).__name__}"
            )
        self._batches = train_dataloader
        if state.global_step:
            saved = state.stateful_callbacks.get(type(self).__name__)
            if not saved:
                raise SetsupError(
                    "the checkpoint contains no loader position, because it was written without PositionCallback; "
                    "train from its weights instead, and pass the position to the loader as start="
                )
            train_dataloader.load_state_dict(saved["attributes"]["position"])

    def state(self) -> dict[str, Any]:
        """State for a checkpoint: the number of global draws delivered, once training has started."""
        if self._batches is not None:
            self.position = self._batches.state_dict()
        return {"args": {}, "attributes": {"position": self.position}}
