"""A small VeRi-776 as it is given out: three folders, whose names of files tell vehicle, camera and frame."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "camera"

FOLDERS = {"train": "image_train", "query": "image_query", "gallery": "image_test"}


def names() -> list[tuple[str, str, int, int, int]]:
    """Part, name, vehicle, camera and frame of each image, by folder and name."""
    found = []
    for part, vehicles in (("train", (1, 7, 12)), ("query", (2, 30)), ("gallery", (2, 30))):
        for vehicle in vehicles:
            for camera in (1, 4, 20):
                if part == "query" and camera == 4:
                    continue
                frame = 16_000 + 35 * vehicle + camera
                found.append((part, f"{vehicle:04}_c{camera:03}_{frame:08}_0.jpg", vehicle, camera, frame))
    return found


def write(folder: Path) -> None:
    """Write the folder ``VeRi``."""
    images = {
        f"{FOLDERS[part]}/{name}": encoded(drawn(0, 0, vehicle + camera, (80 + camera % 3, 72)))
        for part, name, vehicle, camera, _ in names()
    }
    put(
        folder / "VeRi", {**images, "name_query.txt": b"", "train_label.xml": b"<?xml version='1.0'?><TrainingImages/>"}
    )
