"""``setsup fetch``: download the files of a data set."""

from dataclasses import dataclass
from typing import Annotated

from setsup.errors import DataError
from setsup.files import FileState, Manifest, State, check_files, data_places, fetch, load_manifest, readable_size
from setsup_cli.arguments import Dataset, Json, Root, option
from setsup_cli.datasets import foreign, present
from setsup_cli.output import say, say_prose, show_json, show_table
from setsup_cli.source import check_root

__all__ = ["HELP", "Options", "run"]

HELP = """\
Files that are there are checked, not fetched again; what was interrupted goes on where it stopped. Without --root they
lie in $SETSUP_DATA/NAME, else in the user's cache. The last line printed is the folder. Where no program may fetch the
files, the steps to get them are printed."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: Dataset
    root: Root = None
    check: Annotated[
        bool, option(None, "Fetch nothing: say what is there, what is missing, and what is not as published.")
    ] = False
    json: Json = False


def run(options: Options) -> int:
    """Fetch and say where the files are."""
    name = options.dataset
    check_root(options.root)
    package = foreign().get(name)
    if package is not None:
        raise DataError(f"{name} comes from the package {package}, which says how to get its files")
    manifest = load_manifest(name)
    if not manifest.files:
        raise DataError(f"{name} has no files to fetch; use it as it is (`setsup info {name}`)")
    if options.check:
        return _check(manifest, options)
    if not options.json:
        _say_steps(manifest, options)
    folder = fetch(manifest, options.root)
    if options.json:
        show_json({"name": name, "folder": str(folder), "files": [file.path for file in manifest.files]})
        return 0
    licence = manifest.licence
    say(f"licence: {licence.name}" + (f" ({licence.note})" if licence.note else ""))
    say(str(folder))
    return 0


def _say_steps(manifest: Manifest, options: Options) -> None:
    """Tell a person how to get what no program may or can fetch, where some of it is missing."""
    by_hand = [file for file in manifest.files if manifest.licence.sign or not file.urls]
    if not manifest.steps or not by_hand or present(manifest, options.root):
        return
    say_prose(f"{manifest.title}: how to get it", piped=100)
    for number, step in enumerate(manifest.steps, 1):
        say_prose(f"{number}. {step}", piped=100)
    say(f"folder: {data_places(manifest.name, options.root)[0]}")


def _check(manifest: Manifest, options: Options) -> int:
    """Say how every file is; 1 where one is missing or wrong."""
    found = check_files(manifest, options.root)
    if options.json:
        show_json([_plain(state) for state in found])
    else:
        heads = ["file", "is", "bytes", "where, or what is wrong"]
        show_table(heads, map(_cells, found), right=("bytes",))
    return 1 if any(state.wanted for state in found) else 0


def _plain(state: FileState) -> dict[str, object]:
    return {
        "file": state.file.path,
        "state": state.state.value,
        "path": str(state.path),
        "problem": state.problem or None,
        "optional": state.file.optional,
    }


def _cells(state: FileState) -> list[str]:
    size = "" if state.file.size is None else readable_size(state.file.size)
    missing = "it can be done without" if state.file.optional else f"belongs to {state.path}"
    about = state.problem or (missing if state.state is State.MISSING else str(state.path))
    return [state.file.path, state.state.value, size, about]
