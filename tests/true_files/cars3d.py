"""A small Cars3D in the published format: toys of several hues and kinds, whose ids do not follow their names."""

import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io

from tests.kept import kept
from tests.true_files.toys import toy

HELD = "object"

STEMS = ("car_017_mesh", "car_002_mesh", "car_164_mesh", "car_030_mesh")
SIDE, AZIMUTHS, ELEVATIONS = 128, 24, 4


def car(number: int, mask: str = "uint8") -> dict[str, np.ndarray]:
    """Variables of the file of an object: im (H, W, C, azimuth, elevation), mask (H, W, azimuth, elevation)."""
    drawn = np.array(
        [
            [toy(number, 0.21 * number, 15.0 * azimuth, 5.0 + 20 * elevation, alpha=True) for elevation in range(4)]
            for azimuth in range(24)
        ]
    )
    seen = drawn[..., 3] > 0
    pictures = np.where(seen[..., np.newaxis], drawn[..., :3], 255).astype(np.uint8)
    return {"im": pictures.transpose(2, 3, 4, 0, 1), "mask": seen.transpose(2, 3, 0, 1).astype(mask)}


def content(variables: Mapping[str, Any], packed: bool = True) -> bytes:
    """A MAT file of version 5."""
    file = io.BytesIO()
    scipy.io.savemat(file, dict(variables), do_compression=packed)
    return file.getvalue()


@kept
def write(folder: Path, *, below: str = "", stems: Sequence[str] = STEMS, listed: bool = True) -> None:
    """Write the list and the MAT files of the objects `stems`, in a folder `below` the given one."""
    place = folder / below
    place.mkdir(parents=True, exist_ok=True)
    for number, stem in enumerate(stems):
        (place / f"{stem}.mat").write_bytes(content(car(number)))
    if listed:
        (place / "list.txt").write_text("".join(f"{stem}\n" for stem in stems))


def pack(folder: Path, archive: Path, below: str = "data/cars") -> Path:
    """Pack a folder that :func:`write` wrote as the published archive is, beside files that are not needed."""
    mode = "w:gz" if archive.suffix == ".gz" else "w"
    with tarfile.open(archive, mode, format=tarfile.GNU_FORMAT, dereference=True) as tar:
        tar.add(folder, "data", recursive=False)
        _add(tar, "data/sprites/list.txt", b"no list of cars\n")
        for path in sorted(folder.iterdir()):
            tar.add(path, f"{below}/{path.name}")
        _add(tar, "data/shapes48.mat", bytes(70_000))
    return archive


def _add(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    about = tarfile.TarInfo(name)
    about.size = len(data)
    tar.addfile(about, io.BytesIO(data))
