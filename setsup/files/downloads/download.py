"""Download a published file: mirror after mirror, checked, and renamed into place when it is right."""

import logging
from pathlib import Path

from setsup.errors import DataError
from setsup.files.atomic import settle
from setsup.files.disk import disk_errors
from setsup.files.downloads.addresses import AddressCheck
from setsup.files.downloads.check import file_problem
from setsup.files.downloads.transfer import MirrorError, drop_part, part_address, transfer
from setsup.files.manifests.manifest import ManifestFile

__all__ = ["download", "partial_path"]

_log = logging.getLogger("setsup")


def partial_path(target: Path) -> Path:
    """Name the file that holds what was received of `target` so far."""
    return target.with_name(target.name + ".part")


def download(file: ManifestFile, target: Path, check: AddressCheck | None = None, limit: int | None = None) -> None:
    """Fetch a published file to `target` from the first mirror that gives it.

    `check` is called with each address before it is asked, also where a server redirects to, and may raise. At most
    `limit` bytes are received.

    Data is received into ``<target>.part`` until it is complete and correct, also after Ctrl-C or a lost connection;
    the next call resumes there.
    """
    part = partial_path(target)
    begun = part_address(part)
    failures = []
    urls = sorted(file.urls, key=lambda url: url != begun)  # stable: the mirror of the part, then as they stand
    for url, following in zip(urls, [*urls[1:], None], strict=True):
        try:
            if check is not None:
                check(url)
            _receive(url, part, file, check, limit)
        except MirrorError as error:
            failures.append(f"{url} {error}")
            if following is not None:
                _log.warning("%s %s; trying %s", url, error, following)
            continue
        with disk_errors(target):
            settle(part, target)
        drop_part(part)
        return
    raise DataError(f"{target.name} could not be downloaded: " + "; ".join(failures))


def _receive(url: str, part: Path, file: ManifestFile, check: AddressCheck | None, limit: int | None) -> None:
    """Receive a file that passes its check.

    One that was put together from several answers and does not is given up for one whole new one: what came first may
    be damaged, or the file may have changed under the same date.
    """
    for last in (False, True):
        joined = transfer(url, part, size=file.size, exact=not file.repacked, check=check, limit=limit)
        problem = file_problem(part, file)
        if problem is None:
            return
        drop_part(part)
        if last or not joined:
            raise MirrorError(f"returned a file that {problem}")
