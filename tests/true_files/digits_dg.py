"""A small Digits-DG as it was published: a zip of a folder a domain, part and digit."""

import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

from tests.true_files.mnist import drawn
from tests.true_files.mnist_m import blended
from tests.true_files.pacs import encoded

HELD = "domain"

DOMAINS = ("mnist", "mnist_m", "svhn", "syn")
COUNTS = {"train": 4, "val": 1}
DIGITS = (0, 3, 4, 8)


def files() -> dict[str, bytes]:
    """Content by path, ``<domain>/<part>/<digit>/<number>.jpg``, in an order that is not that of the names."""
    found = {}
    codes = [digit for digit in DIGITS for _ in range(sum(COUNTS.values()))]
    for place, domain in reversed(list(enumerate(DOMAINS))):
        if place == 0:
            pictures = np.pad(drawn(np.array(codes), 3), ((0, 0), (2, 2), (2, 2)))[..., None].repeat(3, -1)
        else:
            pictures = blended(codes, place) // np.array([1, place, 2 if place == 2 else 1], np.uint8)
        named = [(part, number) for part, count in COUNTS.items() for number in range(1, count + 1)]
        for row, (digit, picture) in enumerate(zip(codes, pictures, strict=True)):
            part, number = named[row % len(named)]
            found[f"{domain}/{part}/{digit}/{number:05}.jpg"] = encoded(Image.fromarray(picture))
    return found


def write(folder: Path) -> None:
    """Write the zip."""
    with zipfile.ZipFile(folder / "digits_dg.zip", "w") as file:
        for name, content in files().items():
            file.writestr(f"digits_dg/{name}", content)
