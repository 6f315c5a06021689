"""The door to Hugging Face's Trainer: a callback that keeps a loader's position in every checkpoint."""

from typing import Any

from setsup.errors import SetsupError
from setsup.loading.loader import Loader

try:
    from transformers import TrainerCallback
    from transformers.trainer_callback import ExportableState
except ImportError:
    raise SetsupError("transformers is not installed: pip install -e '.[train]' in setsup's folder") from None

__all__ = ["PositionCallback"]


class PositionCallback(TrainerCallback, ExportableState):
    """Makes ``Trainer.train(resume_from_checkpoint=…)`` go on at the very draw, with any number of ranks.

    It needs a trainer whose ``get_train_dataloader`` returns a :func:`setsup.loader`. The loader goes to its position
    by arithmetic, so the trainer is told not to skip batches by reading them (``ignore_data_skip``).

    Raises
    ------
    SetsupError
        When training begins with batches that come from elsewhere, or from a checkpoint that holds no position.

    Examples
    --------
    ``Trainer(model, arguments, callbacks=[PositionCallback()])`` is all. What it adds to ``trainer_state.json``:

    >>> from setsup.loading.huggingface import PositionCallback
    >>> PositionCallback().state()
    {'args': {}, 'attributes': {'position': None}}

    """

    def __init__(self) -> None:
        self.position: dict[str, Any] | None = None
        self._batches: Loader | None = None

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Let the loader do the skipping."""
        args.ignore_data_skip = True

    def on_train_begin(self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any) -> None:
        """Bring the loader to the checkpoint's position, if there is a checkpoint."""
        if not isinstance(train_dataloader, Loader):
            raise SetsupError(
                "PositionCallback keeps the position of a setsup.loader: return one from get_train_dataloader, not "
                f"{type(train_dataloader).__name__}"
            )
        self._batches = train_dataloader
        if state.global_step:
            saved = state.stateful_callbacks.get(type(self).__name__)
            if not saved:
                raise SetsupError(
                    "the checkpoint holds no position of a loader: it was written without PositionCallback; train from "
                    "its weights instead, with the loader's start= where you want it"
                )
            train_dataloader.load_state_dict(saved["attributes"]["position"])

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the number of global draws delivered, once training has begun."""
        if self._batches is not None:
            self.position = self._batches.state_dict()
        return {"args": {}, "attributes": {"position": self.position}}
