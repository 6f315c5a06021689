"""A small FMoW-WILDS as it was published: numbered images, rgb_metadata.csv, and the regions of countries."""

from pathlib import Path

from tests.kept import kept
from tests.true_files.pacs import drawn, encoded, put

HELD = "region"

HEADER = (
    "split,img_filename,img_path,spatial_reference,epsg,category,visible,img_width,img_height,country_code,timestamp"
)
COUNTRIES = {"ITA": "Europe", "KEN": "Africa", "JPN": "Asia", "XKX": None}
CATEGORIES = ("airport", "crop_field", "zoo")


def lines() -> list[dict[str, str]]:
    """Cells of each line by column; every seventh is sequestered, and has no image."""
    found = []
    for number in range(84):
        split = "seq" if number % 7 == 6 else ("train", "val", "test")[number % 3]
        year, country = 2002 + number % 16, list(COUNTRIES)[number // 3 % 4]
        when = f"{year}-{1 + number % 12:02}-{'30' if number == 77 else '01'}T{number % 24:02}:54:30Z"
        cells = (split, "x.jpg", "a/x.jpg", "", "32632", CATEGORIES[number // 2 % 3], "1", "224", "224", country, when)
        found.append(dict(zip(HEADER.split(","), cells, strict=True)))
    return found


@kept
def write(folder: Path) -> None:
    """Write the folder ``fmow_v1.1``."""
    rows = lines()
    text = "\n".join([HEADER, *(",".join(line.values()) for line in rows)])
    known = [f"{region},{code}" for code, region in COUNTRIES.items() if region]
    images = {
        f"images/rgb_img_{number}.png": encoded(drawn(1, CATEGORIES.index(line["category"]), number, (64, 64)), "PNG")
        for number, line in enumerate(rows)
        if line["split"] != "seq"
    }
    countries = "\n".join(["region,alpha-3", *known])
    put(
        folder / "fmow_v1.1",
        {"rgb_metadata.csv": text.encode(), "country_code_mapping.csv": countries.encode(), **images},
    )
