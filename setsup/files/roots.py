"""Folders that may hold the files of a dataset."""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from setsup.errors import PATH_LETTERS, DataError, advice, short
from setsup.files.cache import cache_folder
from setsup.files.expand_user import expanded
from setsup.files.manifests.packages import find_manifest

__all__ = ["data_places", "find_root", "place_seen", "root_option", "some"]

_NAMED = 3


def data_places(name: str, root: Path | str | None = None) -> list[Path]:
    """List the folders that may hold the files of a dataset, best first.

    Parameters
    ----------
    name : str
        Name of the dataset. If it shares the files of another one (``shares`` in its manifest), folders of that name
        are included.
    root : Path, str or None
        The folder of the published files, or a folder with a subfolder `name` of them. None: ``$SETSUP_DATA/<name>``
        if it is set, then ``<user cache>/setsup/<name>``. Existing folders of other tools (``folders`` in the
        manifest) follow, such as torchvision's ``MNIST/raw``, in `root` and in a root ``MNIST``.

    Examples
    --------
    >>> [place.as_posix() for place in data_places("mnist", "/data")]
    ['/data', '/data/mnist']
    >>> [place.as_posix() for place in data_places("affine-mnist", "/data")]
    ['/data', '/data/affine-mnist', '/data/mnist']

    """
    names = [name]
    folders: tuple[str, ...] = ()
    with suppress(DataError):  # what is wrong with a manifest says whoever needs more of it
        manifest = find_manifest(name)
        if manifest is not None:
            names += [manifest.shares] if manifest.shares else []
            folders = manifest.folders
    if root is not None:
        folder = expanded(root)
        return [folder, *(folder / each for each in names), *_tool_folders([folder], folders)]
    around = [cache_folder()]
    if shared := os.environ.get("SETSUP_DATA"):
        around.insert(0, expanded(shared))
    return [*(folder / each for each in names for folder in around), *_tool_folders(around, folders)]


def _tool_folders(around: Sequence[Path], folders: Sequence[str]) -> list[Path]:
    """Folders of other tools that are there: below each of some places, or below one that is their first folder."""
    paths = []
    for folder in around:
        for name in folders:
            first, _, rest = name.partition("/")
            paths += [folder / name, *([folder / rest] if rest and folder.name == first else [])]
    return [folder for folder in paths if os.path.isdir(folder)]


def find_root(name: str, root: Path | str | None, wanted: Sequence[Sequence[str] | str]) -> Path:
    """Find the folder with all files of a dataset; nothing is created.

    Parameters
    ----------
    name : str
        Name of the dataset.
    root : Path, str or None
        As in :func:`data_places`.
    wanted : sequence of str or of sequences of str
        Relative paths that must exist; at least one path of a sequence.

    Raises
    ------
    DataError
        If a folder with all files is not found; the message lists the folders, the missing files, and the command that
        fetches them.

    """
    folders = data_places(name, root)
    missing = {folder: [names for names in wanted if not _holds(folder, names)] for folder in folders}
    for folder in folders:
        if not missing[folder]:
            return folder
    # what is missing is told for the place that comes nearest
    nearest = min(folders, key=lambda folder: len(missing[folder]))
    files = some([names if isinstance(names, str) else names[0] for names in missing[nearest]])
    raise DataError(
        f"{name}: {files} not found; looked in {', '.join(map(place_seen, folders))}; run `setsup fetch "
        f"{name}{root_option(root)}`, or pass the folder that contains the files ({advice('root=', '--root')})"
    )


def place_seen(folder: Path) -> str:
    """Write a folder for a message, with the reason why it cannot be read.

    Examples
    --------
    >>> place_seen(Path("nowhere"))
    'nowhere (does not exist)'

    """
    name = short(str(folder), PATH_LETTERS)
    try:
        os.stat(f"{folder}{os.sep}.")  # asks for the right to enter, which a look at the folder itself does not
    except PermissionError:
        return f"{name} (permission denied)"
    except NotADirectoryError:
        return f"{name} (not a folder)"
    except (OSError, ValueError):
        return f"{name} (does not exist)"
    return name


def root_option(root: Path | str | None) -> str:
    """Option ``--root`` of a command; empty for a file, into which nothing can be fetched.

    Examples
    --------
    >>> root_option("my data"), root_option(None)
    (" --root 'my data'", '')

    """
    if root is None or os.path.isfile(expanded(root)):
        return ""
    return f" --root {short(shlex.quote(str(root)), PATH_LETTERS)}"


def some(names: Sequence[str], between: str = ", ") -> str:
    """List the first three names, or sentences with another separator, and count the others."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return between.join(names[:_NAMED]) + more


def _holds(folder: Path, names: Sequence[str] | str) -> bool:
    # os.path, since Path.exists raises where a folder may not be entered
    return any(os.path.exists(folder / name) for name in ([names] if isinstance(names, str) else names))
