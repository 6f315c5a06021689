"""Waterbirds: 11,788 birds of CUB-200-2011, cut out and laid over places of land or water, which mislead.

Convention
----------
Rows are the lines of ``metadata.csv``. In training 95 % of the water birds are over water, and of the land birds over
land; in validation and test, half of each.
"""

from pathlib import Path

from setsup.datasets.adapters.factor_columns import nominal, table_of
from setsup.datasets.adapters.image_files import ImageFilesDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.benchmarks.wilds.release import codes_of, find_release, rows_with_images
from setsup.datasets.images import check_size
from setsup.factors import Factor, Kind

__all__ = ["open"]

_COLUMNS = ("img_filename", "y", "split", "place")
_IMAGES = {r"[0-9]{3}\.[^/]+/[^/]+\.jpg": "001.Black_footed_Albatross/*.jpg"}


def open(root: Path | str | None = None, size: tuple[int, int] | None = None) -> ImageFilesDataset:
    """Open Waterbirds: the folder ``waterbirds_v1.0`` of WILDS or the published ``waterbird_complete95_forest2water2``.

    Factors: ``bird`` and ``place``, each land or water, whose four combinations are the groups of group DRO;
    ``species``, the folder of the image, nested in the bird; and ``split``.

    `size` (height, width), optional.

    References
    ----------
    .. [1] Sagawa, Koh, Hashimoto, Liang, "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020.

    """
    size = check_size(size)
    release, table = find_release("waterbirds", root, "metadata.csv", _COLUMNS, _IMAGES, "v1.0")
    label = release.label(release.place("metadata.csv"))
    rows, places = rows_with_images(release, table["img_filename"].tolist())
    kept = {name: values[rows] for name, values in table.items()}
    levels = {"0": 0, "1": 1}
    factors = [
        (Factor("bird", Kind.NOMINAL, ("land", "water")), codes_of(kept["y"], "y", label, levels)),
        (Factor("place", Kind.NOMINAL, ("land", "water")), codes_of(kept["place"], "place", label, levels)),
        nominal("species", [name.split("/")[0] for name in kept["img_filename"].tolist()], within="bird"),
        (
            Factor("split", Kind.NOMINAL, ("train", "val", "test"), role="split"),
            codes_of(kept["split"], "split", label, {"0": 0, "1": 1, "2": 2}),
        ),
    ]
    return ImageFilesDataset("waterbirds", table_of(factors), MemberImages(release, places), size)
