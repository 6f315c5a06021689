"""Letters that a locale without UTF-8 cannot show on standard output or error are spelled otherwise; nothing ends."""

import codecs
import io
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["all_letters", "spelled_otherwise"]

_NAME = "setsup.letters"
_SIGNS = (
    dict.fromkeys("─━‐‑–—−", "-")
    | dict.fromkeys("│┃", "|")
    | {"‘": "'", "’": "'", "“": '"', "”": '"', "…": "...", "·": "*", "×": "x", "→": "->", "≤": "<=", "≥": ">="}
    | {"±": "+-", "µ": "u", "°": " deg", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "Æ": "AE", "ß": "ss"}
)


@contextmanager
def spelled_otherwise() -> Iterator[None]:
    """Have standard output and error spell what their encoding lacks, until the end of the context."""
    codecs.register_error(_NAME, _spelled)
    changed = []
    for stream in (sys.stdout, sys.stderr):
        # of a process that was started without them there are none, and tests put others in their place
        if isinstance(stream, io.TextIOWrapper):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors=_NAME)
    try:
        yield
    finally:
        for stream, errors in changed:
            if not stream.closed:
                stream.reconfigure(errors=errors)


def all_letters(text: str) -> bool:
    """Whether a text arrives on standard output as it is, in UTF-8, which is the encoding of JSON."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        return text.encode(encoding) == text.encode()
    except UnicodeEncodeError:
        return False


def _spelled(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    if "\udc80" <= letter <= "\udcff":  # a byte of a file's name that is no text
        return bytes([ord(letter) - 0xDC00]), error.start + 1
    base = "".join(part for part in unicodedata.normalize("NFKD", letter) if " " <= part <= "~")
    return _SIGNS.get(letter, base) or "?", error.start + 1
