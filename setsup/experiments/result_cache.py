"""Parts of evaluations that a run folder keeps: an interrupted evaluation resumes, and no part is computed twice.

A part is a file of JSON: all that its results depend on, the results by item, and their checksum. A file that is
damaged, or of other settings, counts as absent.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.checks import check_string
from setsup.errors import SetsupError
from setsup.files.atomic import clear, written
from setsup.files.locks import clear_lock, locked

__all__ = [
    "PartStore",
    "check_part",
    "computed_items",
    "digest",
    "digest_arrays",
    "digest_rows",
    "digest_weights",
    "plain",
]

_LOG = logging.getLogger(__name__)

Compute = Callable[[Sequence[str]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PartStore:
    """The parts of one evaluation, in a folder.

    Attributes
    ----------
    folder : Path
        Where they are; it is created with the first part.
    about : mapping
        What all parts depend on, as JSON values: weights, seed, transform.

    """

    folder: Path
    about: Mapping[str, Any]

    def parts(self, name: str, settings: Mapping[str, Any], items: Sequence[str], compute: Compute) -> dict[str, Any]:
        """Results by item: those that are kept, and those that `compute` returns for the items that are not."""
        key = {"part": name, "about": plain(self.about), "settings": plain(settings)}
        path = self.folder / f"{name}-{digest(key)[:16]}.json"
        results = _read(path, key)
        if missing := [item for item in items if item not in results]:
            computed = computed_items(compute, missing)
            with locked(path):
                clear(path)  # what a killed process left
                results = _read(path, key) | computed  # another process may have added other items meanwhile
                text = json.dumps(key | {"results": results, "sha256": digest(results)}, indent=1, ensure_ascii=False)
                with written(path) as part:
                    part.write_text(text + "\n", encoding="utf-8")
        else:
            clear_lock(path)
        return {item: results[item] for item in items}


def computed_items(compute: Compute, items: Sequence[str]) -> dict[str, Any]:
    """What a function returns for some items, as JSON has it; SetsupError if one is missing."""
    computed = compute(items)
    for item in items:
        if item not in computed:
            raise SetsupError(
                f"a part of an evaluation returned no result for {item!r}; return a result for each of its items"
            )
    return {item: plain(computed[item]) for item in items}


def plain(value: Any) -> Any:
    """A value as it is after JSON: numpy's numbers and arrays become numbers and lists, tuples lists."""
    return json.loads(json.dumps(value, default=_default))


def digest(value: Any) -> str:
    """SHA-256 of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def digest_weights(weights: Mapping[str, Any]) -> str:
    """SHA-256 of the names, types, shapes and bytes of a state dict, whatever file it is kept in."""
    import torch

    sha256 = hashlib.sha256()
    for name, weight in sorted(weights.items()):
        if isinstance(weight, torch.Tensor) and not torch.nn.parameter.is_lazy(weight):
            sha256.update(f"{name} {weight.dtype} {tuple(weight.shape)}\n".encode())
            sha256.update(weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        else:
            sha256.update(f"{name} {weight!r}\n".encode())
    return sha256.hexdigest()


def digest_arrays(arrays: Iterable[npt.ArrayLike]) -> str:
    """SHA-256 of the types, shapes and bytes of arrays, in their order."""
    sha256 = hashlib.sha256()
    for one in arrays:
        array = np.ascontiguousarray(one)
        sha256.update(f"{array.dtype.str} {array.shape}\n".encode())
        sha256.update(array.reshape(-1).view(np.uint8).data)
    return sha256.hexdigest()


def digest_rows(rows: Iterable[int]) -> str:
    """SHA-256 of row numbers, in their order."""
    return hashlib.sha256(np.asarray(rows, dtype="<i8").tobytes()).hexdigest()


def check_part(name: str) -> str:
    """Check the name of a part, which is that of its file too."""
    check_string(name, "the name of a part", SetsupError)
    if not name or not all(letter.isalnum() or letter in "-_" for letter in name):
        raise SetsupError(f"the name of a part may contain only letters, digits, - and _, not {name!r:.60}")
    return name


def _read(path: Path, key: Mapping[str, Any]) -> dict[str, Any]:
    """Results that a file has for a key; none if it is absent, damaged, or of something else."""
    if not path.is_file():
        return {}
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        results = held.pop("results")
        if held.pop("sha256") == digest(results) and held == key and isinstance(results, dict):
            return results
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    _LOG.warning("%s is damaged; recomputing its results", path)
    return {}


def _default(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise SetsupError(
        f"a part of an evaluation contains a {type(value).__name__}, which JSON cannot represent; settings and results "
        "must be numbers, strings, arrays, or lists and mappings of them"
    )
