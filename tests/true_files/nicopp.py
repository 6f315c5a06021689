"""A small NICO++: the tree of its benchmark of domain generalisation, and its lists beside it."""

from functools import cache
from pathlib import Path

from tests.true_files.pacs import put, tree

HELD = "domain"

DOMAINS = ("autumn", "dim", "grass", "outdoor", "rock", "water")
CATEGORIES = ("dog", "hot air balloon", "wolf")
EACH = 5


@cache
def files() -> dict[str, bytes]:
    """Content by path below ``NICO_DG``."""
    return tree(DOMAINS, CATEGORIES, "{:06}.jpg", each=EACH)


def lists() -> dict[str, bytes]:
    """The published lists: of five images the last is for the test."""
    found: dict[str, list[str]] = {}
    for path in sorted(files()):
        domain, category, name = path.split("/")
        part = "test" if name == f"{EACH:06}.jpg" else "train"
        found.setdefault(f"{domain}_{part}.txt", []).append(f"NICO_DG/{path} {CATEGORIES.index(category)}\n")
    return {name: "".join(lines).encode() for name, lines in found.items()}


def write(folder: Path) -> None:
    """Write the folders ``NICO_DG`` and ``NICO_DG_official``."""
    put(folder / "NICO_DG", files())
    put(folder / "NICO_DG_official", lists())
