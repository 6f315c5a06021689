"""JSON files of run folders."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setsup.errors import DataError
from setsup.files.atomic import written
from setsup.files.disk import need_regular

__all__ = ["finite", "peek_json", "read_json", "read_preset_name", "write_json"]


def finite(value: float) -> float | None:
    """The number as JSON keeps it: null where it is not finite."""
    return float(value) if math.isfinite(value) else None


def read_json(path: Path, advice: str = "restore it, or train again in another folder") -> dict[str, Any]:
    """Read a JSON object."""
    need_regular(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); {advice}", file=path) from None
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a JSON object; {advice}", file=path)
    return content


def peek_json(path: Path) -> dict[str, Any]:
    """Content of a JSON object, unchecked; empty where it cannot be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def read_preset_name(folder: Path) -> str | None:
    """Name of the preset of the run in a folder; None where it holds none."""
    name = peek_json(folder / "run.json").get("preset")
    return name if isinstance(name, str) else None


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object atomically."""
    with written(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
