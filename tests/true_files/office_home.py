"""A small Office-Home as it was published: a zip of a folder a domain and category, and a table about the images."""

import zipfile
from pathlib import Path

from tests.true_files.pacs import tree

HELD = "domain"

DOMAINS = ("Art", "Clipart", "Product", "Real World")
CATEGORIES = ("Alarm_Clock", "Desk_Lamp", "Flipflops", "TV")
TOP = "OfficeHomeDataset_10072016"


def write(folder: Path) -> None:
    """Write the zip."""
    with zipfile.ZipFile(folder / f"{TOP}.zip", "w") as file:
        for name, content in tree(DOMAINS, CATEGORIES, "{:05}.jpg", each=4).items():
            file.writestr(f"{TOP}/{name}", content)
        file.writestr(f"{TOP}/ImageInfo.csv", "Domain,Category\n")
        file.writestr(f"__MACOSX/{TOP}/Art/Alarm_Clock/._00001.jpg", b"\0")
