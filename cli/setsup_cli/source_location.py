"""Where the data of draws lay: a hint in ``draws.jsonl``, by which a replay finds them again."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setsup.files.expand_user import expanded

if TYPE_CHECKING:
    from setsup.opening import SourceKind

__all__ = ["find_place", "place_hint", "source_hint"]


def source_hint(source: str | Path, kind: "SourceKind", folder: Path, others: Mapping[str, str]) -> dict[str, Any]:
    """Hint at a source for a file in a folder; ``others`` are options with paths or addresses, by their names."""
    hint: dict[str, Any] = {"kind": kind, **place_hint(source, folder)}
    if others:
        hint["options"] = {name: place_hint(value, folder) for name, value in others.items()}
    return hint


def place_hint(source: str | Path, folder: Path) -> dict[str, str]:
    """A path, absolute and relative to a folder; the address alone of what is no path here."""
    path = expanded(source)
    if not path.exists():
        return {"path": str(source)}
    hint = {"path": str(path.absolute())}
    try:
        hint["relative"] = Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    except ValueError:  # another drive
        pass
    return hint


def find_place(hint: Mapping[str, str], folder: Path) -> str | None:
    """Path that a hint in a file of a folder leads to, or an address; None where nothing is there."""
    if "relative" not in hint and "://" in hint["path"]:
        return hint["path"]
    paths = [Path(hint["path"]), *([folder / hint["relative"]] if "relative" in hint else [])]
    return next((str(path) for path in paths if _exists(path)), None)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, not to be entered, or with a NUL
        return False
