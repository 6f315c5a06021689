"""Checkpoints of a run: the last one and the one before it, of which the newest that is whole is used."""

import logging
import os
from contextlib import suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import ZipFile

from setsup.errors import DataError
from setsup.files.atomic import beside

__all__ = ["CHECKPOINT", "PREVIOUS", "drop_previous", "has_checkpoint", "keep_previous", "opened"]

CHECKPOINT, PREVIOUS = "last.ckpt", "previous.ckpt"

_PARTS = {"global_step", "callbacks", "state_dict", "optimizer_states", "LightningBatches"}
_ADVICE = "remove it and train anew"
_LOG = logging.getLogger(__name__)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a checkpoint in a run folder, whole or not."""
    return (folder / CHECKPOINT).exists() or (folder / PREVIOUS).exists()


def opened(folder: Path, *, checked: bool = False) -> tuple[Path, dict[str, Any]]:
    """The newest checkpoint of a run folder that is whole: its path, and what it holds.

    Whoever asks is given the same one: where there is a previous checkpoint, all bytes are compared with their
    checksums, so that steps are never those of a checkpoint whose weights are not used.
    """
    try:
        return folder / CHECKPOINT, _read(folder / CHECKPOINT, checked or (folder / PREVIOUS).exists())
    except DataError as error:
        try:
            found = _read(folder / PREVIOUS, checked=True)
        except DataError:
            raise error from error.__cause__
        if checked:
            reason = str(error).removesuffix(f": {_ADVICE}")
            _LOG.warning("%s; %s, of step %d, takes its place", reason, folder / PREVIOUS, found["global_step"])
        return folder / PREVIOUS, found


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
        found = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except FileNotFoundError:
        folder = path.parent
        raise DataError(f"{folder} has no checkpoint yet: the command that began it goes on with it") from None
    except UnpicklingError as error:
        reason = "it holds more than tensors and plain values, or is damaged"
        raise DataError(f"{path} is not opened ({reason}): {_ADVICE}") from error
    except Exception as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path} is damaged ({reason}): {_ADVICE}") from error
    if not isinstance(found, dict) or not found.keys() >= _PARTS or "CheckpointCallback" not in found["callbacks"]:
        raise DataError(f"{path} is no checkpoint of a run: {_ADVICE}")
    if checked and (damaged := _damaged(path)) is not None:
        raise DataError(f"{path} is damaged ({damaged}): {_ADVICE}")
    return found


def _damaged(path: Path) -> str | None:
    """Part of a checkpoint whose bytes do not have their checksum; torch does not look at those that it writes."""
    try:
        with ZipFile(path) as parts:
            return parts.testzip()
    except Exception:  # of many kinds
        return "its list of parts"
