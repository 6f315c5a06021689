"""A small 3D Chairs as it was published: a tar with a folder a chair, and a list in MATLAB's format."""

import io
import tarfile
from functools import cache
from pathlib import Path

from PIL import Image

from tests.kept import kept
from tests.true_files.toys import toy

HELD = "chair"

CHAIRS = ("1a2b8749a1756a09932a5c2746cd09a4", "b663f1e4df6c51fe19fb4103277a6b93")
AZIMUTHS = (
    *("000", "011", "023", "034", "046", "058", "069", "081", "092", "104", "116", "127", "139", "150", "162", "174"),
    *("185", "197", "209", "220", "232", "243", "255", "267", "278", "290", "301", "313", "325", "336", "348"),
)


def views() -> list[tuple[str, int, int]]:
    """Name, elevation and azimuth of each view of a chair: the number of one is skipped between the elevations."""
    return [
        (f"image_{number + 32 * row:03}_p{elevation:03}_t{azimuth}_r096.png", elevation, int(azimuth))
        for row, elevation in enumerate((20, 30))
        for number, azimuth in enumerate(AZIMUTHS)
    ]


@cache
def image(chair: int, elevation: int, azimuth: int) -> bytes:
    """A chair on white, with a wide margin; of few colours, which is quick to write."""
    small = Image.fromarray(toy(3, 0.1 + 0.4 * chair, azimuth, elevation, size=(40, 40))).quantize(16)
    whole = Image.new("P", (600, 600), small.getpixel((0, 0)))
    whole.putpalette(small.getpalette())
    whole.paste(small.resize((400, 400), Image.Resampling.NEAREST), (100, 100))
    file = io.BytesIO()
    whole.save(file, "PNG", compress_level=1)
    return file.getvalue()


@kept
def write(folder: Path) -> None:
    """Write ``rendered_chairs.tar``."""
    with tarfile.open(folder / "rendered_chairs.tar", "w") as file:
        for number, chair in enumerate(CHAIRS):
            for name, elevation, azimuth in views():
                put(file, f"rendered_chairs/{chair}/renders/{name}", image(number, elevation, azimuth))
        put(file, "rendered_chairs/all_chair_names.mat", b"MATLAB 5.0 MAT-file".ljust(128))


def put(file: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file to a tar."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    file.addfile(entry, io.BytesIO(content))
