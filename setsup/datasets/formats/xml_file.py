"""Small untrusted XML files: elements of one name with their attributes, without entities and deep nesting.

No element tree is built. A DOCTYPE is refused, so entities, which can expand a small file to gigabytes or refer to
other files, cannot be declared.
"""

import re
from codecs import BOM_UTF8

import numpy as np

from setsup.errors import DamagedFile

__all__ = ["read_children", "read_elements"]

_DEEPEST = 32
_MOST_ELEMENTS = 100_000
_MOST_ATTRIBUTES = 1_000
_CHINESE = re.compile(
    rb"""(?:\xef\xbb\xbf)?\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["'](?:gb_?2312|gbk|gb18030)["']""", re.IGNORECASE
)
"""Encodings of several bytes, which expat does not read; GB 18030 contains the others."""


def read_children(content: bytes, label: str, tag: str) -> list[tuple[int, dict[str, str]]]:
    """Read the line and the attributes of the elements with one name directly below the root."""
    return _read(content, label, tag, 2)


def read_elements(content: bytes, label: str, tag: str) -> list[tuple[int, dict[str, str]]]:
    """Read the line and the attributes of the elements with one name, wherever they are."""
    return _read(content, label, tag, None)


def _read(content: bytes, label: str, tag: str, level: int | None) -> list[tuple[int, dict[str, str]]]:
    from xml.parsers.expat import ExpatError, ParserCreate

    _refuse_swarms(content, label)
    chinese = _CHINESE.match(content) is not None
    parser = ParserCreate("utf-8" if chinese else None)  # in place of the encoding that the file declares
    found: list[tuple[int, dict[str, str]]] = []
    depth = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise DamagedFile(
                f"{label}: line {parser.CurrentLineNumber} is nested deeper than the limit of {_DEEPEST} levels"
            )
        if name == tag and level in (None, depth):
            if len(found) == _MOST_ELEMENTS:
                raise DamagedFile(f"{label} has more <{tag}> elements than the limit of {_MOST_ELEMENTS:,}")
            found.append((parser.CurrentLineNumber, attributes))

    def end(_: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise DamagedFile(
            f"{label} contains a DOCTYPE, which setsup does not accept because it can define entities",
            "remove it, or fetch the file again",
        )

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.StartDoctypeDeclHandler = refuse
    try:
        decoded = chinese and not content.startswith(BOM_UTF8)
        parser.Parse(content.decode("gb18030").encode() if decoded else content, True)
    except (ExpatError, LookupError, ValueError) as error:
        # a codec that is named in the file but does not exist is a LookupError, one of several bytes a ValueError
        raise DamagedFile(f"{label} could not be parsed as XML: {error}") from error
    return found


def _refuse_swarms(content: bytes, label: str) -> None:
    """Refuse elements with very many attributes before they are made, since each takes far more memory than its text.

    Between two ``<`` lies at most one tag, and every attribute in it has its ``=``.
    """
    letters = np.frombuffer(content, np.uint8)
    marks = np.flatnonzero(letters == ord("="))
    tags = np.flatnonzero(letters == ord("<"))
    counts = np.diff(np.searchsorted(marks, tags), append=len(marks), prepend=0)
    if counts.max() > _MOST_ATTRIBUTES:
        raise DamagedFile(f"{label} has an element with more attributes than the limit of {_MOST_ATTRIBUTES:,}")
