"""A small SmallNORB in the published format: toys in grey, five of each category a split, rows shuffled."""

import gzip
import struct
from itertools import product
from pathlib import Path

import numpy as np

from tests.kept import kept
from tests.true_files.toys import toy

HELD = "category"

STEMS = {
    "train": ("smallnorb-5x46789x9x18x6x2x96x96-training", (4, 6, 7, 8, 9)),
    "test": ("smallnorb-5x01235x9x18x6x2x96x96-testing", (0, 1, 2, 3, 5)),
}
MAGIC = {"u1": 0x1E3D4C55, "<i4": 0x1E3D4C54}
KINDS = (3, 3, 2, 1, 0)  # animals are chairs on their backs
ELEVATIONS, AZIMUTHS, LIGHTINGS = (0, 4), (2, 16, 30), (0, 3)


def matrix(values: np.ndarray) -> bytes:
    """A file of the format, of values that are uint8 or int32."""
    kind = "u1" if values.dtype == np.uint8 else "<i4"
    lengths = [*values.shape, 1, 1][: max(3, values.ndim)]
    return struct.pack(f"<{2 + len(lengths)}i", MAGIC[kind], values.ndim, *lengths) + values.astype(kind).tobytes()


def picture(category: int, instance: int, elevation: int, azimuth: int, lighting: int, camera: int) -> np.ndarray:
    """The picture of stored factor values, (96, 96) uint8."""
    pose = 10.0 * azimuth + 4 * camera, 30.0 + 5 * elevation
    drawn = toy(KINDS[category], instance / 10, *pose, size=(96, 96), light=0.7 + 0.08 * lighting, ground=(200,) * 3)
    grey = (drawn @ np.array([0.3, 0.59, 0.11])).astype(np.uint8)
    return grey[::-1] if category == 0 else grey


@kept
def write(folder: Path, *, end: str = ".gz", per_split: int | None = None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Write the six files, gzipped or with ``end=""`` not; `per_split` pairs of each split, all by default.

    Returns
    -------
    dict of str to (pictures, factors)
        Of either split what is stored: (n, 2, 96, 96) uint8, and (n, 5) int32 of category and info.

    """
    folder.mkdir(parents=True, exist_ok=True)
    stored = {}
    for split, (stem, instances) in STEMS.items():
        every = list(product(range(5), instances, ELEVATIONS, AZIMUTHS, LIGHTINGS))
        order = np.random.default_rng(len(split)).permutation(len(every))[:per_split]
        factors = np.array([every[place] for place in order], np.int32)
        pictures = np.array([[picture(*row, camera) for camera in (0, 1)] for row in factors.tolist()])
        for what, values in (("dat", pictures), ("cat", factors[:, 0]), ("info", factors[:, 1:])):
            content = matrix(values)
            (folder / f"{stem}-{what}.mat{end}").write_bytes(gzip.compress(content, 6, mtime=0) if end else content)
        stored[split] = pictures, factors
    return stored
