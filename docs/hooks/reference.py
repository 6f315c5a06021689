"""The pages of the reference, and which of them documents what."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["contents", "documented"]

API = Path(__file__).resolve().parents[1] / "api"
_ENTRY = re.compile(r"^::: (\S+)(?:\n    options:\n(?:      .*\n)*?      members: \[(.*?)\])?", re.MULTILINE)


def documented() -> dict[str, str]:
    """Page of each path, relative to the folder of the reference."""
    found = dict[str, str]()
    for page in sorted(API.rglob("*.md")):
        for path, _ in _ENTRY.findall(page.read_text(encoding="utf-8")):
            found[path] = page.relative_to(API).as_posix()
    return found


def contents(folder: str) -> str:
    """List of the pages in a folder of the reference with all names they document, so that each is one click away."""
    lines = []
    for page in sorted((API / folder).glob("*.md"), key=lambda page: page.stem):
        if page.name != "index.md":
            text = page.read_text(encoding="utf-8")
            title = text.partition("\n")[0].removeprefix("# ")
            names = dict(name for entry in _ENTRY.findall(text) for name in _names(*entry))
            shown = ", ".join(f"[`{names[path]}`]({page.name}#{path})" for path in names)
            lines.append(f"- [{title}]({page.name}): {shown}")
    # a search for a name finds what documents it
    return "\n".join(['<div class="names" data-search-exclude markdown>\n', *lines, "\n</div>"])


def _names(path: str, members: str) -> Iterator[tuple[str, str]]:
    """Paths and names of what an entry shows: itself, or the members of a module."""
    value = pkgutil.resolve_name(path)
    if not inspect.ismodule(value):
        module, _, name = path.rpartition(".")
        # every benchmark has an `open`
        yield (
            path,
            f"{module.removesuffix('.dataset').rpartition('.')[2]}.{name}" if name in ("open", "prepare") else name,
        )
    else:
        for name in members.split(", ") if members else value.__all__:
            yield f"{path}.{name}", name
