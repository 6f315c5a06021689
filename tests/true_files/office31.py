"""A small Office-31 as it was published: a folder a domain, with its categories in a folder images."""

from pathlib import Path

from tests.true_files.pacs import put, tree

HELD = "domain"

DOMAINS = ("amazon", "dslr", "webcam")
CATEGORIES = ("back_pack", "desk_chair", "mug", "trash_can")


def files() -> dict[str, bytes]:
    """Content by path, without the folders images."""
    return tree(DOMAINS, CATEGORIES, "frame_{:04}.jpg", each=4)


def write(folder: Path) -> None:
    """Write the folders of the domains."""
    put(folder, {path.replace("/", "/images/", 1): content for path, content in files().items()})
