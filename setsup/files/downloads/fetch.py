"""Fetch a benchmark: find missing files, check the licence and the space, download, verify."""

import glob
import logging
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from setsup.errors import DamagedFile, DataError, did_you_mean
from setsup.files.disk import make_folder, need_space
from setsup.files.downloads.check import State, file_state, release_folder
from setsup.files.downloads.copies import list_copies, take_copy
from setsup.files.downloads.download import download, partial_path
from setsup.files.downloads.transfer import drop_part, part_size
from setsup.files.locks import clear_lock, locked
from setsup.files.manifests.manifest import Manifest, ManifestFile

__all__ = ["fetch"]

_log = logging.getLogger("setsup")
_MOST = 1 << 24
_LINE = re.compile(r"\w[\w.-]*(?:/\w[\w.-]*)*")
_SHOWN = 4  # names that a message gives of those that serve as well


def fetch(
    manifest: Manifest,
    root: Path | str | None = None,
    files: Sequence[str] | None = None,
    copies: Path | str | None = None,
) -> Path:
    """Download the files of a benchmark that are missing or wrong.

    Existing files are verified and not downloaded again. If two processes fetch the same benchmark, one waits for the
    other.

    Parameters
    ----------
    manifest : Manifest
        Manifest of the benchmark.
    root : Path, str or None
        Folder for the files; None: ``$SETSUP_DATA/<name>`` if it is set, else ``<user cache>/setsup/<name>``, with the
        name of the dataset that shares its files, if any.
    files : sequence of str, optional
        Names or patterns, such as ``"*_LR_bicubic_X2.zip"``, of files in the manifest or in its lists; by default all
        files except those on request only.
    copies : Path or str, optional
        Folder of another tool's downloads, such as ``~/tensorflow_datasets/downloads``: files with the published digest
        are copied from there.

    Returns
    -------
    Path
        The folder of the files.

    Raises
    ------
    DataError
        A licence must be signed first, a file cannot be downloaded, an existing file is damaged, `root` is an archive,
        `files` does not match any file, or the disk is full or not writable.

    Examples
    --------
    >>> from setsup.files import load_manifest
    >>> fetch(load_manifest("shapes3d-procedural"), "/nowhere").as_posix()  # it has no files
    '/nowhere'

    """
    archive = root if root is not None and Path(root).is_file() else None
    if archive is not None:
        root = Path(archive).parent  # where other files of the benchmark belong
    folder = release_folder(manifest, root)
    if manifest.listed and files is not None and archive is None:
        manifest = _with_listed(manifest, root, files, folder)
    # a folder of files that lists name is filled on request
    tops = [each.path.partition("/")[0] for each in manifest.listed]
    chosen = [file for file in manifest.files if file.path not in tops] if files is None else _named(manifest, files)
    missing = _missing(manifest, chosen, folder, asked=files is not None)
    _tidy((file for file in chosen if file not in missing), folder)
    if missing and copies is not None and archive is None:
        there = list_copies(copies)
        make_folder(folder)
        with locked(folder / (manifest.shares or manifest.name)):
            missing = [file for file in missing if not take_copy(file, folder / file.path, there)]
    if not missing:
        clear_lock(folder / (manifest.shares or manifest.name))
        return folder
    _refuse_unfetchable(manifest, missing, folder, f"`setsup fetch {manifest.name}{_option(root)} --check`")
    only = "" if files is None else f" --files {shlex.join(files)}"
    command = f"setsup fetch {manifest.name}{only}{_option(root)}"
    if archive is not None:
        raise DataError(
            f"{archive} is a file, but files are fetched into a folder: run `{command}`; to check whether "
            f"{manifest.name} opens from this file, run `setsup fetch {manifest.name}{_option(archive)} --check`"
        )
    again = f"`{command}`"
    make_folder(folder)
    with locked(folder / (manifest.shares or manifest.name)):
        missing = _missing(manifest, missing, folder, asked=True)  # what another process has not fetched meanwhile
        need_space(folder, sum(_to_come(file, folder) for file in missing), manifest.name)
        for file in missing:
            _fetch_file(manifest, file, folder, again)
    return folder


