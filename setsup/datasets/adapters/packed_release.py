"""Releases in one compressed archive, which ``setsup prepare`` unpacks once so that files can be mapped."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from setsup.datasets.adapters.prepared_images import prepare_command
from setsup.errors import DataError
from setsup.files import data_places, unpack
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.builds import build_once
from setsup.files.expand_user import expanded
from setsup.files.prepared import prepared_place, prepared_places

__all__ = ["PackedRelease"]


@dataclass(frozen=True, slots=True)
class PackedRelease:
    """A dataset's published `archives`, the `folder` one of them is unpacked to, and the files that each `holds`.

    `holds` as for :func:`setsup.files.find_members`.
    """

    name: str
    archives: tuple[str, ...]
    folder: str
    holds: Mapping[str, str]

    def find(self, root: Path | str | None) -> MemberIndex:
        """Find the unpacked files; a DataError gives the command that unpacks them."""
        path = None if root is None else expanded(root)
        archive = self._archive(path)
        unpacked = [folder for folder in self._targets(archive) if folder.is_dir()]
        if unpacked and path == archive:
            path = unpacked[0]
        try:
            members = find_members(self.name, path, self.holds)
        except DataError as error:
            if archive is None:
                raise
            if not unpacked:
                raise self._packed(archive, root) from error
            members = find_members(self.name, unpacked[0], self.holds)
        if members.path(0) is None:
            raise self._packed(members.source, root)
        return members

    def unpack(self, root: Path | str | None) -> MemberIndex:
        """Unpack the archive next to itself or, if that is not writable, into the cache folder."""
        archive = self._archive(None if root is None else expanded(root))
        if archive is None:
            return self.find(root)
        target = prepared_place(*self._targets(archive))
        return build_once(target, lambda _: self._find_unpacked(root), lambda folder: unpack(archive, folder))

    def _find_unpacked(self, root: Path | str | None) -> MemberIndex | None:
        """The files; None if they have not been unpacked yet."""
        try:
            return self.find(root)
        except DataError:
            return None

    def _archive(self, root: Path | None) -> Path | None:
        """A published archive, or the archive passed as root."""
        for folder in data_places(self.name, root):
            for path in [folder] if folder.is_file() else [folder / name for name in self.archives]:
                if path.is_file():
                    return path
        return None

    def _targets(self, archive: Path | None) -> tuple[Path, ...]:
        """Folders that the archive may have been unpacked to."""
        return () if archive is None else prepared_places(archive, self.folder)

    def _packed(self, archive: Path, root: Path | str | None) -> DataError:
        command = "unzip" if archive.suffix.lower() == ".zip" else "tar -xf"
        return DataError(
            f"{self.name}: {archive} is compressed, but its files must be mapped into memory; run "
            f"{prepare_command(self.name, root)} once to unpack it, or unpack it yourself ({command} "
            f"{shlex.quote(archive.name)})"
        )
