"""Files of weights: torch's, old and new, safetensors, and HDF5 of Keras; none of them can run code."""

import io
import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from setsup.errors import DamagedFile, DataError, LibraryError
from setsup.files.lfs import refuse_pointer
from setsup.methods.networks.keras_files import SIGNATURE, load_keras
from setsup.optional import extra_command

__all__ = ["load_state"]


def load_state(path: Path) -> Mapping[str, Any]:
    """What a file holds by names, bare or under ``state_dict``; DataError if these are no names."""
    content = _load(path)
    while isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]
    if not isinstance(content, Mapping) or not all(isinstance(name, str) for name in content):
        raise DataError(
            f"{path} contains no named weights; pass a file with a state_dict, or with a dict that contains one"
        )
    return content


def _load(path: Path) -> Any:
    """What a file holds: safetensors or HDF5 where it begins as such a file does, otherwise torch's weights only."""
    try:
        with path.open("rb") as file:
            head = file.read(9)
    except IsADirectoryError:
        raise DataError(
            f"{path} is a folder; pass the file in it, such as model.safetensors or pytorch_model.bin"
        ) from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}; pass the path of a checkpoint file") from None
    refuse_pointer(path)
    if head.startswith(SIGNATURE):
        return load_keras(path)
    try:
        if head[8:] == b"{":
            from safetensors.torch import load_file

            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # old files from memory: from disk, a damaged length is allocated before the file is found to be shorter
            source = path if head.startswith(b"PK") else io.BytesIO(path.read_bytes())
            return torch.load(source, map_location="cpu", weights_only=True)
    except ImportError:
        raise LibraryError(f"{path} requires safetensors, which is not installed: {extra_command('train')}") from None
    except Exception as error:  # the unpickler meets damaged bytes with errors of many kinds
        refused = re.search(r"GLOBAL ([\w.]+)", str(error)) if isinstance(error, pickle.UnpicklingError) else None
        if refused:
            raise DataError(
                f"{path} contains a {refused[1]}, which could run code, so it was not loaded; if you trust the file, "
                "save only its state_dict with torch.save"
            ) from None
        raise DamagedFile(
            f"{path} is not a readable checkpoint ({type(error).__name__}): it is truncated or damaged"
        ) from None
