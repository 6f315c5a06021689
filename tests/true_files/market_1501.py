"""A small Market-1501 as published: folders of images, whose names give person, camera, sequence and frame."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "camera"

FOLDERS = {"train": "bounding_box_train", "query": "query", "gallery": "bounding_box_test"}
PERSONS = {"train": (2, 7, 1500), "query": (1, 3), "gallery": (1, 3, 0, -1)}


def rows() -> list[tuple[str, str, int, int, int, int, int]]:
    """Part, name, person, camera, sequence, frame and box of each image, by folder and name."""
    found = []
    for part, persons in PERSONS.items():
        for person in persons:
            for camera in (1, 2, 6):
                sequence, frame, box = 1 + camera % 3, 451 + 25 * camera + abs(person), 0 if part == "query" else 1
                label = f"{person:04}" if person >= 0 else "-1"
                name = f"{label}_c{camera}s{sequence}_{frame:06}_{box:02}.jpg"
                found.append((part, name, person, camera, sequence, frame, box))
    return sorted(found, key=lambda row: (list(FOLDERS).index(row[0]), row[1]))


def files() -> dict[str, bytes]:
    """Content by path; among them files that are no rows."""
    images = {
        f"{FOLDERS[part]}/{name}": encoded(drawn(0, max(person, 0) % 5, camera, (128, 64)))
        for part, name, person, camera, *_ in rows()
    }
    name = "0001_c1s2_000477_00"
    images[f"gt_bbox/{name}.jpg"] = images[f"query/{name}.jpg"]
    return {**images, f"gt_query/{name}_good.mat": b"", "query/Thumbs.db": b"", "readme.txt": b""}


def write(folder: Path) -> None:
    """Write the folder ``Market-1501-v15.09.15``."""
    put(folder / "Market-1501-v15.09.15", files())
