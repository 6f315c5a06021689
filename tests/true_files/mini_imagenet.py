"""A small miniImageNet: images in one folder, and the three csv files of its split."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "synset"

SYNSETS = {
    "train": ("n01532829", "n01558993", "n01704323"),
    "val": ("n01855672", "n02091244"),
    "test": ("n01930112", "n01981276"),
}
EACH = 5


def rows() -> list[tuple[str, str, str]]:
    """Part, synset and file of each image, in the order of the csv files."""
    return [
        (part, synset, f"{synset}{number:08}.jpg")
        for part, synsets in SYNSETS.items()
        for synset in synsets
        for number in (5, 6, 7, 10, 12)[:EACH]
    ]


def content() -> dict[str, bytes]:
    """Images by their names."""
    known = [synset for synsets in SYNSETS.values() for synset in synsets]
    return {
        name: encoded(drawn(0, known.index(synset), number, (90 + number % 3, 84)))
        for number, (_, synset, name) in enumerate(rows())
    }


def write(folder: Path, path: str = "images/{name}") -> None:
    """Write the csv files, and the images in ``images`` or elsewhere, by part, synset and name."""
    images = content()
    for part in SYNSETS:
        lines = [f"{name},{synset}\n" for where, synset, name in rows() if where == part]
        (folder / f"{part}.csv").write_text("filename,label\n" + "".join(lines))
    put(folder, {path.format(part=part, synset=synset, name=name): images[name] for part, synset, name in rows()})
