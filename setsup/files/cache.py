"""The user's cache folder: datasets downloaded without a root, indexes, prepared arrays."""

import os
from pathlib import Path

from setsup.files.expand_user import expanded

__all__ = ["cache_folder"]


def cache_folder() -> Path:
    """Return the folder for data that setsup can rebuild; it is not created.

    Returns
    -------
    Path
        ``$SETSUP_CACHE`` if it is set, else ``setsup`` in the user's cache folder (on Linux
        ``$XDG_CACHE_HOME/setsup`` or ``~/.cache/setsup``).

    Examples
    --------
    >>> cache_folder().is_absolute()
    True

    """
    named = os.environ.get("SETSUP_CACHE")
    if named:
        return expanded(named).absolute()
    from platformdirs import user_cache_path

    return user_cache_path("setsup", appauthor=False)
