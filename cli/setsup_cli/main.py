"""The entry point ``setsup``. Nothing is imported here, so that Ctrl-C is handled during imports, too."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    try:
        from setsup_cli.dispatch import run

        return run(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"setsup: {' '.join(['stopped', *map(str, stop.args)])}\n")
        return 130
