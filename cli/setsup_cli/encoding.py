"""Replaces characters that standard output or error cannot encode by similar ones."""

import codecs
import io
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["is_encodable", "replace_unencodable"]

_NAME = "setsup.letters"
_SIGNS = (
    dict.fromkeys("─━‐‑–—−", "-")
    | dict.fromkeys("╭╮╰╯", "+")
    | dict.fromkeys("│┃", "|")
    | {"‘": "'", "’": "'", "“": '"', "”": '"', "…": "...", "·": "*", "×": "x", "→": "->", "≤": "<=", "≥": ">="}
    | {"±": "+-", "µ": "u", "°": " deg", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "ß": "ss"}
)


@contextmanager
def replace_unencodable() -> Iterator[None]:
    """Replace characters that the encodings of standard output and error lack."""
    codecs.register_error(_NAME, _replace)
    changed = []
    for stream in (sys.stdout, sys.stderr):
        # None in a process without standard streams; replaced in tests
        if isinstance(stream, io.TextIOWrapper):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors=_NAME)
    try:
        yield
    finally:
        for stream, errors in changed:
            if not stream.closed:
                stream.reconfigure(errors=errors)


def is_encodable(text: str) -> bool:
    """Whether standard output encodes a string as UTF-8, the encoding of JSON."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding) == text.encode()
    except UnicodeEncodeError:
        return False


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name that is not UTF-8
        return bytes([ord(letter) - 0xDC00]), error.start + 1
    base = "".join(part for part in unicodedata.normalize("NFKD", letter) if " " <= part <= "~")
    return _SIGNS.get(letter, base) or "?", error.start + 1
