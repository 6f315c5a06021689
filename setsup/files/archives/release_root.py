"""The top of a release among the names of files: the folder that has the published layout."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from setsup.files.archives.listing import find_matches

__all__ = ["find_top", "find_tops", "readable", "wanting"]

_AT_ONCE = 65_536
_SOME = re.compile(r"(?:\\[dwS]|\[[^\]]*\]|\.)(?:[*+?]|\{[\d,]*\})?")
_GROUP = re.compile(r"\((?:\?(?:P<\w*>|[a-z]*:))?([^()]*)\)([?*+]|\{[\d,]*\})?")
_ITSELF = 0xE000  # private letters of Unicode


def find_top(names: Any, holds: Sequence[str]) -> str | None:
    r"""Find the shallowest folder below which each expression matches the beginning of some name.

    Examples
    --------
    >>> import pyarrow as pa
    >>> find_top(pa.array(["old/cars/1.mat", "old/cars/list.txt"], pa.large_string()), [r"list\.txt", r"\d+\.mat"])
    'old/cars/'

    """
    import pyarrow.compute as pc

    if not len(names):
        return None
    if all(_anywhere(names, f"^(?:{pattern})") for pattern in holds):
        return ""
    deepest = pc.max(pc.count_substring(names, "/")).as_py()
    for depth in range(1, deepest + 1):
        if tops := _common_tops(names, depth, holds):
            return min(tops)
    return None


def find_tops(names: Any, holds: Sequence[str], depths: Iterable[int]) -> list[str]:
    r"""Find all folders of some depths below which each expression matches the beginning of some name.

    Examples
    --------
    >>> import pyarrow as pa
    >>> find_tops(pa.array(["1/a/x.jpg", "more/2/b/y.jpg"], pa.large_string()), [r"\d+/\w+/\w+\.jpg"], range(4))
    ['', 'more/']

    """
    import pyarrow.compute as pc

    if not len(names):
        return []
    deepest = pc.max(pc.count_substring(names, "/")).as_py()
    return [top for depth in depths if depth <= deepest for top in sorted(_common_tops(names, depth, holds))]


def wanting(names: Any, holds: Sequence[str]) -> list[str]:
    """Give the expressions that match nowhere."""
    return [pattern for pattern in holds if not _anywhere(names, f"(?:^|/)(?:{pattern})")]


def readable(pattern: str) -> str:
    r"""Write an expression as a person writes a file's name."""
    # a literal becomes one letter that no rule below knows
    plain = re.sub(r"\\([^\w\s])", lambda match: chr(_ITSELF + ord(match[1])), pattern)
    plain = _SOME.sub("*", plain.removeprefix("^").removesuffix("$"))
    inner = None
    while inner != plain:
        inner, plain = plain, _GROUP.sub(_readable_group, plain)
    plain = re.sub(r"\*+", "*", plain).replace("|", " or ")
    return "".join(chr(ord(each) - _ITSELF) if ord(each) >= _ITSELF else each for each in plain)


def _readable_group(match: re.Match[str]) -> str:
    """Text for a group without groups: none where it is optional, ``*`` where it has a choice."""
    if match[2] in ("?", "*"):
        return ""
    return "*" if "|" in match[1] or match[2] else match[1]


def _anywhere(names: Any, pattern: str) -> bool:
    """Whether an expression matches one of many names; most that are there are seen in the first stretch."""
    import pyarrow.compute as pc

    stretches = (names.slice(start, _AT_ONCE) for start in range(0, len(names), _AT_ONCE))
    return any(pc.any(pc.match_substring_regex(stretch, pattern)).as_py() for stretch in stretches)


def _common_tops(names: Any, depth: int, holds: Sequence[str]) -> set[str]:
    """Folders so deep below which each expression matches the beginning of some name."""
    tops: set[str] | None = None
    for pattern in holds:
        folders = _tops(names, depth, pattern)
        tops = folders if tops is None else tops & folders
        if not tops:
            break
    return tops or set()


def _tops(names: Any, depth: int, pattern: str) -> set[str]:
    """Folders so deep below which an expression matches the beginning of some name."""
    if not depth:
        return {""} if _anywhere(names, f"^(?:{pattern})") else set()
    hits = find_matches(names, f"^(?:[^/]*/){{{depth}}}(?:{pattern})")
    tops = set()
    at = 0
    while at < len(hits):
        top = "/".join(names[int(hits[at])].as_py().split("/", depth)[:depth])
        tops.add(top + "/")
        # on to the first name after this folder ("0" is the letter after "/")
        after = (top + "0").encode()
        at = bisect_left(hits, after, at, key=lambda hit: names[int(hit)].as_py().encode())
    return tops
