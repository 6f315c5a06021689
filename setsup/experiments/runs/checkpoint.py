"""Checkpoints of a run: the last one and the one before it, of which the newest undamaged one is used; and kept ones.

A kept checkpoint is another name of what was the last one: ``step-000500.ckpt``, ``best.ckpt``.
"""

import logging
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import ZipFile

from setsup.errors import DataError, SetsupError
from setsup.files.atomic import beside, settle, written

__all__ = [
    "CALLBACK",
    "CHECKPOINT",
    "COUNTER",
    "PREVIOUS",
    "callback_state",
    "drop_previous",
    "has_checkpoint",
    "keep_as",
    "keep_previous",
    "kept_name",
    "open_checkpoint",
    "open_kept",
    "step_name",
    "trained_steps",
]

CHECKPOINT, PREVIOUS = "last.ckpt", "previous.ckpt"

CALLBACK = "CheckpointCallback"
"""Under which a checkpoint has the seconds and images of training."""
COUNTER = "StepCounter"
"""Under which it has the number of steps; Lightning's own counts those of each optimiser."""
_FORMER = "Keeper"
"""The same in checkpoints of earlier versions."""

_PARTS = {"global_step", "callbacks", "state_dict", "optimizer_states", "LightningBatches"}
_KEPT = re.compile(r"best|step-(\d{1,18})")
_ADVICE = "remove the file and train again"
_LOG = logging.getLogger(__name__)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a checkpoint in a run folder, damaged or not."""
    return (folder / CHECKPOINT).exists() or (folder / PREVIOUS).exists()


def open_checkpoint(folder: Path, *, checked: bool = False) -> tuple[Path, dict[str, Any]]:
    """Open the newest undamaged checkpoint of a run folder: its path, and its content.

    All callers get the same one: if there is a previous checkpoint, all bytes are compared with their checksums, so
    that steps are never those of a checkpoint whose weights are not used.
    """
    try:
        return folder / CHECKPOINT, _read(folder / CHECKPOINT, checked or (folder / PREVIOUS).exists())
    except DataError as error:
        try:
            checkpoint = _read(folder / PREVIOUS, checked=True)
        except DataError:
            raise error from error.__cause__
        if checked:
            reason = str(error).removesuffix(f"; {_ADVICE}")
            _LOG.warning("%s; using %s, of step %d, instead", reason, folder / PREVIOUS, trained_steps(checkpoint))
        return folder / PREVIOUS, checkpoint


def open_kept(folder: Path, name: str, *, checked: bool = False) -> tuple[Path, dict[str, Any]]:
    """Open a kept checkpoint of a run folder by its name, such as ``best``: its path, and its content."""
    path = folder / f"{name}.ckpt"
    if not path.exists():
        there = sorted(file.stem for file in folder.glob("*.ckpt") if _KEPT.fullmatch(file.stem))
        listed = f"available: {', '.join(there)}" if there else "none was kept"
        raise DataError(
            f"{folder} has no checkpoint {name!r} ({listed}); to keep more checkpoints, run `setsup train` with "
            "--keep-every N or --keep-best METRIC"
        )
    return path, _read(path, checked)


def kept_name(name: str) -> str:
    """Name under which a checkpoint is kept: ``step-500`` is ``step-000500``, and ``last`` is none."""
    if name == "last":
        return ""
    if (match := _KEPT.fullmatch(name)) is None:
        raise SetsupError(f"a checkpoint must be named last, best or step-N, for example step-500, not {name!r}")
    return name if match[1] is None else step_name(int(match[1]))


def step_name(step: int) -> str:
    """Name of the checkpoint of a step."""
    return f"step-{step:06d}"


def keep_as(source: Path, name: str) -> None:
    """Give a checkpoint another name, atomically; a copy on a disk without links."""
    path = source.with_name(f"{name}.ckpt")
    spare = beside(path)
    try:
        os.link(source, spare)
        settle(spare, path)
    except OSError:
        with written(path) as part:
            shutil.copyfile(source, part)
    finally:
        spare.unlink(missing_ok=True)  # still there where both names were of one file already


def callback_state(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Seconds and images of training that a checkpoint has."""
    states = checkpoint["callbacks"]
    state: dict[str, Any] = states.get(CALLBACK) or states[_FORMER]
    return state


def trained_steps(checkpoint: dict[str, Any]) -> int:
    """Steps of the training that a checkpoint has; those of earlier versions have Lightning's number only."""
    counted = checkpoint["callbacks"].get(COUNTER)
    return int(checkpoint["global_step"] if counted is None else counted["steps"])


def keep_previous(folder: Path) -> None:
    """Give the last checkpoint a second name, before the next one takes its first."""
    spare = beside(folder / PREVIOUS)
    try:
        os.link(folder / CHECKPOINT, spare)
        spare.replace(folder / PREVIOUS)
    except OSError:  # of a disk without links
        (folder / CHECKPOINT).replace(folder / PREVIOUS)
    finally:
        spare.unlink(missing_ok=True)  # still there where both names were of one file already


def drop_previous(folder: Path) -> None:
    """Remove the previous checkpoint if the last one reads back as it was written."""
    with suppress(DataError):
        _read(folder / CHECKPOINT, checked=True)
        (folder / PREVIOUS).unlink(missing_ok=True)


def _read(path: Path, checked: bool) -> dict[str, Any]:
    """Read a Lightning checkpoint without unpickling anything but tensors and plain values."""
    import torch

    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except FileNotFoundError:
        folder = path.parent
        raise DataError(f"{folder} contains no checkpoint yet; repeat the command that started the run") from None
    except UnpicklingError as error:
        reason = "it contains more than tensors and plain values, or is damaged"
        raise DataError(f"{path} was not loaded ({reason}); {_ADVICE}") from error
    except Exception as error:
        reason = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__  # torch's first sentence
        raise DataError(f"{path} is damaged ({reason}); {_ADVICE}") from error
    if (
        not isinstance(checkpoint, dict)
        or not checkpoint.keys() >= _PARTS
        or not any(key in checkpoint["callbacks"] for key in (CALLBACK, _FORMER))
    ):
        raise DataError(f"{path} is not a checkpoint of a run; {_ADVICE}")
    if checked and (damaged := _damaged(path)) is not None:
        raise DataError(f"{path} is damaged ({damaged}); {_ADVICE}")
    return checkpoint


def _damaged(path: Path) -> str | None:
    """Part of a checkpoint whose bytes do not have their checksum, which torch writes but does not verify."""
    try:
        with ZipFile(path) as parts:
            return parts.testzip()
    except Exception:  # of many kinds
        return "its list of parts"
