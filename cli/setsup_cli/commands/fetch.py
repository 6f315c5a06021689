"""``setsup fetch``: download the files of a data set."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from setsup.errors import DataError, SetsupError
from setsup.files import FileState, Manifest, State, check_files, fetch, load_manifest, readable_size
from setsup.files.downloads.check import release_folder
from setsup_cli.commands.datasets import foreign, present
from setsup_cli.output import say, say_licence, say_prose, show_json, show_table
from setsup_cli.parsing.arguments import Dataset, Json, MaybePath, MaybeWords, Root, option
from setsup_cli.parsing.source import check_root

__all__ = ["HELP", "Options", "run"]

HELP = """\
Files that are there are checked, not fetched again; what was interrupted goes on where it stopped. Without --root they
lie in $SETSUP_DATA/NAME, else in the user's cache; what is made of another data set's files finds them under its name.
The last line printed is the folder. Where no program may fetch the files, the steps to get them are printed. With
--check the exit code is 0 where the data set opens and no file is wrong, 1 otherwise."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the verb."""

    dataset: Dataset
    root: Root = None
    files: Annotated[
        MaybeWords,
        option(
            "NAME ...",
            "Fetch these files only, by their names or patterns such as '*_X2.zip'; `setsup info NAME --json` lists "
            "them. Some are fetched only so.",
        ),
    ] = None
    copies: Annotated[
        MaybePath,
        option(
            "FOLDER",
            "Folder with files that another tool has downloaded, such as tensorflow_datasets/downloads: those with the "
            "published digest are copied and not downloaded.",
        ),
    ] = None
    check: Annotated[
        bool,
        option(None, "Fetch nothing: say what is there, missing, or not as published, and whether the data set opens."),
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
        if options.files is not None:
            raise DataError("--check looks at every file; leave out --files")
        return _check(manifest, options)
    if not options.json:
        # before anything is fetched or refused
        say_licence(asdict(manifest.licence))
        if options.files is None and options.copies is None:
            _say_missing(manifest, options.root)
    folder = fetch(manifest, options.root, options.files, options.copies)
    if options.json:
        show_json({"name": name, "folder": str(folder), "files": [file.path for file in manifest.files]})
    else:
        say(str(folder))
    return 0


def _say_missing(manifest: Manifest, root: Path | None) -> None:
    """Tell a person how to get what no program may or can fetch, where some of it is missing."""
    by_hand = [file for file in manifest.files if manifest.licence.sign or not file.urls]
    if by_hand and not present(manifest, _folder(root)):
        _say_steps(manifest, root)


def _say_steps(manifest: Manifest, root: Path | None) -> None:
    if not manifest.steps:
        return
    say_prose(f"{manifest.title}: how to get it", piped=100)
    for number, step in enumerate(manifest.steps, 1):
        say_prose(f"{number}. {step}", piped=100)
    say(f"folder: {release_folder(manifest, _folder(root))}")


def _folder(root: Path | None) -> Path | None:
    """Folder that files are put into: that of an archive which was named."""
    return root if root is None or not root.is_file() else root.parent


def _check(manifest: Manifest, options: Options) -> int:
    """Say how every file is, and whether the data set opens; 1 where it does not, or a file is wrong."""
    found = _states(manifest, options.root)
    rows, why_not = _opened(manifest.name, options.root)
    if options.json:
        files = [_plain(state) for state in found]
        show_json({"files": files, "opens": why_not is None, "rows": rows, "why_not": why_not})
    else:
        heads = ["file", "is", "bytes", "where, or what is wrong"]
        show_table(heads, [_cells(state, why_not is None) for state in found], right=("bytes",))
        say()
        say_prose(f"opens: {rows:,} rows" if why_not is None else f"does not open: {why_not}")
        if why_not is not None and manifest.steps:
            say()
            _say_steps(manifest, options.root)
    return 0 if why_not is None and all(state.state is not State.WRONG for state in found) else 1


def _states(manifest: Manifest, root: Path | None) -> list[FileState]:
    """State of every file; of an archive that was named only those are looked at for which it stands."""
    if root is None or not root.is_file():
        return check_files(manifest, root)
    named = [file for file in manifest.files if root.name in (file.path, *file.alternatives)]
    found = {state.file.path: state for state in check_files(replace(manifest, files=tuple(named)), root.parent)}
    return [found.get(file.path, FileState(file, root, State.MISSING)) for file in manifest.files]


def _opened(name: str, root: Path | None) -> tuple[int | None, str | None]:
    """Count the rows of the data set, or say why it does not open."""
    from setsup.datasets import load

    try:
        return len(load(name, root)), None
    except SetsupError as error:
        return None, str(error)


def _plain(state: FileState) -> dict[str, object]:
    return {
        "file": state.file.path,
        "state": state.state.value,
        "path": str(state.path),
        "problem": state.problem or None,
        "optional": state.file.optional,
    }


def _cells(state: FileState, opens: bool) -> list[str]:
    size = "" if state.file.size is None else readable_size(state.file.size)
    if state.state is State.MISSING:
        # what the data set opens without lies in an archive or a folder around it, or is not needed
        about = "it opens without it" if opens else _place(state)
    else:
        about = state.problem or str(state.path)
    return [state.file.path, state.state.value, size, about]


def _place(state: FileState) -> str:
    if state.path.is_file():
        return "see below"  # perhaps in the archive that was named
    return "it can be done without" if state.file.optional else f"belongs to {state.path}"
