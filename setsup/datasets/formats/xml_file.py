"""Small untrusted XML files: the elements directly below the root, without entities and deep nesting.

No element tree is built. A DOCTYPE is refused, so entities, which can expand a small file to gigabytes or refer to
other files, cannot be declared.
"""

import numpy as np

from setsup.errors import DamagedFile

__all__ = ["read_children"]

_DEEPEST = 32
_MOST_ELEMENTS = 100_000
_MOST_ATTRIBUTES = 1_000


def read_children(content: bytes, label: str, tag: str) -> list[tuple[int, dict[str, str]]]:
    r"""Read the attributes of the elements with one name directly below the root."""
    from xml.parsers.expat import ExpatError, ParserCreate

    _refuse_swarms(content, label)
    parser = ParserCreate()
    children: list[tuple[int, dict[str, str]]] = []
    depth = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _DEEPEST:
            raise DamagedFile(
                f"{label}: line {parser.CurrentLineNumber} is nested deeper than the limit of {_DEEPEST} levels"
            )
        if depth == 2 and name == tag:
            if len(children) == _MOST_ELEMENTS:
                raise DamagedFile(f"{label} has more <{tag}> elements than the limit of {_MOST_ELEMENTS:,}")
            children.append((parser.CurrentLineNumber, attributes))

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
        parser.Parse(content, True)
    except (ExpatError, LookupError, ValueError) as error:
        # a codec that is named in the file but does not exist is a LookupError, one of several bytes a ValueError
        raise DamagedFile(f"{label} could not be parsed as XML: {error}") from error
    return children


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
