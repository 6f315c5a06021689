"""Parameters that samplers share: described once, in the docstring of ``Sampler``, and shown by ``help`` of each."""

import re

__all__ = ["complete"]

_HEAD = re.compile(r"^( *)Parameters\n *-+\n", re.MULTILINE)
_REFERENCE = re.compile(r"^( *)(\w+(?:, \w+)*)\n *As for every sampler, see :class:`Sampler`\.\n", re.MULTILINE)
_PARAGRAPH = re.compile(r"^( *)(\w+) : .*\n(?:\1 +.*\n)+", re.MULTILINE)


def complete(docstring: str, shared: str) -> str:
    """Put the paragraphs of another docstring in place of the entry that refers to them; the table comes first."""
    reference, head = _REFERENCE.search(docstring), _HEAD.search(docstring)
    if reference is None or head is None:
        return docstring
    paragraphs = {
        match[2]: _indent(match[0], match[1], reference[1]) for match in _PARAGRAPH.finditer(_parameters(shared))
    }
    names = reference[2].split(", ")
    first = "".join(paragraphs[name] for name in names if name == "table")
    last = "".join(paragraphs[name] for name in names if name != "table")
    entries = docstring[head.end() : reference.start()]
    return docstring[: head.end()] + first + entries + last + docstring[reference.end() :]


def _parameters(docstring: str) -> str:
    """The section of parameters; attributes, which follow, have some of their names."""
    return docstring.partition("Parameters\n")[2].partition("Attributes\n")[0]


def _indent(paragraph: str, before: str, after: str) -> str:
    return re.sub(rf"^{before}", after, paragraph, flags=re.MULTILINE)
