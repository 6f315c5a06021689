"""Docstrings as the reference shows them: what is written for Sphinx, put in Markdown."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|func|meth|data|mod|attr):`~?([^`]+)`")
_SECTION = re.compile(r"^(Convention|References)\n-+$", re.MULTILINE)
_TYPES = re.compile(r"^(?:Returns|Yields|Raises)\n-+\n(?:.*\n?)*?(?=^\S.*\n-+$|\Z)", re.MULTILINE)
_REFERENCE = re.compile(r"^\.\. \[(\d+)\] ((?:.+\n?(?:   .+\n?)*))", re.MULTILINE)


class Markdown(griffe.Extension):
    """Turns roles into code, citations into lists, and sections that numpydoc leaves alone into headed paragraphs."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of anything that has one."""
        if obj.docstring is not None:
            obj.docstring.value = rewritten(obj.docstring.value)


def rewritten(text: str) -> str:
    """Docstring in Markdown."""
    text = _ROLE.sub(lambda role: f"`{role[1].removeprefix('setsup.')}`", text)
    text = _SECTION.sub(r"**\1**\n", text)
    text = _REFERENCE.sub(lambda entry: f"- [{entry[1]}] {' '.join(entry[2].split())}\n", text)
    text = re.sub(r" \[(\d+)\]_", r" [\1]", text)
    text = _TYPES.sub(lambda section: "".join(map(_plain, section[0].splitlines(keepends=True))), text)
    return re.sub(r"::$", ":", text, flags=re.MULTILINE)


def _plain(line: str) -> str:
    """Line of a section of types: those are shown as they are, so marks are taken off."""
    return line if line.startswith(" ") else re.sub(r"(?<=Error), ", " or ", line.replace("``", ""))
