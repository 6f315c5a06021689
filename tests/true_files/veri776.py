"""A small VeRi-776 as it is given out: three folders of images, whose names tell vehicle and camera, and labels."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "camera"

FOLDERS = {"train": "image_train", "query": "image_query", "gallery": "image_test"}
COLORS = ("yellow", "orange", "green", "gray", "red", "blue", "white", "golden", "brown", "black")
TYPES = ("sedan", "suv", "van", "hatchback", "mpv", "pickup", "bus", "truck", "estate")
LABELS = {1: (5, 1), 7: (10, 0), 12: (1, 9), 2: (7, 2), 30: (3, 7)}
"""Published numbers of color and type by vehicle; 7 has no type, as in an early release."""


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


def labels(part: str) -> bytes:
    """Labels of ``train`` with a comment in GB 2312, or of ``gallery``, which contains the images of ``query``."""
    items = [name for name in names() if name[0] == part]
    lines = [
        f'        <Item imageName="{name}" vehicleID="{vehicle:04}" cameraID="c{camera:03}" '
        f'colorID="{LABELS[vehicle][0]}" typeID="{LABELS[vehicle][1]}" />'
        for _, name, vehicle, camera, _ in items
    ]
    root = "TrainingImages" if part == "train" else "TestImages"
    head = ['<?xml version="1.0" encoding="gb2312" ?>', f'<{root} Version="1.0">']
    body = [f'    <Items number="{len(items)}">', *lines, "    </Items>", f"</{root}>"]
    comment = ["    <!-- 车辆 -->"] if part == "train" else []
    return "\n".join([*head, *comment, *body, ""]).encode("gb2312")


def write(folder: Path) -> None:
    """Write the folder ``VeRi``."""
    images = {
        f"{FOLDERS[part]}/{name}": encoded(drawn(0, 0, vehicle + camera, (80 + camera % 3, 72)))
        for part, name, vehicle, camera, _ in names()
    }
    texts = {"train_label.xml": labels("train"), "test_label.xml": labels("gallery"), "name_query.txt": b""}
    put(folder / "VeRi", {**images, **texts})
