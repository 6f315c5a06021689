"""Read a grid of images whose names are the numbers of its cells: ``Isaac3D/images/000000.png``.

Convention
----------
The number is that of the cell in C order, the last factor changing fastest, with six digits.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile, DataError
from setsup.factors import Factor, FactorTable
from setsup.files.archives.releases import find_members

__all__ = ["open_grid"]


def open_grid(
    name: str, title: str, factors: Sequence[Factor], root: Path | str | None, size: tuple[int, int] | None
) -> ImageFilesDataset:
    """Open the grid of some factors, or the available part of it.

    The names of the release's folder and archives start with `title`. The table is an implicit grid if all images
    exist, else it has columns.

    Raises
    ------
    DataError
        When no such image exists, or the number of an image is outside the grid.

    """
    size = check_size(size)
    file = rf"(?:{title}[^/]*/)?images/(?P<number>[0-9]{{6}})\.png"
    folders = [f"{title}{of}{end}" for of in ("", "_down128") for end in ("", ".zip", ".tar")]
    release = find_members(name, root, {file: f"{title}/images/000000.png"}, folders)
    places, groups = release.matching(file)
    # other releases have numbered images, too
    if title.lower() not in f"{release.source}/{release.prefix}{release.names[int(places[0])]}".lower():
        raise DataError(
            f"{name}: {release.source} contains numbered images in {release.prefix}images, but no folder of the path "
            f"is named {title}; rename the folder that contains them to {title}"
        )
    numbers = np.array(groups["number"].to_pylist(), np.int64)
    order = np.argsort(numbers, kind="stable")
    numbers, places = numbers[order], places[order]
    cells = math.prod(map(len, factors))
    wrong = numbers >= cells
    if wrong.any() or (np.diff(numbers) == 0).any():
        which = int(numbers[np.argmax(wrong)] if wrong.any() else numbers[1:][np.argmin(np.diff(numbers))])
        what = f"but the images end at {cells - 1:06}" if wrong.any() else "twice"
        raise DamagedFile(f"{release.source} contains the image {which:06} of {name}, {what}")
    grid = FactorTable(factors)
    if len(numbers) < cells:
        grid = FactorTable(factors, {factor.name: grid.codes(factor.name, numbers) for factor in factors})
    return ImageFilesDataset(name, grid, MemberImages(release, places), size)
