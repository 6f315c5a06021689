"""Sources of the content of an encoded file."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

__all__ = ["Source", "source_content"]

Source: TypeAlias = Path | bytes | Callable[[], bytes]
"""A file, its content, or a function that returns the content: called where it is decoded, in that thread."""


def source_content(source: Source) -> bytes:
    """Read a whole file."""
    return source if isinstance(source, bytes) else source.read_bytes() if isinstance(source, Path) else source()
