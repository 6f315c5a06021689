"""Where metrics go beside the run folder: TensorBoard and wandb, through Lightning's loggers."""

import json
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import need

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger

__all__ = ["end_run", "logger", "need_logger", "run_identity"]


def need_logger(name: str) -> None:
    """Raise LibraryError unless the package of a logger is installed; it is not imported, which takes long.

    Examples
    --------
    >>> need_logger("log_book")
    Traceback (most recent call last):
    setsup.errors.LibraryError: --log log_book needs log_book, which is not installed: pip install log_book

    """
    need(f"--log {name} needs", name)


def logger(name: str, title: str, folder: Path, identity: str, steps: int = 0) -> "Logger":
    """Lightning's logger of a name, which writes into a run folder."""
    if name == "tensorboard":
        from lightning.pytorch.loggers import TensorBoardLogger

        return TensorBoardLogger(folder, name="", version="tensorboard", default_hp_metric=False, purge_step=steps + 1)
    from lightning.pytorch.loggers import WandbLogger

    return WandbLogger(name=title, project="setsup", save_dir=folder, id=identity, resume="allow")


def run_identity(folder: Path, about: Mapping[str, Any]) -> str:
    """Under which wandb knows a run: the same when it goes on, another in another folder, or with other settings.

    Examples
    --------
    >>> seeds = [run_identity(Path("runs/a"), {"seed": seed}) for seed in (0, 0, 1)]
    >>> seeds[0] == seeds[1] != seeds[2]
    True

    """
    return sha256(json.dumps([str(folder.absolute()), dict(about)]).encode()).hexdigest()[:16]


def end_run(identity: str, *, failed: bool = False) -> None:
    """Let wandb end the run of an identity, if that is at work: the next training would be logged to it."""
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is not None and run.id == identity:
        run.finish(exit_code=int(failed))
