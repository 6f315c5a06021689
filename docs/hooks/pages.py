"""What the build adds to the pages: cards of datasets, pictures, help texts and tables, so that none can be outdated.

A line ``<!-- setsup: NAME words -->`` in a page is replaced by what ``BLOCKS[NAME]`` makes of the words, and so is the
sentence below it, which tells readers of the file what is missing there. ``python docs/hooks/pages.py FILE`` prints a
page with these parts.
"""

import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import address
import audits
import cards
import extras
import figures
import gallery
import listings
import notices
import pictures
import planning
import presets
import public
import reference
import resume
import subcommands
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
BLOCKS: dict[str, Callable[[str], str]] = {
    "audit": lambda words: audits.BLOCKS[words](ROOT / "docs" / "sampler-audit.json"),
    "benchmarks": lambda words: figures.benchmarks(ROOT / "docs" / "benchmarks.json"),
    "resume": lambda words: resume.table(ROOT / "docs" / "resume.json"),
    "resumepeers": lambda words: resume.peers(ROOT / "docs" / "resume-peers.json"),
    "claims": presets.claims,
    "datasets": lambda words: gallery.gallery(),
    "contents": reference.contents,
    "dependencies": lambda words: figures.dependencies(ROOT / "pyproject.toml", words),
    "extras": lambda words: extras.table(),
    "help": subcommands.help_text,
    "include": lambda words: _included(ROOT / words),
    "names": lambda words: public.names(),
    "output": subcommands.output,
    "part": lambda words: listings.part(ROOT / words.split()[0], words.split()[1]),
    "planned": planning.table,
    "presets": lambda words: presets.table(),
    "refused": subcommands.refused,
    "shared": lambda words: presets.shared(),
    "subcommands": lambda words: subcommands.table(),
}


def on_config(config: Any) -> Any:
    """List a page for every manifest, show the version, and link to the repository if it has an address."""
    config.copyright = address.version(ROOT)
    links = address.links(ROOT / "pyproject.toml")
    config.load_dict(links)
    if links:
        config.theme["features"].append("content.action.edit")
    datasets = next(entry["Datasets"] for entry in config.nav if "Datasets" in entry)
    benchmarks = next(entry for entry in datasets if isinstance(entry, dict) and "Benchmarks" in entry)
    benchmarks["Benchmarks"] = [
        {title: [{name: f"datasets/{name}.md"} for name in names]} for title, names in by_initials(cards.names())
    ]
    return config


def by_initials(names: Iterable[str], most: int = 14) -> list[tuple[str, list[str]]]:
    """Sorted names in groups of neighbouring initials, so that the sidebar shows a few folded groups.

    >>> by_initials(["abc-pose", "celeba", "co3d", "mnist"], most=3)
    [('a – c', ['abc-pose', 'celeba', 'co3d']), ('m', ['mnist'])]
    """
    groups: list[list[str]] = []
    for _, same in groupby(sorted(names), key=lambda name: name[0]):
        found = list(same)
        if groups and len(groups[-1]) + len(found) <= most:
            groups[-1] += found
        else:
            groups.append(found)
    return [(" – ".join(dict.fromkeys([group[0][0], group[-1][0]])), group) for group in groups]


def on_files(files: Files, config: Any) -> Files:
    """Add the cards and the pictures, which no file holds."""
    for name in cards.names():
        files.append(File.generated(config, f"datasets/{name}.md", content=cards.page(name)))
    for name, make in pictures.PICTURES.items():
        files.append(File.generated(config, f"pictures/{name}.png", content=pictures.png(make())))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in what the marks of a page name."""
    return notices.MARK.sub(lambda mark: BLOCKS[mark[1]](mark[2]), markdown)


def _included(path: Path) -> str:
    return path.read_text(encoding="utf-8").replace("](docs/", "](")  # links of the repository's root


if __name__ == "__main__":
    print(on_page_markdown(Path(sys.argv[1]).read_text(encoding="utf-8")))
