"""A small CUB-200-2011 as it was published: lists by the number of the image."""

from pathlib import Path

import numpy as np

from tests.true_files.pacs import drawn, encoded, put

HELD = "species"

SPECIES = {
    1: "001.Black_footed_Albatross",
    2: "002.Laysan_Albatross",
    101: "101.White_Pelican",
    200: "200.Common_Yellowthroat",
}
ATTRIBUTES, PARTS = 312, 15
TOO_LONG = {2000: "0 ", 3000: "0 0 "}
"""Values too many before the time, by the line."""


def lines() -> list[tuple[int, str, int, int]]:
    """Number, path, class, and whether it is for training, of each image."""
    found: list[tuple[int, str, int, int]] = []
    for label, species in SPECIES.items():
        for number in range(6):
            name = f"{species}/{species.partition('.')[2]}_{number:04}_{795 + len(found)}.jpg"
            found.append((len(found) + 1, name, label, int(number % 3 > 0)))
    return found


def labels() -> tuple[np.ndarray, np.ndarray]:
    """Presence and certainty of the attributes of each image, (images, 312): of the nine bill shapes, mostly one."""
    chance = np.random.default_rng(5)
    present = (chance.random((len(lines()), ATTRIBUTES)) < 0.1).astype(int)
    for row, bills in enumerate(present[:, :9]):
        bills[:] = 0
        bills[[row % 9] if row % 6 else []] = 1
    present[1, 4] = 1  # two shapes
    return present, chance.integers(1, 5, present.shape)


def parts() -> np.ndarray:
    """Whether each part is visible, x and y, (images, 15, 3)."""
    chance = np.random.default_rng(6)
    shown = chance.random((len(lines()), PARTS, 1)) < 0.7
    return np.concatenate([shown, shown * chance.integers(0, 80, (*shown.shape[:2], 2))], axis=2)


def percentages() -> np.ndarray:
    """Percentages by species, (200, 312)."""
    return np.random.default_rng(7).integers(0, 1001, (200, ATTRIBUTES)) / 10


def texts() -> dict[str, str]:
    """Lists by name."""
    rows = lines()
    present, certainty = labels()
    said = [
        f"{number} {attribute + 1} {present[row, attribute]} {certainty[row, attribute]} "
        f"{TOO_LONG.get(row * ATTRIBUTES + attribute, '')}{1 + attribute % 7}.{row:03}\n"
        for row, (number, *_) in enumerate(rows)
        for attribute in range(ATTRIBUTES)
    ]
    return {
        "images.txt": "".join(f"{number} {name}\n" for number, name, _, _ in rows),
        "image_class_labels.txt": "".join(f"{number} {label}\n" for number, _, label, _ in rows),
        "train_test_split.txt": "".join(f"{number} {train}\n" for number, _, _, train in rows),
        "classes.txt": "".join(f"{label} {species}\n" for label, species in SPECIES.items()),
        "bounding_boxes.txt": "".join(f"{number} {number}.0 7.0 40.0 {50 + number}.0\n" for number, *_ in rows),
        "parts/parts.txt": "1 back\n2 beak\n",
        "parts/part_locs.txt": "".join(
            f"{rows[row][0]} {part + 1} {x}.0 {y}.0 {shown}\n"
            for row, of_image in enumerate(parts().tolist())
            for part, (shown, x, y) in enumerate(of_image)
        ),
        "attributes/certainties.txt": "1 not visible\n2 guessing\n3 probably\n4 definitely\n",
        "attributes/image_attribute_labels.txt": "".join(said),
        "attributes/class_attribute_labels_continuous.txt": "".join(
            f"{' '.join(map(str, row))}\n" for row in percentages().tolist()
        ),
    }


def write(folder: Path) -> None:
    """Write the folder ``CUB_200_2011``, with ``attributes.txt`` beside it."""
    images = {
        f"images/{name}": encoded(drawn(0, label, number, (90 + number % 3, 80))) for number, name, label, _ in lines()
    }
    put(folder / "CUB_200_2011", {**{name: text.encode() for name, text in texts().items()}, **images})
    (folder / "attributes.txt").write_text("1 has_bill_shape::curved_(up_or_down)\n2 has_bill_shape::dagger\n")
