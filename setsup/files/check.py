"""Whether a file is the published one: its size and its digest."""

from pathlib import Path

from setsup.errors import DataError
from setsup.files.digest import MEND, content_digest
from setsup.files.manifests import ManifestFile
from setsup.progress import progress

__all__ = ["file_problem"]


def file_problem(path: Path, file: ManifestFile) -> str | None:
    """Compare a file with what its manifest says.

    Where the manifest knows the digest of the unpacked content, that alone decides: a re-packed or unpacked copy is
    as good as the published file. Else the size and the digest of the file do.

    Parameters
    ----------
    path : Path
        A file that exists.
    file : ManifestFile
        What it should be.

    Returns
    -------
    str or None
        What is wrong with it, None where it is right.

    """
    if not path.is_file():
        return "is no file"
    size = path.stat().st_size
    if not file.repacked and file.size not in (None, size):
        return f"has {size:,} bytes, not the {file.size:,} expected"
    algorithm, expected = _digest(file)
    if not expected:
        return None
    total = file.unpacked_size if file.repacked else size
    try:
        with progress(total, f"checking {path.name.removesuffix('.part')}", "B") as advance:
            came = content_digest(path, algorithm, file.repacked, limit=total, advance=advance)
    except DataError as error:
        return str(error).removeprefix(f"{path} ").removesuffix(MEND)
    if came == expected:
        return None
    return f"has the {algorithm} {came}{' when unpacked' if file.repacked else ''}, not the {expected} expected"


def _digest(file: ManifestFile) -> tuple[str, str | None]:
    if file.repacked:
        return ("sha256", file.unpacked_sha256) if file.unpacked_sha256 else ("md5", file.unpacked_md5)
    return ("sha256", file.sha256) if file.sha256 else ("md5", file.md5)
