"""Stanford Online Products: 120,053 photographs of 22,634 products of twelve kinds, a benchmark of metric learning."""

from pathlib import Path

import numpy as np

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.adapters.missing_files import refuse_twice, warn_left_out
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.archives.releases import find_members
from setsup.files.texts import text_of

__all__ = ["open"]

_LISTS = {"train": "Ebay_train.txt", "test": "Ebay_test.txt"}
_HOLDS = {r"Ebay_train\.txt": "Ebay_train.txt", r"[a-z_]+_final/[^/]+\.JPG": "bicycle_final/*.JPG"}
_HEADER = ["image_id", "class_id", "super_class_id", "path"]
_MOST = 1 << 24


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Stanford Online Products: the folder ``Stanford_Online_Products``, or its zip as published.

    Rows are the lines of ``Ebay_train.txt`` and of ``Ebay_test.txt``. Factors: ``category``, the folder of the image
    without its ``_final``; ``product``, nested in it; and ``split``, which has no product in both parts.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Oh Song, Xiang, Jegelka, Savarese, "Deep Metric Learning via Lifted Structured Feature Embedding", CVPR 2016.

    """
    size = check_size(size)
    archives = ["Stanford_Online_Products.zip", "Stanford_Online_Products", "Stanford_Online_Products.tar"]
    release = find_members("online-products", root, _HOLDS, archives)
    rows = [
        (part, *line)
        for part, (split, name) in enumerate(_LISTS.items())
        if name in release or split == "train"
        for line in _lines(release, name)
    ]
    refuse_twice(str(release.source), [path for _, _, path in rows])
    places = release.places([path for _, _, path in rows])
    lost = [rows[row][2] for row in np.flatnonzero(places < 0).tolist()]
    warn_left_out(release.source, "images", lost, len(rows))
    kept = [rows[row] for row in np.flatnonzero(places >= 0).tolist()]
    factors = [
        nominal("category", [path.split("/")[0].removesuffix("_final") for _, _, path in kept]),
        nominal("product", [product for _, product, _ in kept], within="category"),
        (Factor("split", Kind.NOMINAL, tuple(_LISTS), role="split"), np.array([part for part, _, _ in kept], np.int64)),
    ]
    images = MemberImages(release, places[places >= 0])
    return ImageFilesDataset("online-products", table_of(factors), images, size)


def _lines(release: MemberIndex, name: str) -> list[tuple[int, str]]:
    """Product and path of each line."""
    place = release.place(name)
    label = release.label(place)
    header, *lines = [
        line.split() for line in text_of(release.read(place, _MOST), label).splitlines() if line.strip()
    ] or [[]]
    if header != _HEADER:
        raise DamagedFile(f"{label} begins with {' '.join(header)[:60]!r}; {' '.join(_HEADER)} was expected")
    for number, line in enumerate(lines, 2):
        if len(line) != len(_HEADER) or not line[1].isdecimal():
            raise DamagedFile(f"{label}: line {number} is not an image, its product, its kind and its path")
    return [(int(product), path) for _, product, _, path in lines]
