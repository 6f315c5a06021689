"""What the pages say, where they are read as files, of each part that only the built site has.

``python docs/hooks/notices.py`` writes these sentences below the marks of all pages; the build removes them.
"""

import os
import re
import textwrap
from collections.abc import Callable
from pathlib import Path

__all__ = ["MARK", "with_notices"]

DOCS = Path(__file__).resolve().parents[1]
_OPENING = "> The built page shows"
MARK = re.compile(rf"^<!-- setsup: (\w+) ?(.*?) -->$(?:\n{_OPENING} .*(?:\n> .*)*)?", re.MULTILINE)
"""A mark, and the sentence below it."""

_COMMANDS: dict[str, Callable[[str], str]] = {
    "datasets": lambda words: "a card of each dataset; `setsup datasets` lists them",
    "help": lambda words: f"what `setsup {words} --help` prints",
    "output": lambda words: f"what `{words}` prints",
    "planned": lambda words: f"the table `{words}` that `python examples/plan_shards.py` prints",
    "presets": lambda words: "a table of all presets; `setsup train` lists them",
    "refused": lambda words: f"the error of `{words}`",
    "subcommands": lambda words: "the subcommands, as `setsup --help` lists them",
}
"""What a command of setsup prints as well."""

_PARTS = {
    "audit": "a table of the [results](sampler-audit.json) of `python -m benchmarks.sampler_audit`",
    "benchmarks": "tables of the [results](benchmarks.json) of `python -m benchmarks`",
    "claims": "a table of the claims",
    "contents": "a list of the pages in this folder, with the names that they document",
    "dependencies": "a table of the packages",
    "extras": "a table of the extras",
    "names": "a table of the names",
    "resume": "a table of the [results](resume.json) of `python -m benchmarks.resume`",
    "resumepeers": "a table of the [results](resume-peers.json) of `python -m benchmarks.resume` for other libraries",
    "shared": "the list of these presets",
}
"""What only the hooks print."""


def with_notices(text: str, page: Path) -> str:
    """The text of a page with a sentence below each mark."""
    command = f"python docs/hooks/pages.py {page.relative_to(DOCS.parent).as_posix()}"
    said = list[str]()

    def noticed(mark: re.Match[str]) -> str:
        shown = _shown(mark[1], mark[2], page)
        if mark[1] in _PARTS and command not in said:
            said.append(command)
            shown += f"; `{command}` prints the page with it"
        return f"{mark[0].splitlines()[0]}\n{_wrapped(f'{_OPENING} {shown}.')}"

    return MARK.sub(noticed, text)


def _shown(name: str, words: str, page: Path) -> str:
    if name in _COMMANDS:
        return _COMMANDS[name](words)
    if name == "include":
        return f"[{words}]({_link(words, page)})"
    if name == "part":
        script, part = words.split()
        return (
            f"{'the imports' if part == 'imports' else f'`{part}`'} of [`{Path(script).name}`]({_link(script, page)})"
        )
    return _PARTS[name] + (f" of the extra `{words}`" if name == "dependencies" and words else "")


def _link(path: str, page: Path) -> str:
    return Path(os.path.relpath(DOCS.parent / path, page.parent)).as_posix()


def _wrapped(sentence: str) -> str:
    """Lines of at most 120 letters, none of which ends within code."""
    whole = re.sub("`.*?`", lambda code: code[0].replace(" ", "\0"), sentence)
    lines = textwrap.wrap(whole, 120, subsequent_indent="> ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


if __name__ == "__main__":
    for page in sorted(DOCS.rglob("*.md")):
        page.write_text(with_notices(page.read_text(encoding="utf-8"), page), encoding="utf-8")
