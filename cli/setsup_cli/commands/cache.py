"""``setsup cache``: lists the cache, or clears it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from setsup.errors import DataError, did_you_mean
from setsup.files import cache_folder, disk_errors, manifest_names, readable_size
from setsup_cli.output import say, show_json, show_table
from setsup_cli.parsing.arguments import Common, option
from setsup_cli.suggestions import advise

__all__ = ["HELP", "Options", "run"]

HELP = """\
Indexes and prepared arrays are rebuilt when they are needed. Fetched datasets would have to be downloaded again, so
they are cleared only by name."""

_REBUILT = {
    "groups": "which rows share which factors",
    "tables": "tables converted from CSV and Parquet",
    "prepared": "arrays converted from slow files",
    "shards": "parts of remote shards",
    "locks": "locks for read-only folders",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    clear: Annotated[
        tuple[str, ...] | None,
        option("[NAME ...]", "Remove these entries or, without names, everything that can be rebuilt."),
    ] = None


def run(options: Options) -> int:
    """List the cache, or clear parts of it."""
    folder = cache_folder()
    entries = _entries(folder)
    if options.clear is not None:
        names = list(options.clear) or [name for name in entries if name in _REBUILT]
        _clear(folder, entries, names)
        entries = {name: size for name, size in entries.items() if name not in names}
    if options.json:
        show_json({"folder": str(folder), "entries": [{"name": name, "bytes": size} for name, size in entries.items()]})
        return 0
    if entries:
        rows = [[name, readable_size(size), _REBUILT.get(name, "a fetched dataset")] for name, size in entries.items()]
        show_table(["name", "size", "what it is"], rows, right=("size",))
        say()
    else:
        say("nothing is cached")
    say(str(folder))
    if any(name in _REBUILT for name in entries):
        advise(options, "setsup cache --clear  # removes what can be rebuilt")
    return 0


def _entries(folder: Path) -> dict[str, int]:
    """Size in bytes of each entry that setsup made; other folders are not listed."""
    known = {*_REBUILT, *manifest_names()}
    try:
        paths = sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}; set SETSUP_CACHE to another folder") from error
    # a download that failed at once leaves an empty folder
    return {path.name: _size(path) for path in paths if path.name in known and _has_files(path)}


def _has_files(folder: Path) -> bool:
    return any(files for _, _, files in os.walk(folder))


def _size(folder: Path) -> int:
    total = 0
    for parent, _, files in os.walk(folder):
        for file in files:
            try:
                about = (Path(parent) / file).lstat()
                total += min(about.st_size, about.st_blocks * 512)  # copies of shards are mostly holes
            except FileNotFoundError:
                continue  # removed by another process meanwhile
    return total


def _clear(folder: Path, entries: dict[str, int], names: list[str]) -> None:
    for name in names:
        if name not in entries:
            raise DataError(f"cache entry {name!r} not found in {folder}{did_you_mean(name, entries)}")
        if (folder / name).is_symlink():
            raise DataError(f"{folder / name} is a link to a folder outside the cache; remove the link yourself")
    for name in dict.fromkeys(names):
        with disk_errors(folder / name):
            shutil.rmtree(folder / name)
