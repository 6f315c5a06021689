r"""Patterns of paths, such as ``{subject}/{session}_{yaw:d}.jpg``, whose fields become factors.

Convention
----------
A pattern must match the whole path relative to the folder. ``{name}`` matches at least one character of one name;
``{name:d}`` an integer; ``{name:f}`` a number; ``{}``, ``{:d}`` and ``{:f}`` are fields that do not become factors.
``*`` matches any part of a name, including none. ``...`` or ``**`` between slashes matches any number of folders, and
at the end the rest of the path. ``{{`` and ``}}`` are literal braces.

Fields are filled from the left, and texts are as short as they can be: of ``x_y_z``, ``{a}_{b}`` makes a = x and
b = y_z.

The ending need not be written: without one, or with ``.*``, it may be that of any image, and belongs to no field. A
written one, ``.jpg``, matches in any case, all else exactly.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from setsup.datasets.formats.image_formats import ending_pattern, image_endings
from setsup.errors import DataError, abbreviate

__all__ = ["PathPattern", "suggest_pattern"]

_TOKEN = re.compile(r"(?P<braces>\{\{|\}\})|\{(?P<field>[^{}]*)\}|(?P<brace>[{}])|(?P<any>\*+)|(?P<text>[^{}*]+)")
_SPECIAL = re.compile(r"([\\^$.|?*+(){}\[\]])")
_LONGEST = 1000
_REST = ("...", "**", "…")
_NUMBERS = {
    "d": "[+-]?[0-9]+",
    "f": "[+-]?(?:[0-9]+(?:[.][0-9]+)?|[.][0-9]+)(?:[eE][+-]?[0-9]+)?",
}


@dataclass(frozen=True, slots=True)
class PathPattern:
    r"""A parsed pattern, as a regular expression.

    Attributes
    ----------
    text : str
        The pattern as written.
    types : dict of str to str
        Type of each named field, in order: ``""`` for text, ``"d"``, ``"f"``.
    expression : str
        In the syntax of RE2, with a group ``f0``, ``f1``, … for each named field.
    longest : str or None
        The same with strings as long as possible; None if the two cannot differ, or need not agree.
    top : str
        The first folder if the pattern gives it without fields, otherwise empty.

    Examples
    --------
    >>> pattern = PathPattern.of("{subject}/{session}_{yaw:d}.jpg")
    >>> pattern.types
    {'subject': '', 'session': '', 'yaw': 'd'}
    >>> re.fullmatch(pattern.expression, "ann/first_-30.JPG").groups()
    ('ann', 'first', '-30')

    """

    text: str
    types: dict[str, str]
    expression: str
    longest: str | None
    top: str

    @classmethod
    def of(cls, text: str) -> "PathPattern":
        """Parse a pattern; DataError if it is invalid."""
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"a pattern must be a path with fields, such as '{{class}}/...', not {abbreviate(text)}")
        if len(text) > _LONGEST:
            raise DataError(
                f"a pattern must have at most {_LONGEST:,} characters, but {abbreviate(text)} has {len(text):,}"
            )
        *folders, name = text.removeprefix("./").split("/")
        _check_segments(text, [*folders, name])
        name, ending = _split_ending(name)
        types: dict[str, str] = {}
        inner = [None if folder in _REST else _parse(text, folder, types) for folder in folders]
        last = None if name in _REST else _parse(text, name, types)
        if not types:
            raise DataError(
                f"the pattern {text!r} has no named field, so it defines no factor; add one, as in '{{class}}/...'"
            )
        expression, longest = (_join(inner, last, ending, longest) for longest in (False, True))
        unsure = last is not None and (inner.count(None) > 1 or any(map(_is_unsure, [*inner, last])))
        top = inner[0] if inner and inner[0] is not None else []
        fixed = "".join(token.text for token in top) if all(token.kind is None for token in top) else ""
        return cls(text, types, expression, longest if unsure else None, fixed)


class _Token(NamedTuple):
    """Part of a name in a pattern.

    `kind` None for fixed text, else the type of a field, ``"*"`` for any part; `text` as written; `group` of a field
    with a name.
    """

    kind: str | None
    text: str
    group: str = ""


def suggest_pattern(path: str) -> str:
    """Suggest a pattern that the path of an image matches.

    Examples
    --------
    >>> suggest_pattern("sketch/cat/1.jpg"), suggest_pattern("IMG_0001.JPG")
    ('{domain}/{class}/...', '{name}_{number:d}')

    """
    *folders, name = path.split("/")
    if folders:
        known = {1: ["class"], 2: ["domain", "class"]}.get(len(folders))
        return "/".join(f"{{{label}}}" for label in known or [f"folder{n + 1}" for n in range(len(folders))]) + "/..."
    seen = {"name": 0, "number": 0}

    def field(match: re.Match[str]) -> str:
        kind = "number" if match[0].isdecimal() else "name"
        seen[kind] += 1
        return f"{{{kind}{seen[kind] if seen[kind] > 1 else ''}{':d' if kind == 'number' else ''}}}"

    # numbers, and texts that no digit follows but through a separator
    return re.sub(
        r"(?<![^_-])[0-9]+(?![^_-])|[^_-]*[^_0-9-](?=[0-9]+(?:[_-]|$))|[^_-]+", field, name.rpartition(".")[0]
    )


# -- parsing -----------------------------------------------------------------------------------------------------------


def _check_segments(text: str, segments: Sequence[str]) -> None:
    for bad, why in (
        (
            segments[0] == "",
            "begins with /; remove it, since the pattern is compared with paths relative to the folder",
        ),
        (segments[-1] == "", "ends with /; write ... after it to match all files below that folder"),
        ("" in segments, "contains //; write a single /"),
        (
            "." in segments or ".." in segments,
            "contains a folder . or ..; write paths relative to the folder that is opened",
        ),
        ("\\" in text, "contains a backslash; write / between folders, and {} for a backslash in a name"),
        (not text.isprintable(), "contains a line break or another character that cannot be printed; write {} for it"),
    ):
        if bad:
            raise DataError(f"the pattern {abbreviate(text)} {why}")
    for rest in _REST:
        if any(rest in segment and segment not in _REST for segment in segments):
            raise DataError(
                f"the pattern {text!r}: {rest} matches whole folders; write it between slashes: {{class}}/..."
            )


def _split_ending(name: str) -> tuple[str, str]:
    """Split off the file extension of a pattern, as an expression that matches any extension if it has none."""
    stem, dot, ending = name.rpartition(".")
    if name in _REST or not dot:
        return name, ending_pattern()
    if ending == "*":
        return stem, ending_pattern()
    if f".{ending.lower()}" in image_endings():
        return stem, ending_pattern((f".{ending.lower()}",))
    return name, ending_pattern()


def _parse(text: str, segment: str, types: dict[str, str]) -> list[_Token]:
    """Tokens of one name of a pattern; its fields are added to `types`."""
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(segment):
        if match["brace"] is not None:
            which = "has no matching closing brace" if match[0] == "{" else "has no matching opening brace"
            raise DataError(f"the pattern {text!r}: a {match[0]} {which}; write {match[0] * 2} for a literal brace")
        if match["braces"] or match["text"]:
            tokens.append(_Token(None, match["text"] or match[0][0]))
            continue
        token = _Token("*", "*") if match["any"] else _field(text, match["field"], types)
        before = tokens[-1] if tokens else _Token(None, "")
        if before.kind is not None and (before.kind in _NUMBERS) == (token.kind in _NUMBERS):
            raise DataError(
                f"the pattern {text!r} is ambiguous, because no text separates {before.text} from {token.text}; insert "
                "the text between them, or remove one of them"
            )
        tokens.append(token)
    return tokens


def _field(text: str, field: str, types: dict[str, str]) -> _Token:
    """Token of a field; one with a name is added to the others."""
    name, colon, kind = field.partition(":")
    if colon and kind not in _NUMBERS:
        raise DataError(
            f"the pattern {text!r}: {{{field}}} has the unknown type {kind!r}; expected :d (an integer, with or "
            f"without leading zeros), :f (a number), or no type for text: {{{name}}}"
        )
    if not name:
        return _Token(kind, f"{{{field}}}")
    if not name.isidentifier():
        better = re.sub(r"\W+", "_", name).strip("_")
        instead = f": {{{better}{colon}{kind}}}" if better.isidentifier() else ""
        raise DataError(
            f"the pattern {text!r}: {name!r} is not a valid name of a factor; use letters, digits and _, starting "
            f"with a letter{instead}"
        )
    if name in types:
        raise DataError(f"the pattern {text!r} has two fields {name!r}; rename the second, or leave it unnamed: {{}}")
    types[name] = kind
    return _Token(kind, f"{{{field}}}", f"f{len(types) - 1}")


# -- expressions -------------------------------------------------------------------------------------------------------


def _is_unsure(tokens: list[_Token] | None) -> bool:
    """Whether texts of one name may have several lengths; where the last is not named, only the first ones matter."""
    texts = [token for token in tokens or () if token.kind in ("", "*")]
    return len(texts) > 1 and bool(texts[-1].group)


def _join(folders: Sequence[list[_Token] | None], last: list[_Token] | None, ending: str, longest: bool) -> str:
    """Expression of a whole path, with texts as short or as long as they can be; None is any number of folders."""
    many = "(?:[^/]+/)*" + "?" * (not longest)
    begin = "".join(many if folder is None else _expression(folder, longest) + "/" for folder in folders)
    return begin + (f"(?:[^/]+/)*[^/]*{ending}" if last is None else _expression(last, longest, not ending) + ending)


def _expression(tokens: Sequence[_Token], longest: bool, ends: bool = False) -> str:
    """Expression of one name; its last field is the ending where it `ends` so."""
    parts = []
    for index, token in enumerate(tokens):
        if token.kind is None:
            parts.append(_SPECIAL.sub(r"\\\1", token.text))
            continue
        before, after = (tokens[at].kind if 0 <= at < len(tokens) else None for at in (index - 1, index + 1))
        how = "" if longest else "?"
        if token.kind in _NUMBERS:
            body = _NUMBERS[token.kind]
        elif ends and index == len(tokens) - 1:
            body = "[^/.]+"
        elif token.kind == "*":
            body = f"[^/]*{how}"
        elif before in _NUMBERS:
            body = f"[^/0-9][^/]*{how}"  # the number has all digits
        elif after in _NUMBERS:
            body = "[^/]*?[^/0-9]"  # so has the one that follows, and its sign
        else:
            body = f"[^/]+{how}"
        parts.append(f"(?P<{token.group}>{body})" if token.group else f"(?:{body})")
    return "".join(parts)
