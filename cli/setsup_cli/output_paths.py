"""Where results are written: never over others, unless that is asked for."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from setsup.errors import DataError
from setsup_cli.parsing.arguments import flag

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Force", "free_path", "is_missing_or_equal", "moved", "write_file", "write_image"]

Force = Annotated[bool, flag("Replace an existing result; by default the new one has a numbered name, such as NAME-2.")]
"""The option ``--force``."""


def free_path(path: Path, is_free: Callable[[Path], bool]) -> Path:
    """The path, or the first of its numbered ones (``sheet-2.png``), that holds nothing else."""
    if is_free(path):
        return path
    if path.name in ("", ".."):
        raise DataError(f"{path} contains another result; choose a new folder, or use --force to replace it", file=path)
    numbered = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
    return next(filter(is_free, numbered))


def moved(asked: Path, path: Path) -> list[str]:
    """A line for the user where a result was written to another place than asked."""
    return (
        []
        if asked == path
        else [f"{asked} contains another result; wrote {path} instead (use --force to replace the existing result)"]
    )


def write_image(image: "Image", asked: Path, *, force: bool) -> Path:
    """Write a PNG where there is no other one, and return its path."""
    from setsup.files.outputs import marked_png

    return write_file(marked_png(image), asked, force=force)


def write_file(content: bytes, asked: Path, *, force: bool) -> Path:
    """Write a file where there is no other one, and return its path."""
    from setsup.files import locked, written

    with locked(asked):  # two processes would find the same place free
        free = asked if force else free_path(asked, lambda path: is_missing_or_equal(path, content))
        with written(free) as part:
            part.write_bytes(content)
    return free


def is_missing_or_equal(path: Path, content: bytes) -> bool:
    """Whether a file is missing, or has this content."""
    try:
        return path.stat().st_size == len(content) and path.read_bytes() == content
    except FileNotFoundError:
        return True
    except OSError:
        return False
