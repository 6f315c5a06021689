"""The entry point ``setsup``. Nothing is imported here, so that Ctrl-C is handled during imports, too."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        from setsup_cli.dispatch import run

        return run(words)
    except KeyboardInterrupt as stop:
        sentence = " ".join(["stopped", *map(str, stop.args)])
        sys.stderr.write(_as_json(sentence) if "--json" in words else f"setsup: {sentence}\n")
        return 130


def _as_json(sentence: str) -> str:
    """The interruption as one JSON object, as :mod:`setsup_cli.failures` writes errors."""
    import json

    hint = sentence.rpartition("; ")[2] if "; " in sentence else None
    return json.dumps({"error": sentence, "kind": "KeyboardInterrupt", "file": None, "hint": hint}) + "\n"
