"""A small Stanford Online Products as it was published: a zip with two lists and a folder a kind."""

import zipfile
from pathlib import Path

from tests.true_files.pacs import drawn, encoded

HELD = "product"

KINDS = ("bicycle", "chair", "mug")


def lines(part: str) -> list[tuple[int, int, int, str]]:
    """Numbers of the image, the product and the kind, and the path, of one part."""
    first = {"train": 0, "test": 6}[part]
    found = []
    for product in range(first, first + 6):
        kind = KINDS[product % 3]
        for shot in range(4):
            path = f"{kind}_final/{111085122871 + product}_{shot}.JPG"
            found.append((4 * product + shot + 1, product + 1, product % 3 + 1, path))
    return found


def write(folder: Path) -> None:
    """Write the zip."""
    with zipfile.ZipFile(folder / "Stanford_Online_Products.zip", "w") as file:
        for part in ("train", "test"):
            rows = lines(part)
            text = "image_id class_id super_class_id path\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows)
            file.writestr(f"Stanford_Online_Products/Ebay_{part}.txt", text)
            for number, product, kind, path in rows:
                content = encoded(drawn(0, kind, product + number % 4, (88 + number % 2, 80)))
                file.writestr(f"Stanford_Online_Products/{path}", content)
