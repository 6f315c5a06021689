"""What went wrong, on standard error: one sentence, or one JSON object under ``--json``."""

import sys
from pathlib import Path

from setsup.errors import SetsupError

__all__ = ["say_error"]

_MEMORY = "not enough memory; use fewer steps, sets or rows"


def say_error(error: SetsupError | MemoryError, *, as_json: bool) -> None:
    """Write an error to standard error."""
    sentence = str(error) if isinstance(error, SetsupError) else _MEMORY
    if not as_json:
        sys.stderr.write(f"setsup: {sentence}\n")
        return
    import json

    hint = error.hint if isinstance(error, SetsupError) else _MEMORY.rpartition("; ")[2]
    told = {"error": sentence, "kind": type(error).__name__, "file": _file(error), "hint": hint}
    sys.stderr.write(json.dumps(told) + "\n")


def _file(error: BaseException | None) -> str | None:
    """The file of an error, or of the one that caused it."""
    while error is not None:
        named = error.file if isinstance(error, SetsupError) else getattr(error, "filename", None)
        if isinstance(named, str | Path):
            return str(named)
        error = error.__cause__
    return None
