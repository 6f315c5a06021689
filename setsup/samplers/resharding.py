"""Whether a trainer shares out draws among processes that a shard has shared out already."""

import sys

__all__ = ["accelerated_processes"]


def accelerated_processes() -> int:
    """Number of processes among which a calling DataLoader of accelerate shards batches; 1 without such a caller."""
    if "accelerate.data_loader" not in sys.modules:
        return 1
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != "accelerate.data_loader":
        frame = frame.f_back  # type: ignore[assignment]
    return 1 if frame is None else int(sys.modules["accelerate.state"].PartialState().num_processes)
