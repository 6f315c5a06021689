"""A small CUB-200-2011 as it was published: lists by the number of the image."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "species"

SPECIES = {
    1: "001.Black_footed_Albatross",
    2: "002.Laysan_Albatross",
    101: "101.White_Pelican",
    200: "200.Common_Yellowthroat",
}


def lines() -> list[tuple[int, str, int, int]]:
    """Number, path, class, and whether it is for training, of each image."""
    found: list[tuple[int, str, int, int]] = []
    for label, species in SPECIES.items():
        for number in range(6):
            name = f"{species}/{species.partition('.')[2]}_{number:04}_{795 + len(found)}.jpg"
            found.append((len(found) + 1, name, label, int(number % 3 > 0)))
    return found


def write(folder: Path) -> None:
    """Write the folder ``CUB_200_2011``."""
    rows = lines()
    texts = {
        "images.txt": "".join(f"{number} {name}\n" for number, name, _, _ in rows),
        "image_class_labels.txt": "".join(f"{number} {label}\n" for number, _, label, _ in rows),
        "train_test_split.txt": "".join(f"{number} {train}\n" for number, _, _, train in rows),
        "classes.txt": "".join(f"{label} {species}\n" for label, species in SPECIES.items()),
        "attributes/attributes.txt": "1 has_bill_shape::curved\n",
    }
    images = {
        f"images/{name}": encoded(drawn(0, label, number, (90 + number % 3, 80))) for number, name, label, _ in rows
    }
    put(folder / "CUB_200_2011", {**{name: text.encode() for name, text in texts.items()}, **images})
