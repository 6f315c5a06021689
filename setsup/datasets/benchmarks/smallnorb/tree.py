"""SmallNORB as a tree of JPEG files: ``<category>/<instance>/azimuth0_elevation0_lighting0_lt.jpg``, as LORD uses it.

The tree is an export of the published files by an unpublished program. Categories are folders with their names or
published numbers, instances those of the release. Angles may be written as the release stores them (azimuth 0, 2 … 34,
elevation 0 … 8), as indices (azimuth 0, 1 … 17) or in degrees; the form is inferred from all values of the tree.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setsup.arrays import Array, Rows
from setsup.datasets.adapters.fetching import fetch_images
from setsup.datasets.adapters.image_files import ReleaseDataset
from setsup.datasets.adapters.image_sources import MemberImages
from setsup.datasets.dataset import Modality
from setsup.errors import DataError
from setsup.factors import FactorTable
from setsup.files.archives.members import MemberIndex

__all__ = ["FILE", "SmallNorbTree"]

FILE = r"(?P<category>\w+)/(?P<instance>[0-9]{1,2})/azimuth(?P<azimuth>[0-9]{1,3})_elevation(?P<elevation>[0-9]{1,2})_"
FILE += r"lighting(?P<lighting>[0-5])_(?P<camera>lt|rt)\.jpg"
"""Names of the files, from the folder of the categories on (RE2)."""

_CATEGORIES = {
    **{str(number): number for number in range(5)},
    **{"animal": 0, "animals": 0, "human": 1, "humans": 1, "airplane": 2, "airplanes": 2, "plane": 2, "truck": 3},
    **{"trucks": 3, "car": 4, "cars": 4},
}
# how angles may be written: the values of all places
_AZIMUTHS = (tuple(range(0, 36, 2)), tuple(range(18)), tuple(range(0, 360, 20)))
_ELEVATIONS = (tuple(range(9)), tuple(range(30, 75, 5)))
_TEST = (0, 1, 2, 3, 5)  # instances of every category

_log = logging.getLogger("setsup")


class SmallNorbTree(ReleaseDataset):
    """Images of toys from JPEG files, one row each, with the factors of :class:`~.dataset.SmallNorb`.

    Rows are sorted by split, category, instance, elevation, azimuth, lighting and camera, unlike in the published
    files. The only modality is ``image``, (96, 96, 1) uint8 grayscale, with the compression of the export.

    Parameters
    ----------
    members : MemberIndex
        The tree.
    factors : tuple of Factor
        Those of SmallNORB.

    Raises
    ------
    DataError
        When a folder is not a category, an instance is invalid, or the angles have an unknown form.

    """

    name = "smallnorb"

    def __init__(self, members: MemberIndex, factors: tuple[Any, ...]) -> None:
        places, groups = members.matching(FILE)
        columns = _columns(members, groups)
        order = np.lexsort([columns[factor.name] for factor in (*factors[-2::-1], factors[-1])])
        self._source = members.source
        self._images = MemberImages(members, places[order])
        self.factors = FactorTable(list(factors), {name: codes[order] for name, codes in columns.items()})
        self.modalities = {"image": Modality((96, 96, 1), "uint8", color="grey")}

    def _read(self, name: str, rows: Rows, out: Array) -> Array:
        return fetch_images(self._images, rows, self.modalities[name].shape, out=out)

    def prepare(self) -> list[Path]:
        """Return nothing: JPEG files need no conversion."""
        return []


def _columns(members: MemberIndex, groups: Mapping[str, Any]) -> dict[str, npt.NDArray[np.uint8]]:
    texts = {name: np.array(column.to_pylist()) for name, column in groups.items()}
    unknown = sorted(set(texts["category"].tolist()) - set(_CATEGORIES))
    if unknown:
        raise DataError(
            f"{members.source}: the folder {unknown[0]!r} is not a category of SmallNORB; expected animal, human, "
            "airplane, truck, car or 0 to 4"
        )
    numbers = {name: texts[name].astype(np.int64) for name in ("instance", "azimuth", "elevation", "lighting")}
    if numbers["instance"].max() > 9:
        raise DataError(f"{members.source}: instances must be from 0 to 9, not {numbers['instance'].max()}")
    codes_by_name = {
        "category": np.array([_CATEGORIES[text] for text in texts["category"]]),
        "instance": numbers["instance"],
        "elevation": _places(members, "elevation", numbers["elevation"], _ELEVATIONS),
        "azimuth": _places(members, "azimuth", numbers["azimuth"], _AZIMUTHS),
        "lighting": numbers["lighting"],
        "camera": texts["camera"] == "rt",
        "split": np.isin(numbers["instance"], _TEST),
    }
    return {name: codes.astype(np.uint8) for name, codes in codes_by_name.items()}


def _places(members: MemberIndex, name: str, values: Rows, ways: tuple[tuple[int, ...], ...]) -> Rows:
    """Places of angles among those that there are, by the way in which all of the tree are written."""
    there = set(np.unique(values).tolist())
    fits = [way for way in ways if there <= set(way)]
    if not fits:
        raise DataError(
            f"{members.source}: the {name}s {', '.join(map(str, sorted(there)[:5]))} … do not match a known numbering; "
            f"expected {' or '.join(f'{way[0]}, {way[1]} … {way[-1]}' for way in ways)}"
        )
    if len(fits) > 1 and there != {0}:
        _log.warning(
            "%s: the %ss in this part of the folder tree are ambiguous; they are read as %d, %d … %d",
            *(members.source, name, fits[0][0], fits[0][1], fits[0][-1]),
        )
    return np.searchsorted(fits[0], values)
