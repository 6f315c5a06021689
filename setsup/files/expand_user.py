"""Home folders in paths."""

from pathlib import Path

from setsup.checks import check_path
from setsup.errors import DataError

__all__ = ["expanded"]


def expanded(path: Path | str) -> Path:
    """Put a user's home folder in the place of ``~`` or ``~user`` at the beginning of a path.

    Examples
    --------
    >>> expanded("data/mnist").as_posix()
    'data/mnist'
    >>> expanded("~nobody-of-that-name/mnist")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    setsup.errors.DataError: ~nobody-of-that-name/mnist: unknown home folder

    """
    path = check_path(path, "this", DataError)
    try:
        return path.expanduser()
    except RuntimeError:
        who = path.parts[0]
        raise DataError(
            f"{path}: unknown home folder {who!r}; write the full path, or ./{path} for a folder of that name"
        ) from None
