"""A small Camelyon17-WILDS as it was published: patches by patient and node, and metadata.csv with an index column."""

from pathlib import Path

from tests.kept import kept
from tests.true_files.pacs import drawn, encoded, put

HELD = "hospital"

HEADER = ",patient,node,x_coord,y_coord,tumor,slide,center,split"


def lines() -> list[tuple[str, ...]]:
    """Cells of each line but the index: three slides of each of five hospitals, four patches of each."""
    found = []
    for center in range(5):
        for slide in range(3):
            patient, node = f"{20 * center + slide:03}", str(slide + 1)
            for patch in range(4):
                split = "1" if patch == 3 else "0"
                place = (str(3328 + 32 * patch), str(22_000 + 96 * slide))
                found.append((patient, node, *place, str(patch % 2), str(3 * center + slide), str(center), split))
    return found


def name_of(line: tuple[str, ...]) -> str:
    """Path of the patch of a line."""
    patient, node, x, y = line[:4]
    return f"patches/patient_{patient}_node_{node}/patch_patient_{patient}_node_{node}_x_{x}_y_{y}.png"


@kept
def write(folder: Path) -> None:
    """Write the folder ``camelyon17_v1.0``."""
    rows = lines()
    text = "\n".join([HEADER, *(",".join([str(number), *line]) for number, line in enumerate(rows))])
    patches = {
        name_of(line): encoded(drawn(number % 3, int(line[6]), number, (96, 96)), "PNG")
        for number, line in enumerate(rows)
    }
    put(folder / "camelyon17_v1.0", {"metadata.csv": text.encode() + b"\n", "RELEASE_v1.0.txt": b"", **patches})
