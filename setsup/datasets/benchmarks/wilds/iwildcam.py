"""iWildCam2020-WILDS: 203,029 photographs of animals by 323 cameras, whose places differ between the parts.

Convention
----------
Rows are the lines of ``metadata.csv``.
"""

import csv
import io
from datetime import datetime
from pathlib import Path

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.wilds.release import codes_of, find_release, integers_of, rows_with_images
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile, listed
from setsup.factors import Factor, Kind
from setsup.files.archives.members import MemberIndex
from setsup.files.texts import comma_separated, text_of

__all__ = ["open"]

_SPLITS = ("train", "val", "test", "id_val", "id_test")
_COLUMNS = ("split", "filename", "y", "location_remapped", "sequence_remapped", "datetime")
_IMAGES = {r"train/[^/]+\.(?i:jpg)": "train/*.jpg"}
_NAMES, _MOST = "categories.csv", 1 << 20


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open iWildCam2020-WILDS: the folder ``iwildcam_v2.0``, or a zip or tar of it.

    Factors: ``category`` (by ``categories.csv``, or the number of the label where that file is not there),
    ``location``, the keys ``sequence`` (images taken in one go), ``year``, ``month`` and ``hour``, and ``split``:
    ``val`` and ``test`` are of cameras that ``train`` does not have, ``id_val`` and ``id_test`` of those it has.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Beery, Cole, Gjoka, "The iWildCam 2020 Competition Dataset", 2020 (arXiv 2004.10340).
    .. [2] Koh, Sagawa, Marklund et al., "WILDS: A Benchmark of in-the-Wild Distribution Shifts", ICML 2021, section 4.

    """
    size = check_size(size)
    release, table = find_release("iwildcam", root, "metadata.csv", _COLUMNS, _IMAGES, "v2.0")
    label = release.label(release.place("metadata.csv"))
    rows, places = rows_with_images(release, [f"train/{name}" for name in table["filename"].tolist()])
    kept = {name: values[rows] for name, values in table.items()}
    split = codes_of(table["split"][rows], "split", label, {name: code for code, name in enumerate(_SPLITS)})
    names = _category_names(release)
    taken = [_time(text, label) for text in kept["datetime"].tolist()]
    labels = integers_of(kept["y"], "y", label)
    factors = [
        nominal("category", [names.get(str(number), number) for number in labels]),
        nominal("location", integers_of(kept["location_remapped"], "location_remapped", label)),
        nominal("sequence", integers_of(kept["sequence_remapped"], "sequence_remapped", label), role="key"),
        *(_ordinal(name, [getattr(time, name) for time in taken]) for name in ("year", "month", "hour")),
        (Factor("split", Kind.NOMINAL, _SPLITS, role="split"), split),
    ]
    return ImageFilesDataset("iwildcam", table_of(factors), MemberImages(release, places), size)


def _ordinal(name: str, values: list[int]) -> tuple[Factor, Places]:
    levels = tuple(sorted(set(values)))
    codes = np.searchsorted(np.array(levels), np.array(values))
    return Factor(name, Kind.ORDINAL, levels, role="key"), codes


def _time(text: str, label: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise DamagedFile(f"{label}: {text!r} is no time such as 2013-01-17 13:02:20.000") from None


def _category_names(release: MemberIndex) -> dict[str, str]:
    """Name of each label, where the release tells them."""
    if _NAMES not in release:
        return {}
    place = release.place(_NAMES)
    label = release.label(place)
    text = text_of(comma_separated(release.read(place, _MOST)), label)
    lines = csv.DictReader(io.StringIO(text, newline=""))
    if not {"y", "name"} <= set(lines.fieldnames or ()):
        raise DamagedFile(
            f"{label} has the columns {listed(lines.fieldnames or ['none'])}; y and name were expected, the numbers of "
            "categories and their names"
        )
    return {line["y"]: line["name"] for line in lines if line.get("y") and line.get("name")}
