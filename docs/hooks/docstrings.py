"""Docstrings as the reference shows them: complete, and what is written for Sphinx, put in Markdown."""

import re
from typing import Any

import griffe

from setsup.reports import charts
from setsup.samplers import Sampler
from setsup.samplers.docstrings import complete

_ROLE = re.compile(r":(?:class|func|meth|data|mod|attr):`~?([^`]+)`")
_CONVENTION = re.compile(r"^Convention\n-+$", re.MULTILINE)
_REFERENCES = re.compile(r"^References\n-+\n((?:\.\. .*\n?|   .*\n?|\n)*)", re.MULTILINE)
_SECTION = re.compile(r"^[A-Z]\w*\n-{3,}$", re.MULTILINE)
_TYPES = re.compile(r"^(?:Returns|Yields|Raises)\n-+\n(?:.*\n?)*?(?=^\S.*\n-+$|\Z)", re.MULTILINE)
_REFERENCE = re.compile(r"^\.\. \[(\d+)\] ((?:.+\n?(?:   .+\n?)*))", re.MULTILINE)


class Markdown(griffe.Extension):
    """Turns roles into code, citations into lists, and sections that are none of numpydoc's into headed paragraphs."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of anything that has one."""
        if obj.docstring is not None:
            # griffe reads the source, in which samplers and charts leave out what they share
            text = complete(obj.docstring.value, Sampler.__doc__ or "")
            if isinstance(obj, griffe.Function) and any(str(mark.value) == "chart" for mark in obj.decorators):
                text = charts.complete(text, {parameter.name for parameter in obj.parameters})
            obj.docstring.value = rewritten(text)


def rewritten(text: str) -> str:
    """Docstring in Markdown."""
    text = _ROLE.sub(lambda role: f"`{role[1].removeprefix('setsup.')}`", text)
    text = _with_references_first(_CONVENTION.sub("**Convention**\n", text))
    text = _REFERENCE.sub(lambda entry: f"- [{entry[1]}] {' '.join(entry[2].split())}\n", text)
    text = re.sub(r" \[(\d+)\]_", r" [\1]", text)
    text = _TYPES.sub(lambda section: "".join(map(_plain, section[0].splitlines(keepends=True))), text)
    return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def _with_references_first(text: str) -> str:
    """The references as a headed paragraph before the first section, which would take them for entries of its own."""
    found = _REFERENCES.search(text)
    if found is None:
        return text
    rest = text[: found.start()] + text[found.end() :]
    section = _SECTION.search(rest)
    place = section.start() if section else len(rest)
    return f"{rest[:place]}**References**\n\n{found[1].rstrip()}\n\n{rest[place:]}".rstrip() + "\n"


def _plain(line: str) -> str:
    """Line of a section of types: those are shown as they are, so marks are taken off."""
    return line if line.startswith(" ") else re.sub(r"(?<=Error), ", " or ", line.replace("``", ""))
