"""What trainers among the callers do with batches, where they tell nobody."""

import sys
from types import FrameType

__all__ = ["accelerated_processes", "epoch_of_lightning"]

_REQUESTS = (("fit_loop", "setup_data"), ("training_epoch_loop", "on_run_start"))
"""Functions of Lightning's loops that make an iterator over a DataLoader."""


def accelerated_processes() -> int:
    """Number of processes among which a calling DataLoader of accelerate shards batches; 1 without such a caller."""
    if "accelerate.data_loader" not in sys.modules:
        return 1
    frame = _caller("accelerate.data_loader")
    return 1 if frame is None else int(sys.modules["accelerate.state"].PartialState().num_processes)


def epoch_of_lightning() -> int | None:
    """Number of the epoch for which a calling training loop of Lightning requests batches; None without one.

    With worker processes, torch's DataLoader requests indices as soon as its iterator is made, and Lightning calls
    ``set_epoch`` in a run that resumes after that only (Lightning's issue 21938). A loop that begins with a later epoch
    makes a second iterator, where it starts to run.
    """
    for name in ("lightning.pytorch.loops", "pytorch_lightning.loops"):
        for module, function in _REQUESTS:
            frame = _caller(f"{name}.{module}", function) if f"{name}.{module}" in sys.modules else None
            trainer = None if frame is None else getattr(frame.f_locals.get("self"), "trainer", None)
            progress = getattr(getattr(trainer, "fit_loop", None), "epoch_progress", None)
            epoch = getattr(getattr(progress, "current", None), "processed", None)  # what it calls set_epoch with
            if isinstance(epoch, int):
                return epoch
    return None


def _caller(module: str, function: str | None = None) -> FrameType | None:
    """Frame of the innermost caller in a module."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == module and function in (None, frame.f_code.co_name):
            return frame
        frame = frame.f_back
    return None
