"""A small DomainNet as it was published: a zip for each domain, and lists of the training and test images."""

import zipfile
from pathlib import Path

from tests.true_files.pacs import put, tree

HELD = "domain"

DOMAINS = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")
CATEGORIES = ("aircraft_carrier", "airplane", "The_Eiffel_Tower")
EACH = 4


def files() -> dict[str, bytes]:
    """Content by path; names have the domain, the number of the category and that of the image."""
    return {
        f"{domain}/{category}/{domain}_{CATEGORIES.index(category) + 1:03}_{name}": content
        for path, content in tree(DOMAINS, CATEGORIES, "{:06}.jpg", each=EACH).items()
        for domain, category, name in [path.split("/")]
    }


def lists() -> dict[str, bytes]:
    """The published lists, in the order of the names: the last of four images is for the test."""
    found: dict[str, list[str]] = {}
    for path in sorted(files()):
        domain, category, name = path.split("/")
        part = "test" if name.endswith("000004.jpg") else "train"
        found.setdefault(f"{domain}_{part}.txt", []).append(f"{path} {CATEGORIES.index(category)}\n")
    return {name: "".join(lines).encode() for name, lines in found.items()}


def write(folder: Path) -> None:
    """Write six zips and twelve lists."""
    content = files()
    for domain in DOMAINS:
        with zipfile.ZipFile(folder / f"{domain}.zip", "w") as file:
            for name, data in content.items():
                if name.startswith(domain):
                    file.writestr(name, data)
    put(folder, lists())
