"""A small VLCS in the form of DomainBed's tar: a folder a collection and category."""

from pathlib import Path

from tests.true_files.pacs import put, tree

HELD = "domain"

DOMAINS = ("Caltech101", "LabelMe", "SUN09", "VOC2007")
CATEGORIES = ("bird", "car", "chair", "dog", "person")


def write(folder: Path) -> None:
    """Write the folder ``VLCS``."""
    put(folder / "VLCS", tree(DOMAINS, CATEGORIES, "img_{:04}.jpg", each=4))
