"""A small Waterbirds as it was published: folders of CUB's species, and metadata.csv counted from 1."""

from pathlib import Path

from tests.true_files.pacs import drawn, encoded, put

HELD = "place"

SPECIES = ("001.Black_footed_Albatross", "017.Cardinal", "059.California_Gull", "200.Common_Yellowthroat")
WATER = ("001.Black_footed_Albatross", "059.California_Gull")
HEADER = "img_id,img_filename,y,split,place,place_filename"


def lines() -> list[tuple[str, ...]]:
    """Cells of each line."""
    found = []
    for species in SPECIES:
        for number in range(6):
            bird = str(int(species in WATER))
            place = str(int(bird == "1") ^ int(number == 5))
            name = f"{species}/{species.partition('.')[2]}_{number:04}_{len(found)}.jpg"
            cells = (bird, str(number // 2), place, f"/o/ocean/{number:08}.jpg")
            found.append((str(len(found) + 1), name, *cells))
    return found


def write(folder: Path) -> None:
    """Write the folder ``waterbird_complete95_forest2water2``."""
    rows = lines()
    text = "\n".join([HEADER, *(",".join(line) for line in rows)])
    images = {
        line[1]: encoded(drawn(2 if line[4] == "1" else 0, int(line[2]), number, (90 + number % 3, 80)))
        for number, line in enumerate(rows)
    }
    put(folder / "waterbird_complete95_forest2water2", {"metadata.csv": text.encode(), **images})
