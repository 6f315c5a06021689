r"""Names of the files in a folder, a zip or a tar, made alike.

Convention
----------
A name is relative, with ``/`` between its parts, and has no part that is empty, ``.`` or ``..``. Bytes that are not
UTF-8 are written ``\xe9``, and so is the backslash of a file on the disk: no other backslash occurs, since archives
that have one are refused, and the bytes can be had back.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from setsup.errors import PATH_LETTERS, DataError, short

__all__ = ["as_bytes", "as_text", "clean_name", "clean_names", "escaped", "is_unwanted", "shown", "unwanted"]

_ODD = r"\\|\x00|(?:^|/)\.{0,2}(?:/|$)|^[A-Za-z]:/"
_LEFT_BEHIND = (
    *(r"__MACOSX", r"@eaDir", r"\$RECYCLE\.BIN", r"System Volume Information", r"lost\+found"),
    *(r"(?i:thumbs\.db)", r"(?i:ehthumbs\.db)", r"(?i:desktop\.ini)", r"Icon\r"),
)
_UNWANTED = rf"(?:^|/)(?:\.DS_Store|\._[^/]*|{'|'.join(_LEFT_BEHIND)})(?:/|$)"
_HIDDEN = rf"{_UNWANTED}|(?:^|/)\."
_ODD_BYTES = re.compile(_ODD.encode())
_HIDDEN_TEXT = re.compile(_HIDDEN)
_SIGNS = (b"\0/", b"\0.", b"//", b"/.", b"/\0", b"\0\0", b"\\", b":/")
"""An odd name, with NUL around it, has one of these, or a NUL of its own; a look for them takes a third of the time."""
_FEW = 16  # names for which Arrow takes longer to start than to look
_DRIVE = re.compile(rb"[A-Za-z]:/")
_BYTE = re.compile(rb"\\x([0-9a-f]{2})")


def clean_names(names: Sequence[bytes], source: Path | str) -> list[bytes]:
    """Names of an archive's files without parts that say nothing: ``./a//b`` becomes ``a/b``.

    Examples
    --------
    >>> clean_names([b"./list.txt", b"cars//1.mat"], Path("cars.tar"))
    [b'list.txt', b'cars/1.mat']

    """
    import pyarrow as pa
    import pyarrow.compute as pc

    cleaned = list(names)
    text = b"\0".join([b"", *cleaned, b""])
    if text.count(b"\0") == len(cleaned) + 1 and not any(sign in text for sign in _SIGNS):
        return cleaned
    if len(cleaned) < _FEW:
        return [clean_name(name, source) if _ODD_BYTES.search(name) else name for name in cleaned]
    odd = pc.indices_nonzero(pc.match_substring_regex(pa.array(cleaned, pa.large_binary()), _ODD))
    for row in odd.to_pylist():
        cleaned[row] = clean_name(cleaned[row], source)
    return cleaned


def clean_name(name: bytes, source: Path | str) -> bytes:
    """Do for one name what :func:`clean_names` does for many."""
    parts = [part for part in name.split(b"/") if part not in (b"", b".")]
    if not parts or b".." in parts or name.startswith(b"/") or b"\\" in name or b"\0" in name or _DRIVE.match(name):
        said = shown(name[:200].decode("utf-8", "backslashreplace"))
        raise DataError(
            f"{source} contains a file named {said!r}, which could be written outside its folder; get the archive from "
            "its publisher, or pack it again with relative names and forward slashes"
        )
    return b"/".join(parts)


def as_text(names: Sequence[bytes]) -> Any:
    r"""Give names as a pyarrow large_string array; bytes that are not UTF-8 become ``\xe9``.

    Examples
    --------
    >>> as_text([b"caf\xe9.png"])[0].as_py()
    'caf\\xe9.png'

    """
    import pyarrow as pa

    if len(names) < _FEW:
        return pa.array([name.decode("utf-8", "backslashreplace") for name in names], pa.large_string())
    try:
        return pa.array(names, pa.large_binary()).cast(pa.large_string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "backslashreplace") for name in names], pa.large_string())


def as_bytes(name: bytes) -> bytes:
    r"""Give the bytes by which the system knows a file.

    Examples
    --------
    >>> as_bytes(b"caf\\xe9.png")
    b'caf\xe9.png'

    """
    return _BYTE.sub(lambda escape: bytes.fromhex(escape[1].decode()), name) if b"\\" in name else name


def escaped(name: bytes) -> bytes:
    """Write the backslashes of a name on the disk as bytes that are not UTF-8 are written."""
    return name.replace(b"\\", rb"\x5c") if b"\\" in name else name


def unwanted(names: Any, hidden: bool = False) -> Any:
    """Tell which names are of what systems leave in folders (``__MACOSX``, ``.DS_Store``, ``._*``, ``Thumbs.db``).

    Files and folders whose names begin with a dot are among them, unless `hidden` ones are wanted.
    """
    import pyarrow.compute as pc

    return pc.match_substring_regex(names, _UNWANTED if hidden else _HIDDEN)


def is_unwanted(name: str) -> bool:
    """Tell for one name what :func:`unwanted` tells for many."""
    return _HIDDEN_TEXT.search(name) is not None


def shown(name: str) -> str:
    """Write a name for a message, on one line whatever it holds, and no longer than most paths are."""
    text = name if name.isprintable() else ascii(name)[1:-1]
    return short(text, PATH_LETTERS)
