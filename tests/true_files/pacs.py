"""A small PACS as it was published: a folder a domain and category, and the lists of the paper's split."""

import io
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from tests.true_files.toys import toy

HELD = "domain"

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CATEGORIES = ("dog", "elephant", "guitar")
EACH = 6


@cache  # tests of many benchmarks write the same images, each test anew; callers leave them as they are
def drawn(domain: int, kind: int, number: int, size: tuple[int, int]) -> Image.Image:
    """A toy of a kind, in the manner of a domain: as it is, in oil, in few colours, or as lines."""
    picture = Image.fromarray(
        toy(kind, 0.13 * number + 0.3 * kind, 40.0 * number, 20 + 5 * number, size=size, ground=(214, 222, 230))
    ).convert("RGB")
    if domain == 0:
        return picture
    if domain == 1:
        return picture.filter(ImageFilter.ModeFilter(9))
    if domain == 2:
        return picture.quantize(6).convert("RGB")
    edges = picture.convert("L").filter(ImageFilter.FIND_EDGES)
    return Image.fromarray(np.where(np.asarray(edges) > 24, 0, 255).astype(np.uint8)).convert("RGB")


def encoded(picture: Image.Image, form: str = "JPEG") -> bytes:
    """Bytes of an image file."""
    file = io.BytesIO()
    picture.save(file, form, quality=92)
    return file.getvalue()


def tree(
    domains: tuple[str, ...], categories: tuple[str, ...], name: str = "pic_{:03}.jpg", each: int = EACH
) -> dict[str, bytes]:
    """Content by path, ``<domain>/<category>/<image>``, in an order that is not that of the names."""
    return {
        f"{domain}/{category}/{name.format(number)}": encoded(
            drawn((place + 2) % 4, kind, number, (100 + 7 * (number % 3), 90 + 9 * (number % 2)))
        )
        for place, domain in reversed(list(enumerate(domains)))
        for kind, category in reversed(list(enumerate(categories)))
        for number in reversed(range(1, each + 1))
    }


def put(folder: Path, files: dict[str, bytes]) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def lists(files: dict[str, bytes]) -> dict[str, bytes]:
    """The lists of the paper: one image of six is for validation."""
    found = {}
    for domain in DOMAINS:
        lines = [f"{path} {1 + CATEGORIES.index(path.split('/')[1])}\n" for path in files if path.startswith(domain)]
        few = lines[::EACH]
        for part, chosen in (("crossval", few), ("train", [line for line in lines if line not in few])):
            found[f"{domain}_{part}_kfold.txt"] = "".join(chosen).encode()
    return found


def write(folder: Path, *, listed: bool = True) -> None:
    """Write the folder ``kfold`` that the zip holds, and the lists in it."""
    files = tree(DOMAINS, CATEGORIES)
    put(folder / "kfold", {**files, **(lists(files) if listed else {})})
