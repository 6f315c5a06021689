"""A small MSMT17 in its published layout: images of persons in two folders, and the four lists of them."""

from pathlib import Path
from typing import NamedTuple

from tests.true_files.pacs import drawn, encoded, put

HELD = "camera"

TIMES = ("0303morning", "0113noon", "0114afternoon")
LISTS = {
    "train": ("train", (0, 1, 1040)),
    "val": ("train", (0, 1)),
    "query": ("test", (0, 3059)),
    "gallery": ("test", (0, 3059)),
}
FOLDERS = {"V1": {"train": "train", "test": "test"}, "V2": {"train": "mask_train_v2", "test": "mask_test_v2"}}


class Row(NamedTuple):
    """One line of a list."""

    list: str
    part: str
    path: str
    person: int
    camera: int
    date: str
    time: str
    frame: int


def rows() -> list[Row]:
    """Images in the order of the lists, which is not that of the names."""
    found = []
    for turn, (name, (part, persons)) in enumerate(LISTS.items()):
        for person in persons:
            for number, camera in enumerate((12, 1, 7)):
                taken, frame = TIMES[number], 6 + 10 * person % 1900 + number
                end = "_ex" if number == 1 else ""
                path = (
                    f"{person:04}/{person:04}_{10 * turn + number:03}_{camera:02}_{taken}_{frame:04}_{number}{end}.jpg"
                )
                found.append(Row(name, part, path, person, camera, taken[:4], taken[4:], frame))
    return found


def files(version: str = "V1") -> dict[str, bytes]:
    """Content by path below the folder of a version."""
    images = {
        f"{FOLDERS[version][row.part]}/{row.path}": encoded(
            drawn(0, (row.person + 2 * (row.part == "test")) % 5, row.camera, (130 + row.camera, 60))
        )
        for row in rows()
    }
    lists = {
        f"list_{name}.txt": "".join(f"{row.path} {row.person}\n" for row in rows() if row.list == name).encode()
        for name in LISTS
    }
    return {**images, **lists}


def write(folder: Path, version: str = "V1") -> None:
    """Write the folder ``MSMT17_V1``, or that of another version."""
    put(folder / f"MSMT17_{version}", files(version))
