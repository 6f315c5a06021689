"""Shared code of substitute datasets: a folder with a record of its content."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setsup.errors import DataError, advice
from setsup.files import data_places, disk_errors, written
from setsup.files.roots import place_seen, root_option

__all__ = ["RECORD", "find_substitute", "is_substitute", "place_substitute", "settle_record"]

RECORD = "SUBSTITUTE.json"
"""File that labels the folder of a substitute."""


def is_substitute(folder: Path) -> bool:
    """Whether a folder is labelled as a substitute."""
    return (folder / RECORD).is_file()


def settle_record(folder: Path, title: str, options: Mapping[str, Any]) -> None:
    """Label a folder, which the caller has locked, or check that its content was made with the same options."""
    record = {"what": title, **options}
    path = folder / RECORD
    with disk_errors(path):
        if path.is_file():
            earlier = json.loads(path.read_text(encoding="utf-8"))
            if earlier != record:
                raise DataError(
                    f"{path}: the folder was created with {_differences(earlier, record)}; pass the same options, or "
                    f"choose another folder ({advice('root=', '--root')})"
                )
            return
        lock = f"{RECORD}.lock"
        others = sorted(each.name for each in folder.iterdir() if each.name != lock and not each.name.startswith("."))
    if others:
        raise DataError(
            f"{folder} is not empty and is not a substitute dataset: it contains {others[0]}, but not {RECORD}; choose "
            f"a new folder for the substitute ({advice('root=', '--root')})"
        )
    with written(path) as fresh:
        fresh.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _differences(earlier: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Differences of two records, such as ``"models=1 instead of 2, meshes=none instead of car.obj"``."""
    unlike = [name for name in {**earlier, **record} if earlier.get(name) != record.get(name)]
    words = []
    for name in unlike:
        there, asked = (_words(options.get(name)) for options in (earlier, record))
        words.append(
            f"{name}={there} instead of {asked}" if there != asked else f"{name}={there}, which has changed since then"
        )
    return ", ".join(words)


def _words(value: Any) -> str:
    """A value of a record; for files with their digests, only the files."""
    if isinstance(value, Mapping | list):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def place_substitute(name: str, root: Path | str | None) -> Path:
    """Folder that a substitute is rendered to: the root, or the default folder."""
    return data_places(name, root)[0]


def find_substitute(name: str, root: Path | str | None, last: str) -> Path:
    """Folder of a finished substitute, which contains the file that is written `last`."""
    folders = data_places(name, root)
    for folder in folders:
        if is_substitute(folder) and (folder / last).is_file():
            return folder
    seen = ", ".join(map(place_seen, folders))
    raise DataError(
        f"{name} has not been rendered yet (looked in {seen}); run `setsup prepare {name}{root_option(root)}`"
    )
