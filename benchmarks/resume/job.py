"""One process of a run: what it knows, what it saw, and its checkpoint."""

import json
import os
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.resume.data import Item
from setsup.files import written

__all__ = ["Job", "saved_step"]


@dataclass
class Job:
    """A process, before the kill (`part` 0) or after it (1), or of a run that nothing interrupts (2).

    `folder` is shared by all processes of a cell; `stop` is the step after which a process waits for the kill, `done`
    the steps of the part that were logged.
    """

    folder: Path
    part: int
    rank: int
    world: int
    workers: int
    stop: int | None
    port: int = 0
    barrier: Any = None  # of all processes, for loops that have no other
    done: int = 0

    @property
    def group(self) -> str:
        """Address of the process group of this part."""
        return f"file://{self.folder}/group-{self.part}"

    def saw(self, items: Sequence[Item], of_pass: int | None = None) -> None:
        """Log a batch that arrived, with its pass where the loop counts passes.

        The batch after the last step that is to be trained is the moment of the kill.
        """
        self.done += 1
        with (self.folder / f"saw-{self.part}-{self.rank}.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps([self.done, items, of_pass]) + "\n")
        if self.stop is not None and self.done > self.stop:
            time.sleep(3600)

    def save(self, state: Any) -> None:
        """Replace the checkpoint; rank 0 does, for all."""
        if self.rank == 0:
            with written(self.folder / f"checkpoint-{self.part}.pickle") as part:
                part.write_bytes(pickle.dumps((self.done, state)))

    def load(self) -> Any:
        """The state that the killed run saved; None for the run itself."""
        return _saved(self.folder)[1] if self.part == 1 else None

    def save_own(self, state: Any) -> None:
        """Replace the checkpoint of this rank, for loops whose state is one of each rank."""
        with written(self.folder / f"checkpoint-{self.part}-{self.rank}.pickle") as part:
            part.write_bytes(pickle.dumps(state))
        self.save(state)

    def load_own(self) -> Any:
        """The state that this rank saved in the killed run; None for the run itself."""
        if self.part != 1:
            return None
        return pickle.loads((self.folder / f"checkpoint-0-{self.rank}.pickle").read_bytes())  # noqa: S301 - our own

    def join(self) -> None:
        """Join the process group of this part, unless Ray has."""
        import torch

        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo", init_method=self.group, rank=self.rank, world_size=self.world)

    def announce(self) -> None:
        """Set the variables by which torchrun tells a process who it is."""
        names: dict[str, Any] = {
            "RANK": self.rank,
            "LOCAL_RANK": self.rank,
            "WORLD_SIZE": self.world,
            "LOCAL_WORLD_SIZE": self.world,
        }
        names |= {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": self.port,
            "TORCHELASTIC_RUN_ID": "resume",
            "GROUP_RANK": 0,
        }
        os.environ.update({name: str(value) for name, value in names.items()})


def saved_step(folder: Path) -> int:
    """Steps that the checkpoint of the killed run has."""
    return _saved(folder)[0]


def _saved(folder: Path) -> tuple[int, Any]:
    found: tuple[int, Any] = pickle.loads((folder / "checkpoint-0.pickle").read_bytes())  # noqa: S301 - our own
    return found
