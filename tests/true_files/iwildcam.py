"""A small iWildCam2020-WILDS as it was published: one folder of images, metadata.csv and categories.csv."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "location"

_COLUMNS = ("split", "location_remapped", "location", "sequence_remapped", "sequence", "year", "month", "day")
HEADER = ",".join([*_COLUMNS, "datetime", "filename", "image_id", "y", "category_id"])
CATEGORIES = ("empty", "meleagris ocellata", "panthera onca")
SPLITS = ("train", "val", "test", "id_val", "id_test")


def lines() -> list[dict[str, str]]:
    """Cells of each line by column."""
    found = []
    for location in range(6):
        for shot in range(4):
            split = {4: "val", 5: "test"}.get(location, "train")
            if split == "train" and shot == 3:
                split = "id_val" if location % 2 else "id_test"
            key = f"{location:04x}{shot:04x}-21bc-11ea-a13a-137349068a90"
            when = f"20{13 + shot % 2}-0{1 + location}-17 1{shot}:02:20.{'000' if shot else '507000'}"
            label = str((location + shot) % 3)
            cells = (split, str(location), str(10 * location), str(2 * location + shot // 2), key, "", "", "", when)
            found.append(dict(zip(HEADER.split(","), (*cells, f"{key}.jpg", key, label, label), strict=True)))
    return found


def write(folder: Path) -> None:
    """Write the folder ``iwildcam_v2.0``."""
    rows = lines()
    text = "\n".join([HEADER, *(",".join(line.values()) for line in rows)])
    names = "\n".join(["y,category_id,name", *(f"{code},{code},{name}" for code, name in enumerate(CATEGORIES))])
    images = {
        f"train/{line['filename']}": encoded(drawn(0, int(line["y"]), number, (96 + 4 * (number % 2), 72)))
        for number, line in enumerate(rows)
    }
    files = {"metadata.csv": text.encode(), "categories.csv": names.encode(), **images}
    put(folder / "iwildcam_v2.0", files)
