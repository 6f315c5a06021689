"""Loggers of metrics: TensorBoard, wandb and MLflow, through Lightning's loggers."""

import json
import os
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.errors import require_modules

if TYPE_CHECKING:
    from lightning.pytorch.loggers import Logger

__all__ = ["build_logger", "end_run", "need_logger", "run_identity"]


def need_logger(name: str) -> None:
    """Raise LibraryError unless the package of a logger is installed, without the slow import."""
    require_modules(f"--log {name} needs", name)


def build_logger(name: str, title: str, folder: Path, identity: str, steps: int = 0) -> "Logger":
    """Build Lightning's logger of a name, which writes into a run folder."""
    if name == "tensorboard":
        from lightning.pytorch.loggers import TensorBoardLogger

        return TensorBoardLogger(folder, name="", version="tensorboard", default_hp_metric=False, purge_step=steps + 1)
    if name == "mlflow":
        from setsup.experiments.training.monitoring.mlflow_logger import ResumedMLFlowLogger

        # MLflow 3 refuses its former store of plain files
        uri = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{folder.absolute() / 'mlflow.db'}"
        return ResumedMLFlowLogger(uri, title, identity)
    from lightning.pytorch.loggers import WandbLogger

    return WandbLogger(name=title, project="setsup", save_dir=folder, id=identity, resume="allow")


def run_identity(folder: Path, about: Mapping[str, Any]) -> str:
    """Identity of a run for wandb and MLflow, which resumes with it; another folder or other settings have another."""
    return sha256(json.dumps([str(folder.absolute()), dict(about)]).encode()).hexdigest()[:16]


def end_run(identity: str, *, failed: bool = False) -> None:
    """End the wandb run of an identity if it is active, or the next training would be logged to it."""
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is not None and run.id == identity:
        run.finish(exit_code=int(failed))
