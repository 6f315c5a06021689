"""Where a data set's files lie."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from setsup.errors import DataError
from setsup.files.cache import cache_folder

__all__ = ["data_places", "find_root"]


def data_places(name: str, root: Path | str | None = None) -> list[Path]:
    """List the folders in which a data set's files are looked for, best first.

    Parameters
    ----------
    name : str
        Name of the data set.
    root : Path, str or None
        The folder that holds the published files themselves, or a folder with a folder `name` that does. None:
        ``$SETSUP_DATA/<name>`` where that is set, then ``<user cache>/setsup/<name>``.

    Examples
    --------
    >>> [place.as_posix() for place in data_places("mnist", "/data")]
    ['/data', '/data/mnist']

    """
    if root is not None:
        folder = Path(root).expanduser()
        return [folder, folder / name]
    places = [cache_folder() / name]
    if shared := os.environ.get("SETSUP_DATA"):
        places.insert(0, Path(shared).expanduser() / name)
    return places


def find_root(name: str, root: Path | str | None, wanted: Sequence[Sequence[str] | str]) -> Path:
    """Find the folder that holds all files of a data set; nothing is created by looking.

    Parameters
    ----------
    name : str
        Name of the data set.
    root : Path, str or None
        As in :func:`data_places`.
    wanted : sequence of str or of sequences of str
        Relative paths that must be there; of a sequence, one of them.

    Raises
    ------
    DataError
        No place holds them all; the message lists the places, what is missing, and the command that fetches it.

    """
    places = data_places(name, root)
    missing = {place: [names for names in wanted if not _holds(place, names)] for place in places}
    for place in places:
        if not missing[place]:
            return place
    # what is missing is told for the place that comes nearest
    nearest = min(places, key=lambda place: len(missing[place]))
    files = ", ".join(names if isinstance(names, str) else names[0] for names in missing[nearest][:8])
    more = f" and {len(missing[nearest]) - 8} more" if len(missing[nearest]) > 8 else ""
    looked = ", ".join(f"{place}{'' if os.path.isdir(place) else ' (no such folder)'}" for place in places)
    option = "" if root is None else f" --root {shlex.quote(str(root))}"
    raise DataError(
        f"{name}: {files}{more} not found; looked in {looked}; "
        f"run `setsup fetch {name}{option}`, or name the folder that holds the files (--root or root=)"
    )


def _holds(place: Path, names: Sequence[str] | str) -> bool:
    # os.path, since Path.exists raises where a folder may not be entered
    return any(os.path.exists(place / name) for name in ([names] if isinstance(names, str) else names))
