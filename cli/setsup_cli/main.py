"""The entry point ``setsup``. Nothing is imported here, so that Ctrl-C is handled during imports, too."""

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    try:
        from setsup_cli.dispatch import run

        return run(words)
    except KeyboardInterrupt as stop:
        sentence = " ".join(["stopped", *map(str, stop.args)])
        sys.stderr.write(_as_json(sentence) if "--json" in words else f"setsup: {sentence}\n")
        return 130


def _open_closed_streams() -> None:
    """Give standard streams that were closed (``>&-``) a file: another one would get their number, and their output.

    What is written to standard output fails, as it does for other programs.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_RDONLY), encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False)


def _as_json(sentence: str) -> str:
    """The interruption as one JSON object, as :mod:`setsup_cli.failures` writes errors."""
    import json

    hint = sentence.rpartition("; ")[2] if "; " in sentence else None
    return json.dumps({"error": sentence, "kind": "KeyboardInterrupt", "file": None, "hint": hint}) + "\n"
