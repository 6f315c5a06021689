"""``setsup fetch``: downloads the files of a dataset."""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

from setsup.errors import DataError, SetsupError
from setsup.files import FileState, Manifest, State, check_files, fetch, load_manifest, readable_size
from setsup.files.downloads.check import release_folder
from setsup_cli.commands.datasets import foreign, present
from setsup_cli.output import say, say_licence, say_prose, show_json, show_table
from setsup_cli.parsing.arguments import Common, Dataset, Root, flag, option
from setsup_cli.parsing.source import check_benchmark, check_root
from setsup_cli.suggestions import advise_command

__all__ = ["HELP", "Options", "run"]

HELP = """\
Existing files are verified and not downloaded again. Without --root, the files are stored in
$SETSUP_DATA/NAME if SETSUP_DATA is set, else in the user's cache; datasets that share files are stored in one folder.
The last line printed is the folder. If files cannot be downloaded automatically, the steps to get them are printed.
With --check, the exit code is 0 if the dataset opens and no file differs from the published one, and 1 otherwise."""


_EXAMPLE = 4  # alternatives from which a file stands for any of them, such as a category's


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Common):
    """Options of the subcommand."""

    dataset: Dataset = field(kw_only=False)
    root: Root = None
    files: Annotated[
        tuple[str, ...] | None,
        option(
            "NAME ...",
            "Download only these files, by name or pattern such as '*_X2.zip'; `setsup info NAME --json` lists them. "
            "Optional files are downloaded only if they are named.",
        ),
    ] = None
    copies: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Folder of files that another tool downloaded, such as tensorflow_datasets/downloads: files with the "
            "published checksum are copied instead of downloaded.",
        ),
    ] = None
    check: Annotated[
        bool,
        flag(
            "Download nothing; report whether each file is valid, missing or different from the published one, and "
            "whether the dataset opens."
        ),
    ] = False


def run(options: Options) -> int:
    """Fetch and say where the files are."""
    name = options.dataset
    check_benchmark(name, "download")
    check_root(options.root)
    package = foreign().get(name)
    if package is not None:
        raise DataError(f"{name} belongs to the package {package}; its documentation describes how to get the files")
    manifest = load_manifest(name)
    if not manifest.files and not options.check:
        raise DataError(
            f"{name} has no files to fetch and opens without a download (`setsup info {name}` describes it)"
        )
    if options.check:
        if options.files is not None:
            raise DataError("--check verifies every file; omit --files")
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
        advise_command(options, ["setsup", "info", name, *(["--root", options.root] if options.root else [])])
    return 0


def _say_missing(manifest: Manifest, root: Path | None) -> None:
    """Print how to get files that cannot be downloaded automatically, if some are missing."""
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
    """Report on every file, and whether the dataset opens; return 1 if it does not, or if a file is wrong."""
    states = _states(manifest, options.root)
    rows, why_not = _opened(manifest.name, options.root)
    if options.json:
        files = [_plain(state) for state in states]
        show_json({"files": files, "opens": why_not is None, "rows": rows, "why_not": why_not})
    else:
        if states:
            heads = ["file", "state", "bytes", "path, or problem"]
            show_table(heads, [_cells(state, why_not is None) for state in states], right=("bytes",))
        else:
            say(f"{manifest.name} has no files to fetch")
        say()
        say_prose(f"opens: {rows:,} rows" if why_not is None else f"does not open: {why_not}")
        if why_not is not None and manifest.steps:
            say()
            _say_steps(manifest, options.root)
    return 0 if why_not is None and all(state.state is not State.WRONG for state in states) else 1


def _states(manifest: Manifest, root: Path | None) -> list[FileState]:
    """State of every file; of a named archive only the files that it replaces."""
    if root is None or not root.is_file():
        return check_files(manifest, root)
    named = [file for file in manifest.files if root.name in (file.path, *file.alternatives)]
    states = {state.file.path: state for state in check_files(replace(manifest, files=tuple(named)), root.parent)}
    return [states.get(file.path, FileState(file, root, State.MISSING)) for file in manifest.files]


def _opened(name: str, root: Path | None) -> tuple[int | None, str | None]:
    """Count the rows of the dataset, or say why it does not open."""
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
        # a file that is not needed may be in an archive or a folder around it
        about = "not needed: the dataset opens" if opens else _place(state)
    else:
        about = state.problem or str(state.path)
    return [state.file.path, state.state.value, size, about]


def _place(state: FileState) -> str:
    if state.path.is_file():
        return "see below"  # perhaps in the archive that was named
    if state.file.optional:
        return "optional"
    if len(state.file.alternatives) >= _EXAMPLE:
        return f"one such as {state.path}: see the steps"
    return f"belongs to {state.path}"
