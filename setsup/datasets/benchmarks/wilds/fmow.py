"""FMoW-WILDS: satellite images of 62 kinds of places, by year and region of the world.

Convention
----------
Rows are the lines of ``rgb_metadata.csv`` without the sequestered ones; the image of line i, sequestered lines counted,
is ``images/rgb_img_<i>.png``.
"""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from setsup.arrays import Places
from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.wilds.release import Metadata, Texts, find_release, read_table, rows_with_images
from setsup.datasets.images import check_size
from setsup.errors import DamagedFile
from setsup.factors import Factor, Kind

__all__ = ["open"]

_TABLE, _COUNTRIES = "rgb_metadata.csv", "country_code_mapping.csv"
_SPLITS = ("train", "id_val", "id_test", "val", "test")
_COLUMNS = ("split", "category", "country_code", "timestamp")
_IMAGES = {r"images/rgb_img_[0-9]+\.png": "images/rgb_img_*.png"}
_VALIDATION, _TEST = 2013, 2016
_YEARS = tuple(range(2002, 2018))


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open FMoW-WILDS: the folder ``fmow_v1.1``, or a zip or tar of it.

    Factors: ``category``, ``region`` (by ``country_code_mapping.csv``, ``Other`` where that has none for the country),
    ``year``, the key ``country``, and ``split``, which is WILDS' ``time_after_2016``: ``train``, ``id_val`` and
    ``id_test`` were taken before 2013, ``val`` before 2016, ``test`` later. Images that WILDS uses in no part have no
    split.

    `size` (height, width), optional; images have 224 × 224 pixels.

    References
    ----------
    .. [1] Christie, Fendley, Wilson, Mukherjee, "Functional Map of the World", CVPR 2018.
    .. [2] Koh, Sagawa, Marklund et al., "WILDS: A Benchmark of in-the-Wild Distribution Shifts", ICML 2021, section 4.

    """
    size = check_size(size)
    release, table = find_release("fmow", root, _TABLE, _COLUMNS, _IMAGES, "v1.1")
    label = release.label(release.place(_TABLE))
    lines = np.flatnonzero(table["split"] != "seq")
    rows, places = rows_with_images(release, [f"images/rgb_img_{line}.png" for line in lines.tolist()])
    kept: Metadata = {name: values[lines[rows]] for name, values in table.items()}
    years = np.array([_year(text, label) for text in kept["timestamp"].tolist()])
    countries = read_table(release, _COUNTRIES, ("alpha-3", "region"))
    regions = dict(zip(countries["alpha-3"].tolist(), countries["region"].tolist(), strict=True))
    levels = tuple(sorted({*_YEARS, *years.tolist()}))
    factors = [
        nominal("category", kept["category"].tolist()),
        nominal("region", [regions.get(code) or "Other" for code in kept["country_code"].tolist()]),
        (Factor("year", Kind.ORDINAL, levels), np.searchsorted(np.array(levels), years)),
        nominal("country", kept["country_code"].tolist(), role="key"),
        (Factor("split", Kind.NOMINAL, _SPLITS, role="split"), _parts(kept["split"], years)),
    ]
    return ImageFilesDataset("fmow", table_of(factors), MemberImages(release, places), size)


def _parts(split: Texts, years: Places) -> Places:
    """Part of each image by the published one and its year; −1 for none."""
    before, between, after = years < _VALIDATION, (years >= _VALIDATION) & (years < _TEST), years >= _TEST
    conditions = [
        (split == "train") & before,
        (split == "val") & before,
        (split == "test") & before,
        (split == "val") & between,
        (split == "test") & after,
    ]
    return np.select(conditions, range(len(conditions)), -1)


def _year(text: str, label: str) -> int:
    try:
        taken = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return taken.year if taken.tzinfo is None else taken.astimezone(UTC).year
    except (ValueError, OverflowError):
        raise DamagedFile(f"{label}: {text!r} is no time such as 2015-08-01T08:54:30Z") from None
