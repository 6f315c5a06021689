"""A small Animals with Attributes 2 as it was published: a zip with a folder a category, names, and matrices."""

import zipfile
from pathlib import Path

import numpy as np

from setsup.files import load_manifest
from tests.true_files.pacs import drawn, encoded

HELD = "stripes"

CATEGORIES = ("antelope", "grizzly+bear", "zebra", "rat", "blue+whale")
"""In the order of their numbers, which is not that of the names."""
ATTRIBUTES = tuple(factor.name for factor in load_manifest("awa2").factors[3:])
EACH = 4


def matrices() -> tuple[np.ndarray, np.ndarray]:
    """Attributes of the categories, 0 or 1, and their strengths, of which four are missing."""
    strengths = np.random.default_rng(3).integers(0, 10001, (len(CATEGORIES), len(ATTRIBUTES))) / 100
    binary = (strengths > strengths.mean()).astype(int)
    strengths[0, :4] = -1
    return binary, strengths


def files() -> dict[str, bytes]:
    """Content by path."""
    binary, strengths = matrices()
    texts = {
        "classes.txt": "".join(f"{number:6}\t{name}\n" for number, name in enumerate(CATEGORIES, 1)),
        "predicates.txt": "".join(f"{number:6}\t{name}\n" for number, name in enumerate(ATTRIBUTES, 1)),
        "predicate-matrix-binary.txt": "\n".join(" ".join(map(str, row)) for row in binary.tolist()),
        "predicate-matrix-continuous.txt": "".join(
            "".join(f"{value:7.2f}" for value in row) + "\n" for row in strengths.tolist()
        ),
        "trainclasses.txt": "antelope\ngrizzly+bear\nzebra\nblue+whale\n",
        "testclasses.txt": "rat\n",
        "README-images.txt": "Animals with Attributes2\n",
    }
    images = {
        f"JPEGImages/{name}/{name}_{10001 + number}.jpg": encoded(drawn(0, kind, number, (70 + 9 * number, 90)))
        for kind, name in enumerate(CATEGORIES)
        for number in range(EACH)
    }
    return {**{name: text.encode() for name, text in texts.items()}, **images}


def write(folder: Path) -> None:
    """Write ``AwA2-data.zip``."""
    with zipfile.ZipFile(folder / "AwA2-data.zip", "w") as file:
        for name, content in files().items():
            file.writestr(f"Animals_with_Attributes2/{name}", content)
        file.writestr("Animals_with_Attributes2/licenses/antelope/antelope_10001.txt", "https://example.org\n")
