"""A small PKU VehicleID as published: images in one folder, and lists of vehicles, models, colors and parts."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "vehicle"

COLORS = ("black", "blue", "gray", "red", "sliver", "white", "yellow")
MODELS = {1: 237, 8: 105, 9: 1, 24405: 0}
"""Models of the vehicles that have one."""
PAINT = {1: 2, 8: 0, 24405: 4}
"""Colors of the vehicles that have one, which are some of those with a model."""
VEHICLES = (24405, 9, 1, 8, 27957, 12)
EACH = 4
LISTS = {
    "train_list": (1, 9),
    "test_list_13164": (8, 12, 24405, 27957),
    "test_list_800": (8,),
    "test_list_1600": (8, 12),
    "test_list_2400": (8, 12, 24405),
}
"""Vehicles of the lists."""


def rows() -> list[tuple[int, int]]:
    """Image and vehicle, in the order of ``img2vid.txt``."""
    return [
        (287_057 - 13 * place - number, vehicle) for place, vehicle in enumerate(VEHICLES) for number in range(EACH)
    ]


def files() -> dict[str, bytes]:
    """Content by path."""
    lines = {name: [row for row in reversed(rows()) if row[1] in vehicles] for name, vehicles in LISTS.items()}
    return {
        **{
            f"image/{image:07}.jpg": encoded(drawn(0, 0, (vehicle + image) % 11, (90 + image % 3, 100)))
            for image, vehicle in rows()
        },
        "attribute/img2vid.txt": "".join(f"{image:07} {vehicle}\n" for image, vehicle in rows()).encode(),
        "attribute/model_attr.txt": "".join(f"{vehicle} {model}\n" for vehicle, model in MODELS.items()).encode(),
        "attribute/color_attr.txt": "".join(f"{vehicle} {color}\n" for vehicle, color in PAINT.items()).encode(),
        "attribute/color_names.txt": "".join(f"{name} {code}\r\n" for code, name in enumerate(COLORS)).encode(),
        "attribute/model_names.txt": "五菱荣光2008款 0\n大众-朗逸2006-2011 1\n".encode(),
        **{
            f"train_test_split/{name}.txt": "".join(f"{image:07} {vehicle}\n" for image, vehicle in each).encode()
            for name, each in lines.items()
        },
    }


def write(folder: Path) -> None:
    """Write the folder ``VehicleID_V1.0``."""
    put(folder / "VehicleID_V1.0", files())