def _with_listed(manifest: Manifest, root: Path | str | None, names: Sequence[str], folder: Path) -> Manifest:
    """Add the files that lists name to a manifest, where some are asked for; the lists are fetched first."""
    from setsup.files.texts import read_beside, text_of  # numpy comes with it

    if all(any(fnmatchcase(file.path, name) for file in manifest.files) for name in names):
        return manifest
    fetch(manifest, root, [glob.escape(name) for each in manifest.listed for name in each.lists])
    paths = {file.path: file_state(file, folder).path for file in manifest.files}
    listed: dict[str, ManifestFile] = {}
    for each in manifest.listed:
        for path in (paths[name] for name in each.lists):
            for line in text_of(read_beside(path, _MOST, "a list of files"), str(path)).split():
                if not _LINE.fullmatch(line):
                    raise DamagedFile(
                        f"{path} has an invalid line {line[:60]!r}: expected names such as bike/batch-1/20"
                    )
                listed[each.path.replace("{}", line)] = each.of(line)
    return replace(manifest, files=(*manifest.files, *listed.values()))


def _option(root: Path | str | None) -> str:
    return "" if root is None else f" --root {shlex.quote(str(root))}"


def _named(manifest: Manifest, names: Sequence[str]) -> list[ManifestFile]:
    """Files of some names or patterns, in the order of the manifest."""
    paths = [file.path for file in manifest.files]
    for name in names:
        if not any(fnmatchcase(path, name) for path in paths):
            raise DataError(f"unknown file {name!r} of {manifest.name}{did_you_mean(name, paths)}")
    return [file for file in manifest.files if any(fnmatchcase(file.path, name) for name in names)]


def _offered(manifest: Manifest, file: ManifestFile) -> bool:
    """Whether a program may download a file without being asked for it by name."""
    return bool(file.urls) and not manifest.licence.sign and not file.on_request


def _missing(manifest: Manifest, files: Iterable[ManifestFile], folder: Path, asked: bool) -> list[ManifestFile]:
    """List the files that are not there, or that are there and wrong and can be fetched again.

    Those that the benchmark opens without are left out where no program may fetch them, unless they are `asked` for.
    """
    shared = manifest.shared
    states = [file_state(file, folder, shared) for file in files]
    there = any(state.state is not State.MISSING for state in states)
    # where none is needed by itself, and nothing can be fetched, one at least is
    needed = asked or not (there or manifest.wanted or any(_offered(manifest, file) for file in manifest.files))
    missing = []
    for state in states:
        file = state.file
        if state.state is State.WRONG:
            if state.path != folder / file.path or not file.urls or not state.path.is_file():
                raise DataError(f"{state.path} {state.problem}; remove it, and fetch or copy {file.path} again")
            _log.warning("%s %s; fetching it again to replace it", state.path, state.problem)
        # what one can do without is fetched where a program may
        if state.wanted or (state.state is State.MISSING and (needed or _offered(manifest, file))):
            missing.append(file)
    return missing


def _tidy(files: Iterable[ManifestFile], folder: Path) -> None:
    """Remove what a kill left of downloads that were finished."""
    for file in files:
        if (folder / file.path).is_file():
            with suppress(DataError):  # of a disk that is read-only
                drop_part(partial_path(folder / file.path))


def _refuse_unfetchable(manifest: Manifest, missing: list[ManifestFile], folder: Path, check: str) -> None:
    """Say what a person has to do where no program may, or can."""
    by_hand = [file for file in missing if manifest.licence.sign or not file.urls]
    if not by_hand:
        return
    files = ", ".join(map(_or_others, by_hand))
    if manifest.steps:
        files += f", and the other files named in its steps (`setsup fetch {manifest.name}` prints them),"
    page = f" ({manifest.homepage})" if manifest.homepage else ""
    if manifest.licence.sign:
        first = f"{manifest.name} is available only after signing: {manifest.licence.sign}{page}"
    else:
        first = f"{manifest.name} has files that cannot be downloaded automatically; get them yourself{page}"
    raise DataError(f"{first}; then put {files} into {folder}, and check with {check}")


def _or_others(file: ManifestFile) -> str:
    """A file and what serves in its place."""
    others = ", ".join(file.alternatives[:_SHOWN]) + (", …" if len(file.alternatives) > _SHOWN else "")
    return f"{file.path} (or {others})" if others else file.path


def _to_come(file: ManifestFile, folder: Path) -> int:
    """Count the bytes that are still to be received."""
    return max((file.size or 0) - part_size(partial_path(folder / file.path)), 0)


def _fetch_file(manifest: Manifest, file: ManifestFile, folder: Path, again: str) -> None:
    target = folder / file.path
    make_folder(target.parent)
    try:
        download(file, target)
    except DataError as error:
        known = manifest.addresses
        told = f" (its addresses, as known on {known.checked}: {known.known})" if known else ""
        raise DataError(
            f"{manifest.name}: {error}{told}; resume with {again}, or put {file.path} into {folder} yourself"
        ) from error
